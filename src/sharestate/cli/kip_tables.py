"""A table of the KIP as the KIP lays it out, with a mark at everything that was compared."""

from __future__ import annotations

import json
import re
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from sharestate.kip932 import Caption, Printed, Row, RowRun, Table, TableRun
from sharestate.kip932.states import KipState

PIPE_WIDTH: Final = 140
"""How wide tables are where there is no terminal to ask. [characters]"""

_RATIOS: Final = {1: (1,), 4: (11, 13, 16, 27)}
"""How the width is shared out, by the number of columns; so that 80 characters do not cut through words."""

_WIDE_SPACE: Final = re.compile(r"(?m)^( *)(.*?,) {2,}")


def print_run(run: TableRun) -> None:
    """Print the table of *run* on standard output, and how much of it agrees."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    table = run.table
    console.print(Text(f"{table.title.text} ({_place(table, table.source.lines)})", style="bold"))
    for first in sorted({1, *(caption.before for caption in table.captions)}):
        for caption in table.captions:
            if caption.before == first:
                console.print(
                    Text(caption.printed.text_corrected + _star(caption.printed), style="italic"), *_noted(caption)
                )
        if rows := run.rows[first - 1 : _next_caption(table, first) - 1]:
            console.print(_grid(table, rows, has_heads=first == 1))
    for remark in _remarks(table):
        console.print(remark)
    console.print(Text(run.verdict, style="bold green" if run.agrees else "bold red"))
    console.print()


def _next_caption(table: Table, first: int) -> int:
    """Return the next row with a caption of its own above it; one more than there are if there is none."""
    later = [caption.before for caption in table.captions if caption.before > first]
    return min(later, default=len(table.rows) + 1)


def _place(table: Table, lines: tuple[int, int]) -> str:
    first, last = lines
    return f"{table.source.file.partition('_')[0]}:{first}" + f"-{last}" * (last > first)


def _star(printed: Printed) -> str:
    """Mark a text that was corrected, as its correction is marked below the table."""
    return " *" if printed.reasons else ""


def _grid(table: Table, rows: tuple[RowRun, ...], *, has_heads: bool) -> Grid:
    grid = Grid(show_header=has_heads, show_lines=True, expand=True)
    for head, ratio in zip(table.columns, _RATIOS[len(table.columns)], strict=True):
        grid.add_column(head, ratio=ratio, overflow="fold")
    for run in rows:
        grid.add_row(*_cells(run)[-len(table.columns) :])
    return grid


def _cells(run: RowRun) -> tuple[RenderableType, ...]:
    row, step = run.row, run.step
    return (
        _plain(row.operation),
        _judged(row.state_changes, agrees=run.state_changes_agree, shown=_told(step.changes)),
        _judged(row.cumulative_state, agrees=run.cumulative_state_agrees, shown=_told(step.state)),
        Group(*_written(run), *_noted(row)),
    )


def _noted(about: Row | Caption) -> list[Text]:
    return [] if about.note is None else [Text(f"({about.note})", style="dim")]


def _plain(printed: Printed | None) -> Text:
    return Text("" if printed is None else printed.text_corrected + _star(printed))


def _judged(printed: Printed | None, *, agrees: bool, shown: str) -> Text:
    """Return a text of the KIP with its mark and, where the leader does something else, what that is."""
    if printed is None:
        return Text()
    return Text.assemble(
        _marked(printed.text_corrected, printed, agrees=agrees), "" if agrees else f"\nthe leader: {shown}"
    )


def _marked(text: str, printed: Printed, *, agrees: bool) -> Text:
    return Text.assemble(text, _star(printed), " ", _mark(agrees=agrees))


def _mark(*, agrees: bool) -> tuple[str, str]:
    return ("✓", "green") if agrees else ("✗", "bold red")


def _written(run: RowRun) -> list[Text]:
    """Return what the KIP says is written, and what is written instead."""
    row = run.row
    said = [
        _marked(_WIDE_SPACE.sub(r"\1\2\n\1", printed.text_corrected), printed, agrees=run.written_agrees)
        for printed in row.written
    ]
    if row.between is not None:
        said.insert(1, Text(row.between.text_corrected, style="italic"))
    if run.written_agrees:
        return said
    return [
        *(said or [Text.assemble(_mark(agrees=False))]),
        *(Text(f"the leader: {json.dumps(each)}") for each in run.written),
    ]


def _told(state: KipState) -> str:
    """Return *state* in the KIP's words."""
    offsets = {"SPSO": state.start_offset, "SPEO": state.end_offset}
    told = [f"{name}={offset}" for name, offset in offsets.items() if offset is not None]
    for first, last, record_state, count in state.records:
        span = f"record {first}" if first == last else f"records {first}-{last}"
        told.append(f"{span} ({record_state.name.lower()}, delivery count {count})")
    return ", ".join(told) or "nothing"


def _remarks(table: Table) -> list[Text]:
    """Return a line for each correction, and for each thing that the KIP does not say."""
    corrected = sorted((each for each in table.printed if each.reasons), key=lambda printed: printed.lines)
    corrections = [f"* {_place(table, each.lines)} {reason}" for each in corrected for reason in each.reasons]
    return [Text(remark, style="dim") for remark in (*table.notes, *corrections)]
