"""Processes of a pool end with the one that waits for them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from sharestate.worker_processes import begin_worker
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), begin_worker)
    pool.submit(int).result()
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_ends_when_its_parent_is_killed() -> None:
    """A worker that waits for work ends, and its standard output with it, when the process with the pool is killed."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        ended, _, _ = select.select([process.stdout], [], [], 60)
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
    assert ended
