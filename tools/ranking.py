"""Words of a text in any script, BM25 over them, and the part of a passage that a query is about."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tools.chunks import sentences, split_sentences
from tools.results import EXCERPT_CHARS, character_boundary

# Scripts written without spaces between words: Han, kana, Hangul, Thai, Lao, Khmer, Burmese.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\U00020000-\U000323af\u0e01-\u0e5b\u0e80-\u0eff\u1780-\u17d3\u1000-\u109f"
)
_TOKEN = re.compile(rf"(?P<run>[{_UNSPACED}]+)|\d+(?:[.,]\d+)+|[^\W_{_UNSPACED}]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_FUNCTION_WORDS = frozenset(
    [
        "a",
        "about",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "of",
        "on",
        "or",
        "our",
        "should",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
_FUNCTION_CHARACTERS = frozenset("的了吗呢吧与及和或是在么")


def words(text: str) -> list[str]:
    """Return the tokens of a text: folded words; of scripts without spaces, each character and each pair of neighbours.

    Full-width and half-width forms, upper and lower case, and English plurals are one; 1,200 is 1200.
    """
    found: list[str] = []
    for match in _TOKEN.finditer(_normal(text)):
        token = match[0]
        if match["run"]:
            found += token
            found += _pairs(token)
        else:
            found.append(_folded(token))
    return found


def query_terms(query: str) -> list[str]:
    """Return the tokens that a passage must share one of: no function words, no single characters of longer runs.

    A query of function words alone keeps them. Order is the query's, each token once.
    """
    found: list[str] = []
    telling: list[str] = []
    for match in _TOKEN.finditer(_normal(query)):
        token = match[0]
        terms = (_pairs(token) or [token]) if match["run"] else [_folded(token)]
        found += terms
        if token not in _FUNCTION_WORDS:
            telling += [term for term in terms if not _FUNCTION_CHARACTERS & set(term)]
    return list(dict.fromkeys(telling or found))


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _folded(word: str) -> str:
    """Fold a plural that English spelling shows, and write numbers without thousands separators."""
    if word[0].isdigit():
        return word.replace(",", "") if _THOUSANDS.fullmatch(word) else word
    if len(word) < 4 or not word.isascii() or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes", "zes")) else word[:-1]


@dataclass(frozen=True)
class Ranking:
    """BM25 (Robertson and Zaragoza 2009, in Lucene's form, whose weights are never negative) over tokenised texts."""

    _model: Any

    @classmethod
    def over(cls, texts: Sequence[Sequence[str]]) -> "Ranking":
        """Index texts, each a list of tokens."""
        if not any(texts):
            return cls(None)
        import bm25s  # with NumPy it takes a fifth of a second to import

        model: Any = bm25s.BM25(method="lucene")
        model.index([list(text) for text in texts], show_progress=False)
        return cls(model)

    def best(self, query: str, k: int) -> list[int]:
        """Return the numbers of at most `k` texts that share a term with the query, best first, ties in index order."""
        terms = query_terms(query)
        if self._model is None or not terms:
            return []
        shared = self._model.get_scores(terms)
        # Single characters only order what shares a term: nearly every Chinese text has nearly every common one.
        full = self._model.get_scores(list(dict.fromkeys([*terms, *words(query)])))
        hits = [int(number) for number in shared.nonzero()[0]]
        return sorted(hits, key=lambda number: (-float(full[number]), number))[:k]


def excerpt_of(text: str, query: str) -> str:
    """Return at most 400 characters, from the sentence on that has, with what follows, the most terms of the query."""
    if len(text) <= EXCERPT_CHARS:
        return text
    terms = set(query_terms(query))
    spans = [(start, end, terms & set(words(text[start:end]))) for start, end in _short_spans(text)]
    best, most = 0, 0
    for number, (start, _, _) in enumerate(spans):
        here = set[str]().union(*(found for _, end, found in spans[number:] if end - start <= EXCERPT_CHARS))
        if len(here) > most:
            best, most = start, len(here)
    return text[best : character_boundary(text, best + EXCERPT_CHARS)].strip()


def _short_spans(text: str) -> Iterator[tuple[int, int]]:
    for start, end in sentences(text):
        for part in split_sentences(text[start:end], EXCERPT_CHARS // 2):
            yield start, start + len(part)
            start += len(part)
