"""Reading a plan while it is written: every step as soon as it is whole, however the text is cut into pieces."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.streamed import MAX_STEP_CHARS, StepReader
from tests.scripted import step

TEXTS = st.text(alphabet='ab{}[]",:\\/\n 中文价格🚀', max_size=20)
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "id": TEXTS,
            "task": TEXTS,
            "depends_on": st.lists(TEXTS, max_size=2),
            "n": st.integers(-(2**63) + 1, 2**63 - 1),
        }
    ),
    max_size=5,
)


def read(pieces: list[str], name: str = "Plan") -> list[Any]:
    reader = StepReader(name)
    return [found for piece in pieces for found in reader.feed(piece)]


def cut(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(n % (len(text) + 1) for n in at)})
    return [text[a:b] for a, b in pairwise(places)]


@given(
    STEPS, TEXTS, st.lists(TEXTS, max_size=2), st.lists(st.integers(0, 10_000), max_size=30), st.booleans()
)
def test_every_way_of_cutting_gives_the_steps_of_the_whole(
    steps: list[dict[str, Any]], goal: str, questions: list[str], at: list[int], ascii_only: bool
) -> None:
    text = json.dumps(
        {"goal": goal, "steps_": [{"id": "no"}], "questions": questions, "steps": steps},
        ensure_ascii=ascii_only,
    )
    whole = StepReader("Plan")
    assert whole.feed(text) == read(cut(text, at)) == read(list(text))
    assert [s["n"] for s in read([text])] == [s["n"] for s in steps]
    assert whole.asks == any(q.strip() for q in questions)


def test_a_step_comes_with_its_last_character() -> None:
    text = json.dumps({"steps": [step("a"), step("b")]})
    reader = StepReader("Plan")
    end = text.index("}, {") + 1
    assert reader.feed(text[: end - 1]) == []
    assert reader.feed(text[end - 1 : end]) == [step("a")]
    assert reader.feed(text[end:]) == [step("b")]
    assert reader.feed(text) == []


PLAN = json.dumps({"steps": [step("a")]})


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        f"\n ```json\n{PLAN}\n```",
        f"<think>perhaps {json.dumps({'steps': [step('no')]})}</think>\n{PLAN}",
        f'I think {{"steps": [{json.dumps(step("no"))}]}}</think>{PLAN}',
        f'{{"Plan": {PLAN}}}',
        f'{{"name": "Plan", "arguments": {PLAN}}}',
        f'{{"function": {{"name": "Plan", "arguments": {PLAN}}}}}',
    ],
)
def test_fences_thinking_and_wrappings_are_passed_over(text: str) -> None:
    found = read(list(text))
    assert found == [step("a")] or (text.startswith("I think") and found == [])


@pytest.mark.parametrize(
    "text",
    [
        f"Here is what I would do: {PLAN}",
        f"<think>{PLAN}",
        f'{{"note": {PLAN}}}',
        '{"steps": {"id": "a"}}',
        '{"steps": ["a", 1, null, [{"id": "a"}]]}',
        '{"steps": [{"id": a}]}',
        "[" * 5000,
        "{" * 5000,
    ],
)
def test_what_is_not_clearly_a_step_of_the_answer_is_left_for_the_end(text: str) -> None:
    assert read(list(text)) == read([text]) == []


def test_surrogates_and_nul_are_cleaned_as_in_the_whole_answer() -> None:
    found = read(['{"steps": [{"id": "a", "task": "x\\ud800\\u0000y"}]}'])
    assert found[0]["task"].encode("utf-8")
    assert "\x00" not in found[0]["task"]


@pytest.mark.parametrize(
    "text",
    [
        '{"goal": "' + "x" * 1_000_000 + '", "steps": [{"id": "a"}]}',
        '{"steps": [{"id": "' + "}" * 1_000_000,
        "thinking " * 100_000 + PLAN,
    ],
    ids=["a long goal", "a step without end", "long thinking"],
)
def test_megabytes_in_small_pieces_take_linear_time(text: str) -> None:
    reader = StepReader("Plan")
    began = time.process_time()
    found = [f for at in range(0, len(text), 5) for f in reader.feed(text[at : at + 5])]
    # Quadratic work over a megabyte would take minutes.
    assert time.process_time() - began < 20
    assert found == ([{"id": "a"}] if text.startswith('{"goal"') else [])
    assert len(reader._text) <= MAX_STEP_CHARS + 100_000
