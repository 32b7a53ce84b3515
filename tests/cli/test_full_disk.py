"""The command on a disk that fills up: exit code 4, one line that says what to do, and then a resume."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.cli.endpoint import Endpoint, finding_of, step
from tests.faults.disks import small_disk

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def test_a_full_disk_is_one_line_and_resume_goes_on(
    env: dict[str, str], planweave: Callable[..., Ran], tmp_path: Path
) -> None:
    plan = {"goal": "g", "steps": [step("a"), step("b", "a")]}
    with small_disk(tmp_path / "disk") as disk, Endpoint(plan) as endpoint:
        if disk is None:
            pytest.skip("this user may not mount a small file system")

        def until_full(brief: Any) -> Any:
            if brief["step"]["id"] == "b":
                disk.fill()
            return finding_of(brief)

        endpoint.finding = until_full
        env |= endpoint.environment | {"PLANWEAVE_HOME": str(disk.folder / "home")}
        stopped = planweave("run", "x", "--thread", "t")
        assert stopped.returncode == 4
        (line,) = stopped.stderr.decode().splitlines()
        assert line.startswith("planweave: ")
        assert all(word in line for word in ("disk is full", "free some room", "resume"))
        disk.free()
        endpoint.finding = finding_of
        assert planweave("resume", "t").returncode == 0
        assert endpoint.steps_asked() == ["a", "b", "b"]
