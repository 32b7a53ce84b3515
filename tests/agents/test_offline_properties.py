"""Whatever the embedded model is sent, its answers fit the schemas."""

import json
from typing import Annotated, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import Field

from agents.offline import OfflineChatModel
from schemas.evidence import Finding, Review
from schemas.plan import parse_draft

MODEL = OfflineChatModel()
NAMES = [
    "search_documents",
    "read_document",
    "query_tables",
    "other",
    "list_files",
    "read_file",
    "search_files",
]
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

words = st.sampled_from(
    [
        "compare",
        "price",
        "价格",
        "的",
        "和",
        "and",
        "alda",
        "borek-2",
        "①",
        "😀",
        "{",
        "}",
        "[x]",
        "(y)",
        ":",
        "",
        "：",
        "“",
        "”",
        "|",
        "-",
        "#",
        "$19",
        "2020",
        "�",
        "\x00",
        "\n",
        "原因",
        "提出",
        "建议",
        "read",
        "list the tests",
        "README",
        "src/a.py (3 bytes)",
        "then",
        "读取文件",
        "In the files: read the build file",
        "The question is answered, with a source",
    ]
)
texts = st.one_of(st.text(max_size=60), st.lists(words, max_size=12).map(" ".join))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def maybe_wrong(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategy, strategy, strategy, anything)


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={k: maybe_wrong(v) for k, v in fields.items()})


documents = record(path=texts, title=texts, headings=st.lists(texts, max_size=4))
groups = st.lists(record(name=texts, documents=st.lists(documents, max_size=3)), max_size=8)
columns = st.lists(
    record(name=texts, type=st.sampled_from(["VARCHAR", "BIGINT", ""]), distinct=st.integers(0, 40))
)
tables = st.lists(record(name=texts, rows=st.integers(0, 99), columns=columns), max_size=9)
catalogues = st.fixed_dictionaries({"documents": record(groups=groups), "tables": tables})
limits = st.fixed_dictionaries({"max_steps": st.integers(1, 20), "tool_budget": st.integers(0, 40)})
tools = st.lists(st.sampled_from(NAMES), unique=True).map(lambda names: [{"name": n} for n in names])
criteria = st.lists(texts.filter(str.strip), min_size=1, max_size=20)


def answer(request: dict[str, Any], *later: BaseMessage, bound: Any = ()) -> AIMessage:
    messages = [HumanMessage(json.dumps(request)), *later]
    made = MODEL.bind_tools(bound).invoke(messages) if bound else MODEL.invoke(messages)
    assert isinstance(made, AIMessage)
    made.text.encode("utf-8")
    return made


@quick
@given(
    objective=st.one_of(texts, texts.map(lambda t: (t * 20_000)[:20_000])),
    catalogue=catalogues,
    limit=limits,
    offered=tools,
)
def test_a_plan_is_valid_and_within_its_limits(
    objective: str, catalogue: Any, limit: Any, offered: Any
) -> None:
    request = {
        "role": "planner",
        "objective": objective,
        "catalogue": catalogue,
        "limits": limit,
        "tools": offered,
    }
    made = json.loads(answer(request).text)
    draft = parse_draft(made, tools=[t["name"] for t in offered], max_steps=limit["max_steps"])
    assert draft.steps
    assert sum(s.tool_budget for s in draft.steps) <= limit["tool_budget"]


step_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", fullmatch=True) | st.sampled_from(
    ["compare", "conclude", "a-2"]
)
tried = st.fixed_dictionaries(
    {"step_id": step_ids},
    optional={
        "task": texts,
        "success_criteria": criteria,
        "error_type": st.sampled_from(["criteria_unmet", "dependency_failed", "auth", None]),
        "criteria": st.lists(record(criterion=texts, met=st.booleans()), max_size=3),
        "queries": st.lists(texts, max_size=3),
    },
)


@quick
@given(
    objective=texts,
    attempts=st.lists(tried, max_size=6, unique_by=lambda t: t["step_id"].casefold()),
    passed=st.lists(step_ids, max_size=4, unique=True),
    limit=limits,
    offered=tools,
    catalogue=catalogues,
)
def test_a_replan_is_valid_and_takes_no_used_id(
    objective: str, attempts: Any, passed: Any, limit: Any, offered: Any, catalogue: Any
) -> None:
    taken = [t["step_id"] for t in attempts] + passed
    gaps = [{"description": "d", "step_id": t["step_id"], "recoverable": True} for t in attempts]
    request = {
        "role": "replanner",
        "objective": objective,
        "passed": [{"step_id": p} for p in passed],
        "gaps": gaps,
    }
    request |= {
        "tried": attempts,
        "taken_ids": taken,
        "tools": offered,
        "limits": limit,
        "catalogue": catalogue,
    }
    made = json.loads(answer(request).text)
    if made["steps"]:
        names = [t["name"] for t in offered]
        draft = parse_draft(made, tools=names, max_steps=limit["max_steps"], known=passed, taken=taken)
        assert sum(s.tool_budget for s in draft.steps) <= max(limit["tool_budget"], 0)


def searching(name: str, parameter: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


BOUND = [
    searching("search_documents", "query"),
    searching("query_tables", "sql"),
    searching("read_document", "source_id"),
]


def price_of(article: str, month: Annotated[str, Field(pattern=r"^\d{4}$")], count: int) -> str:
    """Look up the price of an article."""
    return f"{article} {month} {count}"


FILES_AND_OWN = [
    searching("list_files", "pattern"),
    searching("read_file", "path"),
    searching("search_files", "text"),
    StructuredTool.from_function(price_of),
]
blocks = st.lists(
    st.tuples(words, texts, texts).map(lambda b: f"[{b[0]}] {b[1]} ({b[1]}.md#L1)\n{b[2]}"), max_size=4
)
results = st.one_of(texts, blocks.map("\n\n".join))
dependencies = st.lists(
    record(
        step_id=texts,
        summary=results,
        source_ids=st.lists(texts, max_size=3),
        sources=st.lists(record(id=texts, locator=texts), max_size=2),
    ),
    max_size=3,
)


@quick
@given(
    objective=texts,
    step_criteria=criteria,
    task=texts,
    budget=st.integers(0, 10),
    given_results=st.lists(results, min_size=1),
    deps=dependencies,
    failing=st.booleans(),
    offered=st.sampled_from([BOUND, FILES_AND_OWN, [*BOUND, *FILES_AND_OWN]]),
)
def test_a_worker_always_concludes_with_a_valid_finding(
    objective: str,
    step_criteria: Any,
    task: str,
    budget: int,
    given_results: Any,
    deps: Any,
    failing: bool,
    offered: Any,
) -> None:
    step = {"id": "s", "task": task, "success_criteria": step_criteria, "tool_budget": budget}
    request = {"role": "worker", "objective": objective, "step": step, "dependencies": deps}
    later: list[BaseMessage] = []
    calls: list[str] = []
    for _ in range(budget + 2):
        made = answer(request, *later, bound=offered if len(calls) < budget else ())
        if not made.tool_calls:
            finding = Finding.model_validate(json.loads(made.text))
            assert len(finding.criteria) == len(step_criteria)
            return
        calls += [str(c["id"]) for c in made.tool_calls]
        assert len(calls) == len(set(calls)) <= budget
        later.append(made)
        status = "error" if failing else "success"
        for index, call in enumerate(made.tool_calls):
            content = given_results[index % len(given_results)]
            later.append(ToolMessage(content, tool_call_id=str(call["id"]), status=status))
    raise AssertionError("no finding")


judged = record(
    id=texts,
    task=texts,
    passed=st.booleans(),
    reasoning=st.booleans(),
    error_type=texts,
    detail=texts,
    missing=st.lists(texts),
    criteria=st.lists(record(criterion=texts, met=st.booleans(), reason=texts), max_size=30),
)


@quick
@given(objective=texts, steps=st.lists(judged, max_size=25))
def test_a_review_is_valid(objective: str, steps: Any) -> None:
    review = Review.model_validate(
        json.loads(answer({"role": "reviewer", "objective": objective, "steps": steps}).text)
    )
    assert review.approved == (not review.gaps)


@quick
@given(
    request=record(
        objective=texts,
        findings=st.lists(record(step_id=texts, summary=results, cite=st.lists(st.integers(1, 9)))),
        sources=st.lists(record(n=st.integers(), locator=texts)),
        gaps=st.lists(texts),
        language=st.sampled_from(["zh", "en"]),
    )
)
def test_an_answer_is_text_for_any_findings(request: Any) -> None:
    assert answer({**request, "role": "writer"}).text.strip()
