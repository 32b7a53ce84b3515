"""Files in the embedded model: what an objective wants listed or read, and which names of a folder that is."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agents.embedded.text import Profile, Unit, coverage, units, words

FILE_TOOLS = ("list_files", "read_file")
MAX_TASKS = 8
BUILD_NAMES = (
    *(
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "package.json",
    ),
    *("cargo.toml", "go.mod", "cmakelists.txt", "meson.build", "build.sbt", "mix.exs", "composer.json"),
    *("build.xml", "makefile", "gnumakefile", "build.sh"),
)
CODE = frozenset(
    (
        *(
            ".py",
            ".java",
            ".kt",
            ".scala",
            ".js",
            ".mjs",
            ".ts",
            ".tsx",
            ".jsx",
            ".go",
            ".rs",
            ".c",
            ".h",
            ".cc",
        ),
        *(".cpp", ".hpp", ".cs", ".rb", ".php", ".swift", ".ex", ".erl", ".hs", ".lua"),
    )
)
_SOURCE_FOLDERS = ("src/main", "src", "lib", "app", "source", "sources", "pkg", "cmd", "internal")
_TEST_FOLDERS = ("src/test", "tests", "test", "spec", "specs", "__tests__")
_TEST_PATTERNS = ("**/test_*", "**/*_test.*", "**/*.test.*", "**/*Test.*", "**/*Tests.*", "**/*_spec.*")
_BUILD = re.compile(
    r"(?i)\b(?:build|project) (?:file|script|config\w*)s?\b|\bmanifest\b|(?:构建|编译|项目)(?:文件|脚本|配置)"
)
_README = re.compile(r"(?i)\breadme\b|(?<![A-Za-z])readme|自述")
_TESTS = re.compile(r"(?i)\btests?\b|测试")
_SOURCES = re.compile(r"(?i)\bsources?\b|\bcode\b|\bmodules\b|源码|源代码|源文件|代码")
_GENERIC = re.compile(
    r"(?i)\b(?:files?|folders?|director(?:y|ies)|projects?|tree|everything|lines?)\b|文件夹?|目录|项目|工程|所有|全部|清单"
)
_FILE_NAME = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w.-]*[\w-]\.[A-Za-z]\w{0,7}(?![\w/])")
_WHATS = (("build-file", _BUILD), ("readme", _README), ("tests", _TESTS), ("sources", _SOURCES))

_THEN = re.compile(r"(?i)[,;，；。.]?\s*(?:\b(?:and )?(?:then|finally)\b|并?最后|然后|接着)")
_PARTS = re.compile(r"[,;!?\n，；。！？、]+|\.(?=\s|$)|\band\b|以及|并且|和|与|并(?!行)")
_OPENING = r"(?i)^\s*(?:(?:please|first|also|in parallel|then|请|首先|先|再|并行地?|同时)\s*)*"
_LIST = re.compile(_OPENING + r"(?:list|enumerate|列出|罗列|列举)(?:(?<=[^a-z])|(?![a-z]))\s*")
_READ = re.compile(
    _OPENING
    + r"(?:read|open|look at|look into|view|print|读取|阅读|读一下|读|查看|打开|看一下|看)(?:(?<=[^a-z])|(?![a-z]))\s*"
)
_ASIDE = re.compile(r"(?i)\b(?:in parallel|at the same time|concurrently)\b|并行地?|同时")
_LINES = re.compile(r"(?i)(\d{1,6})\s*(?:lines?\b|行)")
_TELL = re.compile(
    r"(?i)^\s*(?:please\s+)?(?:tell|show|explain to)\s+(?:me|us)\s+|^\s*请?(?:告诉我们?|告知|说明|回答|总结)(?:一下)?"
)


@dataclass(frozen=True)
class FileTask:
    """What is to be listed or read: `listing` or reading, of `what`; `lines` to read, None = as many as there are."""

    listing: bool
    what: str
    lines: int | None = None

    @property
    def kind(self) -> str:
        """A word for it: build-file, readme, tests, sources, or ""."""
        return next((kind for kind, pattern in _WHATS if pattern.search(self.what)), "")

    def clause(self, chinese: bool) -> str:
        """Return the clause that `read_clause` understands."""
        verb = ("列出" if self.listing else "读取") if chinese else ("list " if self.listing else "read ")
        gap = " " if chinese and self.what[:1].isascii() else ""
        return verb + gap + self.what


def read_clause(clause: str, listing: bool | None = None) -> FileTask | None:
    """Read "list the sources", "read the first 80 lines of the README".

    Args:
        clause: a part of an objective.
        listing: what a clause without a verb continues; None = it is no task.
    """
    for pattern, lists in ((_LIST, True), (_READ, False)):
        match = pattern.match(clause)
        if match:
            clause, listing = clause[match.end() :], lists
            break
    what = " ".join(_ASIDE.sub(" ", clause).split())[:200]
    if listing is None or not what:
        return None
    if not any(p.search(what) for p in (_BUILD, _README, _TESTS, _SOURCES, _GENERIC, _FILE_NAME, _LINES)):
        return None
    lines = _LINES.search(what)
    return FileTask(listing, what, max(1, int(lines[1])) if lines and not listing else None)


def read_files_objective(objective: str) -> tuple[list[FileTask], list[str]]:
    """Return what an objective wants listed and read, and what is to be told from it; no tasks if it is not of files."""
    opening, *later = _THEN.split(objective[:4_000], maxsplit=1)
    tasks: list[FileTask] = []
    rest: list[str] = []
    listing: bool | None = None
    for clause in _PARTS.split(opening):
        task = read_clause(clause, None if rest else listing)
        if task is not None:
            tasks.append(task)
            listing = task.listing
        elif clause.strip():
            rest.append(clause)
    told = [*rest, *(c for part in later for c in _PARTS.split(part))]
    questions = [" ".join(_TELL.sub("", c).split()) for c in told]
    return list(dict.fromkeys(tasks))[:MAX_TASKS], [q for q in questions if units(q)][:6]


def names_in(listing: str) -> list[str]:
    """Return the paths of a result of list_files."""
    matches = (re.fullmatch(r"(.+) \(\d+ bytes\)", row.strip()) for row in listing.splitlines())
    return [match[1] for match in matches if match]


def scope_of(what: str, paths: Sequence[str]) -> tuple[str, str] | None:
    """Return folder and pattern of what is to be listed; None if no name fits."""
    if _TESTS.search(what):
        return _folder(_TEST_FOLDERS, paths) or _pattern(paths, _TEST_PATTERNS)
    if _SOURCES.search(what):
        code = [p for p in paths if PurePosixPath(p).suffix.casefold() in CODE]
        suffixes = Counter(PurePosixPath(p).suffix for p in code).most_common(1)
        return _folder(_SOURCE_FOLDERS, code) or (next(((".", f"**/*{s}") for s, _ in suffixes), None))
    suffix = re.search(r"(?<!\w)\*?(\.[A-Za-z]\w{0,7})\b", what)
    if suffix:
        return _pattern(paths, [f"**/*{suffix[1]}"])
    wanted = units(_GENERIC.sub(" ", what))
    if not wanted:
        return (".", "**/*") if paths else None
    folders = sorted({str(parent) for p in paths for parent in PurePosixPath(p).parents} - {"."}, key=len)
    near = [
        f for f in folders if set(words(PurePosixPath(f).name)) & {w for u in wanted for w in words(u.text)}
    ]
    return (near[0], "**/*") if near else None


def _folder(candidates: Sequence[str], paths: Sequence[str]) -> tuple[str, str] | None:
    return next(((f, "**/*") for f in candidates if any(p.startswith(f"{f}/") for p in paths)), None)


def _pattern(paths: Sequence[str], patterns: Sequence[str]) -> tuple[str, str] | None:
    counts = {
        p: sum(fnmatchcase(path.rpartition("/")[2], p.removeprefix("**/")) for path in paths)
        for p in patterns
    }
    best = max(patterns, key=lambda p: counts[p])
    return (".", best) if counts[best] else None


def best_name(what: str, paths: Sequence[str]) -> str | None:
    """Return the path that is meant; of several, the one nearest to the root. None if no name fits."""
    ordered = sorted(paths, key=lambda p: (p.count("/"), len(p), p))
    bases = {p: p.rpartition("/")[2].casefold() for p in ordered}
    for said in _FILE_NAME.findall(what):
        named = [p for p in ordered if p.casefold() == said.casefold() or bases[p] == said.casefold()]
        if named:
            return named[0]
    if _BUILD.search(what):
        return next((p for name in BUILD_NAMES for p in ordered if bases[p] == name), None)
    if _README.search(what):
        return next((p for p in ordered if bases[p].startswith("readme")), None)
    wanted = units(_GENERIC.sub(" ", _LINES.sub(" ", what)))
    scored = [(coverage(wanted, (Profile(re.sub(r"[_./-]+", " ", p)), 1.0)), p) for p in ordered]
    best = max(scored, key=lambda s: s[0], default=(0.0, ""))
    return best[1] if best[0] >= 0.5 else None


@dataclass(frozen=True)
class Section:
    """Lines of a file under a heading; "" before the first."""

    heading: str
    lines: list[str]

    @property
    def shown(self) -> list[str]:
        """The lines that say something, at most ten: commands and other indented lines before prose."""
        full = [row for row in self.lines if sum(c.isalnum() for c in row) >= 2]
        if len(full) > 10:
            indented = [row for row in full if row.startswith(("    ", "\t", "$"))]
            full = [*indented, *(row for row in full if row not in indented)][:10]
        return [" ".join(row.split())[:200] for row in full]


def telling_sections(path: str, text: str, wanted: Sequence[Unit]) -> list[Section]:
    """Return the parts of a file that bear on what is asked; its beginning if none does, or nothing is asked."""
    sections = _sections(path, text)
    chosen: list[Section] = []
    for unit in wanted:
        headed = [s for s in sections if s.shown and _bears(unit, s.heading, path)]
        if not headed:
            rows = [Section(s.heading, [r for r in s.lines if _bears(unit, r, path)]) for s in sections]
            headed = [s for s in rows if s.shown][:2]
        chosen += [s for s in headed[:3] if s not in chosen]
    if chosen:
        return chosen[:8]
    return [s for s in sections if s.shown][:2]


def _sections(path: str, text: str) -> list[Section]:
    markdown = (
        path.casefold().endswith((".md", ".markdown", ".rst", ".txt")) or "." not in path.rpartition("/")[2]
    )
    heading = re.compile(r"#{1,6} +(.+)" if markdown else r"\[+([^\[\]]+)\]+")
    found = [Section("", [])]
    fenced = False
    for row in text[:200_000].splitlines():
        fenced ^= markdown and row.startswith(("```", "~~~"))
        match = None if fenced else heading.fullmatch(row.rstrip())
        if match:
            found.append(Section(match[1].strip(" #"), []))
        else:
            found[-1].lines.append(row)
    return found


def _bears(unit: Unit, text: str, path: str) -> bool:
    if Profile(text).has(unit) >= 0.5:
        return True
    # In a build file words are run together: testpaths, build-backend.
    is_prose = path.casefold().endswith((".md", ".markdown", ".rst", ".txt"))
    return not is_prose and len(unit.key) >= 4 and unit.key in text.casefold()
