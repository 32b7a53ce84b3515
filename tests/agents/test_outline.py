"""The outline that a planner may start from: only where it is clear what the objective is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.outline import outline, repair_outline
from schemas.evidence import Gap
from schemas.plan import Step
from tools.documents import document_tools

LAMPS = {
    f"{name}.md": f"# {name.title()} lamp\n\nPrice: 10 EUR."
    for name in ("alder", "birch", "cedar", "delphi", "elm")
}


def catalogue(folder: Path, files: dict[str, str]) -> dict[str, Any]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return {"documents": document_tools(folder)[0].metadata["catalogue"]["documents"], "tables": []}  # pyright: ignore[reportOptionalSubscript]


@pytest.mark.parametrize(
    ("objective", "things", "task"),
    [
        (
            "Compare the desk lamps Alder, Birch, Cedar, Delphi and Elm by price and by reviews",
            ["alder", "birch", "cedar", "delphi", "elm"],
            "Find out for alder: price, reviews",
        ),
        (
            "Compare the five desk lamps by price and by reviews",
            ["alder", "birch", "cedar", "delphi", "elm"],
            "Find out for alder: price, reviews",
        ),
        ("Compare the Alder lamp and the Elm lamp by price", ["alder", "elm"], "Find out for alder: price"),
        ("比较alder、elm的价格和评价", ["alder", "elm"], "查明alder：价格、评价"),
    ],
)
def test_a_step_for_each_thing_and_one_that_concludes(
    objective: str, things: list[str], task: str, tmp_path: Path
) -> None:
    steps = outline(objective, catalogue(tmp_path, LAMPS), 20)
    assert [step["id"] for step in steps] == [*things, "conclude"]
    assert steps[0]["task"] == task
    assert steps[-1] == {"id": "conclude", "task": objective, "depends_on": things, "tools": []}


@pytest.mark.parametrize(
    "objective",
    ["What does the Birch lamp cost?", "Compare the six desk lamps by price", "Which lamp is stable?", ""],
)
def test_nothing_where_it_is_not_clear(objective: str, tmp_path: Path) -> None:
    assert outline(objective, catalogue(tmp_path, LAMPS), 20) == []


def test_folders_that_are_alike_are_the_things(tmp_path: Path) -> None:
    files = {
        f"{name}/{kind}.md": f"# {name} {kind}\n\nText."
        for name in ("acme", "brill")
        for kind in ("pricing", "releases")
    }
    steps = outline("Compare these two vendors", catalogue(tmp_path, files), 20)
    assert [step["id"] for step in steps] == ["acme", "brill", "conclude"]
    assert "pricing" in steps[0]["task"]


def test_nothing_where_a_plan_has_no_room_for_all(tmp_path: Path) -> None:
    assert outline("Compare the five desk lamps by price", catalogue(tmp_path, LAMPS), 5) == []


@pytest.mark.parametrize(
    "given", [{}, {"documents": None}, {"documents": "none"}, {"documents": {"groups": 3}}]
)
def test_a_catalogue_of_another_shape_gives_no_outline(given: dict[str, Any]) -> None:
    assert outline("Compare the five desk lamps by price", given, 20) == []


def steps_of(*given: Step) -> dict[str, Step]:
    return {step.id: step for step in given}


def a_step(step_id: str, task: str = "find", *needs: str, **fields: Any) -> Step:
    return Step(id=step_id, task=task, success_criteria=["known"], depends_on=list(needs), **fields)


def test_a_second_try_at_each_gap_that_a_step_has_left() -> None:
    gaps = [
        Gap(description="The price of Elm is not known", step_id="elm"),
        Gap(description="价格未知", step_id="oak"),
        Gap(description="skipped", step_id="compare"),
        Gap(description="nothing about the market"),
        Gap(description="not to be found", step_id="ELM-2", recoverable=False),
        Gap(description="of a step that is not there", step_id="ash"),
    ]
    steps = steps_of(
        a_step("elm", "Find out for elm: price"),
        a_step("ELM-2"),
        a_step("oak", "查明 oak：价格"),
        a_step("compare", "Compare", "elm", "oak", "ELM-2", tools=[]),
    )
    assert repair_outline(gaps, steps) == [
        {
            "id": "elm-3",
            "task": "Find out for elm: price - in another way. Open: The price of Elm is not known",
            "depends_on": [],
            "replaces": "elm",
        },
        {
            "id": "oak-2",
            "task": "查明 oak：价格——换一种方法。尚缺：价格未知",
            "depends_on": [],
            "replaces": "oak",
        },
        {
            "id": "compare-2",
            "task": "Compare - in another way. Open: skipped",
            "depends_on": ["elm-3", "oak-2", "ELM-2"],
            "replaces": "compare",
            "tools": [],
        },
    ]
    assert repair_outline([], {}) == []


def test_a_second_id_is_short_enough() -> None:
    steps = steps_of(a_step("a" * 64), a_step("a" * 60 + "-2"))
    (step,) = repair_outline([Gap(description="d", step_id="a" * 64)], steps)
    assert step["id"] == "a" * 60 + "-3"
