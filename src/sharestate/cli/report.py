"""What a replay found, as tables for people or as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import click
from attrs import asdict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sharestate.conversation.levels import Level
from sharestate.conversation.replaying import Outcome, Verdict
from sharestate.json_lines import Json, brief
from sharestate.values.profiles import Profile

REPORT_VERSION: Final = 1
"""The version of the JSON document."""

_PIPE_WIDTH: Final = 160
"""How wide tables may be where there is no terminal to ask. [characters]"""

_UNFOLDED: Final = 10_000
"""How wide failures may be there, so that nothing that one searches for is folded. [characters]"""


class Report:
    """The outcomes of a replay; those that passed are only counted."""

    def __init__(self, profile: Profile, level: Level) -> None:
        """Begin with no outcomes of a replay under *profile* at *level*."""
        self._profile = profile
        self._level = level
        self._counts: Counter[Verdict] = Counter()
        self._told: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of one trace."""
        self._counts[outcome.verdict] += 1
        if outcome.verdict is not Verdict.PASSED:
            self._told.append(outcome)

    @property
    def has_failures(self) -> bool:
        """Whether a trace failed."""
        return self._counts[Verdict.FAILED] > 0

    def print(self, *, as_json: bool) -> None:
        """Print it on standard output."""
        if as_json:
            click.echo(json.dumps(self._document(), indent=2))
        else:
            self._print_tables()

    def _of(self, verdict: Verdict) -> list[Outcome]:
        return [outcome for outcome in self._told if outcome.verdict is verdict]

    # ---- for programs

    def _document(self) -> Json:
        return {
            "replay": REPORT_VERSION,
            "profile": self._profile.name,
            "level": self._level.value,
            **{verdict.value: self._counts[verdict] for verdict in Verdict},
            "outcomes": [_outcome_json(outcome) for outcome in self._told],
        }

    # ---- for people

    def _print_tables(self) -> None:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = _PIPE_WIDTH
        if failures := self._of(Verdict.FAILED):
            console.print(_failures(failures), width=None if console.is_terminal else _UNFOLDED)
        if known := self._of(Verdict.KNOWN):
            console.print(_known(known))
            console.print(f"{len(known)} known {'difference' if len(known) == 1 else 'differences'}")
        console.print(self._last_line())

    def _last_line(self) -> str:
        passed, failed, skipped = (self._counts[v] for v in (Verdict.PASSED, Verdict.FAILED, Verdict.SKIPPED))
        return f"{passed} passed, {failed} failed" + f", {skipped} skipped" * (skipped > 0)


def _outcome_json(outcome: Outcome) -> Json:
    told = asdict(outcome, value_serializer=lambda _instance, _field, value: getattr(value, "value", value))
    return {name: value for name, value in told.items() if value is not None}


def _failures(outcomes: list[Outcome]) -> Table:
    table = Table(title="Failures", title_justify="left", show_lines=True, show_header=False)
    table.add_column(overflow="fold")
    for outcome in outcomes:
        table.add_row(Text("\n").join(_told(outcome)))
    return table


def _told(outcome: Outcome) -> list[Text]:
    lines = [Text(outcome.name, style="bold red")]
    if outcome.reason is not None:
        lines.append(Text(outcome.reason))
    if outcome.deviation is None:
        return [*lines, Text(outcome.file, style="dim")]
    lines.append(Text(f"{outcome.file}:{outcome.deviation.line}", style="dim"))
    lines.append(Text(brief(outcome.deviation.request, limit=300)))
    return lines + [Text(f"  {difference}") for difference in outcome.deviation.differences]


def _known(outcomes: list[Outcome]) -> Table:
    table = Table("trace", "row", "why", title="Known differences", title_justify="left")
    for outcome in outcomes:
        table.add_row(Text(outcome.name, overflow="fold"), Text(outcome.row or ""), Text(outcome.reason or ""))
    return table
