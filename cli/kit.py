"""What a run's tools are over, as given on the command line."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_PATHS = ("docs", "root", "workspace", "mcp")
_PREFIX = "planweave_"
_SEPARATOR = "\n"


@dataclass(frozen=True)
class Kit:
    """Folders, files and names; what is None or empty is as the settings say.

    Attributes:
        docs, root, workspace: folders; mcp: a .mcp.json; see open_graph.
        web: whether the web may be read.
        own: tools of the person's own, as "module:attribute".
    """

    docs: Path | None = None
    root: Path | None = None
    workspace: Path | None = None
    web: bool | None = None
    mcp: Path | None = None
    own: tuple[str, ...] = ()

    def over(self, other: Self) -> "Kit":
        """Return this kit, and what `other` says where this one says nothing."""
        return Kit(
            docs=self.docs or other.docs,
            root=self.root or other.root,
            workspace=self.workspace or other.workspace,
            web=other.web if self.web is None else self.web,
            mcp=self.mcp or other.mcp,
            own=self.own or other.own,
        )

    def metadata(self) -> dict[str, str]:
        """Return the kit as a run's checkpoints keep it: whole paths, and nothing that is not given."""
        given: dict[str, Path] = {name: getattr(self, name) for name in _PATHS if getattr(self, name)}
        # Under an ascii locale a path holds surrogates, which no database takes: its bytes are what counts.
        stored = {
            _PREFIX + name: os.fsencode(path.resolve()).decode("utf-8", "replace")
            for name, path in given.items()
        }
        if self.web is not None:
            stored[_PREFIX + "web"] = "yes" if self.web else "no"
        if self.own:
            stored[_PREFIX + "own"] = _SEPARATOR.join(map(_whole, self.own))
        return stored

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the kit that a checkpoint has kept."""
        kept = {name: metadata.get(_PREFIX + name) for name in (*_PATHS, "web", "own")}
        paths = {name: Path(os.fsdecode(str(kept[name]).encode())) for name in _PATHS if kept[name]}
        own = tuple(str(kept["own"]).split(_SEPARATOR)) if kept["own"] else ()
        return cls(**paths, web=kept["web"] == "yes" if kept["web"] else None, own=own)


def kit_of(
    docs: Path | None,
    root: Path | None,
    workspace: Path | None,
    web: bool,
    mcp: Path | None,
    own: Sequence[str] | None,
) -> Kit:
    """Return the kit of a command's options; --web cannot be said no to."""
    return Kit(docs, root, workspace, web or None, mcp, tuple(own or ()))


def _whole(spec: str) -> str:
    """Return a spec that means the same in another working folder."""
    name, colon, attribute = spec.rpartition(":")
    return f"{Path(name).resolve()}{colon}{attribute}" if name.endswith(".py") else spec
