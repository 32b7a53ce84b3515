"""Exit codes of `planweave`."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the command's exit code says."""

    COMPLETED = 0
    USAGE = 2
    PARTIAL = 3
    FAILED = 4
    WAITING = 5
    INTERRUPTED = 130
    TERMINATED = 143


STATUS_CODES: dict[str, ExitCode] = {
    "completed": ExitCode.COMPLETED,
    "partial": ExitCode.PARTIAL,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.FAILED,
}
"""Exit code of a run that has ended, by its status. A cancelled run has no answer, like a failed one."""
