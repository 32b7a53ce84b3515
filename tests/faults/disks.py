"""Disks that can be filled: a small file system where this user may mount one, else a bound on SQLite's pages."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

SIZE = 16 * 1024 * 1024
BLOCK = b"\0" * 65536


class SmallDisk:
    """A file system of 16 MB at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Take all the room that there is, but `leave` bytes."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(BLOCK), 4096):
                try:
                    while True:
                        file.write(BLOCK[:size])
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
            if leave:
                file.truncate(max(0, file.tell() - leave))

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk | None]:
    """Mount a small file system; None where that is not allowed."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "planweave-test", str(folder)]
    try:
        mounted = os.name == "posix" and subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        # Lazily: a reader that is late must not leave the mount behind.
        subprocess.run(["umount", "-l", str(folder)], check=True)


def sound(home: Path) -> bool:
    """Return whether SQLite finds nothing wrong with the databases of a home folder."""
    checks: list[str] = []
    for path in home.glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as conn:
            checks += [row[0] for row in conn.execute("PRAGMA integrity_check")]
    return checks == ["ok", "ok"]
