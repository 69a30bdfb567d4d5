"""
Test a leader of your own: one that embeds `SharePartition`, with three mistakes that `SharePartitionMachine` finds.

A share partition does nothing by itself. Whoever embeds it sends its writes, hands over its dead letters, and lets its
locks expire. Run it from the top of the repository: ``python -m examples.testing_share_partitions``.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from collections.abc import Sequence
from typing import ClassVar

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcquiredRecords,
    AcquireMode,
    DeadLetterRequest,
    Effects,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
    WriteShareGroupState,
)
from sharestate.testing.partitions import (
    PartitionSettings,
    ReadState,
    SharePartitionDiffersError,
    SharePartitionMachine,
)

KEY = SharePartitionKey(group_id="payments", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


class Leader:
    """What leads a share partition: its clock, and the way out for its writes and dead letters."""

    def __init__(self, partition: SharePartition) -> None:
        """Lead *partition*."""
        self.partition = partition
        self.now_ms = 0
        self.writes: list[WriteShareGroupState] = []
        self.dead_letters: list[DeadLetterRequest] = []

    def send(self, effects: Effects) -> Effects:
        """Send what a command has brought about."""
        self.writes += effects.writes
        self.dead_letters += effects.dead_letters
        return effects

    def send_what_follows(self, effects: Effects) -> None:
        """Send what an answer has brought about."""
        self.send(effects)

    def expire(self) -> None:
        """Handle the locks that have expired."""
        while (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.send(effects)

    def fail(self, number: int) -> None:
        """Take note that write *number* has failed."""
        self.send_what_follows(self.partition.write_failed(number, ErrorCode.NOT_COORDINATOR))


class Optimist(Leader):
    """A write that has failed will not be missed."""

    def fail(self, number: int) -> None:
        self.send_what_follows(self.partition.write_succeeded(number))


class Forgetful(Optimist):
    """Only commands have effects."""

    def send_what_follows(self, effects: Effects) -> None:
        self.dead_letters += effects.dead_letters


class Hasty(Forgetful):
    """One lock at a time is enough."""

    def expire(self) -> None:
        if (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.send(effects)


class LeaderMachine(SharePartitionMachine):
    """A leader without these mistakes."""

    leader_type: ClassVar[type[Leader]] = Leader

    def start(self, settings: PartitionSettings, state: ReadState, leader_epoch: int) -> None:
        config = ShareConfig(
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            max_record_locks=settings.max_record_locks,
            dead_letter_queue=settings.has_dead_letter_queue,
        )
        self.settings = settings
        self.leader = self.leader_type(
            SharePartition(KEY, leader_epoch=leader_epoch, profile=KAFKA_4_4.healed, config=config)
        )
        batches = [StateBatch(*batch) for batch in state.batches]
        self.leader.partition.initialize()
        persisted = PersistedState(start_offset=state.start_offset, state_batches=batches)
        self.leader.send(self.leader.partition.read_succeeded(persisted))

    def acquire(self, member: str, fetched: FetchedRecords, max_records: int) -> tuple[AcquiredRecords, ...]:
        return self.leader.partition.acquire(
            member,
            fetched,
            now_ms=self.leader.now_ms,
            max_records=max_records,
            batch_size=self.settings.batch_size,
            mode=AcquireMode(self.settings.acquire_mode),
        ).acquired

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> None:
        self.leader.send(self.leader.partition.acknowledge(member, batches, now_ms=self.leader.now_ms))

    def release(self, member: str) -> None:
        self.leader.send(self.leader.partition.release(member, now_ms=self.leader.now_ms))

    def advance_clock(self, ms: int) -> None:
        self.leader.now_ms += ms
        self.leader.expire()

    def move_log_start(self, offset: int) -> None:
        self.leader.send(self.leader.partition.advance_log_start(offset))

    def take_writes(self) -> list[tuple[int, int, Sequence[StateBatch]]]:
        taken, self.leader.writes = self.leader.writes, []
        return [(write.number, write.start_offset, write.state_batches) for write in taken]

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        if succeeds:
            self.leader.send_what_follows(self.leader.partition.write_succeeded(number))
        else:
            self.leader.fail(number)

    def take_dead_letters(self) -> list[tuple[int, int, int, int, str]]:
        taken, self.leader.dead_letters = self.leader.dead_letters, []
        return [(r.number, r.first_offset, r.last_offset, r.delivery_count, r.cause.value) for r in taken]

    def answer_dead_letter(self, number: int, *, succeeds: bool) -> None:  # noqa: ARG002 - it is best effort
        self.leader.send_what_follows(self.leader.partition.dead_letter_answered(number))


class HastyMachine(LeaderMachine):
    """All three mistakes."""

    leader_type = Hasty


class ForgetfulMachine(LeaderMachine):
    """The first one is mended."""

    leader_type = Forgetful


class OptimistMachine(LeaderMachine):
    """The second one, too."""

    leader_type = Optimist


BROKEN = (HastyMachine, ForgetfulMachine, OptimistMachine)


def main() -> None:
    """Test one after the other, and print what is found."""
    for machine in (*BROKEN, LeaderMachine):
        try:
            machine.TestCase().runTest()
        except SharePartitionDiffersError as error:
            print(f"{machine.__name__}: {error}", *error.__notes__, "", sep="\n")
        else:
            print(f"{machine.__name__}: as it should be")


if __name__ == "__main__":
    main()
