from typing import Any

import pytest

from cli.plan_versions import changes, print_versions, versions_json
from cli.screen import Screen
from cli.texts import Texts
from schemas.plan import Plan
from tests.cli.endpoint import step


def version(number: int, *steps: dict[str, Any], **more: Any) -> Plan:
    parent = number - 1 or None
    return Plan.model_validate({"steps": steps, "version": number, "parent_version": parent, **more})


FIRST = version(1, step("a"), step("b"), step("c", "a", "b"), step("d", "c"), step("e"))
SECOND = version(
    2,
    step("a"),
    step("b2", "a", replaces="b"),
    step("c", "a", "b2"),
    step("d", "c", task="Do it otherwise"),
    created_by="replanner",
    reason="gaps in: b",
)


def test_every_step_is_added_dropped_carried_changed_or_kept() -> None:
    found = {change.step.id: change for change in changes(FIRST, SECOND)}
    assert {name: change.kind for name, change in found.items()} == {
        "b2": "added",
        "b": "dropped",
        "e": "dropped",
        "c": "carried",
        "d": "changed",
        "a": "kept",
    }
    assert found["b"].replaced_by == ("b2",)
    assert found["e"].replaced_by == ()
    assert (found["c"].before, found["c"].step.depends_on) == (("a", "b"), ["a", "b2"])
    assert found["d"].fields == ("task",)


def test_the_first_version_is_all_new() -> None:
    assert {change.kind for change in changes(None, FIRST)} == {"added"}


def test_versions_are_compared_with_the_one_they_came_from() -> None:
    third = version(3, step("a"), parent_version=1)
    found = versions_json([FIRST, SECOND, third])
    assert found[2]["changes"]["dropped"] == ["b", "c", "d", "e"]
    assert found[1]["changes"]["carried"] == ["c"]
    assert found[1]["reason"] == "gaps in: b"


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (
            "en",
            [
                "Plan 2 by the replanner, from plan 1: 4 steps",
                "reason: gaps in: b",
                "+  b2  Do b2 replaces b after a",
                "-  b  dropped, replaced by b2",
                "~  c  carried on, after a, b2 instead of a, b",
            ],
        ),
        ("zh", ["计划 2（重新计划者，源自计划 1）：共 4 步", "沿用，改为在 a, b2 之后（原为 a, b）"]),
    ],
)
def test_versions_are_printed_with_their_reasons(
    language: Any, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_versions(Screen.open(Texts(language)), [FIRST, SECOND])
    printed = capsys.readouterr().out
    assert [word for word in words if word not in printed] == []
