"""Running the KIP's tables: what a leader does and writes, beside what the KIP says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from sharestate.kip932.forms import FORMS, Form
from sharestate.kip932.performing import Step, perform
from sharestate.kip932.reading import read_scenario
from sharestate.kip932.states import KipState, agrees, read_state
from sharestate.values.profiles import Profile

if TYPE_CHECKING:
    from sharestate.json_lines import Json
    from sharestate.kip932.tables import Printed, Row, Source, Table


@frozen(kw_only=True)
class RowRun:
    """A row of the KIP beside what a leader does in it."""

    row: Row
    """The row."""

    step: Step
    """What its commands have led to."""

    said: tuple[Json, ...]
    """What the KIP says is written, as corrected."""

    written: tuple[Json, ...]
    """What the leader has written."""

    @property
    def state_changes_agree(self) -> bool:
        """Whether the leader changes what the KIP says; true if it says nothing."""
        return _agrees(self.row.state_changes, self.step.changes)

    @property
    def cumulative_state_agrees(self) -> bool:
        """Whether the leader's state is the KIP's; true if it says nothing."""
        return _agrees(self.row.cumulative_state, self.step.state)

    @property
    def written_agrees(self) -> bool:
        """Whether the leader writes what the KIP says, and nothing else."""
        return self.said == self.written

    @property
    def agrees(self) -> bool:
        """Whether all of it agrees."""
        return self.state_changes_agree and self.cumulative_state_agrees and self.written_agrees

    def to_json(self) -> Json:
        """
        Return the row for programs: the KIP's texts, and what the leader has written.

        ``request`` is null if that is nothing, and a list if it is more than one thing.
        """
        row = self.row
        return {
            "operation": None if row.operation is None else row.operation.text,
            "state_changes": _text_json(row.state_changes),
            "cumulative_state": _text_json(row.cumulative_state),
            "request": _one_or_list(self.written),
            "source": {**_source_json(row.source), "copies": [_source_json(copy) for copy in row.copies]},
        }


def _agrees(printed: Printed | None, shown: KipState) -> bool:
    return printed is None or agrees(read_state(printed.text_corrected), shown)


def _text_json(printed: Printed | None) -> Json:
    return None if printed is None else {"text": printed.text, "text_corrected": printed.text_corrected}


def _source_json(source: Source) -> Json:
    return {"file": source.file, "lines": list(source.lines)}


def _one_or_list(written: tuple[Json, ...]) -> Json:
    return written[0] if len(written) == 1 else list(written) or None


@frozen(kw_only=True)
class TableRun:
    """A table of the KIP beside what a leader does in it."""

    table: Table
    """The table."""

    profile: Profile
    """Whose rules the leader has followed."""

    rows: tuple[RowRun, ...]
    """Its rows."""

    @property
    def agrees(self) -> bool:
        """Whether every row agrees with the KIP."""
        return all(row.agrees for row in self.rows)

    @property
    def verdict(self) -> str:
        """How much agrees, in one line."""
        said = sum(len(row.said) for row in self.rows)
        written = sum(len(row.said) for row in self.rows if row.written_agrees)
        noun = FORMS[self.table.name].noun
        corrections = self.table.correction_count
        return (
            f"{sum(row.agrees for row in self.rows)} of {len(self.rows)} rows, {written} of {said} {noun}s "
            f"as the KIP prints them; {corrections} correction{'s' * (corrections != 1)}"
        )


def run_table(table: Table, profile: Profile | None = None) -> TableRun:
    """
    Perform the rows of *table* with a leader and a persister in memory.

    >>> from sharestate.kip932 import read_table
    >>> run_table(read_table("write")).verdict
    '12 of 12 rows, 8 of 8 requests as the KIP prints them; 5 corrections'

    Args:
        table: Which one.
        profile: Whose rules the leader follows; the KIP's if None.
    """
    form = FORMS[table.name]
    profile = form.profile if profile is None else profile
    steps = perform(read_scenario(table), profile)
    performed = tuple(zip(table.rows, steps, strict=True))
    rows = tuple(
        RowRun(row=row, step=step, written=written, said=_said(row, form))
        for (row, step), written in zip(performed, form.written(performed), strict=True)
    )
    return TableRun(table=table, profile=profile, rows=rows)


def _said(row: Row, form: Form) -> tuple[Json, ...]:
    return tuple(form.read(printed.text_corrected, "written") for printed in row.written)
