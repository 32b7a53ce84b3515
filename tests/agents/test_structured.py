"""One answer that fits a schema, however it comes; what the re-asks say; what is not asked again."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, SystemMessage, ToolMessage
from pydantic import BaseModel, ConfigDict

from agents.structured import Schema, Spent, ask, json_objects
from schemas.errors import AnswerInvalid, AnswerRefused, AnswerTruncated
from tests.scripted import ScriptedModel, call, calls


class Point(BaseModel):
    """A point."""

    model_config = ConfigDict(extra="forbid")
    x: int
    label: str = ""


SCHEMA: Schema[Point] = Schema("Point", Point.model_json_schema(), Point.model_validate)
REQUEST = [SystemMessage("be brief"), HumanMessage("{}")]


async def answered(*answers: Any) -> tuple[Point, ScriptedModel, Spent]:
    model, spent = ScriptedModel(answers=list(answers)), Spent()
    return await ask(model, SCHEMA, REQUEST, spent), model, spent


@pytest.mark.parametrize(
    "answer",
    [
        calls(call("Point", "1", x=3)),
        calls(call("point_tool", "1", x=3)),
        calls(call("other", "1", y=1), call("Point", "2", x=3)),
        AIMessage('{"x": 3}'),
        AIMessage('```json\n{"x": 3}\n```'),
        AIMessage('<think>{"x": 9, "label": "not this one"}</think>{"x": 3}'),
        AIMessage('<think>{"x": 3}'),
        AIMessage('So {well}: {"x": 3} — {"note": {}}.'),
        AIMessage('{"x": 3, "label": "a\nline"}'),
        AIMessage([{"type": "text", "text": '{"x"'}, {"type": "text", "text": ": 3}"}]),
    ],
)
async def test_any_form_of_a_valid_answer_is_taken_at_once(answer: AIMessage) -> None:
    point, model, spent = await answered(answer)
    assert point.x == 3
    assert len(model.asked) == spent.usage.model_calls == 1


async def test_a_re_ask_carries_the_exact_problem_and_answers_every_call() -> None:
    bad = calls(call("Point", "1", x="three"), call("look", "2", q=1))
    point, model, spent = await answered(bad, calls(call("Point", "3", x=3)))
    assert point.x == 3
    again = model.asked[1].messages
    assert "x: Input should be a valid integer" in again[-1].text
    assert "'three'" in again[-1].text
    assert {m.tool_call_id for m in again if isinstance(m, ToolMessage)} == {"1", "2"}
    assert spent.usage.model_calls == 2


@pytest.mark.parametrize(
    "bad",
    [
        AIMessage(""),
        AIMessage("no"),
        AIMessage("[1, 2]"),
        AIMessage('{"y": 1}'),
        AIMessage("", invalid_tool_calls=[InvalidToolCall(name="Point", args="{x:", id="1", error=None)]),
        AIMessage("", invalid_tool_calls=[InvalidToolCall(name=None, args=None, id=None, error=None)]),
        calls({"name": "Point", "args": {"x": None}, "id": None, "type": "tool_call"}),
        TypeError("null value for choices"),
        KeyError("choices"),
    ],
    ids=repr,
)
async def test_at_most_three_requests_then_a_typed_failure(bad: Any) -> None:
    model, spent = ScriptedModel(answers=[bad] * 4), Spent()
    with pytest.raises(AnswerInvalid) as caught:
        await ask(model, SCHEMA, REQUEST, spent)
    assert caught.value.problems
    assert len(model.asked) == spent.usage.model_calls == 3
    assert model.asked[1].text != model.asked[0].text


@pytest.mark.parametrize(
    "refusal",
    [
        AIMessage("", additional_kwargs={"refusal": "I will not."}),
        AIMessage("I will not.", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("I will not.", response_metadata={"stop_reason": "refusal"}),
        AIMessage([{"type": "refusal", "refusal": "I will not."}]),
    ],
)
async def test_a_refusal_is_raised_at_once_and_quoted(refusal: AIMessage) -> None:
    model, spent = ScriptedModel(answers=[refusal]), Spent()
    with pytest.raises(AnswerRefused, match=r"I will not\."):
        await ask(model, SCHEMA, REQUEST, spent)
    assert spent.usage.model_calls == 1


@pytest.mark.parametrize("reason", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}])
async def test_an_answer_cut_three_times_is_named_as_such(reason: dict[str, str]) -> None:
    cut = AIMessage('{"x": ', response_metadata=reason)
    model = ScriptedModel(answers=[cut] * 3)
    with pytest.raises(AnswerTruncated, match="token limit"):
        await ask(model, SCHEMA, REQUEST, Spent())
    assert "token limit" in model.asked[1].messages[-1].text


async def test_errors_of_the_request_itself_are_not_asked_again() -> None:
    model = ScriptedModel(answers=[ValueError("bad request")])
    with pytest.raises(ValueError, match="bad request"):
        await ask(model, SCHEMA, REQUEST, Spent())
    assert len(model.asked) == 1


async def test_tokens_of_every_try_are_counted_also_where_it_ends_in_an_error() -> None:
    bad = AIMessage("no", usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7})
    spent = Spent()
    with pytest.raises(AnswerInvalid):
        await ask(ScriptedModel(answers=[bad] * 3), SCHEMA, REQUEST, spent)
    assert (spent.usage.input_tokens, spent.usage.output_tokens) == (15, 6)


async def test_a_huge_wrong_answer_does_not_grow_the_next_request() -> None:
    _, model, _ = await answered(AIMessage("x" * 3_000_000), calls(call("Point", "1", x=3)))
    assert model.asked[1].chars < 10_000
    _, model, _ = await answered(
        calls(call("Point", "1", x=1, label=["y" * 3_000_000])), calls(call("Point", "1", x=3))
    )
    assert sum(len(str(m)) for m in model.asked[1].messages) < 20_000


# What is not valid text (NUL, lone surrogates) or not a 64-bit integer is changed on the way in.
clean = st.text(
    alphabet=st.characters(blacklist_characters="\x00", blacklist_categories=("Cs",)), max_size=10
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | clean,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean, inner, max_size=3),
    max_leaves=8,
)
prose = st.text(
    alphabet=st.characters(blacklist_characters="{}<>", blacklist_categories=("Cs",)), max_size=40
)


@given(prose, st.dictionaries(clean, json_values, min_size=1, max_size=4), prose)
def test_an_object_between_prose_is_found(before: str, value: dict[str, Any], after: str) -> None:
    assert value in json_objects(before + json.dumps(value) + after)


@given(st.text(alphabet='{}[]",:\\ntrue<think>/ 1', max_size=200))
def test_no_text_breaks_the_search(text: str) -> None:
    assert all(isinstance(value, dict) for value in json_objects(text))


@pytest.mark.parametrize(
    "text",
    ["{" * 500_000, '{"a":' * 100_000, "<think>" * 200_000, '{"a": "' + "x" * 3_000_000, "}" * 500_000],
)
def test_hostile_text_takes_bounded_time(text: str) -> None:
    began = time.process_time()
    json_objects(text)
    assert time.process_time() - began < 5
