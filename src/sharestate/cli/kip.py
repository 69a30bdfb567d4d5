"""The command ``kip``: the KIP's tables in the KIP's layout, with a mark at each text that was compared."""

from __future__ import annotations

import json
import re
import sys
from io import TextIOWrapper
from typing import Final

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from sharestate.kip932 import TABLES, Caption, Printed, Row, RowRun, Table, TableRun, read_table, run_table
from sharestate.kip932.states import KipState
from sharestate.values.profiles import PROFILES

MOST_WIDTH: Final = 100
"""The width of tables, or less in a narrower terminal. [characters]"""

_RATIOS: Final = {1: (1,), 4: (13, 14, 17, 25)}
"""The ratios of the columns' widths, by the number of columns; with them, no word is cut at 100 characters."""

_WIDE_SPACE: Final = re.compile(r"(?m)^( *)(.*?,) {2,}")


@click.command("kip")
@click.option("--table", "name", type=click.Choice(TABLES), help="One table instead of all of them.")
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(PROFILES)),
    help="The rules to follow instead of the KIP's at each table; those of a release show where brokers differ.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array of rows instead of tables.")
@click.option("--source", "has_lines", is_flag=True, help="Show the lines of the texts that the tables were made from.")
@click.pass_context
def kip_command(
    context: click.Context, *, name: str | None, profile_name: str | None, as_json: bool, has_lines: bool
) -> None:
    """
    Run the worked examples of KIP-932 and compare them with the KIP.

    A leader runs the operations of each table; its state changes, its state and its writes are compared with the
    KIP's: requests (write), control records of an older design (control), its checkpoints
    (checkpoint), and the keys of records on the share-group state topic (keys).

    Exit code: 0 if all agree, 1 if one differs.
    """
    profile = PROFILES[profile_name] if profile_name else None
    runs = [run_table(read_table(each), profile) for each in ([name] if name else TABLES)]
    if as_json:
        click.echo(json.dumps([row for run in runs for row in run.to_json(has_lines=has_lines)], indent=2))
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without ✓ shows a ? in its place
        for run in runs:
            print_run(run, has_lines=has_lines)
    context.exit(0 if all(run.agrees for run in runs) else 1)


def print_run(run: TableRun, *, has_lines: bool = False) -> None:
    """Print the table of *run* on standard output, with its verdict."""
    console = Console(highlight=False)
    console.width = min(console.width, MOST_WIDTH) if console.is_terminal else MOST_WIDTH
    table = run.table
    console.print(Text(table.section + _lines(table, table.source.lines) * has_lines, style="bold"))
    console.print(Text(table.url, style="dim"), soft_wrap=True)
    for first in sorted({1, *(caption.before for caption in table.captions)}):
        for caption in table.captions:
            if caption.before == first:
                console.print(
                    Text(caption.printed.text_corrected + _star(caption.printed), style="italic"), *_noted(caption)
                )
        if rows := run.rows[first - 1 : _next_caption(table, first) - 1]:
            is_narrow = console.width < MOST_WIDTH and len(table.columns) > 1
            console.print(_list(table, rows) if is_narrow else _grid(table, rows, has_heads=first == 1))
    for remark in _remarks(table, has_lines=has_lines):
        console.print(remark)
    console.print(Text(run.verdict, style="bold green" if run.agrees else "bold red"))
    console.print()


def _next_caption(table: Table, first: int) -> int:
    """Return the number of the next row with a caption; one past the last row if there is none."""
    later = [caption.before for caption in table.captions if caption.before > first]
    return min(later, default=len(table.rows) + 1)


def _lines(table: Table, lines: tuple[int, int]) -> str:
    first, last = lines
    return f" ({table.source.file.partition('_')[0]}:{first}" + f"-{last}" * (last > first) + ")"


def _star(printed: Printed) -> str:
    """Return the mark of a corrected text, which the correction below the table has too."""
    return " *" if printed.reasons else ""


def _grid(table: Table, rows: tuple[RowRun, ...], *, has_heads: bool) -> Grid:
    grid = Grid(show_header=has_heads, show_lines=True, expand=True)
    for head, ratio in zip(table.columns, _RATIOS[len(table.columns)], strict=True):
        grid.add_column(head, ratio=ratio, overflow="fold")
    for run in rows:
        grid.add_row(*_cells(run)[-len(table.columns) :])
    return grid


def _list(table: Table, rows: tuple[RowRun, ...]) -> Grid:
    """Return the rows one below the other, for terminals in which columns would break words."""
    grid = Grid(show_header=False, expand=True)
    grid.add_column(max_width=max(map(len, " ".join(table.columns).split())))
    grid.add_column(ratio=1, overflow="fold")
    for run in rows:
        for head, cell in zip(table.columns, _cells(run), strict=True):
            grid.add_row(head, cell)
        grid.add_section()
    return grid


def _cells(run: RowRun) -> tuple[RenderableType, ...]:
    row, step = run.row, run.step
    return (
        _plain(row.operation),
        _compared(row.state_changes, agrees=run.state_changes_agree, shown=_in_words(step.changes)),
        _compared(row.cumulative_state, agrees=run.cumulative_state_agrees, shown=_in_words(step.state)),
        Group(*_written(run), *_noted(row)),
    )


def _noted(about: Row | Caption) -> list[Text]:
    return [] if about.note is None else [Text(f"({about.note})", style="dim")]


def _plain(printed: Printed | None) -> Text:
    return Text("" if printed is None else printed.text_corrected + _star(printed))


def _compared(printed: Printed | None, *, agrees: bool, shown: str) -> Text:
    """Return a text of the KIP with its mark and, if they differ, the leader's."""
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
    """Return the KIP's records or requests with their marks and, if they differ, the leader's."""
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


def _in_words(state: KipState) -> str:
    """Return *state* in the KIP's words."""
    offsets = {"SPSO": state.start_offset, "SPEO": state.end_offset}
    parts = [f"{name}={offset}" for name, offset in offsets.items() if offset is not None]
    for first, last, record_state, count in state.records:
        span = f"record {first}" if first == last else f"records {first}-{last}"
        parts.append(f"{span} ({record_state.name.lower()}, delivery count {count})")
    return ", ".join(parts) or "nothing"


def _remarks(table: Table, *, has_lines: bool) -> list[Text]:
    """Return a line for each note and each correction."""
    corrections = [
        f"* {place}{_lines(table, printed.lines) * has_lines}: {reason}"
        for place, printed in table.corrections
        for reason in printed.reasons
    ]
    return [Text(remark, style="dim") for remark in (*table.notes, *corrections)]
