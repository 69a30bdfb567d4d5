"""Share partitions as machines: the library's, and a model with or without a bug."""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hypothesis import Phase, settings

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    Profile,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)
from sharestate.testing.record_model import RecordModel
from sharestate.testing.share_partitions import (
    PartitionSettings,
    SharePartitionDiffersError,
    SharePartitionMachine,
    StoredState,
)

KEY = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


class LibraryMachine(SharePartitionMachine):
    """The share partition of this library."""

    profile: ClassVar[Profile]

    def start(self, settings: PartitionSettings, state: StoredState, leader_epoch: int) -> None:
        self.now_ms = 0
        self.writes: list[Any] = []
        config = ShareConfig(
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            max_record_locks=settings.max_record_locks,
        )
        self.partition = SharePartition(KEY, leader_epoch=leader_epoch, profile=self.profile, config=config)
        self.partition.initialize()
        batches = [StateBatch(*batch) for batch in state.batches]
        self.partition.read_succeeded(PersistedState(start_offset=state.start_offset, state_batches=batches))

    def acquire(self, member: str, offsets: range, max_records: int) -> Any:  # noqa: ANN401 - named tuples
        batches = [RecordBatch(offset, offset) for offset in offsets]
        fetched = FetchedRecords(batches=batches, fetch_offset=offsets[0])
        effects = self.partition.acquire(member, fetched, now_ms=self.now_ms, max_records=max_records, batch_size=1)
        return effects.acquired

    def acknowledge(self, member: str, types: Mapping[int, AcknowledgeType]) -> None:
        batches = [AcknowledgementBatch(offset, offset, (kind,)) for offset, kind in types.items()]
        self.writes += self.partition.acknowledge(member, batches, now_ms=self.now_ms).writes

    def release(self, member: str) -> None:
        self.writes += self.partition.release(member, now_ms=self.now_ms).writes

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        while (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.writes += effects.writes

    def take_writes(self) -> list[Any]:
        taken = [(write.number, write.start_offset, write.state_batches) for write in self.writes]
        self.writes = []
        return taken

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        if succeeds:
            self.partition.write_succeeded(number)
        else:
            self.partition.write_failed(number, ErrorCode.NOT_COORDINATOR)

    def move_log_start(self, offset: int) -> None:
        self.partition.advance_log_start(offset)

    def next_fetch_offset(self) -> int:
        return self.partition.next_fetch_offset()

    def start_offset(self) -> int:
        return self.partition.start_offset

    def records(self) -> dict[int, tuple[Any, int, str]]:
        runs = [run for batch in self.partition.batches() for run in batch.runs]
        return {
            offset: (run.state, run.delivery_count, run.member_id)
            for run in runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }


class ModelMachine(SharePartitionMachine):
    """A share partition that is made of the model itself, perhaps with a bug; the number of runs is counted."""

    model_type: ClassVar[type[RecordModel]] = RecordModel
    runs: ClassVar[int] = 0

    def start(self, settings: PartitionSettings, state: StoredState, leader_epoch: int) -> None:
        type(self).runs += leader_epoch == 1
        self.model = self.model_type(default_answer="hold")
        self.taken = 0
        config = {
            "delivery_count_limit": settings.delivery_count_limit,
            "record_lock_duration_ms": settings.lock_duration_ms,
            "max_record_locks": settings.max_record_locks,
        }
        self.ask("open", config=config)
        answer = {"start_offset": state.start_offset, "state_batches": [list(batch) for batch in state.batches]}
        self.ask("initialize", answer=answer)

    def ask(self, op: str, **fields: Any) -> Any:  # noqa: ANN401 - a result of the model
        result = self.model.run({"op": op, **fields})
        self.unsent = [*getattr(self, "unsent", []), *self.model.writes]
        return result

    def acquire(self, member: str, offsets: range, max_records: int) -> list[tuple[int, int, int]]:
        batches = [[offset, offset] for offset in offsets]
        fields = {"member": member, "fetch_offset": offsets[0], "batches": batches}
        fields |= {"max_records": max_records, "batch_size": 1}
        return [(offset, offset, count) for offset, count in self.ask("acquire", **fields)]

    def acknowledge(self, member: str, types: Mapping[int, AcknowledgeType]) -> int:
        batches = [[offset, offset, [int(kind)]] for offset, kind in types.items()]
        status = self.ask("acknowledge", member=member, batches=batches)
        return 0 if status in {"ok", "pending"} else ErrorCode[status]

    def release(self, member: str) -> None:
        self.ask("release", member=member)

    def advance_clock(self, ms: int) -> None:
        self.ask("advance", ms=ms)

    def take_writes(self) -> list[Any]:
        taken = [
            (write.number, write.start_offset, [(offset, offset, *fields) for offset, fields in write.records.items()])
            for write in self.unsent
        ]
        self.unsent = []
        return taken

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        if number in self.model.held:
            self.ask("complete", write=number, answer="ok" if succeeds else {"error": "NOT_COORDINATOR"})

    def move_log_start(self, offset: int) -> None:
        self.ask("log_start", offset=offset)

    def next_fetch_offset(self) -> int:
        return int(self.ask("next_fetch_offset"))


def machine_of(model_type: type[RecordModel]) -> type[ModelMachine]:
    """Return a machine of one kind of model, whose runs are counted from 0."""
    return type("ModelMachine", (ModelMachine,), {"model_type": model_type, "runs": 0})


def difference_of(
    machine: type[SharePartitionMachine], *, max_examples: int = 300, shrinks: bool = False
) -> SharePartitionDiffersError | None:
    """Run a machine always in the same way, and return the difference that it finds."""
    test = machine.TestCase
    test.settings = settings(
        max_examples=max_examples,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        derandomize=True,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,  # where `CI` is set, Hypothesis prints one after the program
    )
    try:
        test().runTest()
    except SharePartitionDiffersError as error:
        return error
    return None
