import pytest

from cli.arguments import read
from cli.limits import context_of
from schemas.errors import InputError


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        (["run", "x", "--review-plan"], ["run", "x", "--review-plan=first"]),
        (["run", "--review-plan", "x"], ["run", "--review-plan=first", "x"]),
        (["run", "x", "--review-plan", "always"], ["run", "x", "--review-plan", "always"]),
        (["run", "x", "--review-plan=never"], ["run", "x", "--review-plan=never"]),
        (["run", "x", "--lang", "zh", "--debug"], ["--lang=zh", "--debug", "run", "x"]),
        (["run", "--", "--debug"], ["run", "--", "--debug"]),
        (["run", "x", "--lang"], ["run", "x", "--lang"]),
    ],
)
def test_options_reach_the_parser_in_the_form_it_knows(typed: list[str], arguments: list[str]) -> None:
    assert read(typed).arguments == arguments


def test_language_and_debug_are_known_before_anything_is_parsed() -> None:
    assert (read(["x", "--lang=zh", "--debug"]).language, read(["--debug"]).debug) == ("zh", True)
    assert read(["x", "--lang", "fr"]).language is None
    assert not read(["--", "--debug"]).debug


def test_limits_reach_the_context_and_only_those_given() -> None:
    context = context_of(
        {"review_plan": "first", "mode": "react", "stream_plan": True},
        {"--max-tool-calls": 3, "--deadline": 1.5, "--max-replans": None},
    )
    assert context.review_plan == "first"
    assert context.mode == "react"
    assert context.stream_plan
    assert context.limits.total_tool_budget == 3
    assert context.limits.deadline_seconds == 1.5
    assert context.limits.model_fields_set == {"total_tool_budget", "deadline_seconds"}


def test_every_value_out_of_range_is_named_by_its_option() -> None:
    with pytest.raises(InputError, match=r"--max-tool-calls.*; .*--max-parallel"):
        context_of({}, {"--max-tool-calls": -1, "--max-parallel": 65, "--max-steps": 5})
