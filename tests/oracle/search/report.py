"""What a search tells: its progress on a terminal, and at the end what was compared, met and found."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sharestate.json_lines import brief
from sharestate.testing.search.progress import bar_of
from tests.oracle.search.divergences import DIVERGENCES
from tests.oracle.search.mixes import MIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from sharestate.testing.search import FoundDifference, SearchProgress, SearchTally

_PIPE_WIDTH: Final = 160
"""How wide lines may be where there is no terminal to ask. [characters]"""


def console() -> Console:
    """Return the console to write to."""
    made = Console(highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = _PIPE_WIDTH
    return made


@contextmanager
def progress_bar(operations: int) -> Iterator[Callable[[SearchProgress], None]]:
    """Yield what to tell the progress of a search for *operations*; nothing is shown but on a terminal."""
    with bar_of(operations) as tell:
        yield lambda progress: tell(progress.compared, f"{progress.tally.total:,} operations, sequence {progress.next}")


def show(progress: SearchProgress, complaints: Iterable[str], seconds: float, directory: Path) -> None:
    """Write the findings to *directory*, and say on standard output how the search has ended, and the *complaints*."""
    out = console()
    for finding in progress.findings:
        _show_finding(out, finding, directory)
    out.print(_table(progress.tally))
    for complaint in complaints:
        out.print(f"too often: {complaint}")
    out.print(_last_line(progress, seconds))


def _show_finding(out: Console, finding: FoundDifference, directory: Path) -> None:
    file = write_finding(finding, directory)
    out.print(Text(f"DIFFERENCE in sequence {finding.number}, after {finding.steps} requests", style="bold red"))
    out.print(Text(finding.conversation.rstrip()))
    out.print(Text(f"at {brief(finding.request, limit=300)}, where Kafka's response is what is expected:"))
    for difference in finding.differences:
        out.print(Text(f"  {difference}"))
    out.print(Text(f"sharestate replay {file}\n"))


def write_finding(finding: FoundDifference, directory: Path) -> Path:
    """Write the conversation of *finding* to a file in *directory*, and return that."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"sequence-{finding.number}.jsonl"
    file.write_text(finding.conversation, encoding="utf-8")
    return file


def _table(tally: SearchTally) -> Table:
    table = Table("row", *(f"{mix}: shown, latent, per 1,000 (most)" for mix in MIXES))
    for row in DIVERGENCES:
        cells = [
            f"{tally.shown[mix, row.id]}, {tally.latent[mix, row.id]}, "
            f"{tally.rate(mix, row.id):.2f} ({row.most_per_1000[mix]})"
            for mix in MIXES
        ]
        table.add_row(row.id, *cells)
    return table


def _last_line(progress: SearchProgress, seconds: float) -> str:
    tally, found = progress.tally, len(progress.findings)
    return (
        f"{tally.total:,} operations in {tally.sequences.total():,} sequences, "
        f"{progress.compared / max(seconds, 0.001):,.0f} a second; {tally.met} known divergences; "
        f"{found} {'difference' if found == 1 else 'differences'}; next sequence {progress.next}"
    )
