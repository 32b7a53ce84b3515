"""What one attempt at a step has run and got back, written through to the Store before and after each tool body.

The ledger is the worker's only memory of tool runs that survives a crash: the budget is counted from it, finished
calls are answered from it, and the evidence's sources come from it. Its namespace names the superstep's checkpoint, the
step and the attempt: the same when an interrupted superstep is run again, and another one in a fork.

After a crash: a call whose end is recorded is answered from the record. One that was at work is run again if it only
reads or is idempotent, and counts again; any other is not, because nobody knows whether it took effect.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore

from agents.answers import Answers
from agents.call_record import TURN_DIGITS, CallRecord, call_key, shown, urls_in, whole
from schemas.evidence import ErrorType, Source
from tools.artifacts import ArtifactStore
from tools.results import SourceDraft, clean_text, cut, drafts_from

EXCERPT_CHARS = 400
# The row that holds the seconds worked before a pause; ids of calls begin with a digit.
WORKED = "~worked"
SILENT = ("", "[]", "{}", "null", "none", '""')


class StepLedger:
    """The record of one attempt.

    Args:
        store: the LangGraph Store; namespace: of this attempt in it.
        step_id: the step's id.
        grant: how many tool runs are reserved for the attempt.
        artifacts: where full texts go.
        max_result_chars: how much of one result a model sees.
        now: the clock.
    """

    def __init__(
        self,
        store: BaseStore,
        namespace: tuple[str, ...],
        *,
        step_id: str,
        grant: int,
        artifacts: ArtifactStore,
        max_result_chars: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._artifacts = artifacts
        self._max_result_chars = max_result_chars
        self._now = now
        self.step_id = step_id
        self.grant = grant
        self.answers = Answers()
        self.records: dict[str, CallRecord] = {}
        self.replayed: set[str] = set()
        self.closed: ErrorType | None = None
        self.worked = 0.0

    def restore(self, recorded: Sequence[Mapping[str, Any]]) -> None:
        """Take up what an interrupted run of this attempt has recorded."""
        self.worked = max((float(value[WORKED]) for value in recorded if WORKED in value), default=0.0)
        records = [CallRecord.model_validate(value) for value in recorded if WORKED not in value]
        self.records = {record.id: record for record in sorted(records, key=lambda record: record.id)}
        self.replayed = {record.id for record in records if record.state != "running"}
        for record in records:
            self.answers.restore(record.answers)

    @property
    def used(self) -> int:
        """Tool bodies started, every retry counted."""
        return sum(record.runs for record in self.records.values())

    @property
    def spent(self) -> bool:
        """Whether no tool body may start any more."""
        return self.closed is not None or self.used >= self.grant

    @property
    def successful_calls(self) -> int:
        """Calls that ended without an error."""
        return sum(record.state == "ok" for record in self.records.values())

    @property
    def failure(self) -> CallRecord | None:
        """The last call that failed, where no call succeeded."""
        failed = [record for record in self.records.values() if record.state == "error"]
        return failed[-1] if failed and not self.successful_calls else None

    @property
    def sources(self) -> dict[str, Source]:
        """All sources that the tools returned, by id, in the order of the calls."""
        found: dict[str, Source] = {}
        for record in self.records.values():
            for source in record.sources:
                found.setdefault(source.id, source)
        return found

    def brought_nothing_new(self) -> bool:
        """Return whether the last turn's calls returned only sources that earlier ones had."""
        if not self.records:
            return False
        turns = [record.id[:TURN_DIGITS] for record in self.records.values()]
        last = [r for r in self.records.values() if r.id[:TURN_DIGITS] == turns[-1]]
        before = {(s.id, s.sha256) for r in self.records.values() if r not in last for s in r.sources}
        found = [(s.id, s.sha256) for r in last for s in r.sources]
        return bool(found) and all(r.state == "ok" and r.sources for r in last) and before.issuperset(found)

    def close(self, reason: ErrorType) -> None:
        """Let no further tool body start; the first reason stays."""
        self.closed = self.closed or reason

    @property
    def refused(self) -> list[str]:
        """Calls that were not run, as tool(arguments)."""
        return [f"{r.tool}({r.arguments})" for r in self.records.values() if r.state == "refused"]

    async def refuse(self, identity: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Note a call that was not run, and return what the model is told."""
        why = (
            f"the step's budget of {self.grant} tool runs is spent"
            if self.used >= self.grant
            else "tools are closed"
        )
        record = self._record(identity, tool, arguments)
        record.state = "refused"
        record.content = f"Not run: {why}. Conclude with a Finding from what you have."
        await self._save(record)
        return record.content

    def twin(self, key: str) -> CallRecord | None:
        """Return a finished call with the same tool and arguments, if there is one."""
        return next((r for r in self.records.values() if r.key == key and r.state == "ok"), None)

    def reserve(self, identity: str, tool: str, arguments: Mapping[str, Any]) -> CallRecord | None:
        """Count one more run of a call, without waiting, so that parallel calls cannot overtake each other.

        Returns:
            The record, to be passed to `started`; None when the budget is spent.
        """
        if self.spent:
            return None
        record = self._record(identity, tool, arguments)
        record.runs += 1
        record.state = "running"
        return record

    def _record(self, identity: str, tool: str, arguments: Mapping[str, Any]) -> CallRecord:
        known = self.records.get(identity)
        if known is not None:
            return known
        record = CallRecord(
            id=identity,
            tool=tool,
            arguments=shown(arguments),
            urls=urls_in(whole(arguments)),
            key=call_key(tool, arguments),
            answers=self.answers.unsaved(),
        )
        # Calls of one answer may start in any order, and after a crash in another one.
        self.records = dict(sorted((self.records | {identity: record}).items()))
        return record

    async def started(self, record: CallRecord) -> None:
        """Store that a body is about to run."""
        await self._save(record)

    async def unrun(self, record: CallRecord) -> None:
        """Take a run back whose body did not run to an end of its own: it paused for a person."""
        record.runs -= 1
        await self._save(record)

    async def finished(self, record: CallRecord, content: Any, artifact: Any) -> str:
        """Store a result and return the text for the model: capped, with source ids."""
        text = clean_text(content if isinstance(content, str) else as_text(content))
        drafts = drafts_from(content, artifact)
        named = bool(drafts)
        if not drafts and not _empty(text, artifact):
            drafts = [self._own_draft(record, text)]
        record.sources = list(await asyncio.gather(*(self._source(record, draft) for draft in drafts)))
        # The full text is kept with the sources, once.
        record.content = self._for_model(text, label=None if named or not drafts else record.sources[0].id)
        record.state = "ok"
        await self._save(record)
        return record.content

    async def failed(self, record: CallRecord, message: str, error_type: ErrorType) -> None:
        """Store that the body ended with an error."""
        record.state, record.content, record.error_type = "error", message, error_type
        await self._save(record)

    async def keep_answers(self) -> None:
        """Store the model's last answers, where a call has been recorded before: the next thing may take long."""
        answers = self.answers.unsaved()
        if answers and self.records:
            record = [*self.records.values()][-1]
            record.answers |= answers
            await self._save(record)

    async def pause(self, seconds: float) -> None:
        """Store the seconds that the attempt has worked up to now: the wait for a person is free, they are not."""
        await self._store.aput(self._namespace, WORKED, {WORKED: seconds}, index=False)

    async def _save(self, record: CallRecord) -> None:
        await self._store.aput(self._namespace, record.id, record.model_dump(mode="json"), index=False)

    def _own_draft(self, record: CallRecord, text: str) -> SourceDraft:
        digest = hashlib.sha256(f"{record.key}\n{text}".encode()).hexdigest()[:7]
        locator = f"{record.tool}({record.arguments})"
        return SourceDraft(source_id=digest, locator=locator, title=record.tool, excerpt=text, text=text)

    async def _source(self, record: CallRecord, draft: SourceDraft) -> Source:
        text = clean_text(draft["text"] or draft["excerpt"])
        return Source(
            id=draft["source_id"],
            step_id=self.step_id,
            tool=record.tool,
            locator=clean_text(draft["locator"])[:1000] or f"{record.tool}({record.arguments})",
            title=clean_text(draft["title"])[:300],
            excerpt=clean_text(draft["excerpt"] or text)[:EXCERPT_CHARS],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            artifact=await self._artifacts.put(text),
            retrieved_at=self._now(),
        )

    def _for_model(self, text: str, label: str | None) -> str:
        labelled = f"[{label}]\n{text}" if label else text
        return cut(labelled, self._max_result_chars) or "(empty result)"


def _empty(text: str, artifact: Any) -> bool:
    # A built-in tool says "nothing found" in words, with an empty list as its artifact.
    return text.strip().casefold() in SILENT or artifact == []


def as_text(content: Any) -> str:
    """Return a tool's content as text: text blocks joined, other blocks named, never a Python repr of an object."""
    if isinstance(content, list) and all(isinstance(block, str | dict) for block in content):  # pyright: ignore[reportUnknownVariableType]
        parts = [_block_text(block) for block in content]  # pyright: ignore[reportUnknownVariableType]
        return "\n".join(part for part in parts if part)
    return json.dumps(content, ensure_ascii=False, default=str)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if "type" in block:
        return f"({block['type']} block left out)"
    return json.dumps(block, ensure_ascii=False, default=str)
