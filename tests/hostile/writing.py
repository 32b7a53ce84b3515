"""What a writer answers."""

from __future__ import annotations

from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from tests.hostile.forms import refusal, useless
from tests.hostile.text import big, nasty, phrase
from tests.hostile.world import INVENTED_FIGURE, UNKNOWN_IDS, UNKNOWN_URL


def honest(rng: Random, brief: dict[str, Any]) -> tuple[AIMessage, list[int]]:
    """Return a text that cites some of its sources, and the numbers it cites, in order."""
    numbers = [source["n"] for source in brief["sources"]]
    cited = rng.sample(numbers, min(len(numbers), rng.randint(1, 4)))
    return AIMessage("\n".join(f"Statement about it [{n}]." for n in cited) or "Nothing is known."), cited


def hostile(rng: Random, brief: dict[str, Any]) -> BaseMessage:
    """Return an answer that cites, claims or holds what it must not."""
    most = len(brief["sources"])
    unknown = rng.choice(UNKNOWN_IDS)
    texts = (
        f"A [1], B [{unknown}], C [{most + 1}], D [0], E [-1], F [1, {unknown}] 【99】 [^7] [{most + 5}-9].",
        f"See {UNKNOWN_URL} and <{UNKNOWN_URL}?q=`x`[1]> and [here]({UNKNOWN_URL}) ![i]({UNKNOWN_URL}/a.png).",
        f'It costs ${INVENTED_FIGURE}. The CEO said "{INVENTED_FIGURE} is our only price".',
        f"Fine.\n\n## Sources\n\n1. Invented report ({UNKNOWN_URL})\n2. More\n\n## Open gaps\n\nNone.",
        f"好。\n\n## 来源\n\n1. 杜撰（{UNKNOWN_URL}）\n",
        "[" * 5000 + "1" + "]" * 5000,
        "".join(f"S{n} is {n * 37}.5% [{1 + n % 9}]. " for n in range(3000)),
        big(rng, 200_000),
        "{x} " + big(rng, 200_000) + f" [{unknown}]",
        nasty(rng),
        f"{phrase(rng)} [[1]] [{{}}] [x] [ ] [1][2][{unknown}] [s1](javascript:alert(1)) [1]: {UNKNOWN_URL}",
        f"[[{unknown}]{most + 7}] [{unknown}[{unknown}]] 见{UNKNOWN_URL}。 htt<{UNKNOWN_URL}>ps://evil.test/invented x",
        f"```\ncode [1] a[0]\n{UNKNOWN_URL} [{most + 3}]\n~~~\n"
        + " " * 100_000
        + f"[{unknown}]"
        + "\n" * 100_000
        + ".",
        f"**Sources:**\n\n1. Invented ({UNKNOWN_URL})\n\n### References ###\n\n[1] {INVENTED_FIGURE}",
        "\ue0007\ue001 [\ue000] 【\ue0011\ue000】 \ud800 \x00 [1\u200b] [１] [²] [٣] [9\u0301]",
        f"www.evil.test/x HTTPS://EVIL.TEST/invented {UNKNOWN_URL}) ftp://evil.test",
    )
    kind = rng.random()
    if kind < 0.1:
        return useless(rng, "Answer")
    return refusal(rng) if kind < 0.13 else AIMessage(rng.choice(texts))
