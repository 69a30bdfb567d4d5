"""Measuring all sides by turns, so that a machine that slows down for a while slows down all of them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile, ZipFile

from attrs import frozen

from bench.instructions import instructions
from bench.jvm.kafka import HELD_AFTER, started
from bench.jvm.library import ROOT, THIS_TREE, by_turns
from bench.machine import allocation_ns, call_ns, load
from bench.workloads import READINGS, WORKLOADS, as_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tests.oracle.build import Oracle

MICROSECONDS: Final = "µs for a batch"
BYTES: Final = "bytes"
INSTRUCTIONS: Final = "instructions for a batch"
NANOSECONDS: Final = "ns"
LOAD: Final = "processes for each core"

CALIBRATED: Final[Mapping[str, tuple[str, Callable[[], float]]]] = MappingProxyType(
    {
        "calling a function that does nothing": (NANOSECONDS, call_ns),
        "making a list and letting it go": (NANOSECONDS, allocation_ns),
        "load": (LOAD, load),
    }
)
"""What says how fast the machine is and whether it is at ease; measured again before each workload."""


class UnknownCommitError(Exception):
    """Git cannot check out the tree to compare with."""


class WheelError(Exception):
    """There is no wheel to compare with; the message names it."""


@frozen
class Round:
    """What one thing cost in one round, each side measured right after the other."""

    what: str
    """A workload and how writes are read, an operation, or what takes memory."""

    unit: str
    """MICROSECONDS, BYTES or INSTRUCTIONS; NANOSECONDS or LOAD for the machine itself."""

    library: float
    """What it costs in this tree."""

    kafka: float | None = None
    """What it costs in the JVM; None where that was not asked for."""

    later: float | None = None
    """What it costs in a JVM that has had time to compile all of it; None for memory and without a JVM."""

    base: float | None = None
    """What it costs in the tree to compare with; None without one."""


@frozen
class Costs:
    """What one thing costs, over all rounds."""

    rounds: Sequence[Round]
    """At least one."""

    @property
    def library(self) -> float:
        """The median of this tree's side."""
        return median(round_.library for round_ in self.rounds)

    @property
    def kafka(self) -> float | None:
        """The median of Kafka's side."""
        return _median(round_.kafka for round_ in self.rounds)

    @property
    def later(self) -> float | None:
        """The median of the JVM that has compiled all."""
        return _median(round_.later for round_ in self.rounds)

    @property
    def base(self) -> float | None:
        """The median of the tree to compare with."""
        return _median(round_.base for round_ in self.rounds)

    @property
    def to_kafka(self) -> list[float]:
        """This tree's cost by Kafka's, round by round, from the least to the greatest."""
        return sorted(round_.library / round_.kafka for round_ in self.rounds if round_.kafka)

    @property
    def base_to_kafka(self) -> list[float]:
        """The same of the tree to compare with."""
        return sorted(round_.base / round_.kafka for round_ in self.rounds if round_.base and round_.kafka)

    @property
    def to_base(self) -> list[float]:
        """This tree's cost by that of the tree to compare with, round by round, from the least to the greatest."""
        return sorted(round_.library / round_.base for round_ in self.rounds if round_.base)


def _median(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """
    Yield where `sharestate` is as *commit* had it: in a directory that is removed afterwards.

    Raises:
        UnknownCommitError: Git does not know *commit*, or this is no clone.
    """
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    try:
        ended = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError as error:
        message = "there is no git"
        raise UnknownCommitError(message) from error
    if ended.returncode:
        raise UnknownCommitError(ended.stderr.decode().strip())
    with TemporaryDirectory(prefix="sharestate-") as scratch:
        with tarfile.open(fileobj=io.BytesIO(ended.stdout)) as tree:
            tree.extractall(scratch, filter="data")
        yield Path(scratch) / "src"


@contextmanager
def unpacked(wheel: Path) -> Iterator[Path]:
    """
    Yield where `sharestate` is as *wheel* has it, such as the compiled one: in a directory that is removed afterwards.

    Raises:
        WheelError: It cannot be read.
    """
    with TemporaryDirectory(prefix="sharestate-") as scratch:
        try:
            with ZipFile(wheel) as archive:
                archive.extractall(scratch)  # noqa: S202 - a wheel of our own, which is imported next
        except (OSError, BadZipFile) as error:
            message = f"{wheel}: no wheel: {error}"
            raise WheelError(message) from error
        yield Path(scratch)


def rounds(count: int, names: Iterable[str], oracle: Oracle | None, base: Path | None) -> Iterator[Round]:
    """Yield a round of each of *names* as often as *count* says, with new processes and a new JVM for every round."""
    for _ in range(count):
        with ExitStack() as stack:
            kafka = stack.enter_context(started(oracle)) if oracle else None
            for name in names:
                yield from calibration()
                before = kafka.microseconds(name) if kafka else None
                sides = {what: _sides(what, base) for what in readings(name)}
                later = kafka.later(name, before) if kafka and before else None
                for what, (library, other) in sides.items():
                    yield Round(what, MICROSECONDS, library, before, later, other)


def readings(name: str) -> list[str]:
    """Return the names under which *name* is measured: a workload has one for each way to read its writes."""
    return [as_read(name, reading) for reading in READINGS] if name in WORKLOADS else [name]


def counts(workloads: Iterable[str], base: Path | None) -> Iterator[Round]:
    """Yield how many instructions each of *workloads* takes; once is enough, for they hardly vary."""
    for reading, workload in product(READINGS, workloads):
        library, *other = (
            instructions(as_read(workload, reading), (source, ROOT))
            for source in ([THIS_TREE, base] if base else [THIS_TREE])
        )
        yield Round(as_read(workload, reading), INSTRUCTIONS, library, base=other[0] if other else None)


def calibration() -> Iterator[Round]:
    """Yield what the machine itself makes now of what is always the same, and how much else it has to do."""
    for what, (unit, measure) in CALIBRATED.items():
        yield Round(what, unit, measure())


def memory(oracle: Oracle, base: Path | None) -> Iterator[Round]:
    """Yield what a record in flight takes; once is enough, for memory does not vary."""
    for what in HELD_AFTER:
        with started(oracle) as kafka:
            held = kafka.bytes_per_record(what)
        library, other = _sides(what, base)
        yield Round(what, BYTES, library, held, base=other)


def _sides(what: str, base: Path | None) -> tuple[float, float | None]:
    """Return what *what* costs in this tree, and in the one to compare with."""
    library, *other = by_turns([THIS_TREE, base] if base else [THIS_TREE], what)
    return library, other[0] if other else None


def costs(measured: Iterable[Round], unit: str) -> dict[str, Costs]:
    """Return what everything that is counted in *unit* costs, in the order in which it was first measured."""
    found: dict[str, list[Round]] = {}
    for round_ in measured:
        if round_.unit == unit:
            found.setdefault(round_.what, []).append(round_)
    return {what: Costs(of_one) for what, of_one in found.items()}
