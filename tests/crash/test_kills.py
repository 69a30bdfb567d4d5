"""A process that is killed while it writes: what it had said is stored, and at most one request more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

from tests.crash.answered import after, opened, steps, stored_after, stored_in, take
from tests.crash.sizes import SEED, size

PROGRAM: Final = "import sys; from tests.crash.test_kills import work; work(*sys.argv[1:])"


def work(path: str, seed: str, begin: str) -> None:
    """Have steps answered from number *begin* on, and print the number of each when it is."""
    with opened(Path(path)) as persister:
        for number, step in enumerate(steps(int(seed))):
            if number >= int(begin):
                take(persister, step)
                os.write(1, b"%d\n" % number)


def answered_until_killed(path: Path, begin: int, random: Random) -> int:
    """Start a process that has steps answered from *begin* on, kill it at a random time, and return how many were."""
    command = [sys.executable, "-c", PROGRAM, str(path), str(SEED), str(begin)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as worker:
        assert worker.stdout is not None
        lines = b""
        for _ in range(random.choice([0, 1, 3, 10])):
            lines += worker.stdout.readline()
        # So few answers take longer than this, and a deletion or a checkpoint is among them now and then.
        time.sleep(random.uniform(0, 0.003))
        worker.send_signal(signal.SIGKILL)
        lines += worker.stdout.read()
    assert worker.returncode == -signal.SIGKILL
    return begin + lines.count(b"\n")


def test_a_process_that_is_killed_loses_nothing_that_was_answered(in_memory: Path) -> None:
    """It is killed again and again: all that it was answered is there, and at most the request under way too."""
    path = in_memory / "state.db"
    random = Random(SEED)  # noqa: S311 - a replayable choice
    sequence, expected = steps(SEED), stored_after([])
    answered = 0
    for _ in range(size(8, 200)):
        answered = answered_until_killed(path, answered, random)
        while len(expected) < answered + 2:
            expected.append(after(expected[-1], next(sequence)))
        stored = stored_in(path)
        assert stored in expected[answered : answered + 2]
        answered += stored != expected[answered]
