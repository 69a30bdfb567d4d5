"""What is started is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import runs, wait_until

pytestmark = pytest.mark.tla

ROOT: Final = Path(__file__).parents[2]

PROCESSES: Final = Path("/proc")


def started_by(process: int) -> list[Path]:
    """Return those of the processes that *process* has started that are TLC, as directories of /proc."""
    numbers = (PROCESSES / f"{process}/task/{process}/children").read_text().split()
    started = [PROCESSES / number for number in numbers]
    return [each for each in started if b"tlc2.TLC" in (each / "cmdline").read_bytes()]


def test_tlc_does_not_outlive_who_has_started_it() -> None:
    """A SIGTERM that ends ``python -m tests.tla`` ends TLC."""
    command = [sys.executable, "-m", "tests.tla", "models"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: bool(started_by(process.pid)))
        (tlc,) = started_by(process.pid)

        process.send_signal(signal.SIGTERM)

        assert process.wait() == 1
    wait_until(lambda: not runs(tlc))
