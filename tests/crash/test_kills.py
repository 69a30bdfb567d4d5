"""A process that is killed while it writes: what it had said is stored, and at most one request more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Final

from tests.crash.answered import after, opened, steps, stored_after, stored_in, take
from tests.crash.sizes import SEED, size

PROGRAM: Final = "import sys; from tests.crash.test_kills import work; work(*sys.argv[1:])"

KILLED: Final = b"killed\n"


def work(path: str, seed: str) -> None:
    """
    Start a process for each number that is read, have steps answered there from that number on, until it is killed.

    It prints its own number, and that of each step when it is answered; that it was killed comes last.
    """
    for begin in sys.stdin:
        process = os.fork()  # which begins at once: to import all that a persister takes needs a hundred times as long
        if process == 0:
            _answer(Path(path), int(seed), int(begin))
        _, status = os.waitpid(process, 0)
        if status != signal.SIGKILL:
            break
        os.write(1, KILLED)


def _answer(path: Path, seed: int, begin: int) -> None:
    os.write(1, b"%d\n" % os.getpid())
    with opened(path) as persister:
        for number, step in enumerate(steps(seed)):
            if number >= begin:
                take(persister, step)
                os.write(1, b"%d\n" % number)


def answered_until_killed(workers: subprocess.Popen[bytes], begin: int, random: Random) -> int:
    """Have steps answered by a process from *begin* on, kill it at a random time, and return how many were."""
    assert workers.stdin is not None
    assert workers.stdout is not None
    workers.stdin.write(b"%d\n" % begin)
    workers.stdin.flush()
    process = int(workers.stdout.readline())
    lines = [workers.stdout.readline() for _ in range(random.choice([0, 1, 3, 10]))]
    # So few answers take longer than this, and a deletion or a checkpoint is among them now and then.
    time.sleep(random.uniform(0, 0.003))
    os.kill(process, signal.SIGKILL)
    lines += takewhile(KILLED.__ne__, workers.stdout)
    end = begin + len(lines)
    assert [int(line) for line in lines] == [*range(begin, end)]
    return end


def test_a_process_that_is_killed_loses_nothing_that_was_answered(in_memory: Path) -> None:
    """It is killed again and again: all that it was answered is there, and at most the request under way too."""
    path = in_memory / "state.db"
    random = Random(SEED)  # noqa: S311 - a replayable choice
    sequence, expected = steps(SEED), stored_after([])
    answered = 0
    command = [sys.executable, "-c", PROGRAM, str(path), str(SEED)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as workers:
        for _ in range(size(8, 200)):
            answered = answered_until_killed(workers, answered, random)
            while len(expected) < answered + 2:
                expected.append(after(expected[-1], next(sequence)))
            stored = stored_in(path)
            assert stored in expected[answered : answered + 2]
            answered += stored != expected[answered]
