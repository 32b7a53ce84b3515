"""Invariant 13 at random moments: kill -9, resume, up to three times a run. `make chaos` makes 300 kills, here and on Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kill.lives import Nursery
from tests.kill.scenes import fits, scene_of
from tests.kill.trial import Trial, trial

SEEDS = range(0, 20, 2)


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return []


@pytest.mark.parametrize("seed", SEEDS)
def test_invariant_13_kill_9_at_any_moment_repeats_loses_and_doubles_nothing(
    seed: int, nursery: Nursery, trials: list[Trial], tmp_path: Path
) -> None:
    found = trial(nursery, seed, tmp_path)
    trials.append(found)
    assert found.repeats == []
    assert found.losses == []


def test_the_kills_have_hit(trials: list[Trial]) -> None:
    if len(trials) < len(SEEDS):
        pytest.skip("counted where the whole matrix has run")
    assert sum(found.kills for found in trials) >= len(SEEDS)


def test_the_scenes_have_what_they_promise() -> None:
    scenes = [scene_of(f"scene {seed}") for seed in range(100)]
    assert {len(scene.first) for scene in scenes} == set(range(3, 16))
    assert {len(scene.repairs) for scene in scenes} == {0, 1, 2}
    assert {scene.review for scene in scenes} == {"never", "first", "always"}
    tools = {tool for scene in scenes for rounds in scene.rounds.values() for r in rounds for tool, _ in r}
    assert all(fits(rounds) for scene in scenes for rounds in scene.rounds.values() if rounds)
    assert tools == {"fetch", "probe", "note", "record"}
