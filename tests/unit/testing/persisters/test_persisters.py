"""`PersisterMachine` finds what is wrong with persisters, and says what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharestate import Persister, StateBatch
from sharestate.coordinator import COORDINATOR_PROFILES, CoordinatorProfile, MemoryLog
from sharestate.persister import CoordinatorPersister, PartitionStateBatchData, WriteStateParameters
from sharestate.testing.persisters.machine import PLACES, PersisterDiffersError, PersisterMachine
from sharestate.testing.persisters.model import PersisterModel
from tests.planted.persisters import BUGS, Faulty
from tests.planted.record import PERSISTERS, steps_of
from tests.support.persister_machine import difference_of, machine_of

ROWS: list[dict[str, Any]] = json.loads(PERSISTERS.read_text())["rows"]

AT_ONCE = [row["bug"] for row in ROWS if row["runs"] <= 100]
"""Bugs that are found so soon that they are searched for anew."""


def run(program: list[str], kind: type[Faulty]) -> None:
    """Run a program as Hypothesis has printed it."""
    exec("\n".join(program), {"FaultyMachine": machine_of(kind)})  # noqa: S102 - that is what is tested


class CoordinatorMachine(PersisterMachine):
    """The library's coordinator over a log in memory."""

    def make_persister(self) -> Persister:
        """Return one over an empty log."""
        self.log = MemoryLog()
        return CoordinatorPersister(self.log, profile=self.follows)

    def reopen(self, persister: Persister) -> Persister:  # noqa: ARG002 - there is nothing to close
        """Return another one over the same log."""
        return CoordinatorPersister(self.log, profile=self.follows)


@pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=COORDINATOR_PROFILES)
def test_nothing_is_found_in_the_coordinator(profile: CoordinatorProfile) -> None:
    """By the rules of every release the coordinator stores what the model does."""
    machine = type("Machine", (CoordinatorMachine,), {"follows": profile})

    assert difference_of(machine, max_examples=50) is None


def test_nothing_is_found_without_a_bug() -> None:
    """The persister in which bugs are planted is correct without one."""
    assert difference_of(machine_of(Faulty)) is None


def test_every_planted_bug_has_a_row() -> None:
    """Those that are planted are those in the docs, with the same words."""
    assert {row["bug"]: row["what"] for row in ROWS} == {name: bug.__doc__ for name, bug in BUGS.items()}


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_planted_bug_is_found(name: str) -> None:
    """Something differs: in most versions of Python within 400 runs, as many as there are by default."""
    assert difference_of(machine_of(BUGS[name]), max_examples=4_000) is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["bug"]))
def test_a_program_shows_its_bug(row: dict[str, Any]) -> None:
    """It has at most 12 steps, runs when it is pasted, and differs with the bug only."""
    assert steps_of("\n".join(row["program"])) == row["steps"] <= 12
    with pytest.raises(PersisterDiffersError) as caught:
        run(row["program"], BUGS[row["bug"]])
    assert caught.value.what == row["found_by"]
    run(row["program"], Faulty)


def test_a_difference_is_explained_and_can_be_pasted() -> None:
    """The message says what should be and what to look at; the program has few steps and runs."""
    machine = machine_of(BUGS["start moves back"])
    found = difference_of(machine, shrinks=True)
    assert found is not None
    assert "What should be:" in str(found)
    assert "Look at:" in str(found)
    _, _, program = "\n".join(found.__notes__).partition("\n")
    assert program.count("state.happens") <= 12

    with pytest.raises(PersisterDiffersError):
        exec(program, {"FaultyMachine": machine})  # noqa: S102 - that is what is tested


def test_the_model_is_told_nothing_by_the_library() -> None:
    """Of two states of a record the higher delivery count wins, whatever the state."""
    model = PersisterModel()
    model.initialize(PLACES[0], 0, 0)
    model.write(PLACES[0], (0, 0), -1, -1, [(0, 1, 2, 1)])
    model.write(PLACES[0], (0, 0), -1, -1, [(1, 2, 0, 2)])

    assert model.stored[PLACES[0]].records == {0: (2, 1), 1: (0, 2), 2: (0, 2)}


def test_a_count_of_none_is_replaced_by_any() -> None:
    """After a write without a delivery complete count, one of 0 with the same start offset is stored (Kafka 4.4.0)."""
    machine = CoordinatorMachine()
    machine.happens(event=("writes", [(PLACES[0], (2, 1), 11, -1, [])]))
    machine.happens(event=("writes", [(PLACES[0], (2, 1), 11, 0, [])]))

    machine.happens(event=("sums", PLACES[0], 0))


def test_a_request_is_what_a_leader_sends() -> None:
    """The program of a run has plain data, of which a write is made."""
    sent: list[WriteStateParameters] = []

    class Listening(Faulty):
        def write_state(self, request: WriteStateParameters, /):  # type: ignore[no-untyped-def] # noqa: ANN202
            sent.append(request)
            return super().write_state(request)

    machine = machine_of(Listening)()
    machine.happens(event=("writes", [(PLACES[1], (0, 0), -1, -1, []), (PLACES[0], (2, 1), 11, 2, [(11, 12, 2, 1)])]))
    machine.teardown()

    (request,) = sent
    assert request.topics[0].partitions[1] == PartitionStateBatchData(
        partition=0,
        leader_epoch=2,
        state_epoch=1,
        start_offset=11,
        delivery_complete_count=2,
        state_batches=(StateBatch(11, 12, 2, 1),),
    )
