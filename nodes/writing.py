"""The answer's text: written, checked against its sources, and, in mode reflect, criticised and revised."""

import asyncio
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from agents.candidates import prose
from agents.entities import group_names
from agents.failures import one_line
from agents.long_texts import read_beside
from agents.structured import UNREADABLE, Spent, answered, raise_refusal
from nodes.briefs import cited_sources, language_of, request, usable, writer_brief
from nodes.citations import TEXTS, Checked, check_citations
from nodes.composing import plain_answer
from nodes.flags import Asked, Flagged, flag_claims
from nodes.parts import Parts
from nodes.readiness import seconds_left, tokens_left
from nodes.roles import REVIEW_SCHEMA, ask_role
from schemas.evidence import Source, Usage
from schemas.state import StopReason, TaskState

MIN_SECONDS = 30.0
WRITE_SECONDS = 120.0
MAX_REVISIONS = 2
MAX_DOUBTED = 10
REWRITE = (
    "Write the answer again. Leave out, or replace by what the excerpts say, what is named in brackets behind ⚠ "
    "in these lines; change nothing else, and write no ⚠:"
)
STOPPED = {
    "en": "The plan was not approved; nothing was run.",
    "zh": "计划未获批准；没有执行任何步骤。",
}


@dataclass(frozen=True)
class Material:
    """What every version of the answer is held against: the sources, their full texts by id, and what was asked."""

    known: list[Source]
    texts: dict[str, str]
    language: str
    asked: Asked


@dataclass
class Draft:
    """One version of the answer: as it was written, its citations checked, its claims held against their sources."""

    raw: str
    checked: Checked
    flagged: Flagged

    @property
    def faults(self) -> frozenset[str]:
        """Its unknown citations and unsupported claims."""
        return frozenset([*self.checked.dropped, *self.flagged.wrong])

    def settled(self) -> Checked:
        """Return the answer as its reader gets it."""
        return replace(self.checked, text=self.flagged.settled())


async def written(parts: Parts, state: TaskState, reason: StopReason) -> tuple[Checked, Usage]:
    """Return the answer with its citations checked, and what it cost."""
    language = language_of(state["objective"])
    known = cited_sources(state)
    texts = await full_texts(parts, known)
    asked = Asked(state["objective"], group_names(parts.registry.catalogue()))
    material = Material(known, texts, language, asked)
    raw, usage, by_writer = await first_text(parts, state, known, language, reason)
    if not usable(state):  # code's own words: what stopped the run
        return check_citations(raw, known), usage
    draft = await examined(raw, material)
    if by_writer and draft.flagged.doubted and may_be_rewritten(parts, state, usage):
        left = seconds_left(state["limits"], state["evidence"], state["usage"] + usage)
        draft, spent = await without_doubts(parts, state, draft, material, left)
        usage += spent
    if state["choices"].mode != "reflect":
        return draft.settled(), usage
    for _ in range(MAX_REVISIONS):
        if not may_go_on(state, usage):
            break
        remarks, spent = await criticised(parts, state, draft)
        usage += spent
        if not remarks:
            break
        more = {"previous": draft.raw, "remarks": remarks}
        raw, _, spent = await ask_writer(parts, state, writer_brief(state, known, language) | more)
        usage += spent
        revised = await examined(raw, material)
        # A revision may not add a claim without a source, and a writer that fails takes nothing away.
        if says_anything(raw, known) and revised.faults <= draft.faults:
            draft = revised
    return draft.settled(), usage


def may_be_rewritten(parts: Parts, state: TaskState, spent: Usage) -> bool:
    """Return whether the writer can be asked again: a model that might write something else, in a run with room for it."""
    from agents.offline import OfflineChatModel  # answers the same each time; not loaded where it is not used

    is_model = not isinstance(parts.models.role("writer").model, OfflineChatModel)
    return is_model and may_go_on(state, spent)


async def without_doubts(
    parts: Parts, state: TaskState, draft: Draft, material: Material, seconds: float
) -> tuple[Draft, Usage]:
    """Ask the writer once, within the seconds, for the answer without what no source holds; keep the better of the two."""
    lines = [draft.flagged.marked(piece).strip() for piece in draft.flagged.pieces if piece.wrong]
    remarks = [REWRITE, *lines[:MAX_DOUBTED]]
    brief = writer_brief(state, material.known, material.language)
    brief |= {"previous": draft.raw, "remarks": remarks}
    raw, _, usage = await ask_writer(parts, state, brief, seconds)
    again = await examined(raw, material)
    better = again.flagged.doubted < draft.flagged.doubted and len(again.checked.dropped) <= len(
        draft.checked.dropped
    )
    return (again if better and says_anything(raw, material.known) else draft), usage


def may_go_on(state: TaskState, spent: Usage) -> bool:
    """Return whether the run has the seconds and the tokens for another look at its answer."""
    usage = state["usage"] + spent
    limits = state["limits"]
    return seconds_left(limits, state["evidence"], usage) > 0 and tokens_left(limits, usage) != 0


async def examined(raw: str, material: Material) -> Draft:
    """Check a text's citations and claims by code."""

    def draft() -> Draft:
        checked = check_citations(raw, material.known)
        flagged = flag_claims(checked, material.known, material.texts, material.language, material.asked)
        return Draft(raw, checked, flagged)

    return await read_beside(draft, [raw, *material.texts.values()])


async def criticised(parts: Parts, state: TaskState, draft: Draft) -> tuple[list[str], Usage]:
    """Return a critic's remarks on the answer; none where it is content, or cannot be asked."""
    # As it was written: there the citations are numbered like the sources beside it.
    brief = writer_brief(state, cited_sources(state), language_of(state["objective"])) | {"answer": draft.raw}
    messages = request("critic", brief, state["limits"].max_request_chars)
    answer = await ask_role(parts, parts.models.reviewer, REVIEW_SCHEMA, messages, WRITE_SECONDS)
    if answer.value is None or answer.value.approved:
        return [], answer.usage
    return [gap.description for gap in answer.value.gaps], answer.usage


async def full_texts(parts: Parts, sources: list[Source]) -> dict[str, str]:
    """Return the whole texts behind sources, by id; where one is gone its excerpt has to do."""
    texts: dict[str, str] = {}
    for source in sources:
        try:
            texts[source.id] = (
                await parts.artifacts.get(source.artifact) if source.artifact else source.excerpt
            )
        except (KeyError, OSError):
            texts[source.id] = source.excerpt
    return texts


async def first_text(
    parts: Parts, state: TaskState, known: list[Source], language: str, reason: StopReason
) -> tuple[str, Usage, bool]:
    """Return the answer's text, unchecked, what it cost, and whether the writer wrote it.

    A writer that fails leaves the findings themselves.
    """
    texts = TEXTS[language]
    findings = usable(state)
    if not findings and reason in ("cancelled", "plan_rejected"):
        return STOPPED[language], Usage(), False
    if not findings:
        # Marked like a doubt: it may quote what a model answered instead.
        problem = " ".join((state.get("problem") or "").split())
        return texts["nothing"] + (f"\n\n⚠ {problem}" if problem else ""), Usage(), False
    if tokens_left(state["limits"], state["usage"]) == 0:
        spent = f"max_tokens of {state['limits'].max_tokens} are spent"
        return f"({spent})\n\n" + plain_answer(findings, known, language), Usage(), False
    text, note, usage = await ask_writer(parts, state, writer_brief(state, known, language))
    if says_anything(text, known):
        return text, usage, True
    return (f"({note})\n\n" if note else "") + plain_answer(findings, known, language), usage, False


def says_anything(text: str, known: list[Source]) -> bool:
    """Return whether words are left of a text once its citations are checked."""
    return any(c.isalnum() for c in re.sub(r"\[\d+\]", "", check_citations(text, known).text))


def write_seconds(state: TaskState) -> float:
    """Return how long the writer may take: a slow model gets what the run's steps get at least."""
    return max(WRITE_SECONDS, state["limits"].step_timeout_floor or 0)


async def ask_writer(
    parts: Parts, state: TaskState, brief: dict[str, Any], seconds: float = math.inf
) -> tuple[str, str, Usage]:
    """Return the writer's text, or "" and why there is none; and what it cost."""
    messages = request("writer", brief, state["limits"].max_request_chars)
    began = parts.clock()
    spent = Spent("writer")
    text = note = ""
    try:
        async with asyncio.timeout(min(write_seconds(state), seconds)):
            message = await answered(parts.models.role("writer"), messages, spent, lambda: MIN_SECONDS)
        raise_refusal(message)
        text = prose(message.text)
    except UNREADABLE:
        note = "the writer's answer could not be read"
    except Exception as error:  # noqa: BLE001 - the findings are there, whatever the writer does
        note = one_line(error, 200)
    return text, note, spent.usage + Usage(seconds=parts.clock() - began)
