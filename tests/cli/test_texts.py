import string

import pytest

from cli.texts import CATALOGUE, Texts, language_of_locale


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_both_languages_have_the_same_texts_with_the_same_places() -> None:
    english, chinese = CATALOGUE["en"], CATALOGUE["zh"]
    assert english.keys() == chinese.keys()
    assert [key for key in english if _places(english[key]) != _places(chinese[key])] == []


def test_values_are_not_templates() -> None:
    assert Texts("en")("step.skipped", step="a", because="{step} {0}").endswith("{step} {0}")


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("zh_CN.UTF-8", "zh"),
        ("zh_TW", "zh"),
        ("en_GB.UTF-8", "en"),
        ("C", "en"),
        ("nonsense.@", "en"),
        ("", "en"),
    ],
)
def test_the_language_follows_the_locale(monkeypatch: pytest.MonkeyPatch, name: str, language: str) -> None:
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    monkeypatch.delenv("LANG", raising=False)
    monkeypatch.setenv("LC_ALL", name)
    assert language_of_locale() == language
