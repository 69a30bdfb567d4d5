"""Running the KIP's tables: a leader and a persister in memory, compared with the KIP row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from attrs import evolve, frozen

from sharestate.conversation import requests
from sharestate.conversation.answers import NO_TABLE
from sharestate.kip932.notation import (
    FIRST_CHECKPOINT_EPOCH,
    KEY,
    read_control_record,
    read_keyed_record,
    read_request,
    share_checkpoint,
    share_delta,
    state_records,
    write_request,
)
from sharestate.kip932.states import KipState, agrees, changes, read_state, state_of
from sharestate.kip932.tables import TABLES, Printed, Row, Scenario, Source, Table, read_scenario
from sharestate.leader import Leader
from sharestate.partition.share_partition import SharePartition
from sharestate.persister import (
    InitializeStateParameters,
    InMemoryPersister,
    PartitionStateBatchData,
    PartitionStateData,
    WriteStateParameters,
)
from sharestate.values.checks import expect, integer, refuse
from sharestate.values.profiles import KIP_932, KipWritePolicy, Profile
from sharestate.values.records import SharePartitionKey
from sharestate.values.requests import UNINITIALIZED_START_OFFSET
from sharestate.values.snapshot import Snapshot

if TYPE_CHECKING:
    from sharestate.json_checks import Check
    from sharestate.json_lines import Json
    from sharestate.values.offset_reset import AutoOffsetReset

Write: TypeAlias = tuple[SharePartitionKey, PartitionStateBatchData]
"""A share partition and a write to it."""


# ---- the leader


@frozen(kw_only=True)
class ScenarioStep:
    """
    The effects of the commands of one row.

    Attributes:
        writes: The writes that have reached the persister, in order.
        before: The state before the commands.
        snapshot: The share partition after them.
    """

    writes: tuple[Write, ...]
    before: KipState
    snapshot: Snapshot

    @property
    def state(self) -> KipState:
        """The state after the commands."""
        return state_of(self.snapshot)

    @property
    def changes(self) -> KipState:
        """The state changes by the commands."""
        return changes(self.before, self.state)


class _Runner:
    """A leader of a share partition whose state was initialized and never written."""

    def __init__(self, profile: Profile) -> None:
        self._persister = InMemoryPersister()
        self._persister.initialize_state(
            InitializeStateParameters.of(KEY.group_id, KEY.topic_id, PartitionStateData(partition=KEY.partition))
        )
        self._partition = SharePartition(KEY, profile=profile)
        self._leader = Leader(self._partition, self._persister, reset_offset=self._look_up)
        self._lookup = NO_TABLE
        self._now_ms = 0
        self._state = KipState()

    def run(self, commands: Iterable[requests.Command]) -> ScenarioStep:
        """Run *commands*, each of whose writes is answered before the next one."""
        first = len(self._persister.requests)
        for command in commands:
            self._HANDLERS[type(command)](self, command)
        writes = (each for each in self._persister.requests[first:] if isinstance(each, WriteStateParameters))
        step = ScenarioStep(
            writes=tuple(entry for write in writes for entry in write.entries()),
            before=self._state,
            snapshot=self._partition.snapshot(),
        )
        self._state = step.state
        return step

    def _look_up(self, reset: AutoOffsetReset) -> int:
        return integer(self._lookup.of(reset.strategy).meaning, "lookup", 0)

    # ---- commands

    def _initialize(self, command: requests.Initialize) -> None:
        self._lookup = command.lookup
        self._leader.start(now_ms=self._now_ms).result(timeout=0)

    def _acquire(self, command: requests.Acquire) -> None:
        command.call(self._leader.acquire, now_ms=self._now_ms)

    def _acknowledge(self, command: requests.Acknowledge) -> None:
        self._leader.acknowledge(command.member, command.batches, now_ms=self._now_ms).result(timeout=0)

    def _release(self, command: requests.Release) -> None:
        self._leader.release(command.member, now_ms=self._now_ms).result(timeout=0)

    def _log_start(self, command: requests.LogStart) -> None:
        self._leader.advance_log_start(command.offset, now_ms=self._now_ms)

    def _advance(self, command: requests.Advance) -> None:
        self._now_ms += command.ms
        self._leader.poll(now_ms=self._now_ms)

    _HANDLERS: ClassVar[Mapping[type[requests.Command], Callable[[_Runner, Any], None]]] = MappingProxyType(
        {
            requests.Initialize: _initialize,
            requests.Acquire: _acquire,
            requests.Acknowledge: _acknowledge,
            requests.Release: _release,
            requests.LogStart: _log_start,
            requests.Advance: _advance,
        }
    )

    @classmethod
    def check(cls, scenario: Scenario, table: Table) -> None:
        """
        Raise unless *scenario* has a step for each row of *table*, and no commands but those that scenarios may have.

        Raises:
            MalformedInputError: It does not.
        """
        if len(scenario.steps) != len(table.rows):
            refuse(f"expected {len(table.rows)} steps, one for each row, got {len(scenario.steps)}", "scenario.steps")
        for number, commands in enumerate(scenario.steps):
            for command in commands:
                if type(command) not in cls._HANDLERS:
                    known = ", ".join(each.__name__ for each in cls._HANDLERS)
                    refuse(f"expected one of {known}, got {type(command).__name__}", f"scenario.steps[{number}]")


# ---- the last columns

CONTROL_RECORDS: Final = evolve(
    KIP_932, name="kip-932-control-records", write_policy=KipWritePolicy(has_short_form=False)
)
"""The KIP's older design: a delta has no start offset, so every change is written."""

_Rows: TypeAlias = Sequence[tuple[Row, ScenarioStep]]
_Written: TypeAlias = Iterator[tuple["Json", ...]]


def _requests(rows: _Rows) -> _Written:
    for _, step in rows:
        yield tuple(write_request(*write) for write in step.writes)


def _control_records(rows: _Rows) -> _Written:
    """Yield the records of each row: a write that sets the start offset is a checkpoint, any other one a delta."""
    epoch = FIRST_CHECKPOINT_EPOCH - 1
    for row, step in rows:
        written = []
        for key, write in step.writes:
            if write.start_offset != UNINITIALIZED_START_OFFSET:
                epoch += 1
                written.append(share_checkpoint(step.snapshot, epoch=epoch))
            else:
                written.append(share_delta(key, write, epoch=epoch))
        if row.takes_checkpoint:
            epoch += 1
            written.append(share_checkpoint(step.snapshot, epoch=epoch))
        yield tuple(written)


def _checkpoints(rows: _Rows) -> _Written:
    epoch = FIRST_CHECKPOINT_EPOCH - 1
    for row, step in rows:
        epoch += row.takes_checkpoint
        yield (share_checkpoint(step.snapshot, epoch=epoch),) if row.takes_checkpoint else ()


def _state_records(rows: _Rows) -> _Written:
    records = state_records(write for _, step in rows for _, write in step.writes)
    for _, step in rows:
        yield tuple(next(records).to_json() for _ in step.writes)


@frozen
class LastColumn:
    """
    The kind of entries in the last column of a table.

    Attributes:
        noun: The name of an entry; in the plural with an s.
        profile: The profile under which a leader writes such entries.
        read: A function that reads an entry as the KIP prints it.
        written: A function that yields the entries that the leader has written, for each row.
    """

    noun: str
    profile: Profile
    read: Check[Json]
    written: Callable[[_Rows], _Written]


LAST_COLUMNS: Final[Mapping[str, LastColumn]] = MappingProxyType(
    {
        "write": LastColumn("request", KIP_932, read_request, _requests),
        "control": LastColumn("record", CONTROL_RECORDS, read_control_record, _control_records),
        "checkpoint": LastColumn("record", CONTROL_RECORDS, read_control_record, _checkpoints),
        "keys": LastColumn("record", KIP_932, read_keyed_record, _state_records),
    }
)
"""The last column of each table."""


# ---- the comparison


@frozen(kw_only=True)
class RowRun:
    """
    A row of the KIP beside the leader's step.

    Attributes:
        row: The row.
        step: The effects of its commands.
        expected: The requests or records of the KIP, as corrected.
        written: The requests or records of the leader.
    """

    row: Row
    step: ScenarioStep
    expected: tuple[Json, ...]
    written: tuple[Json, ...]

    @property
    def state_changes_agree(self) -> bool:
        """True if the leader's state changes are the KIP's, or if the KIP has none."""
        return _agrees(self.row.state_changes, self.step.changes)

    @property
    def cumulative_state_agrees(self) -> bool:
        """True if the leader's state is the KIP's, or if the KIP has none."""
        return _agrees(self.row.cumulative_state, self.step.state)

    @property
    def written_agrees(self) -> bool:
        """True if the leader has written what the KIP has, and nothing else."""
        return self.expected == self.written

    @property
    def agrees(self) -> bool:
        """True if state changes, cumulative state and last column all agree."""
        return self.state_changes_agree and self.cumulative_state_agrees and self.written_agrees

    def to_json(self) -> Json:
        """
        Return the row as JSON: the KIP's texts, and the requests or records of the leader.

        ``request`` is null if there is none, and a list if there is more than one.
        """
        row = self.row
        return {
            "operation": None if row.operation is None else row.operation.text,
            "state_changes": _text_json(row.state_changes),
            "cumulative_state": _text_json(row.cumulative_state),
            "request": _one_or_list(self.written),
        }


def _agrees(printed: Printed | None, shown: KipState) -> bool:
    return printed is None or agrees(read_state(printed.text_corrected), shown)


def _text_json(printed: Printed | None) -> Json:
    return None if printed is None else {"text": printed.text, "text_corrected": printed.text_corrected}


def _lines_json(row: Row) -> Json:
    return {**_source_json(row.source), "copies": [_source_json(copy) for copy in row.copies]}


def _source_json(source: Source) -> Json:
    return {"file": source.file, "lines": list(source.lines)}


def _one_or_list(written: tuple[Json, ...]) -> Json:
    return written[0] if len(written) == 1 else list(written) or None


@frozen(kw_only=True)
class TableRun:
    """
    A table of the KIP beside the leader's steps.

    Attributes:
        table: The table.
        profile: The leader's profile.
        rows: The rows.
    """

    table: Table
    profile: Profile
    rows: tuple[RowRun, ...]

    @property
    def agrees(self) -> bool:
        """True if every row agrees with the KIP."""
        return all(row.agrees for row in self.rows)

    def to_json(self, *, has_lines: bool = False) -> list[Json]:
        """
        Return the rows as JSON, each with the section of the KIP that has it.

        Args:
            has_lines: Add the versions of the KIP from which the texts are, and their lines there.
        """
        section = {"section": self.table.section, "url": self.table.url}
        return [
            {**row.to_json(), "source": section | {"row": number} | (_lines_json(row.row) if has_lines else {})}
            for number, row in enumerate(self.rows, 1)
        ]

    @property
    def verdict(self) -> str:
        """A line with the numbers of rows and entries that agree, and of corrections."""
        expected = sum(len(row.expected) for row in self.rows)
        written = sum(len(row.expected) for row in self.rows if row.written_agrees)
        noun = LAST_COLUMNS[self.table.name].noun
        corrections = self.table.correction_count
        return (
            f"{sum(row.agrees for row in self.rows)} of {len(self.rows)} rows, {written} of {expected} {noun}s "
            f"as the KIP prints them; {corrections} correction{'s' * (corrections != 1)}"
        )


def run_table(table: Table, profile: Profile | None = None, *, scenario: Scenario | None = None) -> TableRun:
    """
    Run the scenario of *table* with a leader and a persister in memory, and compare each row.

    >>> from sharestate.kip932 import read_table
    >>> run_table(read_table("write")).verdict
    '12 of 12 rows, 8 of 8 requests as the KIP prints them; 5 corrections'

    Args:
        table: A table of ``read_table``, or one of your own under one of those names.
        profile: The leader's profile; the KIP's if None.
        scenario: The commands for each row, for example a changed ``read_scenario(table)``; that one if None.

    Raises:
        MalformedInputError: The scenario has another number of steps than the table has rows, or a command that
            scenarios may not have; or an argument is of the wrong type. ``field`` names it.
        ShareStateError: A command of *scenario* was refused.
    """
    expect(table, Table, "table", such_as='read_table("write")')
    if table.name not in LAST_COLUMNS:
        refuse(f"expected one of {', '.join(TABLES)}, got {table.name!r}", "table.name")
    column = LAST_COLUMNS[table.name]
    profile = column.profile if profile is None else expect(profile, Profile, "profile", such_as="KAFKA_4_3")
    if scenario is None:
        scenario = read_scenario(table)
    _Runner.check(expect(scenario, Scenario, "scenario", such_as='read_scenario(read_table("write"))'), table)
    runner = _Runner(profile)
    rows = [(row, runner.run(commands)) for row, commands in zip(table.rows, scenario.steps, strict=True)]
    return TableRun(
        table=table,
        profile=profile,
        rows=tuple(
            RowRun(row=row, step=step, expected=_expected(row, column), written=written)
            for (row, step), written in zip(rows, column.written(rows), strict=True)
        ),
    )


def _expected(row: Row, column: LastColumn) -> tuple[Json, ...]:
    return tuple(column.read(printed.text_corrected, "written") for printed in row.written)
