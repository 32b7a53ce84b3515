"""What an endpoint can do, found out by asking it: each way to ask for a structured answer, tool calls, how fast."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict

from agents.calling import Asking, Line
from agents.endpoints import Method
from agents.failures import one_line
from agents.ladder import Structured
from agents.spoken import sound
from agents.structured import Schema, bound_by, first_valid

Verdict = Literal["works", "ignored", "refused"]
METHODS: tuple[Method, ...] = ("json_schema", "named", "required", "auto", "text")
_REQUEST: list[AnyMessage] = [
    SystemMessage("You fill in forms."),
    HumanMessage("A cat is called Mia and is 3 years old. Give her name and her age as one Animal."),
]
_TWO_CITIES: list[AnyMessage] = [
    SystemMessage("You answer with the tools. Calls that do not need each other go into one message."),
    HumanMessage("What is the weather in Rome, and what is it in Oslo? Look both up now, at once."),
]
_WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Return the weather in one city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Animal(BaseModel):
    """An animal."""

    model_config = ConfigDict(extra="forbid")

    name: str
    age: int


ANIMAL: Schema[Animal] = Schema("Animal", Animal.model_json_schema(), Animal.model_validate)


@dataclass(frozen=True)
class Probe:
    """What came of one request; `detail` says what the server answered where it was not what was asked for."""

    verdict: Verdict
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class Abilities:
    """What an endpoint can do.

    Attributes:
        methods: for each way of asking, what came of it.
        tools: whether tool calls come; parallel: how many came in one message, where two were asked for.
    """

    methods: dict[Method, Probe]
    tools: Probe
    parallel: int

    @property
    def advice(self) -> Structured | None:
        """What PLANWEAVE_STRUCTURED should be; None where no way gave a valid answer."""
        works = {method for method, probe in self.methods.items() if probe.verdict == "works"}
        # "auto" goes down this ladder by itself as long as it is refused, not ignored.
        first = next((m for m in ("named", "required", "auto") if self.methods[m].verdict != "refused"), None)
        if first in works:
            return "auto"
        if "json_schema" in works:
            return "json_schema"
        return "prompt" if "text" in works else None


async def abilities(model: BaseChatModel, clock: Callable[[], float] = time.monotonic) -> Abilities:
    """Ask a model in each way, one after the other; errors become verdicts."""
    line = Line(model, Asking(), failed=lambda _: None)
    methods: dict[Method, Probe] = {}
    for method in METHODS:
        methods[method] = await _timed(partial(_structured, line, method), clock)
    found: list[AIMessage] = []

    async def call_tools() -> tuple[Verdict, str]:
        message = await line.ask_once(model.bind_tools([_WEATHER], tool_choice="auto"), _TWO_CITIES)
        found.append(sound(message, ["weather"]))
        return ("works", "") if found[0].tool_calls else ("ignored", message.text[:200])

    tools = await _timed(call_tools, clock)
    return Abilities(methods, tools, len(found[0].tool_calls) if found else 0)


async def _structured(line: Line, method: Method) -> tuple[Verdict, str]:
    bound: Runnable[Any, Any]
    sent: Sequence[AnyMessage]
    bound, sent = bound_by(method, line.model, ANIMAL, _REQUEST)
    message = sound(await line.ask_once(bound, sent), [ANIMAL.name])
    value, problems = first_valid(message, ANIMAL)
    return ("works", "") if value is not None else ("ignored", "; ".join(problems)[:200])


async def _timed(ask: Callable[[], Awaitable[tuple[Verdict, str]]], clock: Callable[[], float]) -> Probe:
    began = clock()
    try:
        verdict, detail = await ask()
    except Exception as error:  # noqa: BLE001 - each client has errors of its own, and any of them is the answer here
        verdict, detail = "refused", one_line(error, 200)
    return Probe(verdict, clock() - began, detail)
