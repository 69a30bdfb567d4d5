"""
Bugs that are planted in the state machine, so rare that ten thousand random runs do not meet them.

Each takes several things that go wrong, in one order. An exploration finds them by a shortest way, in small groups.
``python -m tests.planted.rare`` plants all of them, and says after how many of the random runs of `make stalls` one is
found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from types import MappingProxyType
from typing import Any, Final

import pytest
from attrs import evolve, frozen

from sharestate import KAFKA_4_4
from sharestate.partition import commit, expire
from sharestate.partition.batches import Batch
from sharestate.partition.cells import Cell
from sharestate.partition.record_machine import Input
from sharestate.partition.state import PartitionState, PendingWrite
from sharestate.testing.explore import Configuration
from sharestate.testing.persisters.failover_runs import (
    CONFIG,
    EVERYTHING,
    FailoverRun,
    failure,
    in_memory,
    random_steps,
)
from sharestate.values.effects import Effects
from sharestate.values.records import RecordState
from sharestate.values.requests import PersistedState, StateBatch
from tests.support.explorations import ACCEPT, RELEASE, configuration


@frozen
class RareBug:
    """A bug that is rare."""

    does: str
    """What it does."""

    module: Any
    """The module in which it is planted."""

    function: str
    """The function that has it."""

    planted: Callable[[Callable[..., Any]], Callable[..., Any]]
    """Returns that function with the bug, given the one without."""

    steps: int
    """The number of steps of a shortest way."""

    configuration: Configuration
    """A small share group in which it shows."""

    breaks: str = "nothing is lost"
    """What does not hold with it."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Plant it for a while."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.module, self.function, self.planted(getattr(self.module, self.function)))
            yield


def _closes_the_window(original: Callable[..., Effects]) -> Callable[..., Effects]:
    def write_failed(state: PartitionState, number: int) -> Effects:
        window, pending = state.gap_window, state.writes.get(number)
        if window is not None and isinstance(pending, PendingWrite) and 0 < window.first_offset == state.start_offset:
            cells = [batch.at(first) for batch, first, _ in pending.ranges]
            if any(cell.write == number and cell.lock_expired for cell in cells):
                state.gap_window = None
        return original(state, number)

    return write_failed


def _keeps_what_has_failed(original: Callable[..., Cell]) -> Callable[..., Cell]:
    def rolled_back(state: PartitionState, pending: PendingWrite, cell: Cell) -> Cell:
        before, is_within = cell.rollback, state.gap_window is not None
        if is_within and cell.lock_expired and before is not None and before.lock is not None:
            is_last = before.delivery_count >= pending.delivery_count_limit
            if is_last and before.lock.batch_offset < state.start_offset:
                return cell.committed()
        return original(state, pending, cell)

    return rolled_back


def _expires_as_a_whole(original: Callable[..., list[StateBatch]]) -> Callable[..., list[StateBatch]]:
    def straddling(state: PartitionState, batch: Batch) -> list[StateBatch]:
        was_delivered = 1 < batch.cell.delivery_count < state.config.delivery_count_limit
        entries = original(state, batch)
        if state.gap_window is None or not was_delivered:
            return entries
        start, last = state.start_offset, batch.last_offset
        cell = batch.at(start)
        after = cell.immediate(Input.BELOW_START, state.config.delivery_count_limit)
        state.replace_cells(batch, start, last, {cell: after}, Input.BELOW_START, None)
        state.count_completed(last + 1 - start)
        return [
            StateBatch(offset, offset, after.state if offset >= start else archived, count)
            for offset, _, archived, count in entries
        ]

    return straddling


def _stored(*batches: tuple[int, int, RecordState]) -> PersistedState:
    """Return what was stored: ranges of offsets, each with the state of records that were delivered once."""
    rows = tuple(StateBatch(first, last, state, 1) for first, last, state in batches)
    return PersistedState(start_offset=0, state_batches=rows)


_AVAILABLE, _ACCEPTED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED

RARE: Final[Mapping[str, RareBug]] = MappingProxyType(
    {
        "window closed": RareBug(
            "A write that fails after the lock of its records has expired ends the gap window, if the log start has "
            "moved to where that begins.",
            commit,
            "write_failed",
            _closes_the_window,
            steps=7,
            configuration=configuration(
                *((0, 0), (1, 2), (3, 3)), types=ACCEPT, failures=1, log_starts=1, stored=_stored((3, 3, _ACCEPTED))
            ),
        ),
        "failed and accepted": RareBug(
            "Records whose write fails after their lock has expired stay acknowledged, if it was their last delivery, "
            "the SPSO has moved into their batch, and a gap window is open.",
            commit,
            "_rolled_back",
            _keeps_what_has_failed,
            steps=9,
            configuration=configuration(
                *((0, 1), (2, 2), (3, 3)),
                types=ACCEPT,
                failures=1,
                delivery_count_limit=1,
                stored=_stored((3, 3, _ACCEPTED)),
            ),
        ),
        "archived as a whole": RareBug(
            "A batch that was delivered before, and into which the log start has moved, is archived as a whole when "
            "its lock expires while a gap window is open.",
            expire,
            "_expire_straddling",
            _expires_as_a_whole,
            steps=7,
            configuration=configuration(
                *((0, 0), (1, 2), (3, 4)),
                types=RELEASE,
                log_starts=1,
                delivery_count_limit=3,
                max_record_locks=5,
                stored=_stored((0, 0, _AVAILABLE), (1, 2, _AVAILABLE), (4, 4, _ACCEPTED)),
            ),
        ),
    }
)
"""The bugs by their names."""


def beginning() -> FailoverRun:
    """Return how a run begins, in which windows are soon full."""
    return FailoverRun(KAFKA_4_4.healed, in_memory(), config=evolve(CONFIG, max_record_locks=8))


def main() -> None:
    """Print after how many runs one of the bugs is found, of as many as are asked for."""
    most = int(sys.argv[1])
    with ExitStack() as stack:
        for bug in RARE.values():
            stack.enter_context(bug.at_work())
        for seed in range(most):
            found = failure(beginning, random_steps(Random(seed), EVERYTHING))  # noqa: S311 - a replayable run
            if found is not None:
                print(f"run {seed + 1:,}: {found}")  # noqa: T201 - it is a program
                return
    print(f"nothing in {most:,} runs")  # noqa: T201 - it is a program


if __name__ == "__main__":
    main()
