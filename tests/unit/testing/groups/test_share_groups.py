"""`ShareGroupMachine` finds what is wrong with share groups, and says what it is."""

# ruff: noqa: ARG002, D102 - what a machine implements has its arguments and its docstring there

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from sharestate import InvalidRecordStateError
from sharestate.testing.groups import (
    READ_COMMITTED,
    AcknowledgementBatch,
    Allowance,
    Delivery,
    GroupSettings,
    Guarantee,
    GuaranteeBrokenError,
    ShareGroupMachine,
)
from sharestate.testing.groups.events import KINDS, left_out
from sharestate.testing.groups.model import ClientModel
from sharestate.testing.groups.situations import SITUATIONS
from tests.planted.overlapping import SlowShareGroup
from tests.planted.share_groups import BUGS
from tests.support.mock_machine import MockMachine, broken_by, machine_of
from tests.support.mock_share_group import MockShareGroup

SETTINGS = GroupSettings(delivery_count_limit=2, lock_duration_ms=1_000)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    """Within 1,600 runs, as many as there are by default, some guarantee is broken."""
    assert broken_by(machine_of(BUGS[name])) is not None


def test_nothing_is_found_in_a_correct_share_group() -> None:
    """Without a bug every guarantee holds."""
    machine = machine_of(MockShareGroup)

    assert broken_by(machine, max_examples=100) is None
    assert machine.runs >= 100


def test_a_broken_guarantee_says_what_has_happened() -> None:
    """The message has the guarantee, the life of the record, and what to look at."""
    machine = machine_of(BUGS["delivery limit plus one"])()
    machine.group_starts(settings=SETTINGS, count=1)
    for _ in range(2):
        machine.happens(event=("member_fetches", "m1", 10))
        machine.happens(event=("member_acknowledges", "m1", [(0, 0, ["RELEASE"])]))
    machine.happens(event=("producer_sends", 2, None))
    machine.happens(event=("time_passes", 5))

    with pytest.raises(GuaranteeBrokenError) as caught:
        machine.happens(event=("member_fetches", "m2", 10))

    machine.teardown()
    assert caught.value.guarantee is Guarantee.DELIVERY_LIMIT
    assert caught.value.offset == 0
    assert str(caught.value).splitlines() == [
        "delivery_limit: m2 gets offset 0 again, with delivery count 3",
        "  What should be: A record is delivered group.share.delivery.count.limit times at most.",
        "  Offset 0 so far:",
        "    at 0 ms: produced in the batch 0-0",
        "    at 0 ms: delivered to m1, delivery count 1; its lock expires after 1000 ms",
        "    at 0 ms: released by m1",
        "    at 0 ms: delivered to m1, delivery count 2; its lock expires after 1000 ms",
        "    at 0 ms: released by m1, after its last delivery",
        "  Besides, last of all:",
        "    at 0 ms: 1-2 are produced",
        "    at 0 ms: 5 ms pass",
        "    at 5 ms: m2 fetches, and gets 0-0, 1-1, 2-2",
        f"  Look at: {Guarantee.DELIVERY_LIMIT.look_at}.",
    ]


def test_what_has_happened_to_others_is_told() -> None:
    """The life of a record does not say what has freed it if that was meant for another record."""
    machine = machine_of(BUGS["release of part releases all"])()
    machine.group_starts(settings=SETTINGS, count=3)
    machine.happens(event=("member_fetches", "m1", 10))
    machine.happens(event=("member_acknowledges", "m1", [(2, 2, ["RELEASE"])]))

    with pytest.raises(GuaranteeBrokenError) as caught:
        machine.happens(event=("member_fetches", "m10", 1))

    machine.teardown()
    text = str(caught.value)
    assert caught.value.offset == 0
    assert "  Besides, last of all:\n    at 0 ms: m1 acknowledges 2 RELEASE: ok\n    at 0 ms: m10 fetches" in text


def test_what_is_printed_can_be_pasted() -> None:
    """The program that Hypothesis prints breaks the same guarantee when it is run."""
    machine = machine_of(BUGS["doubled lock"])
    found = broken_by(machine, shrinks=True)
    assert found is not None
    _, program = "\n".join(found.__notes__).split("\n", 1)

    with pytest.raises(GuaranteeBrokenError) as caught:
        exec(program, {"MockMachine": machine, "GroupSettings": GroupSettings})  # noqa: S102 - that is what is tested

    assert caught.value.guarantee is found.guarantee


def test_known_bugs_end_a_run() -> None:
    """A guarantee that an allowance is about does not fail the test; another one does."""
    bug = machine_of(BUGS["doubled lock"])
    bug.allowances = tuple(  # just when a lock may expire, the member may have lost it, and with it the last delivery
        Allowance("doubled lock", guarantee, lambda machine: machine.group.log)
        for guarantee in (Guarantee.ONE_OWNER, Guarantee.DELIVERY_LIMIT)
    )
    elsewhere = machine_of(BUGS["doubled lock"])
    elsewhere.allowances = (Allowance("some other bug", Guarantee.NOTHING_LOST, lambda _: True),)
    never = machine_of(BUGS["doubled lock"])
    never.allowances = (Allowance("doubled lock", Guarantee.ONE_OWNER, lambda _: False),)

    assert broken_by(bug, max_examples=40) is None
    assert broken_by(elsewhere) is not None
    assert broken_by(never) is not None


class Smallest(ShareGroupMachine):
    """A share group that has only what each one must have; its answers are errors that are raised."""

    delivery_count_limit = 7
    max_record_locks = 100
    isolation_level = READ_COMMITTED

    def start(self, settings: GroupSettings) -> None:
        self.given = settings
        self.group = MockShareGroup(settings)

    def produce(self, count: int, producer: str | None) -> list[int]:
        assert producer is None
        return self.group.produce(count, producer)

    def fetch(self, member: str, max_records: int) -> list[Delivery]:
        return [Delivery(first, last) for first, last, _ in self.group.fetch(member, max_records)]

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> None:
        if self.group.acknowledge(member, batches):
            message = "refused"
            raise InvalidRecordStateError(message)


class Slow(MockMachine):
    """A share group in whose own time a fetch takes 300 ms."""

    clock_tolerance_ms = 600  # as long as all members take that fetch one after the other
    lock_duration_ms = 5_000
    says_so = True

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        self.group.advance_clock(300)
        if self.says_so:
            self.time_passed(300)
        return super().fetch(member, max_records)


def test_time_may_pass_by_itself() -> None:
    """Where calls take time of their own, and say so, locks are judged by that; unsaid, they seem to end early."""
    silent = type("Silent", (Slow,), {"says_so": False})

    assert broken_by(Slow, max_examples=100) is None
    assert broken_by(silent, max_examples=100) is not None


def test_what_an_implementation_lacks_does_not_happen() -> None:
    """Only fetches, acknowledgements and batches without a transaction; declared settings are given as they are."""
    seen: list[GroupSettings] = []

    class Machine(Smallest):
        def start(self, settings: GroupSettings) -> None:
            super().start(settings)
            seen.append(settings)

    assert broken_by(Machine, max_examples=50) is None
    assert {(row.delivery_count_limit, row.max_record_locks, row.isolation_level) for row in seen} == {
        (7, 100, READ_COMMITTED)
    }
    assert {row.renew_acknowledge_enable for row in seen} == {False}


def test_bugs_are_found_without_delivery_counts() -> None:
    """Where members get no delivery counts, deliveries are counted."""

    class Machine(Smallest):
        delivery_count_limit = 2

        def start(self, settings: GroupSettings) -> None:
            self.group = BUGS["delivery limit plus one"](settings)

    found = broken_by(Machine)

    assert found is not None
    assert found.guarantee is Guarantee.DELIVERY_LIMIT


class Asynchronous(MockMachine):
    """A share group whose methods are coroutines; it notes their event loops."""

    loops: set[asyncio.AbstractEventLoop]

    async def start(self, settings: GroupSettings) -> None:  # type: ignore[override]
        self.loops = {asyncio.get_running_loop()}
        super().start(settings)

    async def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:  # type: ignore[override]
        await asyncio.sleep(0)
        self.loops.add(asyncio.get_running_loop())
        return super().fetch(member, max_records)

    async def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:  # type: ignore[override]
        self.loops.add(asyncio.get_running_loop())
        return super().acknowledge(member, batches)

    async def stop(self) -> None:
        assert len(self.loops) == 1


def test_methods_may_be_coroutines() -> None:
    """They run in one event loop for each machine, which is closed at the end."""
    machine = Asynchronous()
    machine.group_starts(settings=SETTINGS, count=2)
    machine.happens(event=("member_fetches", "m1", 10))
    machine.happens(event=("member_acknowledges_all", "m1", "RELEASE"))
    (loop,) = machine.loops

    machine.teardown()

    assert loop.is_closed()


class LooksThenTakes(Asynchronous):
    """It awaits something after it has looked for what is available, and takes what others have taken meanwhile."""

    async def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:  # type: ignore[override]
        group = self.group
        found = [offset for offset, record in group.readable() if group.may_acquire(member, record)][:max_records]
        await asyncio.sleep(0)
        for offset in found:
            group.acquire(member, group.log[offset])
        return [(offset, offset, group.log[offset].count) for offset in found]


def test_members_fetch_at_once_if_fetches_are_coroutines() -> None:
    """What goes wrong between two fetches that overlap is found, and is not there if one comes after the other."""
    machine = LooksThenTakes()
    machine.group_starts(settings=SETTINGS, count=3)
    machine.happens(event=("member_fetches", "m1", 1))
    machine.happens(event=("member_fetches", "m2", 1))

    with pytest.raises(GuaranteeBrokenError) as caught:
        machine.happens(event=("every_member_fetches", 1))

    machine.teardown()
    assert caught.value.guarantee is Guarantee.ONE_OWNER


def test_a_gap_that_was_acknowledged_is_final() -> None:
    """A transaction marker in a range that was delivered, and acknowledged as GAP, is not delivered again."""
    model = ClientModel(SETTINGS, delivers_ranges=True)
    model.produced([0], "p1")
    model.transaction_ended("p1", None, is_committed=True)
    model.delivered("m1", [Delivery(0, 1, 1)], 10)
    model.acknowledged("m1", {0: "ACCEPT", 1: "GAP"}, 0)

    with pytest.raises(GuaranteeBrokenError) as caught:
        model.delivered("m2", [Delivery(1, 1, 2)], 10)

    assert caught.value.guarantee is Guarantee.REJECTED_IS_FINAL


def test_what_a_run_is_nothing_without_is_not_left_out() -> None:
    """A run may do without any other kind of events, and the simplest one does without those only that are rare."""
    missing = {number for seed in range(50) for number in left_out(random.Random(seed).choice)}  # noqa: S311 - a seed

    left = {kind.method for number, kind in enumerate(KINDS) if number not in missing}
    assert left == {"member_fetches", "member_acknowledges", "producer_sends", "writes_succeed"}
    assert left_out(lambda options: options[0]) == {number for number, kind in enumerate(KINDS) if kind.is_rare}


def test_a_search_comes_into_every_situation_that_matters() -> None:
    """Each kind of event happens, and each situation is reached; what a machine has reached says how often."""
    machine = machine_of(SlowShareGroup)

    assert broken_by(machine, max_examples=100) is None
    expected = {kind.method for kind in KINDS} | {each for judges in SITUATIONS.values() for each in judges}
    assert machine.reached.keys() == expected
    assert machine.reached["member_fetches"] > machine.reached["writes_fail"] > 10


def test_many_records_come_in_some_runs() -> None:
    """Most runs have few records, some have hundreds, so that what is meant for a hundred is seen to be."""
    sizes = []

    class Machine(MockMachine):
        def stop(self) -> None:
            sizes.append(len(self.group.log))

    assert broken_by(Machine, max_examples=100) is None
    assert any(size > 150 for size in sizes)
    assert sum(size < 100 for size in sizes) > len(sizes) * 0.8


def test_an_error_of_the_implementation_fails_the_test() -> None:
    """What it raises comes out as it is, and nothing more is asked but to stop."""

    class Machine(Smallest):
        is_stopped = False

        def fetch(self, member: str, max_records: int) -> list[Delivery]:
            raise OSError(member)

        def stop(self) -> None:
            self.is_stopped = True

    machine = Machine()
    machine.group_starts(settings=SETTINGS, count=1)

    with pytest.raises(OSError, match="m2"):
        machine.happens(event=("member_fetches", "m2", 10))

    machine.teardown()
    assert machine.is_stopped


def test_offsets_that_go_back_are_an_error_of_the_adapter() -> None:
    """An adapter that returns wrong offsets learns it at once."""

    class Machine(Smallest):
        def produce(self, count: int, producer: str | None) -> list[int]:
            return [4, 3]

    with pytest.raises(ValueError, match=r"produce\(\) returned \[4, 3\]: expected ascending offsets from 0 on"):
        Machine().group_starts(settings=SETTINGS, count=2)
