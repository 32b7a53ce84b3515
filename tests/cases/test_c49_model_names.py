"""C49: how models may be named."""

from __future__ import annotations

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agents.models import Models, ModelSettings
from graph import build_graph
from graph.settings import Settings
from schemas.errors import SettingsError
from tests.fake_server import serving, tool_call
from tests.running import config
from tests.scripted import step

NAMES = [
    "qwen3:8b",
    "my-model",
    "deepseek-chat",
    "org/model:free",
    "llama3.1:8b-instruct-q4_K_M",
    "模型",
    "openai:my-model",
]
KEY = SecretStr("sk-test-123456")


def settings(**fields: object) -> Settings:
    return Settings(**{"agent_model": None, "openai_base_url": None, "openai_api_key": None, **fields})


@pytest.mark.parametrize("key", [None, "sk-test-123456"])
@pytest.mark.parametrize("name", NAMES)
def test_c49_any_name_works_over_the_openai_protocol_when_a_base_url_is_set(
    name: str, key: str | None
) -> None:
    model = Models.single(name).resolve(ModelSettings(base_url="http://127.0.0.1:1/v1", api_key=key)).planner
    assert isinstance(model, ChatOpenAI)
    assert model.model_name == name.removeprefix("openai:")
    assert str(model.openai_api_base) == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("openai:")])
def test_c49_without_a_base_url_a_bare_name_is_one_line_that_names_the_setting(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_graph(settings=settings(agent_model=name, openai_api_key=KEY))
    message = str(caught.value)
    assert "AGENT_MODEL" in message
    assert "OPENAI_BASE_URL" in message
    assert name in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["openai:gpt-5-mini", "gpt-5-mini"])
def test_c49_no_key_is_one_line_that_names_it(name: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        build_graph(settings=settings(agent_model=name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "openai:", "nosuchprovider:x", "anthropic:claude-x"])
def test_c49_a_name_that_cannot_be_used_is_one_line(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Models.single(name).resolve(ModelSettings(api_key="sk-test-123456"))
    assert "AGENT_MODEL" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sk-test-123456" not in str(caught.value)


@pytest.mark.parametrize("role", ["planner_model", "worker_model", "reviewer_model", "writer_model"])
def test_c49_a_bad_name_of_any_role_is_found_before_any_planning(role: str) -> None:
    good = {"agent_model": "openai:gpt-5-mini", "openai_api_key": KEY}
    with pytest.raises(SettingsError, match="my-model"):
        build_graph(settings=settings(**good, **{role: "my-model"}))


async def test_c49_a_named_model_runs_over_the_wire_without_a_key() -> None:
    plan = {"steps": [step("a", tools=[])]}
    with serving(
        tool_call("Plan", plan), tool_call("Finding", {"summary": "x"}), {"content": "no review"}
    ) as server:
        graph = build_graph(settings=settings(agent_model="qwen3:8b", openai_base_url=server.base_url))
        out = await graph.ainvoke({"objective": "find it"}, config())
    assert {request["model"] for request in server.requests} == {"qwen3:8b"}
    assert out["plan"].steps[0].id == "a"
    assert out["final_answer"]


def test_c49_no_key_is_shown_by_what_holds_it() -> None:
    assert "sk-test-123456" not in repr(ModelSettings(api_key="sk-test-123456"))
    assert "sk-test-123456" not in repr(settings(openai_api_key=KEY))
    model = Models.single("openai:x").resolve(ModelSettings(api_key="sk-test-123456")).planner
    assert "sk-test-123456" not in repr(model)
