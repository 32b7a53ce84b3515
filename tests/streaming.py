"""A scripted planner that writes its answer piece by piece, and waits where the script says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableParallel

from tests.running import Bench, bench
from tests.scripted import ScriptedModel, call, calls

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
# Never waited for in full: whoever waits so long has not started what the test expects.
PATIENCE = 10


@dataclass
class Stream:
    """An answer in pieces: text is sent, an event is waited for, an error is raised, a function is called.

    Attributes:
        form: how it is sent: as a tool call's arguments, as JSON in text, or as native JSON (text, too).
    """

    pieces: Sequence[Any]
    form: str = "tool"

    @property
    def text(self) -> str:
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    def whole(self) -> AIMessage:
        """The same answer of a model that does not stream."""
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
        message = AIMessage(self.text)
        if self.form == "tool":
            message = calls(call("Plan", "p1", **json.loads(self.text)))
        message.usage_metadata = USAGE
        return message


class StreamingModel(ScriptedModel):
    """Streams what is a Stream; anything else comes in one piece."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
        return StreamingModel(bound=names, shared=self, disable_streaming=self.disable_streaming)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return RunnableParallel(raw=self)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        answer = self.answered(messages)
        message = answer.whole() if isinstance(answer, Stream) else answer
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = self.answered(messages)
        if isinstance(answer, AIMessage):
            yield ChatGenerationChunk(message=AIMessageChunk(**answer.model_dump(exclude={"type"})))
            return
        async for chunk in _chunks(answer):
            yield chunk


async def _chunks(answer: Stream) -> AsyncIterator[ChatGenerationChunk]:
    name: str | None = "Plan"
    for piece in answer.pieces:
        if isinstance(piece, asyncio.Event):
            await asyncio.wait_for(piece.wait(), PATIENCE)
        elif isinstance(piece, Exception):
            raise piece
        elif callable(piece):
            piece()
        elif answer.form == "tool":
            part = tool_call_chunk(name=name, args=piece, id="p1" if name else None, index=0)
            name = None
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[part]))
        else:
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
    yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=USAGE))


def written(*parts: Any, form: str = "tool", goal: str = "the goal", **fields: Any) -> Stream:
    """Return a plan as a stream of its steps; events and errors stand where they are waited for or raised."""
    head = json.dumps({"goal": goal, **fields}, ensure_ascii=False)[:-1]
    pieces: list[Any] = [head, ', "steps": [']
    first = True
    for part in parts:
        if isinstance(part, dict):
            text = ("" if first else ", ") + json.dumps(part, ensure_ascii=False)
            pieces += [text[: len(text) // 2], text[len(text) // 2 :]]
            first = False
        else:
            pieces.append(part)
    return Stream([*pieces, "]", "}"], form)


def bench_of(*answers: Any, streams: bool = True, **options: Any) -> Bench:
    """Return a bench whose planner gives these answers, as streams or, with streams=False, whole."""
    return bench(planner=StreamingModel(answers=list(answers), disable_streaming=not streams), **options)


def works(*ids: str, tool: str = "look") -> dict[str, list[Any]]:
    """Return the work of steps that look once, each for its own id, and then know."""
    from tests.scripted import finding, look

    return {i: [look(query=i, tool=tool), finding(i, f"s-{i}")] for i in ids}
