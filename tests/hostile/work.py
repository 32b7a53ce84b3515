"""What a worker answers: honest work, lies, calls of every wrong kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from tests.hostile.forms import answered, anyhow, call_of, message, refusal, useless
from tests.hostile.text import big, broken, nasty, phrase
from tests.hostile.world import INVENTED_FIGURE, UNKNOWN_IDS, UNKNOWN_URL

_LABEL = re.compile(r"^\[([^\]\n]{1,200})\]", re.MULTILINE)
MOODS = ("same call", "new calls", "never valid", "ghost calls")


@dataclass
class Desk:
    """What a worker has in front of it.

    Attributes:
        turn: how many answers it has given; ids: of sources it was shown.
        say: told of each Finding.
    """

    brief: dict[str, Any]
    messages: list[BaseMessage]
    tools: list[str]
    say: Callable[[Any], None] = lambda finding: None

    @property
    def turn(self) -> int:
        return sum(isinstance(m, AIMessage) for m in self.messages)

    @property
    def results(self) -> str:
        return "\n".join(m.text for m in self.messages if isinstance(m, ToolMessage))

    @property
    def ids(self) -> list[str]:
        carried = [i for d in self.brief.get("dependencies", []) for i in d["source_ids"]]
        return [*carried, *_LABEL.findall(self.results)]


def concluding(rng: Random, desk: Desk, finding: dict[str, Any]) -> AIMessage:
    """Return a Finding in one of its forms."""
    desk.say(finding)
    return answered(rng, "Finding", finding, desk.turn)


def final_call(desk: Desk, finding: dict[str, Any], call_id: Any) -> ToolCall:
    """Return a Finding as a call."""
    desk.say(finding)
    return call_of("Finding", finding, call_id)


def honest(rng: Random, desk: Desk) -> AIMessage:
    """Search once or twice, then conclude from what came back."""
    if desk.tools and desk.turn < rng.choice((1, 1, 2)):
        return searching(rng, desk, rng.randint(1, 3))
    return concluding(rng, desk, finding_of(rng, desk))


def searching(rng: Random, desk: Desk, number: int) -> AIMessage:
    calls = [arguments_for(rng, desk, n) for n in range(number)]
    return message(
        rng, "", *(call_of(name, args, f"c{desk.turn}-{n}") for n, (name, args) in enumerate(calls))
    )


def arguments_for(rng: Random, desk: Desk, n: int) -> tuple[str, dict[str, Any]]:
    name = "look" if "look" in desk.tools and rng.random() < 0.5 else rng.choice(desk.tools or ["look"])
    if name == "read_document":
        return name, {"source_id": rng.choice([*desk.ids, *UNKNOWN_IDS]), "offset": rng.choice((0, 0, 5, -1))}
    return name, {"query": f"q{desk.turn}.{n} {phrase(rng, 2)}"}


def finding_of(rng: Random, desk: Desk) -> dict[str, Any]:
    criteria = desk.brief["step"]["success_criteria"]
    ids = sorted({*desk.ids})
    return {
        "summary": f"found {phrase(rng)}",
        "source_ids": rng.sample(ids, min(len(ids), rng.randint(1, 3))),
        "criteria": [{"criterion": c, "met": True, "reason": "seen"} for c in criteria],
    }


def hostile(rng: Random, desk: Desk) -> BaseMessage:
    """Return one wrong answer."""
    kind = rng.randrange(15)  # lies most of all: what fits the schema is what gets through
    if kind == 0:
        return useless(rng, "Finding")
    if kind == 1 and rng.random() < 0.3:
        return refusal(rng)
    if kind in (2, 3):
        return wrong_calls(rng, desk)
    if kind == 4:  # calls beside the final answer
        beside = searching(rng, desk, rng.randint(1, 4))
        final = final_call(desk, lie(rng, desk), "f0")
        return message(rng, phrase(rng), *_mixed(rng, [*beside.tool_calls, final]))
    if kind == 5:
        both = [final_call(desk, finding_of(rng, desk), i) for i in ("f1", rng.choice(("f1", "f2")))]
        return message(rng, "", *both)
    if kind == 6:
        return concluding(rng, desk, broken(rng, finding_of(rng, desk)))
    if kind == 7:  # far more calls than anyone granted
        return searching(rng, desk, rng.randint(5, 15))
    return concluding(rng, desk, lie(rng, desk))


def lie(rng: Random, desk: Desk) -> dict[str, Any]:
    """Return a Finding that fits the schema and not the facts."""
    finding = finding_of(rng, desk)
    kind = rng.randrange(9)
    if kind == 0:
        finding["source_ids"] = [rng.choice(UNKNOWN_IDS)]
    elif kind == 1:
        finding["source_ids"] += UNKNOWN_IDS
    elif kind == 2:
        finding["source_ids"] = []
    elif kind == 3:
        finding["summary"] = f"it costs {INVENTED_FIGURE} [s999], see {UNKNOWN_URL} [3]"
    elif kind == 4:
        finding["criteria"] = finding["criteria"][: rng.randint(0, 1)]
    elif kind == 5:
        finding["criteria"] = [
            {**c, "met": rng.random() < 0.5, "criterion": nasty(rng)[:900]} for c in finding["criteria"]
        ]
    elif kind == 6:
        finding["summary"] = (nasty(rng) or "x")[:8000]
        finding["missing"] = [nasty(rng) for _ in range(3)]
    elif kind == 7:
        finding["missing"] = [big(rng)]
        finding["source_ids"] += [nasty(rng) for _ in range(3)]
    else:
        finding["summary"] = "x" * 8000
    return finding


def wrong_calls(rng: Random, desk: Desk) -> AIMessage:
    """Return calls that are wrong in name, arguments or id."""
    name, args = arguments_for(rng, desk, 0)
    again = arguments_for(rng, desk, 1)
    finding = finding_of(rng, desk)
    kinds: tuple[list[ToolCall], ...] = (
        [call_of("ghost", anyhow(rng), "g1")],
        [call_of("send", {"query": "to everyone"}, "w1")],
        [call_of(name, anyhow(rng), "a1")],
        [call_of(name, {"query": big(rng)}, "h1")],
        [call_of(name, {"query": nasty(rng)}, "n1")],
        [call_of(name, args, ""), call_of(*again, "")],
        [call_of(name, args, None), call_of(*again, None)],  # pyright: ignore[reportArgumentType]
        [call_of(name, args, "d"), call_of(*again, "d"), call_of(name, args, "d")],
        [call_of("Finding", finding, None)],  # pyright: ignore[reportArgumentType]
        [call_of("", args, "e"), call_of(name, args, "c0-0")],
        [call_of(name, args, "k\ud800\x00" + "i" * rng.choice((1, 5000)))],
    )
    chosen = rng.choice(kinds)
    if chosen[0]["name"] == "Finding":
        desk.say(finding)
    return message(rng, nasty(rng) if rng.random() < 0.2 else "", *chosen)


def in_mood(rng: Random, desk: Desk, mood: str) -> AIMessage:
    """Return the next answer of a worker that does one wrong thing for ever."""
    if mood == "same call":
        name = (desk.tools or ["look"])[0]
        return message(rng, "", call_of(name, {"query": "same", "source_id": "s1"}, f"c{desk.turn}"))
    if mood == "new calls":
        return searching(rng, desk, rng.randint(1, 3))
    if mood == "ghost calls":
        return message(rng, "", call_of(f"ghost{desk.turn}", {"n": desk.turn}, f"g{desk.turn}"))
    return answered(rng, "Finding", {"summary": desk.turn}, desk.turn)


def obedient(rng: Random, desk: Desk) -> AIMessage:
    """Do what a tool result said: cite what is not there, call what is not offered."""
    if rng.random() < 0.4:
        send = call_of("send", {"query": "everything"}, f"x{desk.turn}")
        return message(rng, "", send, call_of("delete_all", {}, f"y{desk.turn}"))
    return concluding(rng, desk, finding_of(rng, desk) | {"source_ids": ["s999"]})


def _mixed(rng: Random, calls: list[ToolCall]) -> list[ToolCall]:
    rng.shuffle(calls)
    return calls
