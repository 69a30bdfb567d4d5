"""`SharePartitionMachine` finds what is wrong with share partitions, and says what it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from sharestate import KIP_932
from sharestate.testing.partitions import (
    EXPLANATIONS,
    FetchedRecords,
    PartitionSettings,
    ReadState,
    Rules,
    SharePartitionDiffersError,
)
from sharestate.testing.partitions.events import Pick
from sharestate.testing.partitions.situations import SITUATIONS
from sharestate.testing.protocol.record_oracle import rules_of
from sharestate.testing.record_model.model import RecordModel
from tests.planted import brokers
from tests.planted.record import BROKERS, PARTITIONS, steps_of
from tests.planted.share_partitions import BUGS, DeliversWhatIsPending, ForgetsTheLockOfAFailedWrite
from tests.support.partition_machine import LibraryMachine, ModelMachine, difference_of, machine_of

ROWS: list[dict[str, Any]] = json.loads(PARTITIONS.read_text())["rows"]
BROKER_ROWS: list[dict[str, Any]] = json.loads(BROKERS.read_text())["rows"]

AT_ONCE = [row["bug"] for row in ROWS if row["runs"] <= 20]
"""Bugs that are found so soon that they are searched for anew."""


def run(program: list[str], model_type: type[RecordModel], machine: type[ModelMachine] = ModelMachine) -> None:
    """Run a program as Hypothesis has printed it."""
    names: dict[str, type] = {each.__name__: each for each in (PartitionSettings, ReadState)}
    names["ModelMachine"] = machine_of(model_type, machine)
    exec("\n".join(program), names)  # noqa: S102 - that is what is tested


def test_every_planted_bug_has_a_row() -> None:
    """Those that are planted are those in the docs, with the same words."""
    assert {row["bug"]: row["what"] for row in ROWS} == {name: bug.__doc__ for name, bug in BUGS.items()}
    assert {row["bug"]: row["what"] for row in BROKER_ROWS} == {bug.__name__: bug.__doc__ for bug in brokers.BUGS}
    assert all(row["steps"] <= 12 for row in BROKER_ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["bug"]))
def test_a_program_shows_its_bug(row: dict[str, Any]) -> None:
    """It has at most 12 steps, runs when it is pasted, and differs with the bug only."""
    assert steps_of("\n".join(row["program"])) == row["steps"] <= 12
    with pytest.raises(SharePartitionDiffersError) as caught:
        run(row["program"], BUGS[row["bug"]])
    assert caught.value.what == row["found_by"]
    run(row["program"], RecordModel)


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_planted_bug_is_found(name: str) -> None:
    """A search from nothing finds it."""
    assert difference_of(machine_of(BUGS[name])) is not None


def test_nothing_is_found_in_a_correct_share_partition() -> None:
    """Without a bug nothing differs."""
    machine = machine_of(RecordModel)

    assert difference_of(machine, max_examples=20) is None
    assert machine.runs >= 20


def test_a_search_comes_into_every_situation_that_matters() -> None:
    """The adversary does all that it is said to do, and is seen to."""
    machine = machine_of(RecordModel)

    assert difference_of(machine, max_examples=150) is None
    assert {
        *SITUATIONS,
        *(situation for judges in SITUATIONS.values() for situation in judges),
    } <= machine.reached.keys()


def test_methods_may_be_coroutines() -> None:
    """All of a machine run in one event loop, which is closed at its end."""
    loops: set[asyncio.AbstractEventLoop] = set()

    class Coroutines(ModelMachine):
        async def acquire(self, member: str, fetched: FetchedRecords, max_records: int) -> list[tuple[int, int, int]]:  # type: ignore[override]
            await asyncio.sleep(0)
            loops.add(asyncio.get_running_loop())
            return super().acquire(member, fetched, max_records)

        async def take_writes(self) -> list[Any]:  # type: ignore[override]
            loops.add(asyncio.get_running_loop())
            return super().take_writes()

    run(ROWS[0]["program"], RecordModel, Coroutines)
    (loop,) = loops
    assert loop.is_closed()


def test_a_setting_that_is_declared_is_not_drawn() -> None:
    """Class attributes go to every start as they are."""
    drawn = set()

    class Declared(ModelMachine):
        delivery_count_limit = 7
        acquire_mode = "record_limit"
        logs = ("single records",)

        def start(self, settings: PartitionSettings, state: ReadState, leader_epoch: int) -> None:
            drawn.add((settings.delivery_count_limit, settings.acquire_mode))
            super().start(settings, state, leader_epoch)

        def acquire(self, member: str, fetched: FetchedRecords, max_records: int) -> list[tuple[int, int, int]]:
            assert all(batch.first_offset == batch.last_offset for batch in fetched.batches)
            return super().acquire(member, fetched, max_records)

    assert difference_of(Declared, max_examples=10) is None
    assert drawn == {(7, "record_limit")}


def test_a_difference_says_what_it_means_and_what_to_look_at() -> None:
    """The message has what differs, what should be, the events so far, and what to look at."""
    machine = machine_of(DeliversWhatIsPending)()
    machine.partition_starts(settings=PartitionSettings())
    machine.happens(event=("member_acquires", "m1", 0, [(0, 0)], [], 500))

    with pytest.raises(SharePartitionDiffersError) as caught:
        machine.happens(event=("member_acknowledges_all", "m1", "RELEASE"))

    meaning, look_at = EXPLANATIONS["next fetch offset"]
    assert str(caught.value).splitlines() == [
        "next fetch offset: expected 1, got 0",
        f"  What should be: {meaning}",
        "  So far:",
        "    member_acquires m1 0 [(0, 0)] [] 500",
        "    member_acknowledges_all m1 RELEASE",
        f"  Look at: {look_at}.",
    ]


def test_what_is_not_needed_is_left_out() -> None:
    """What the leader before did is left out; writes have the numbers, and records the offsets, that are left then."""

    class Programmed(machine_of(ForgetsTheLockOfAFailedWrite)):  # type: ignore[misc] # it is made for each bug
        def _happens_at_random(self, _pick: Pick, _count: int) -> None:
            self.partition_starts(PartitionSettings(), "batches")
            self.happens(event=("member_acquires", "m2", 0, [(0, 0), (1, 3)], [], 500))
            self.happens(event=("leader_fails_over", []))
            self.happens(event=("member_acquires", "m2", 0, [(0, 0)], [], 500))
            self.happens(event=("member_acknowledges_all", "m2", "ACCEPT"))
            self.happens(event=("member_acquires", "m1", 1, [(1, 1)], [], 500))
            self.happens(event=("member_leaves", "m1"))
            self.happens(event=("time_passes", 1001))
            self.happens(event=("write_is_answered", 1, "fails"))

    error = difference_of(Programmed, shrinks=True)

    assert error is not None
    assert [line for line in error.__notes__[-1].splitlines() if ".happens(" in line] == [
        "state.happens(event=('member_acquires', 'm1', 0, [(0, 0)], [], 500))",
        "state.happens(event=('member_leaves', 'm1'))",
        "state.happens(event=('time_passes', 1001))",
        "state.happens(event=('write_is_answered', 0, 'fails'))",
    ]


def test_a_share_partition_may_know_no_batches() -> None:
    """By the rules for single records each record has a lock and a write of its own; by the others it must not."""
    by_record = Rules(is_by_record=True)
    fields = {"logs": ("single records", "sparse records"), "model_rules": by_record}

    assert (
        difference_of(type("ModelMachine", (ModelMachine,), {**fields, "follows": by_record}), max_examples=200) is None
    )
    assert difference_of(type("ModelMachine", (ModelMachine,), fields), max_examples=200) is not None


@pytest.mark.parametrize(
    "damage",
    [
        lambda start, batches: (start, batches[1:]),
        lambda start, batches: (start + 1, batches),
        lambda start, batches: (start, [(first, last, state, count + 1) for first, last, state, count in batches]),
        lambda start, batches: (start, batches + batches[:1]),
        lambda start, batches: (start, [(first, last + 1, state, count) for first, last, state, count in batches]),
    ],
    ids=["left out", "start too far", "count", "twice", "too much"],
)
def test_the_writes_of_the_kip_are_judged(damage: Callable[[int, list[Any]], tuple[int, list[Any]]]) -> None:
    """They say more than what has changed, but nothing that is wrong, and leave out nothing that has changed."""

    class Damaging(LibraryMachine):
        profile = KIP_932
        follows = rules_of(KIP_932)

        def take_writes(self) -> list[Any]:
            return [(number, *damage(start, list(rows)), count) for number, start, rows, count in super().take_writes()]

    error = difference_of(Damaging)

    assert error is not None
    assert error.what == "writes"


def test_a_share_partition_may_copy_bugs_of_kafka() -> None:
    """A bug that is named is not reported, one that is not named is, and a name that Kafka's bugs lack is refused."""
    waiting = machine_of(BUGS["start waits at a hole"])

    assert difference_of(waiting, max_examples=100) is not None
    assert difference_of(type("ModelMachine", (waiting,), {"copied_bugs": ("B10",)}), max_examples=100) is None
    with pytest.raises(ValueError, match=r"copied_bugs: \['B99'\] are none of B1', B4"):
        type("ModelMachine", (waiting,), {"copied_bugs": ("B99",)})


def test_everything_that_is_printed_can_be_evaluated() -> None:
    """Settings and states have a representation that makes them again."""
    settings, state = PartitionSettings(max_record_locks=2), ReadState(3, ((3, 3, 0, 1),))

    assert eval(repr((settings, state))) == (settings, state)  # noqa: S307 - that is what is tested
