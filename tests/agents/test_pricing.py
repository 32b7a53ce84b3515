"""What a run costs: by role, by model, in money."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.pricing import Prices, cost_of, load_prices
from schemas.errors import SettingsError
from schemas.evidence import Usage

PRICES = Prices.model_validate(
    {"models": {"gpt-5": {"input": 1, "output": 10}, "openai:gpt-5-mini": {"input": 0.5, "output": 2}}}
)
calls = st.lists(
    st.tuples(
        st.sampled_from(["planner", "worker"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 9),
        st.integers(0, 9),
    )
)


@given(calls, calls)
def test_the_parts_of_a_usage_add_up_to_the_whole(
    one: list[tuple[str, str, int, int]], two: list[tuple[str, str, int, int]]
) -> None:
    total = sum((Usage.of_call(*item) for item in one), Usage()) + sum(
        (Usage.of_call(*item) for item in two), Usage()
    )
    parts = [part for models in total.by_role.values() for part in models.values()]
    assert sum(p.model_calls for p in parts) == total.model_calls == len(one) + len(two)
    assert sum(p.input_tokens for p in parts) == total.input_tokens
    assert sum(p.output_tokens for p in parts) == total.output_tokens


def test_adding_changes_neither_of_what_is_added() -> None:
    one, two = Usage.of_call("worker", "m", 1, 1), Usage.of_call("worker", "m", 2, 2)
    _ = one + two
    assert one.by_role["worker"]["m"].input_tokens == 1


@pytest.mark.parametrize(
    ("model", "amount"),
    [
        ("gpt-5", 11.0),
        ("openai:gpt-5", 11.0),
        ("gpt-5-mini", 2.5),
        ("gpt-5-mini-2025-08-07", 2.5),
        ("GPT-5", 11.0),
    ],
)
def test_money_is_tokens_by_the_price_of_the_longest_matching_name(model: str, amount: float) -> None:
    cost = cost_of(Usage.of_call("worker", model, 1_000_000, 1_000_000), PRICES)
    assert (cost.amount, cost.currency, cost.unpriced) == (amount, "USD", ())


def test_a_model_without_a_price_is_named_and_not_counted() -> None:
    usage = Usage.of_call("worker", "qwen3:8b", 1000, 1000) + Usage.of_call("planner", "gpt-5", 1000, 100)
    cost = cost_of(usage, PRICES)
    assert str(cost) == "0.0020 USD + ? (qwen3:8b)"


@pytest.mark.parametrize(
    "text",
    [
        "models: {m: {input: 1, output: 2}}\ncurrency: 元",
        '{"currency": "元", "models": {"m": {"input": 1, "output": 2}}}',
    ],
)
def test_yaml_and_json_are_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices"
    file.write_text(text, encoding="utf-8")
    cost = cost_of(Usage.of_call("worker", "m", 1_000_000, 0), load_prices(file))
    assert str(cost) == "1.00 元"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "models: {m: {input: -1, output: 2}}",
        "models: {m: {input: .nan, output: 2}}",
        "models: {m: {input: 1}}",
        "prices: {}",
        "\x00",
    ],
)
def test_a_file_that_is_none_is_one_line_that_names_the_setting(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    for path in (file, tmp_path / "absent"):
        with pytest.raises(SettingsError, match="PLANWEAVE_PRICES") as caught:
            load_prices(path)
        assert "\n" not in str(caught.value)
