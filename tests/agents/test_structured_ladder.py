"""Which way a model is asked for an answer of a schema: by its profile, by the setting, by what its server has shown."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from agents.calling import Asking, RoleModel
from agents.endpoints import endpoint_of, known_of
from agents.ladder import order_of, with_schema
from agents.structured import Schema, Spent, ask
from tests.agents.test_structured import REQUEST, SCHEMA, Point
from tests.scripted import ScriptedModel, call, calls


def refusal(status: int, message: str) -> Exception:
    response = httpx.Response(status, request=httpx.Request("POST", "http://server.test"))
    kind = openai.InternalServerError if status >= 500 else openai.BadRequestError
    return kind(message, response=response, body=None)


@pytest.mark.parametrize(
    ("setting", "profile", "order"),
    [
        ("auto", {}, ["named", "required", "auto", "text"]),
        ("auto", {"tool_calling": True}, ["named", "required", "auto", "text"]),
        ("auto", {"structured_output": True}, ["json_schema", "named", "required", "auto", "text"]),
        ("auto", {"tool_calling": True, "tool_choice": False}, ["auto", "text"]),
        ("auto", {"tool_calling": False}, ["text"]),
        ("json_schema", {}, ["json_schema", "text"]),
        ("tool", {"structured_output": True}, ["named", "required", "auto", "text"]),
        ("prompt", {"structured_output": True}, ["text"]),
    ],
)
def test_the_order_goes_by_setting_and_profile(setting: Any, profile: Any, order: list[str]) -> None:
    assert list(order_of(setting, profile)) == order


def test_where_tools_are_offered_the_answers_form_does_not_exclude_them() -> None:
    assert list(order_of("auto", {}, with_tools=True)) == ["required", "auto", "text"]
    assert list(order_of("json_schema", {}, with_tools=True)) == ["auto", "text"]
    assert list(order_of("prompt", {}, with_tools=True)) == ["auto", "text"]


async def answered(model: ScriptedModel, structured: Any = "auto") -> tuple[Point, Spent]:
    spent = Spent("planner")
    return await ask(RoleModel(model, asking=Asking(structured)), SCHEMA, REQUEST, spent), spent


async def test_a_model_of_which_nothing_is_known_is_asked_with_the_tool_named_after_the_schema() -> None:
    model = ScriptedModel(answers=[calls(call("Point", "1", x=3))])
    await answered(model)
    assert model.asked[0].tools == ["Point"]


async def test_after_prose_the_schema_stands_in_the_prompt() -> None:
    model = ScriptedModel(answers=[AIMessage("Sure!"), AIMessage('{"x": 3}')])
    point, _ = await answered(model)
    assert point.x == 3
    assert [asked.tools for asked in model.asked] == [["Point"], []]
    assert '"properties"' in model.asked[1].messages[0].text


async def test_a_way_that_was_ignored_twice_is_passed_over_and_a_success_forgives_once() -> None:
    prose, point, text = AIMessage("Sure!"), calls(call("Point", "1", x=3)), AIMessage('{"x": 3}')
    model = ScriptedModel(answers=[prose, text, point, prose, text, prose, text, text])
    for _ in range(5):
        await answered(model)
    # Ignored; taken (a success); ignored; ignored again; from then on not tried.
    first_asks = [model.asked[i].tools for i in (0, 2, 3, 5, 7)]
    assert first_asks == [["Point"], ["Point"], ["Point"], ["Point"], []]


async def test_what_was_refused_is_not_asked_again_and_counts_as_a_request() -> None:
    no_tools = refusal(400, "this model does not support tools")
    model = ScriptedModel(answers=[no_tools, AIMessage('{"x": 3}'), AIMessage('{"x": 4}')])
    _, first = await answered(model)
    _, second = await answered(model)
    assert (first.usage.model_calls, second.usage.model_calls) == (2, 1)
    assert model.asked[2].tools == []


@pytest.mark.parametrize(
    "error",
    [
        refusal(400, "temperature must be below 2"),
        refusal(400, "maximum context length is 8192 tokens, 1000 of them in the functions"),
        refusal(400, "the tool call was stopped by our content policy"),
        ValueError("tool"),
    ],
)
async def test_other_errors_of_a_request_are_not_taken_for_a_refused_way(error: Exception) -> None:
    model = ScriptedModel(answers=[error])
    with pytest.raises(type(error)):
        await answered(model)
    assert len(model.asked) == 1


async def test_a_server_error_that_names_no_way_is_transient_and_one_that_does_is_not() -> None:
    model = ScriptedModel(answers=[refusal(500, "oops"), calls(call("Point", "1", x=3))])
    await answered(model)
    assert known_of(model).rejected == set()
    model = ScriptedModel(answers=[refusal(500, "tools param requires --jinja flag"), AIMessage('{"x": 3}')])
    await answered(model)
    assert known_of(model).rejected == {"named", "required", "auto"}


async def test_a_model_that_has_no_tools_is_asked_in_the_prompt() -> None:
    class NoTools(ScriptedModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    model = NoTools(answers=[AIMessage('{"x": 3}')])
    _, spent = await answered(model)
    assert spent.usage.model_calls == 1
    assert "JSON schema" in model.asked[0].messages[0].text


async def test_the_setting_prompt_binds_nothing() -> None:
    model = ScriptedModel(answers=[AIMessage('{"x": 3}')])
    await answered(model, "prompt")
    assert model.asked[0].tools == []


def test_the_schema_stands_behind_the_system_prompt_so_that_roles_alternate() -> None:
    request = with_schema([SystemMessage("be brief"), HumanMessage("{}")], "Point", {"type": "object"})
    assert [m.type for m in request] == ["system", "human"]
    assert request[0].text.startswith("be brief\n")
    assert with_schema([HumanMessage("{}")], "Point", {})[0].type == "system"


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 3,}',
        "{'x': 3}",
        "{x: 3}",
        '{"x": 3 /* three */}',
        '```json\n{"x": 3, "label": "he said "no""}\n```',
        '{"Point": {"x": 3}}',
        '{"name": "Point", "arguments": {"x": 3}}',
        '{"tool": "Point", "parameters": "{\\"x\\": 3}"}',
        '<tool_call>{"name": "Point", "arguments": {"x": 3}}</tool_call>',
        "<function=Point><parameter=x>3</parameter></function>",
    ],
)
async def test_small_faults_and_wrappings_need_no_second_request(text: str) -> None:
    model = ScriptedModel(answers=[AIMessage(text)])
    point, _ = await answered(model)
    assert point.x == 3


@pytest.mark.parametrize("text", ['{"x": 3', '{"x": 3, "label": "half', '{"x": 3, "label": ["}'])
async def test_what_is_missing_at_the_end_is_not_made_up(text: str) -> None:
    model = ScriptedModel(answers=[AIMessage(text), calls(call("Point", "1", x=4))])
    point, _ = await answered(model)
    assert point.x == 4
    assert "JSON could not be read" in model.asked[1].messages[-1].text


async def test_a_call_that_was_cut_at_the_token_limit_is_not_taken_even_if_a_client_completed_it() -> None:
    cut = calls(call("Point", "1", x=3)).model_copy(update={"response_metadata": {"finish_reason": "length"}})
    model = ScriptedModel(answers=[cut, calls(call("Point", "1", x=4))])
    point, _ = await answered(model)
    assert point.x == 4
    assert "token limit" in model.asked[1].messages[-1].text


async def test_the_fallback_answers_where_the_model_cannot_be_reached_and_from_then_on() -> None:
    locked = refusal(401, "wrong key")
    first, second = ScriptedModel(answers=[locked]), ScriptedModel(always=calls(call("Point", "1", x=3)))
    role, spent = RoleModel(first, second), Spent("planner")
    for _ in range(2):
        assert (await ask(role, SCHEMA, REQUEST, spent)).x == 3
    assert (len(first.asked), len(second.asked)) == (1, 2)
    assert spent.usage.model_calls == 3


@pytest.mark.parametrize("error", [refusal(400, "bad request"), refusal(400, "prompt is too long")])
async def test_the_fallback_is_not_asked_what_no_model_could_answer(error: Exception) -> None:
    first, second = ScriptedModel(answers=[error]), ScriptedModel()
    with pytest.raises(type(error)):
        await ask(RoleModel(first, second), SCHEMA, REQUEST, Spent())
    assert second.asked == []


def test_two_objects_that_reach_the_same_model_are_one_endpoint_and_nameless_ones_are_not() -> None:
    from langchain_openai import ChatOpenAI

    def model(url: str, name: str) -> ChatOpenAI:
        return ChatOpenAI(base_url=url, model=name, api_key="x")

    one = endpoint_of(model("http://127.0.0.1:1/v1", "m"))
    assert one == endpoint_of(model("http://127.0.0.1:1/v1/", "m"))
    assert (
        len(
            {
                one,
                endpoint_of(model("http://127.0.0.1:2/v1", "m")),
                endpoint_of(model("http://127.0.0.1:1/v1", "n")),
            }
        )
        == 3
    )
    assert endpoint_of(ScriptedModel()) != endpoint_of(ScriptedModel())


def test_a_schema_that_is_sent_has_no_references_and_what_it_forbids_is_still_forbidden() -> None:
    from schemas.plan import PlanDraft

    tool: Any = Schema("Plan", PlanDraft.model_json_schema(), PlanDraft.model_validate).as_tool()
    text = str(tool)
    assert "$ref" not in text
    assert "$defs" not in text
    step = tool["function"]["parameters"]["properties"]["steps"]["items"]
    assert {"id", "task", "success_criteria"} <= set(step["properties"])
    assert step["additionalProperties"] is False
