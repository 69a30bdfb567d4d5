"""What ``replay`` prints of recorded conversations: tables for people, or JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from attrs import asdict
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table
from rich.text import Text

from sharestate.conversation.compare import Level
from sharestate.conversation.replay import ReplayVerdict, TraceOutcome
from sharestate.json_lines import Json, brief, printable
from sharestate.values.profiles import Profile

REPORT_VERSION: Final = 1
"""The version of the JSON document."""

_PIPE_WIDTH: Final = 100
"""The width of tables where there is no terminal. [characters]"""

_UNFOLDED: Final = 10_000
"""The width of failures there, so that no line that one may search for is folded. [characters]"""


class ReplayReport:
    """The outcomes of a replay; those that passed are only counted."""

    def __init__(self, profile: Profile, level: Level, *, lists_known: bool = False) -> None:
        """Start with no outcomes of a replay under *profile* at *level*."""
        self._profile = profile
        self._level = level
        self._lists_known = lists_known
        self._counts: Counter[ReplayVerdict] = Counter()
        self._shown: list[TraceOutcome] = []

    def add(self, outcome: TraceOutcome) -> None:
        """Add the outcome of one trace."""
        self._counts[outcome.verdict] += 1
        if outcome.verdict is not ReplayVerdict.PASSED:
            self._shown.append(outcome)

    @property
    def has_failures(self) -> bool:
        """True if a trace failed."""
        return self._counts[ReplayVerdict.FAILED] > 0

    def print(self, *, as_json: bool) -> None:
        """Print it on standard output."""
        if as_json:
            click.echo(json.dumps(self._document(), indent=2))
        else:
            self._print_tables()

    def _of(self, verdict: ReplayVerdict) -> list[TraceOutcome]:
        return [outcome for outcome in self._shown if outcome.verdict is verdict]

    # ---- for programs

    def _document(self) -> Json:
        return {
            "replay": REPORT_VERSION,
            "profile": self._profile.name,
            "level": self._level.value,
            **{verdict.value: self._counts[verdict] for verdict in ReplayVerdict},
            "outcomes": [_outcome_json(outcome) for outcome in self._shown],
        }

    # ---- for people

    def _print_tables(self) -> None:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        if failures := self._of(ReplayVerdict.FAILED):
            console.print(_failures(failures), width=None if console.is_terminal else _UNFOLDED)
        if known := self._of(ReplayVerdict.KNOWN):
            counted = f"{len(known)} known {'difference' if len(known) == 1 else 'differences'}"
            if self._lists_known:
                console.print(_known(known))
                console.print(counted)
            else:
                console.print(f"{counted}; the reasons: docs/how-we-know.md, or --list-known")
        console.print(self._last_line())

    def _last_line(self) -> str:
        passed, known, failed, skipped = (
            self._counts[verdict]
            for verdict in (ReplayVerdict.PASSED, ReplayVerdict.KNOWN, ReplayVerdict.FAILED, ReplayVerdict.SKIPPED)
        )
        expected = f"{passed + known} of {passed + known + failed} as expected"
        return expected + f", {failed} failed" * (failed > 0) + f", {skipped} skipped" * (skipped > 0)


def with_progress(traces: Sequence[Path]) -> Iterator[Path]:
    """Yield *traces*, with a progress bar on standard error if that is a terminal."""
    console = Console(stderr=True)
    yield from track(traces, "replaying", console=console, transient=True, disable=not console.is_terminal)


def _outcome_json(outcome: TraceOutcome) -> Json:
    members = asdict(outcome, value_serializer=lambda _instance, _field, value: getattr(value, "value", value))
    return {name: value for name, value in members.items() if value is not None}


def _failures(outcomes: list[TraceOutcome]) -> Table:
    table = Table(title="Failures", title_justify="left", show_lines=True, show_header=False)
    table.add_column(overflow="fold")
    for outcome in outcomes:
        table.add_row(Text("\n").join(_failure(outcome)))
    return table


def _failure(outcome: TraceOutcome) -> list[Text]:
    lines = [_text(outcome.name, style="bold red")]
    if outcome.reason is not None:
        lines.append(_text(outcome.reason))
    if outcome.deviation is None:
        return [*lines, _text(outcome.file, style="dim")]
    lines.append(_text(f"{outcome.file}:{outcome.deviation.line}", style="dim"))
    lines.append(_text(brief(outcome.deviation.request, limit=300)))
    return lines + [_text(f"  {difference}") for difference in outcome.deviation.differences]


def _text(text: str, style: str = "") -> Text:
    """Return *text*, which may come from an untrusted file."""
    return Text(printable(text), style=style)


def _known(outcomes: list[TraceOutcome]) -> Table:
    table = Table(Column("trace", overflow="fold"), "row", "why", title="Known differences", title_justify="left")
    for outcome in outcomes:
        table.add_row(_text(outcome.name), _text(outcome.row or ""), _text(outcome.reason or ""))
    return table
