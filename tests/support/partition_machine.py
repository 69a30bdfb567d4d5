"""Share partitions as machines: the library's, and a model with or without a bug."""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from attrs import astuple

from sharestate import (
    AcknowledgementBatch,
    AcquireMode,
    Effects,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    Profile,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)
from sharestate.testing.generator.surroundings import batch_to_json
from sharestate.testing.partitions import (
    PartitionSettings,
    ReadState,
    Rules,
    SharePartitionDiffersError,
    SharePartitionMachine,
)
from sharestate.testing.record_model.model import Letter, RecordModel, Write
from tests.support.searches import error_of

KEY = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


def config_of(settings: PartitionSettings) -> ShareConfig:
    """Return the group's part of *settings*."""
    return ShareConfig(
        delivery_count_limit=settings.delivery_count_limit,
        record_lock_duration_ms=settings.lock_duration_ms,
        max_record_locks=settings.max_record_locks,
        dead_letter_queue=settings.has_dead_letter_queue,
    )


class LibraryMachine(SharePartitionMachine):
    """The share partition of this library."""

    profile: ClassVar[Profile]

    def start(self, settings: PartitionSettings, state: ReadState, leader_epoch: int) -> None:
        self.now_ms = 0
        self.writes: list[Any] = []
        self.dead_letters: list[Any] = []
        self.settings = settings
        config = config_of(settings)
        self.partition = SharePartition(KEY, leader_epoch=leader_epoch, profile=self.profile, config=config)
        self.partition.initialize()
        batches = [StateBatch(*batch) for batch in state.batches]
        persisted = PersistedState(start_offset=state.start_offset, state_batches=batches)
        self.note_effects(self.partition.read_succeeded(persisted))

    def note_effects(self, effects: Effects) -> Effects:
        """Keep the writes and the dead letters until they are taken."""
        self.writes += effects.writes
        self.dead_letters += effects.dead_letters
        return effects

    def acquire(self, member: str, fetched: FetchedRecords, max_records: int) -> Any:  # noqa: ANN401 - named tuples
        effects = self.partition.acquire(
            member,
            fetched,
            now_ms=self.now_ms,
            max_records=max_records,
            batch_size=self.settings.batch_size,
            mode=AcquireMode(self.settings.acquire_mode),
        )
        return effects.acquired

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> None:
        self.note_effects(self.partition.acknowledge(member, batches, now_ms=self.now_ms))

    def release(self, member: str) -> None:
        self.note_effects(self.partition.release(member, now_ms=self.now_ms))

    def advance_clock(self, ms: int) -> None:
        self.now_ms += ms
        while (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.note_effects(effects)

    def take_writes(self) -> list[Any]:
        taken = [(w.number, w.start_offset, w.state_batches, w.delivery_complete_count) for w in self.writes]
        self.writes = []
        return taken

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        if succeeds:
            self.note_effects(self.partition.write_succeeded(number))
        else:
            self.note_effects(self.partition.write_failed(number, ErrorCode.NOT_COORDINATOR))

    def take_dead_letters(self) -> list[Any]:
        taken = [request[1:] for request in self.dead_letters]
        self.dead_letters = []
        return taken

    def answer_dead_letter(self, number: int, *, succeeds: bool) -> None:  # noqa: ARG002 - it does not matter
        self.note_effects(self.partition.dead_letter_answered(number))

    def move_log_start(self, offset: int) -> None:
        self.partition.advance_log_start(offset)

    def configure(self, settings: PartitionSettings) -> None:
        self.settings = settings
        self.note_effects(self.partition.configure(config_of(settings)))

    def next_fetch_offset(self) -> int:
        return self.partition.next_fetch_offset()

    def can_acquire(self) -> bool:
        return self.partition.can_acquire()

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
    model_rules: ClassVar[Rules] = Rules()
    runs: ClassVar[int] = 0

    def start(self, settings: PartitionSettings, state: ReadState, leader_epoch: int) -> None:
        type(self).runs += leader_epoch == 1
        self.settings = settings
        self.model = self.model_type(self.model_rules, default_answer="hold", default_letter_answer="hold")
        self.unsent: list[Write] = []
        self.unsent_letters: list[tuple[int, Letter]] = []
        self.ask("open", config=settings.config())
        answer = {"start_offset": state.start_offset, "state_batches": [list(batch) for batch in state.batches]}
        self.ask("initialize", answer=answer)

    def ask(self, op: str, **fields: Any) -> Any:  # noqa: ANN401 - a result of the model
        model = self.model
        result = model.run({"op": op, **fields})
        self.unsent += model.writes
        self.unsent_letters += enumerate(model.letters, start=model.handed_over - len(model.letters))
        return result

    def acquire(self, member: str, fetched: FetchedRecords, max_records: int) -> list[tuple[int, int, int]]:
        acquired = self.ask(
            "acquire",
            member=member,
            fetch_offset=fetched.fetch_offset,
            batches=[batch_to_json(batch) for batch in fetched.batches],
            aborted=fetched.aborted_transactions,
            isolation=fetched.isolation.value,
            mode=self.settings.acquire_mode,
            max_records=max_records,
            batch_size=self.settings.batch_size,
        )
        return [(offset, offset, count) for offset, count in acquired]

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        ranges = [[first, last, list(map(int, types))] for first, last, types in batches]
        status = self.ask("acknowledge", member=member, batches=ranges)
        return 0 if status in {"ok", "pending"} else ErrorCode[status]

    def release(self, member: str) -> None:
        self.ask("release", member=member)

    def advance_clock(self, ms: int) -> None:
        self.ask("advance", ms=ms)

    def take_writes(self) -> list[Any]:
        taken = [
            (write.number, write.start_offset, [(o, o, *fields) for o, fields in write.records.items()], write.complete)
            for write in self.unsent
        ]
        self.unsent = []
        return taken

    def answer_write(self, number: int, *, succeeds: bool) -> None:
        if number in self.model.held:
            self.ask("complete", write=number, answer="ok" if succeeds else {"error": "NOT_COORDINATOR"})

    def take_dead_letters(self) -> list[Any]:
        taken = [(number, *astuple(letter)) for number, letter in self.unsent_letters]
        self.unsent_letters = []
        return taken

    def answer_dead_letter(self, number: int, *, succeeds: bool) -> None:
        if number in self.model.held_letters:
            self.ask("complete", dlq=number, answer="ok" if succeeds else {"error": "INVALID_CONFIG"})

    def move_log_start(self, offset: int) -> None:
        self.ask("log_start", offset=offset)

    def configure(self, settings: PartitionSettings) -> None:
        self.settings = settings
        self.ask("configure", config=settings.config())

    def next_fetch_offset(self) -> int:
        return int(self.ask("next_fetch_offset"))


def machine_of(model_type: type[RecordModel], machine: type[ModelMachine] = ModelMachine) -> type[ModelMachine]:
    """Return a machine of one kind of model, whose runs are counted from 0."""
    return type("ModelMachine", (machine,), {"model_type": model_type, "runs": 0})


def difference_of(
    machine: type[SharePartitionMachine], *, max_examples: int = 1600, shrinks: bool = False
) -> SharePartitionDiffersError | None:
    """Run a machine always in the same way, and return the difference that it finds."""
    return error_of(machine, SharePartitionDiffersError, max_examples=max_examples, shrinks=shrinks)
