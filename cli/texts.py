"""The command's own words, in English and Chinese. Keys are the same in both; a test holds that."""

import locale
import warnings
from dataclasses import dataclass
from typing import Literal

from cli.texts_en import EN
from cli.texts_zh import ZH

Language = Literal["en", "zh"]
CATALOGUE: dict[Language, dict[str, str]] = {"en": EN, "zh": ZH}


@dataclass(frozen=True)
class Texts:
    """The catalogue of one language."""

    language: Language = "en"

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key with its values in place.

        Raises:
            KeyError: there is no such text.
        """
        return CATALOGUE[self.language][key].format(**values)


def language_of_locale() -> Language:
    """Return the language that the system's locale asks for; English if it asks for neither.

    It is read from the locale's name: setlocale() would refuse one that is not installed, as in many containers.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # deprecated in 3.11, taken back in 3.15
        try:
            name, _ = locale.getdefaultlocale(("LC_ALL", "LC_MESSAGES", "LANG"))
        except ValueError:
            return "en"
    return "zh" if (name or "").lower().startswith("zh") else "en"
