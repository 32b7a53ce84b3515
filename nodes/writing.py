"""The answer's text: written, checked against its sources, and, in mode reflect, criticised and revised."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

from agents.candidates import prose
from agents.entities import group_names
from agents.failures import one_line
from agents.structured import UNREADABLE, Spent, answered, raise_refusal
from nodes.briefs import cited_sources, language_of, request, usable, writer_brief
from nodes.citations import TEXTS, Checked, check_citations, plain_answer
from nodes.flags import Asked, flag_claims
from nodes.parts import Parts
from nodes.readiness import seconds_left, tokens_left
from nodes.roles import REVIEW_SCHEMA, ask_role
from schemas.evidence import Source, Usage
from schemas.state import StopReason, TaskState

MIN_SECONDS = 30.0
WRITE_SECONDS = 120.0
MAX_REVISIONS = 2
STOPPED = {
    "en": "The plan was not approved; nothing was run.",
    "zh": "计划未获批准；没有执行任何步骤。",
}


@dataclass
class Draft:
    """One version of the answer; `faults` are its unknown citations and unsupported claims."""

    raw: str
    checked: Checked
    faults: frozenset[str]


async def written(parts: Parts, state: TaskState, reason: StopReason) -> tuple[Checked, Usage]:
    """Return the answer with its citations checked, and what it cost."""
    language = language_of(state["objective"])
    known = cited_sources(state)
    full = await full_texts(parts, known)
    raw, usage = await first_text(parts, state, known, language, reason)
    asked = Asked(state["objective"], group_names(parts.registry.catalogue()))
    draft = examined(raw, known, full, language, asked)
    if state["choices"].mode != "reflect" or not usable(state):
        return draft.checked, usage
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
        revised = examined(raw, known, full, language, asked)
        # A revision may not add a claim without a source, and a writer that fails takes nothing away.
        if says_anything(raw, known) and revised.faults <= draft.faults:
            draft = revised
    return draft.checked, usage


def may_go_on(state: TaskState, spent: Usage) -> bool:
    """Return whether the run has the seconds and the tokens for another look at its answer."""
    usage = state["usage"] + spent
    limits = state["limits"]
    return seconds_left(limits, state["evidence"], usage) > 0 and tokens_left(limits, usage) != 0


def examined(raw: str, known: list[Source], full: dict[str, str], language: str, asked: Asked) -> Draft:
    """Check a text's citations and claims by code."""
    checked = check_citations(raw, known)
    flagged = flag_claims(checked, known, full, language, asked)
    return Draft(raw, checked, frozenset([*checked.dropped, *flagged]))


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
) -> tuple[str, Usage]:
    """Return the answer's text, unchecked, and what it cost. A writer that fails leaves the findings themselves."""
    texts = TEXTS[language]
    findings = usable(state)
    if not findings and reason in ("cancelled", "plan_rejected"):
        return STOPPED[language], Usage()
    if not findings:
        problem = f"\n\n{state['problem']}" if state.get("problem") else ""
        return texts["nothing"] + problem, Usage()
    text, note, usage = await ask_writer(parts, state, writer_brief(state, known, language))
    if says_anything(text, known):
        return text, usage
    return (f"({note})\n\n" if note else "") + plain_answer(findings, known, language), usage


def says_anything(text: str, known: list[Source]) -> bool:
    """Return whether words are left of a text once its citations are checked."""
    return any(c.isalnum() for c in re.sub(r"\[\d+\]", "", check_citations(text, known).text))


async def ask_writer(parts: Parts, state: TaskState, brief: dict[str, Any]) -> tuple[str, str, Usage]:
    """Return the writer's text, or "" and why there is none; and what it cost."""
    messages = request("writer", brief, state["limits"].max_request_chars)
    began = parts.clock()
    spent = Spent("writer")
    text = note = ""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            message = await answered(parts.models.role("writer"), messages, spent, lambda: MIN_SECONDS)
        raise_refusal(message)
        text = prose(message.text)
    except UNREADABLE:
        note = "the writer's answer could not be read"
    except Exception as error:  # noqa: BLE001 - the findings are there, whatever the writer does
        note = one_line(error, 200)
    return text, note, spent.usage + Usage(seconds=parts.clock() - began)
