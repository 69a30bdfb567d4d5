"""Lists of traces of which it is known that, and why, sharestate answers otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from sharestate.conversation.errors import UnreadableFileError
from sharestate.conversation.levels import Level
from sharestate.conversation.replaying import Outcome, Verdict
from sharestate.errors import MalformedInputError
from sharestate.json_checks import Field, list_of, one_of, record, text, version
from sharestate.json_lines import read_json
from sharestate.values.profiles import Profile

KNOWN_DIFFERENCES_VERSION: Final = 1
"""The version of the format that is read."""


@frozen(kw_only=True)
class KnownDifference:
    """One trace that is known to differ."""

    name: str
    """The trace's name, from its header."""

    row: str
    """The row of the list of divergences that accounts for it."""

    reason: str
    """Why, in one sentence."""


@frozen(kw_only=True)
class KnownDifferences:
    """The traces that are known to differ under one profile, at one level of comparison."""

    profile: str
    """The profile's name."""

    level: Level
    """The level at which they differ."""

    rows: tuple[KnownDifference, ...]
    """The traces."""

    def by_name(self, profile: Profile, level: Level) -> Mapping[str, KnownDifference]:
        """
        Return the rows that hold under *profile* at *level*, by the traces' names.

        What differs in what is observable differs in full too.
        """
        holds = profile.name == self.profile and self.level in {level, Level.OBSERVABLE}
        return {row.name: row for row in self.rows} if holds else {}


def judged(outcome: Outcome, rows: Mapping[str, KnownDifference]) -> Outcome:
    """Return *outcome* in the light of the *rows* that hold: what is in them must differ, and may."""
    row = rows.get(outcome.name)
    if row is None or outcome.verdict is Verdict.SKIPPED:
        return outcome
    if outcome.verdict is Verdict.FAILED:
        return evolve(outcome, verdict=Verdict.KNOWN, reason=row.reason, row=row.row)
    return evolve(outcome, verdict=Verdict.FAILED, reason=f"no longer differs: {row.row}", row=row.row)


_known_differences: Final = record(
    {
        "known_differences": Field(version(KNOWN_DIFFERENCES_VERSION)),
        "profile": Field(text),
        "level": Field(one_of({level.value: level for level in Level})),
        "rows": Field(
            list_of(record({"name": Field(text), "row": Field(text), "reason": Field(text)}, KnownDifference))
        ),
    },
    lambda known_differences, **members: KnownDifferences(**members),  # noqa: ARG005 - the version has been checked
)


def read_known_differences(path: Path) -> KnownDifferences:
    """
    Read the list at *path*.

    Raises:
        UnreadableFileError: It is no such list, or not of KNOWN_DIFFERENCES_VERSION.
    """
    try:
        return _known_differences(read_json(path.read_text(encoding="utf-8", errors="surrogateescape")), "")
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(path)) from error
    except MalformedInputError as error:
        raise UnreadableFileError(error.message, str(path), field=error.field or "") from error
