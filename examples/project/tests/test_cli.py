"""The command, as a person types it."""

from pathlib import Path

import pytest
from ferrytimes.cli import main

DATA = str(Path(__file__).parents[1] / "data" / "harbours.csv")


def test_the_way_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each ferry."""
    assert main(["Aldness", "Corrie", "--timetable", DATA, "--day", "2027-03-01"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "06:40 Aldness -> 07:15 Brae (line 1)",
        "07:25 Brae -> 08:40 Corrie (line 2)",
    ]


def test_no_way_is_exit_code_1() -> None:
    """Nothing is printed then."""
    assert main(["Dunvay", "Aldness", "--timetable", DATA, "--day", "2027-03-01", "--after", "15:00"]) == 1


def test_an_unknown_harbour_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With the harbours that there are."""
    assert main(["Aldness", "Nowhere", "--timetable", DATA]) == 2
    assert "no harbour Nowhere; there are Aldness, Brae" in capsys.readouterr().err
