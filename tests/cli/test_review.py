from pathlib import Path

import pytest

from cli.plan_text import plan_yaml, read_plan
from schemas.errors import InputError
from schemas.plan import Plan, parse_draft
from tests.cli.endpoint import step


def test_a_printed_plan_can_be_edited_and_read_back(tmp_path: Path) -> None:
    plan = Plan.model_validate({"goal": "目标", "steps": [step("a"), step("b", "a")]})
    file = tmp_path / "plan.yaml"
    file.write_text(plan_yaml(plan.model_dump(mode="json")), encoding="utf-8")
    answer = read_plan(str(file))
    assert "目标" in file.read_text(encoding="utf-8")
    assert parse_draft(answer, tools=[]).steps == plan.steps


def test_what_the_program_computes_is_not_taken_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    plan = Plan.model_validate({"steps": [step("a")]})
    file.write_text(plan.model_dump_json(), encoding="utf-8")
    assert read_plan(str(file)).keys() == {"goal", "assumptions", "questions", "steps"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"steps:\n  - id: a\n   task: b\n", "line 3"),
        (b"- a\n", "a plan is a mapping with steps, not list"),
        (b"", "not NoneType"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_place(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_plan(str(file))
