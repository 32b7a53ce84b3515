from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.figures import Figures
from benchmarks.makespan import agents_alone, lanes, measured, waves
from benchmarks.many_runs import measure
from benchmarks.overhead import stored_bytes
from benchmarks.plan_cases import FAMILIES, Case, cases, diamond, ready_steps
from schemas.plan import Plan


def test_a_table_is_markdown_with_aligned_columns() -> None:
    table = Figures("Room", "What it takes.", ("what", "kB"), [("one", "9"), ("a longer one", "100")])
    assert table.markdown().splitlines()[4:] == [
        "| what         |  kB |",
        "| :----------- | --: |",
        "| one          |   9 |",
        "| a longer one | 100 |",
    ]


def test_waves_alone_wait_for_the_longest_of_each_wave_and_repairs_come_last() -> None:
    steps = diamond(None)  # pyright: ignore[reportArgumentType] - it draws nothing
    seconds = {
        "start": 1.0,
        "left": 5.0,
        "left2": 1.0,
        "right": 2.0,
        "right2": 6.0,
        "end": 1.0,
        "end-2": 10.0,
    }
    whole = Case("d", Plan(goal="g", steps=steps), seconds)
    assert whole.critical == 1 + 2 + 6 + 1
    assert whole.waves_alone == 1 + 5 + 6 + 1
    assert whole.way == ["start", "right", "right2", "end"]
    failing = Case("d", whole.plan, seconds, frozenset(["end"]))
    assert failing.critical == whole.critical + 10
    assert failing.way == [*whole.way, "end-2"]
    assert failing.waves_alone == whole.waves_alone + 10
    assert [s.id for s in ready_steps(steps, {"start"})] == ["left", "right"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", [lanes, waves, agents_alone])
async def test_every_way_carries_out_every_family(
    family: str, way: Callable[[Case], Awaitable[float]]
) -> None:
    (case,) = cases(family, 0.001, 1, seed=1)
    assert await way(case) >= case.critical


async def test_lanes_are_shorter_than_waves_where_a_long_step_holds_no_other_up() -> None:
    steps = diamond(None)  # pyright: ignore[reportArgumentType] - it draws nothing
    seconds = dict.fromkeys((s.id for s in steps), 0.01) | {"left": 0.3, "right2": 0.3}
    row = await measured("diamond", [Case("diamond", Plan(goal="g", steps=steps), seconds)], runs=1)
    assert row.waves_alone > 1.8
    assert row.ours < row.waves


async def test_what_a_run_leaves_in_the_database_does_not_depend_on_the_size_of_results() -> None:
    small, large = [await stored_bytes("parallel", 4, chars) for chars in (200, 200_000)]
    assert large["artifacts"] >= 4 * 200_000
    assert large["checkpoints"] + large["store"] < 1.15 * (small["checkpoints"] + small["store"])


async def test_what_a_step_leaves_in_the_database_does_not_grow_with_the_number_of_steps() -> None:
    few, many = [await stored_bytes("chain", steps, 200) for steps in (3, 12)]
    assert (many["checkpoints"] + many["store"]) / 12 <= 1.2 * (few["checkpoints"] + few["store"]) / 3


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_many_runs_at_once_all_complete_and_are_counted(store: str) -> None:
    load = await measure(store, runs=3, steps=2)
    assert load.events >= 3 * 2 * len(
        ["step_ready", "step_started", "tool_started", "tool_finished", "step_finished"]
    )
    assert load.peak > 0


def test_results_are_replaced_as_a_whole_and_name_no_machine(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    report.write(path, "old")
    report.write(path, report.heading())
    assert path.read_text() == report.heading()
    assert [p.name for p in tmp_path.iterdir()] == ["RESULTS.md"]
    assert platform.node() not in report.heading()
    assert str(Path.home()) not in report.heading()
