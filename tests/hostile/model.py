"""The hostile chat model: one for each role; its answers follow from the seed, the role, the step and the turn alone."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from random import Random
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from agents.models import Models
from tests.hostile import forms, plans, work, writing
from tests.hostile.text import nasty, texts_in
from tests.hostile.tools import ORDER
from tests.hostile.world import World, task_here

HANGS = 0.02
BREAKS = 0.0005
PIECE = 40
ROOM_TO_RE_ASK = 6_000


class HostileModel(BaseChatModel):
    """Answers wrongly as often as its world says, and soundly otherwise, so that runs go deep."""

    role: str
    world: Any
    takes_tools: bool = True
    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "hostile"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        if not self.takes_tools:
            raise NotImplementedError
        names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
        return HostileModel(role=self.role, world=self.world, bound=names)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("everything here is asynchronous")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        world: World = self.world
        brief = opening(messages, world)
        role = str(brief.get("role", self.role))  # a replanner is a planner, a critic a reviewer
        step = brief["step"]["id"] if role == "worker" else ""
        if role == "worker":
            world.step_of_task[task_here()] = step
        inspect_request(messages, role, world)
        world.calls[role, step] += 1
        rng = world.roll(role, step)
        try:
            await wait(rng, world)
            answer = answer_of(rng, role, brief, messages, self.bound, world)
        except Exception:
            world.raised[role, step] += 1
            raise
        generations = [] if answer is None else [ChatGeneration(message=answer)]
        return ChatResult(generations=generations)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Give the same answer in pieces, over some time; now and then it breaks off, or just ends."""
        generations = (await self._agenerate(messages)).generations
        for number, piece in enumerate(pieces_of(generations[0].message if generations else None)):
            rng = self.world.roll("stream", str(number))
            await asyncio.sleep(rng.choice((0, 0, 0.01, 0.3)))
            if rng.random() < BREAKS:
                self.world.raised[str(opening(messages, self.world).get("role", self.role)), ""] += 1
                raise ConnectionError("the stream broke")
            yield ChatGenerationChunk(message=piece)


def pieces_of(answer: BaseMessage | None) -> Iterator[AIMessageChunk]:
    """Yield a message as a server streams it: its text, then the arguments of its calls, some characters at a time."""
    if not isinstance(answer, AIMessage):
        return
    if not isinstance(answer.content, str):
        yield AIMessageChunk(content=answer.content)
    for at in range(0, len(answer.text) if isinstance(answer.content, str) else 0, PIECE):
        yield AIMessageChunk(answer.text[at : at + PIECE])
    for index, given in enumerate([*answer.tool_calls, *answer.invalid_tool_calls]):
        args = (
            given["args"] if isinstance(given["args"], str) else json.dumps(given["args"], ensure_ascii=False)
        )
        for at in range(0, max(1, len(args)), PIECE):
            name, call_id = (given["name"], given["id"]) if at == 0 else (None, None)
            part = tool_call_chunk(name=name, args=args[at : at + PIECE], id=call_id, index=index)
            yield AIMessageChunk("", tool_call_chunks=[part])
    last = {"additional_kwargs": answer.additional_kwargs, "response_metadata": answer.response_metadata}
    yield AIMessageChunk("", usage_metadata=answer.usage_metadata, **last)


def models(world: World) -> Models:
    """Return a hostile model for each role; some that plan or review cannot be given tools."""
    rng = world.roll("models")
    roles = ("planner", "worker", "reviewer", "writer")
    made = {
        r: HostileModel(role=r, world=world, takes_tools=r == "worker" or rng.random() < 0.8) for r in roles
    }
    return Models(**made)


def opening(messages: list[BaseMessage], world: World) -> dict[str, Any]:
    """Return the JSON object that every request opens with."""
    text = next(m.text for m in messages if isinstance(m, HumanMessage))
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        world.fault(f"a request does not open with JSON: {text[:200]!r}")
        raise


def inspect_request(messages: list[BaseMessage], role: str, world: World) -> None:
    """Look for what a real server would refuse: bytes that are no text, calls without answers, too much of it all."""
    whole = json.dumps(
        [[m.content, getattr(m, "tool_calls", [])] for m in messages], ensure_ascii=False, default=str
    )
    try:
        whole.encode()
    except UnicodeEncodeError:
        world.fault(f"{role}: a request is not valid UTF-8")
    if any(
        "\x00" in text for text in texts_in([[m.content, getattr(m, "tool_calls", [])] for m in messages])
    ):
        world.fault(f"{role}: a request holds NUL")
    size = sum(len(m.text) + sum(len(str(c["args"])) for c in getattr(m, "tool_calls", [])) for m in messages)
    if size > world.max_request_chars * 1.1 + ROOM_TO_RE_ASK:
        world.fault(f"{role}: a request of {size} characters, {world.max_request_chars} are allowed")
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage) and message.tool_calls:
            problem = unanswered(message, messages[index + 1 :])
            if problem:
                world.fault(f"{role}: {problem}")


def unanswered(message: AIMessage, rest: Sequence[BaseMessage]) -> str:
    """Return what is wrong with the replies to a message's calls, or ""."""
    asked = Counter(call["id"] for call in message.tool_calls)
    replies: Counter[str | None] = Counter()
    for reply in rest:
        if isinstance(reply, AIMessage):
            break
        if isinstance(reply, ToolMessage):
            replies[reply.tool_call_id] += 1
    if None in asked or "" in asked or max(asked.values()) > 1:
        return f"call ids that a server refuses: {list(asked)[:5]}"
    return "" if asked == replies else f"calls {dict(asked)} were answered {dict(replies)}"


async def wait(rng: Random, world: World) -> None:
    if world.calm:
        return
    if rng.random() < HANGS * world.hostility["hang"]:
        await asyncio.Event().wait()
    await asyncio.sleep(rng.choice((0, 0, 0.01, 1, 3)))


def answer_of(
    rng: Random, role: str, brief: dict[str, Any], messages: list[BaseMessage], bound: list[str], world: World
) -> BaseMessage | None:
    """Return the next answer of a role, None for a response without any.

    Raises:
        Exception: whatever a client may raise.
    """
    bad = rng.random() < world.hostility["reviewer" if role == "critic" else role]
    if bad and rng.random() < 0.15:
        raise forms.error(rng, calm=world.calm)
    if bad and rng.random() < 0.03:
        return None
    if role == "worker":
        return worker_answer(
            rng, work.Desk(brief, messages, [t for t in bound if t != "Finding"]), bad, world
        )
    if role == "writer":
        return writer_answer(rng, brief, bad, world)
    turn = len(messages)
    if bad and rng.random() < 0.3:
        name = "Review" if role in ("reviewer", "critic") else "Plan"
        return forms.refusal(rng) if rng.random() < 0.05 else forms.useless(rng, name)
    if role == "critic":
        return forms.answered(rng, "Review", critic_answer(rng), turn)
    if role == "reviewer":
        return forms.answered(
            rng, "Review", plans.wrong_review(rng, brief) if bad else plans.review_of(brief), turn
        )
    if role == "replanner":
        answer = plans.wrong_repair(rng, brief) if bad else plans.repair_of(rng, brief)
    else:
        answer = plans.wrong_plan(rng, brief) if bad else plans.plan_of(rng, brief)
    return forms.answered(rng, "Plan", answer, turn)


def worker_answer(rng: Random, desk: work.Desk, bad: bool, world: World) -> BaseMessage:
    step = desk.brief["step"]["id"]
    if ("worker", step) not in world.moods:
        world.moods["worker", step] = (
            rng.choice(work.MOODS) if rng.random() < 0.3 * world.hostility["worker"] else ""
        )
    mood = world.moods["worker", step]
    desk.say = lambda finding: world.said(step, finding)
    if ORDER in desk.results and rng.random() < 0.5:
        return work.obedient(rng, desk)
    if mood and (desk.tools or mood == "never valid"):
        return work.in_mood(rng, desk, mood)
    return work.hostile(rng, desk) if bad else work.honest(rng, desk)


def critic_answer(rng: Random) -> dict[str, Any]:
    gaps = [{"description": (nasty(rng).strip() or "shorter")[:900]}]
    return {"approved": False, "gaps": gaps} if rng.random() < 0.6 else {"approved": True, "gaps": []}


def writer_answer(rng: Random, brief: dict[str, Any], bad: bool, world: World) -> BaseMessage:
    world.cited = None
    if bad:
        return writing.hostile(rng, brief)
    answer, cited = writing.honest(rng, brief)
    places = {source["n"]: source["locator"] for source in brief["sources"]}
    world.cited = [places[n] for n in cited]
    return answer
