"""The model of runs that are killed: its answers follow from the request alone, so that a new process goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from tests.kill.scenes import Scene, scene_of
from tests.scripted import call, calls, finding, plan, review

STOPS = {"planner": "plan", "reviewer": "review", "writer": "finish"}


class StatelessModel(BaseChatModel):
    """Every role of a World."""

    world: Any
    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "stateless"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
        return StatelessModel(world=self.world, bound=names)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        brief = json.loads(next(m.text for m in messages if isinstance(m, HumanMessage)))
        role = brief["role"]
        await self.world.reach(STOPS.get(role, role))
        await asyncio.sleep(self.world.order.latency / 5)
        scene = scene_of(brief["objective"])
        answer = work(scene, brief, messages) if role == "worker" else ANSWERS[role](scene, brief)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def repaired(scene: Scene, brief: dict[str, Any]) -> AIMessage:
    """Return the repair of what is open: the first one whose step has not been tried."""
    known = json.dumps(brief)
    todo = next(steps for steps in scene.repairs if f'"{steps[0]["id"]}"' not in known)
    return plan(*todo)


def written(_: Scene, brief: dict[str, Any]) -> AIMessage:
    lines = [f"{f['summary']} {''.join(f'[{n}]' for n in f['cite'])}" for f in brief["findings"]]
    return AIMessage("\n".join(lines))


ANSWERS: dict[str, Callable[[Scene, dict[str, Any]], AIMessage]] = {
    "planner": lambda scene, _: plan(*scene.first),
    "replanner": repaired,
    "reviewer": lambda *_: review(approved=True),
    "writer": written,
}


def work(scene: Scene, brief: dict[str, Any], messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the step's next round of calls, or its finding, which cites everything that was fetched."""
    name = brief["step"]["id"]
    turn = sum(isinstance(m, AIMessage) for m in messages)
    if turn < len(scene.rounds[name]):
        # Servers of one's own use the same ids in every answer; the ledger must not take one call for another.
        wanted = scene.rounds[name][turn]
        return calls(*(call(tool, f"call_{i}", query=q) for i, (tool, q) in enumerate(wanted)))
    texts = [m.text for m in messages if isinstance(m, ToolMessage)]
    fetched = [
        source
        for text in texts
        for source in scene.sources()
        if f'{source}"' in text or f"[{source}]" in text
    ]
    carried = [i for d in brief["dependencies"] for i in d["source_ids"]]
    return finding(name, *(fetched or carried), met=name not in scene.unmet, call_id="answer")
