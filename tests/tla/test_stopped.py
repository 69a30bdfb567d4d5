"""What is started is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import runs, wait_until

pytestmark = pytest.mark.tla

ROOT: Final = Path(__file__).parents[2]

PROCESSES: Final = Path("/proc")


def started_by(process: Path) -> list[Path]:
    """Return the processes, directories of /proc, that a thread of *process* has started."""
    started = []
    for thread in process.glob("task/*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            started += [PROCESSES / number for number in thread.read_text().split()]
    return started


def tlcs_of(process: Path) -> list[Path]:
    """Return the processes of TLC, each of which has a guardian that *process* has started."""
    guarded = [each for guardian in started_by(process) for each in started_by(guardian)]
    return [each for each in guarded if (each / "cmdline").read_bytes().startswith(b"java\0")]


@pytest.mark.parametrize(("ended_by", "status"), [(signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)])
def test_tlc_does_not_outlive_who_has_started_it(ended_by: signal.Signals, status: int, tmp_path: Path) -> None:
    """Whatever ends ``python -m tests.tla`` ends TLC."""
    command = [sys.executable, "-m", "tests.tla", "models"]
    files = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=files, stdout=subprocess.DEVNULL) as process:
        started = PROCESSES / str(process.pid)
        wait_until(lambda: bool(tlcs_of(started)))
        (tlc,) = tlcs_of(started)

        process.send_signal(ended_by)

        assert process.wait() == status
    wait_until(lambda: not runs(tlc))
