"""The embedded planner: independent gathering steps, one that compares, one that concludes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.embedded import phrases
from agents.embedded.ask import Subject, is_figure, likely_documents, read_subject
from agents.embedded.files import FILE_TOOLS, FileTask, read_files_objective
from agents.embedded.ids import new_id
from agents.embedded.requests import DocumentCatalogue, PlannerRequest
from agents.embedded.tables import table_tasks
from agents.embedded.text import concept_words, cut, is_chinese, units

MAX_GATHERING = 12
MAX_STEP_BUDGET = 4
FILE_BUDGET = 3  # list all, list or read what is meant, and one to spare
DOCUMENT_TOOLS = ("search_documents", "read_document")
TABLE_TOOL = "query_tables"


@dataclass
class Work:
    """A gathering step before it has an id: what names it, its task, criteria, and tools."""

    name: str
    task: str
    criteria: list[str]
    tools: list[str] | None
    budget: int = field(default=0)

    def __post_init__(self) -> None:
        self.budget = self.budget or min(MAX_STEP_BUDGET, len(self.criteria) + 1)


def plan(request: PlannerRequest, *, simplest: bool = False) -> dict[str, Any]:
    """Return a PlanDraft as a dict.

    Args:
        request: the planner's request.
        simplest: plan one step only, because a richer plan was not accepted.
    """
    objective = "\n".join([request.objective, *request.feedback])
    subject = read_subject(objective, request.catalogue.documents)
    chinese = subject.ask.chinese
    room = max(1, min(MAX_GATHERING, request.limits.max_steps - 2, request.limits.tool_budget // 2 - 2))
    tools = {tool.name for tool in request.tools}
    tasks, questions = read_files_objective(request.objective) if set(FILE_TOOLS) <= tools else ([], [])
    if tasks and not simplest:
        return _file_plan(request, tasks[:room], questions, chinese)
    work = [] if simplest else _table_work(request, tools, room, chinese)
    if not work or _has_documents(request):
        work += _document_work(request, subject, tools, 1 if simplest else max(1, room - len(work)))
    work = work[: max(1, request.limits.max_steps)]
    _fit_budget(work, request.limits.tool_budget)
    ids: list[str] = []
    steps = [_step(item, new_id(item.name, ids)) for item in work]
    steps += _closing_steps(subject, ids, request.limits.max_steps - len(steps))
    return {
        "goal": cut(request.objective.strip(), 300),
        "assumptions": _assumptions(request, chinese),
        "steps": steps,
    }


def document_tools(tools: Iterable[str]) -> list[str] | None:
    """Return the tools of a step that searches documents; None leaves the choice open: there are no documents."""
    names = set(tools)
    return [t for t in DOCUMENT_TOOLS if t in names] if DOCUMENT_TOOLS[0] in names else None


def _file_plan(
    request: PlannerRequest, tasks: Sequence[FileTask], questions: Sequence[str], chinese: bool
) -> dict[str, Any]:
    """Return a plan that lists and reads files side by side, and tells from them what is asked."""
    work = [_file_work(task, chinese) for task in tasks][: max(1, request.limits.max_steps)]
    _fit_budget(work, request.limits.tool_budget)
    ids: list[str] = []
    steps = [_step(item, new_id(item.name, ids)) for item in work]
    if len(steps) < request.limits.max_steps:
        last = concluding_step("conclude", ids, ("、" if chinese else ", ").join(questions), chinese)
        asked = [phrases.criterion("", _bare(q), chinese=chinese, figure=False) for q in questions]
        steps.append({**last, "success_criteria": _criteria(asked) or last["success_criteria"]})
    return {
        "goal": cut(request.objective.strip(), 300),
        "assumptions": _assumptions(request, chinese),
        "steps": steps,
    }


def _file_work(task: FileTask, chinese: bool) -> Work:
    what = _bare(task.clause(chinese))
    verb = "list" if task.listing else "read"
    return Work(
        f"{verb}-{task.kind or task.what}",
        _task(phrases.said(phrases.FILES, chinese) + task.clause(chinese)),
        _criteria([phrases.criterion("", what, chinese=chinese, figure=False)]),
        list(FILE_TOOLS),
        FILE_BUDGET,
    )


def _bare(text: str) -> str:
    """Keep a clause from being read as "entity: aspect"."""
    return re.sub(r"[:：]\s*", " ", text)


def _has_documents(request: PlannerRequest) -> bool:
    return any(group.documents for group in request.catalogue.documents.groups)


def _table_work(request: PlannerRequest, tools: set[str], room: int, chinese: bool) -> list[Work]:
    if TABLE_TOOL not in tools:
        return []
    offered = [TABLE_TOOL, *(t for t in DOCUMENT_TOOLS[:1] if t in tools and _has_documents(request))]
    wanted = units(request.objective)
    most = max(1, min(6, room - 1))
    work = [
        Work(f"table-{name}", task, [phrases.table_criterion(name, chinese=chinese)], offered)
        for name, task in table_tasks(request.catalogue.tables, wanted, chinese, most)
    ]
    for item in work:
        item.budget = MAX_STEP_BUDGET
    return work


def _document_work(request: PlannerRequest, subject: Subject, tools: set[str], room: int) -> list[Work]:
    search = _Searching(subject, request.catalogue.documents, document_tools(tools))
    entities, aspects = subject.entities, subject.aspects
    if not entities and len(aspects) == 1 and room > 1:
        # One question: ask each of the documents that are clearly about it.
        entities = likely_documents(units(aspects[0]), search.catalogue, least=0.99, most=min(4, room))
        entities = entities if len(entities) > 1 else []
    if not entities:
        return [search.topic(aspect) for aspect in aspects[:room]]
    per_step = -(-len(entities) // room)
    if per_step > 1:
        packs = [entities[i : i + per_step] for i in range(0, len(entities), per_step)]
        return [search.entities(pack, aspects, pack[:2]) for pack in packs]
    slices = _slices(aspects, max(1, room // len(entities)))
    named = len(slices) > 1
    return [search.entities([e], part, [e, *part[:named]]) for part in slices for e in entities]


def _slices(aspects: Sequence[str], most: int) -> list[list[str]]:
    """Divide aspects over steps; figures, which are missing most often, get steps of their own first."""
    ordered = sorted(aspects, key=lambda a: not is_figure(a))
    if most >= len(ordered):
        return [[a] for a in ordered]
    return [*([a] for a in ordered[: most - 1]), ordered[most - 1 :]]


@dataclass(frozen=True)
class _Searching:
    """Makes the steps that search documents."""

    subject: Subject
    catalogue: DocumentCatalogue
    tools: list[str] | None

    @property
    def chinese(self) -> bool:
        return self.subject.ask.chinese

    def entities(self, entities: Sequence[str], aspects: Sequence[str], name: Sequence[str]) -> Work:
        """Return a step that looks for aspects of one or several entities."""
        pairs = [(entity, aspect) for entity in entities for aspect in aspects]
        joint = "、" if self.chinese else ", "
        who, what = joint.join(entities), joint.join(a for a in aspects if a)
        if self.chinese:
            task = f"在资料中查找{who}的{what or '要点'}"
        else:
            task = f"Find in the documents, for {who}: {what or 'key points'}"
        return self._work(name, task, [self._criterion(*pair) for pair in pairs], self._translated(pairs))

    def topic(self, aspect: str) -> Work:
        """Return a step that looks for one thing in all documents."""
        scope = self.subject.ask.scope
        brackets = "（{}）" if self.chinese else " ({})"
        about = aspect + brackets.format(scope) if scope else aspect
        where = ("在资料中查找：", "Find in the documents: ") if self.tools else ("查找：", "Find out: ")
        task = f"{where[0 if self.chinese else 1]}{about}"
        titles = likely_documents(units(aspect), self.catalogue)
        queries = self._translated([("", aspect)]) + [f"{title} {aspect}" for title in titles]
        work = self._work([aspect], task, [self._criterion("", about)], [aspect, *queries] if queries else [])
        work.budget = 3
        return work

    def _criterion(self, entity: str, aspect: str) -> str:
        return phrases.criterion(entity, aspect, chinese=self.chinese, figure=is_figure(aspect))

    def _work(self, name: Sequence[str], task: str, criteria: Sequence[str], queries: Sequence[str]) -> Work:
        if queries:
            task = phrases.with_queries(cut(task, 1000), [cut(q, 120) for q in queries[:8]], self.chinese)
        return Work("-".join(name), _task(task), _criteria(criteria), self.tools)

    def _translated(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return queries in the material's language, if it is not the objective's and the words are known."""
        titles = " ".join(d.title for g in self.catalogue.groups for d in g.documents)
        if not titles or is_chinese(titles) == self.chinese:
            return []
        found: list[str] = []
        for entity, aspect in pairs:
            words = [w for u in units(aspect) for w in concept_words(u.key, chinese=not self.chinese)[:2]]
            found.append(f"{entity} {' '.join(words) or aspect}".strip())
        return found


def _task(text: str) -> str:
    return cut(text, 2000)


def _criteria(criteria: Sequence[str]) -> list[str]:
    return [cut(c, 1000) for c in criteria[:20]]


def _fit_budget(work: Sequence[Work], total: int) -> None:
    """Lower the steps' budgets, the largest first, until they fit the run's."""
    while sum(item.budget for item in work) > max(0, total):
        max(work, key=lambda item: item.budget).budget -= 1


def _step(work: Work, step_id: str) -> dict[str, Any]:
    return {
        "id": step_id,
        "task": work.task,
        "success_criteria": work.criteria,
        "tools": work.tools,
        "tool_budget": work.budget,
    }


def _closing_steps(subject: Subject, gathering: Sequence[str], room: int) -> list[dict[str, Any]]:
    chinese = subject.ask.chinese
    steps: list[dict[str, Any]] = []
    if len(gathering) > 1 and room > 1:
        steps.append(comparing_step("compare", gathering, chinese))
    if room > 0:
        needs = [steps[-1]["id"]] if steps else gathering
        steps.append(concluding_step("conclude", needs, subject.ask.conclude, chinese))
    return steps


def comparing_step(step_id: str, needs: Sequence[str], chinese: bool) -> dict[str, Any]:
    """Return the step that sets findings side by side."""
    task = "把各步骤的发现逐项并列比较。" if chinese else "Set the findings side by side, aspect by aspect."
    return _reasoning_step(step_id, needs, task, phrases.said(phrases.SIDE_BY_SIDE, chinese))


def concluding_step(step_id: str, needs: Sequence[str], conclude: str, chinese: bool) -> dict[str, Any]:
    """Return the step that names what a conclusion can build on."""
    if chinese:
        task = f"列出得出结论可依据的发现：{conclude}" if conclude else "列出得出结论可依据的发现。"
    else:
        task = f"Name the findings that a conclusion can build on: {conclude or 'the objective'}"
    return _reasoning_step(step_id, needs, task, phrases.said(phrases.TO_BUILD_ON, chinese))


def _reasoning_step(step_id: str, needs: Sequence[str], task: str, criterion: str) -> dict[str, Any]:
    return {
        "id": step_id,
        "task": _task(task),
        "success_criteria": [criterion],
        "depends_on": list(needs[:20]),
        "tools": [],
        "tool_budget": 0,
    }


def _assumptions(request: PlannerRequest, chinese: bool) -> list[str]:
    text = (
        "按资料目录和目标用词分解；未使用语言模型。"
        if chinese
        else "Divided by the catalogue and the objective's words; no language model."
    )
    left_out = request.catalogue.documents.left_out
    if left_out > 0:
        more = (
            f"目录中略去了 {left_out} 个文档，检索仍覆盖它们。"
            if chinese
            else f"{left_out} documents are not in the catalogue; searches still cover them."
        )
        return [text, more]
    return [text]
