"""The scripted chat model: pops its next answer, records what it was asked, fails loudly on anything unexpected."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict, Field

from agents.models import Models

Answer = AIMessage | Exception | Callable[["Asked"], "AIMessage"]


class Asked(BaseModel):
    """One request, as the model saw it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    messages: list[BaseMessage]
    tools: list[str]

    @property
    def brief(self) -> dict[str, Any]:
        """The JSON object that opens the request."""
        return json.loads(next(m.text for m in self.messages if isinstance(m, HumanMessage)))

    @property
    def text(self) -> str:
        return "\n".join(m.text for m in self.messages)

    @property
    def chars(self) -> int:
        return len(self.text)


class UnexpectedCall(AssertionError):
    """The model was asked more often than the script has answers."""


class ScriptedModel(BaseChatModel):
    """Answers from a list, or from a function of the request."""

    answers: list[Any] = Field(default_factory=list, repr=False)
    by_step: dict[str, list[Any]] = Field(default_factory=dict, repr=False)
    asked: list[Asked] = Field(default_factory=list, repr=False)
    bound: list[str] = Field(default_factory=list, repr=False)
    shared: Any = Field(None, repr=False)
    always: Any = Field(None, repr=False)  # the answer when the list is used up

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        names = [t["function"]["name"] if isinstance(t, dict) else t.name for t in tools]
        return ScriptedModel(bound=names, shared=self)

    def answered(self, messages: list[BaseMessage]) -> Any:
        """Note a request, and return its answer; raise one that is an error."""
        script: ScriptedModel = self.shared or self
        asked = Asked(messages=list(messages), tools=self.bound)
        script.asked.append(asked)
        answer = script.next_answer(asked)
        if callable(answer):
            answer = answer(asked)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        answer = self.answered(messages)
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(deep=True))])

    def next_answer(self, asked: Asked) -> Any:
        queue = self.answers
        if self.by_step:
            step_id = asked.brief["step"]["id"]
            queue = self.by_step.get(step_id, self.answers)
        if not queue and self.always is not None:
            return self.always
        if not queue:
            raise UnexpectedCall(f"no answer left for: {asked.text[:500]}")
        return queue.pop(0)

    def done(self) -> bool:
        """Whether every scripted answer was used."""
        return not self.answers and not any(self.by_step.values())


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def calls(*tool_calls: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(tool_calls))


def step(step_id: str, *needs: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": step_id,
        "task": f"do {step_id}",
        "success_criteria": [f"{step_id} is known"],
        "depends_on": list(needs),
        **fields,
    }


def plan(*steps: dict[str, Any], **fields: Any) -> AIMessage:
    return calls(call("Plan", "p1", **{"goal": "the goal", "steps": list(steps), **fields}))


def finding(step_id: str, *sources: str, met: bool = True, call_id: str = "f1", **fields: Any) -> AIMessage:
    criteria = fields.pop("criteria", [{"criterion": f"{step_id} is known", "met": met, "reason": "r"}])
    args = {"summary": f"{step_id} found", "source_ids": list(sources), "criteria": criteria, **fields}
    return calls(call("Finding", call_id, **args))


def look(call_id: str = "c1", query: str = "q", tool: str = "look") -> AIMessage:
    return calls(call(tool, call_id, query=query))


def review(approved: bool = True, *gaps: dict[str, Any]) -> AIMessage:
    return calls(call("Review", "r1", approved=approved, gaps=list(gaps)))


def worker_for(*step_ids: str, source: str = "s1") -> ScriptedModel:
    """A worker that looks once and then answers, for each of the steps."""
    return ScriptedModel(by_step={i: [look(), finding(i, source)] for i in step_ids})


def models(planner: Any = None, worker: Any = None, reviewer: Any = None, writer: Any = None) -> Models:
    return Models(*(m or ScriptedModel() for m in (planner, worker, reviewer, writer)))
