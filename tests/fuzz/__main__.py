"""
Damaged inputs for every decoder: ``python -m tests.fuzz --inputs 1000000``.

Several processes share the inputs of a decoder. A library in C may end one of them where memory is short; so each puts
the input that it is about to try where it outlives the process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from base64 import b64decode
from itertools import islice
from mmap import mmap
from struct import Struct
from typing import Final

from rich.console import Console
from rich.progress import Progress

from tests.fuzz.decoders import DECODERS
from tests.fuzz.run import Failure, bounded_memory, failure, failures

_TOLD: Final = Struct(">qi")
"""The number of inputs that were tried, and the size of the next one."""

_ROOM: Final = 2**20
_POLL_S: Final = 0.2
_MOST_FAILURES: Final = 5
"""The failures that a process prints before it gives up."""


class Worker:
    """A process that tries some of the inputs of a decoder, and prints its failures."""

    def __init__(self, name: str, seed: int, numbers: range) -> None:
        """Start it."""
        self._name = name
        self._told = mmap(-1, _ROOM)
        self.process = multiprocessing.get_context("fork").Process(target=self._try, args=(seed, numbers))
        self.process.start()

    @property
    def done(self) -> int:
        """The number of inputs that it has tried."""
        return int(_TOLD.unpack_from(self._told)[0])

    def succeeded(self) -> bool:
        """Wait until it has ended, and return whether it has found nothing."""
        self.process.join()
        status = self.process.exitcode or 0
        if status < 0:
            data = self._told[_TOLD.size :][: _TOLD.unpack_from(self._told)[1]]
            sys.stdout.write(f"{Failure(self._name, data, f'the process was ended by signal {-status}')}\n")
        return status == 0

    def _try(self, seed: int, numbers: range) -> None:
        tried = 0

        def tell(data: bytes) -> None:
            nonlocal tried
            self._told[: _TOLD.size + len(data)] = _TOLD.pack(tried, len(data)) + data
            tried += 1

        with bounded_memory():
            found = [*islice(failures(self._name, seed, numbers, tell), _MOST_FAILURES)]
        sys.stdout.write("".join(f"{failed}\n" for failed in found))
        sys.exit(1 if found else 0)


def try_all(names: list[str], most: int, seed: int, jobs: int) -> bool:
    """Try *most* inputs or fewer with each decoder in *jobs* processes; return whether all were read or refused."""
    console = Console(stderr=True)
    succeeded = True
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        for name in names:
            inputs = most // DECODERS[name].cost
            task = bar.add_task(name, total=inputs)
            workers = [Worker(name, seed, range(job, inputs, jobs)) for job in range(jobs)]
            while any(worker.process.is_alive() for worker in workers):
                bar.update(task, completed=sum(worker.done for worker in workers))
                workers[-1].process.join(_POLL_S)
            bar.update(task, completed=inputs)
            outcomes = [worker.succeeded() for worker in workers]
            sys.stdout.write(f"{name}: {inputs:,} inputs, {'no failure' if all(outcomes) else 'FAILED'}\n")
            succeeded = succeeded and all(outcomes)
    return succeeded


def main() -> None:
    """Try many inputs, or one."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Try damaged inputs with decoders.")
    parser.add_argument("--decoder", choices=DECODERS, help="only this one")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many for each decoder; 1,000,000")
    parser.add_argument("--seed", type=int, default=0, help="what all choices begin with; 0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; as many as there are cores")
    parser.add_argument("--input", metavar="BASE64", help="try this input alone")
    arguments = parser.parse_args()
    if arguments.input is None:
        names = [arguments.decoder] if arguments.decoder else [*DECODERS]
        sys.exit(0 if try_all(names, arguments.inputs, arguments.seed, arguments.jobs) else 1)
    if arguments.decoder is None:
        parser.error("--input needs --decoder")
    with bounded_memory():
        failed = failure(arguments.decoder, b64decode(arguments.input))
    sys.exit(str(failed) if failed else 0)


if __name__ == "__main__":
    main()
