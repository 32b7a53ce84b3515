from __future__ import annotations

import pytest

from benchmarks import prompt_cost
from benchmarks.prompt_cost import MOST, SHAPES, SIZES, Cost, chain, cost_of, fan_in, mixed, requests, step
from benchmarks.scripted_models import brief_of


async def cost(name: str, size: int) -> Cost:
    return cost_of(await requests(SHAPES[name](size)))


@pytest.mark.parametrize("name", SHAPES)
async def test_twenty_steps_cost_at_most_two_fifths_of_all_evidence_to_every_step(name: str) -> None:
    assert (await cost(name, SIZES[-1])).share <= MOST


@pytest.mark.parametrize("name", SHAPES)
async def test_the_saving_grows_with_the_plan(name: str) -> None:
    shares = [(await cost(name, size)).share for size in SIZES]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] < 1


async def test_a_steps_prompt_does_not_grow_with_unrelated_steps() -> None:
    pair = [step("found"), step("next", "found")]
    alone = await requests(pair)
    among = await requests(
        [*(step(f"other{n}") for n in range(9)), *pair, *(step(f"more{n}") for n in range(9))]
    )
    for step_id in ("found", "next"):
        shown = [[(m.type, m.text) for m in messages] for messages in among[step_id]]
        assert shown == [[(m.type, m.text) for m in messages] for messages in alone[step_id]]


async def test_a_chains_last_step_is_asked_no_more_than_its_second() -> None:
    asked = await requests(chain(20))
    sizes = cost_of(asked).by_step
    assert sizes["s19"] < 1.5 * sizes["s1"]
    assert [d["step_id"] for d in brief_of(asked["s19"][0])["dependencies"]] == ["s18"]


def test_the_plans_are_of_the_size_that_they_say() -> None:
    for shape in SHAPES.values():
        assert [len(shape(size)) for size in SIZES] == list(SIZES)
    assert len(fan_in(20)[-1]["depends_on"]) == 19
    needs = {s["id"]: len(s["depends_on"]) for s in mixed(20)}
    assert sorted(set(needs.values())) == [0, 1, 2, 3, 5]


async def test_the_evidence_is_of_realistic_size() -> None:
    asked = await requests(mixed(10))
    carried = [d for messages in asked.values() for d in brief_of(messages[0])["dependencies"]]
    assert all(550 <= len(d["summary"]) <= 1200 for d in carried)
    assert all(3 <= len(d["sources"]) <= 5 for d in carried)


def test_the_exit_code_says_whether_the_saving_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_cost, "SHAPES", {"chain": chain})
    assert prompt_cost.main() == 0
    assert "chain       20" in capsys.readouterr().out
    monkeypatch.setattr(prompt_cost, "MOST", 0.01)
    assert prompt_cost.main() == 1
