"""Figures that follow from others of their sentence; nothing else that is made of numbers."""

from __future__ import annotations

import pytest

from agents.derived import Derived


@pytest.mark.parametrize(
    ("figure", "others", "said"),
    [
        ("57", ["79", "22"], "79 EUR, 57 EUR more than 22 EUR"),
        ("101", ["79", "22"], "together 101 EUR"),
        ("150", ["79", "22", "49"], "all three together cost 150 EUR"),
        ("29.50", ["49.5", "20"], "a difference of 29.50 EUR"),
        ("72", ["79", "22"], "72 % cheaper"),
        ("259", ["79", "22"], "259 percent more"),
        ("27.8", ["79", "22"], "27.8% of the price"),
        ("3.6", ["79", "22"], "3.6 times as much"),
        ("3.6", ["79", "22"], "是它的 3.6 倍"),
        ("1,458", ["1,480", "22"], "1,458 EUR more"),
    ],
)
def test_one_operation_on_figures_of_the_sentence(figure: str, others: list[str], said: str) -> None:
    assert Derived(others, said).has(figure)


@pytest.mark.parametrize(
    ("figure", "others", "said"),
    [
        ("58", ["79", "22"], "58 EUR more"),  # nearly
        ("57", ["79"], "57 EUR more"),
        ("57", [], "57 EUR"),
        ("72", ["79", "22"], "72 EUR cheaper"),  # a share is one only where it is called that
        ("3.6", ["79", "22"], "3.6 EUR"),
        ("57", ["79", "22", "1", "2", "3"], "57 EUR"),  # of so many something can be made by chance
        ("1.2.3", ["1", "2"], "version 1.2.3"),
        ("50", ["0", "22"], "50 % of it"),
    ],
)
def test_other_figures_are_not_derived(figure: str, others: list[str], said: str) -> None:
    assert not Derived(others, said).has(figure)
