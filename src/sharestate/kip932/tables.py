"""The KIP's worked examples as data: what its tables print, where, and what is right where they slip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from sharestate.conversation.requests import Command

TABLES: Final = ("write", "control", "checkpoint", "keys")
"""The names of the tables: requests, control records, checkpoints, and keys of records."""


@frozen(kw_only=True)
class Source:
    """Where something is printed."""

    file: str
    """The document."""

    lines: tuple[int, int]
    """The first line and the last one, included; counted from 1."""

    lost: tuple[str, ...] = ()
    """Which columns the document has lost, if it is a copy."""


@frozen(kw_only=True)
class Printed:
    """A text of the KIP."""

    lines: tuple[int, int]
    """The first and the last line of the document where it stands."""

    text: str
    """The text as it is printed; no-break spaces are written as spaces, and empty lines left out."""

    text_corrected: str
    """The text as it should be: the same, unless there are reasons."""

    reasons: tuple[str, ...]
    """What is wrong with the text as printed, one reason for each correction."""


@frozen(kw_only=True)
class Caption:
    """A text between the rows of a table."""

    before: int
    """The row before which it stands, counted from 1; one more than there are for the end."""

    printed: Printed
    """The text."""

    copies: tuple[Source, ...]
    """Where else it is printed."""

    note: str | None
    """What there is to say about it that the KIP does not say."""


@frozen(kw_only=True)
class Row:
    """A row of a table."""

    source: Source
    """Where it is printed."""

    copies: tuple[Source, ...]
    """Where else it is printed."""

    operation: Printed | None
    """What is done, in one line or two."""

    state_changes: Printed | None
    """What that changes."""

    cumulative_state: Printed | None
    """The state after it."""

    written: tuple[Printed, ...]
    """The request, or the records, that are written; if two, then the second in place of the first."""

    between: Printed | None
    """What stands between the two."""

    takes_checkpoint: bool
    """Whether a SHARE_CHECKPOINT of the state after it is printed."""

    note: str | None
    """What there is to say about it that the KIP does not say."""

    @property
    def printed(self) -> tuple[Printed, ...]:
        """All texts of the row, in the order of its columns."""
        said = (self.operation, self.state_changes, self.cumulative_state)
        cells = (*said, *self.written[:1], self.between, *self.written[1:])
        return tuple(cell for cell in cells if cell is not None)


@frozen(kw_only=True)
class Table:
    """One of the KIP's tables."""

    name: str
    """Its name in TABLES."""

    title: Printed
    """The heading above it."""

    source: Source
    """Where it is printed, with its captions."""

    scenario: str
    """The name of the scenario that performs its rows."""

    columns: tuple[str, ...]
    """The heads of its columns."""

    notes: tuple[str, ...]
    """What there is to say about it that the KIP does not say."""

    captions: tuple[Caption, ...]
    """The texts between its rows."""

    rows: tuple[Row, ...]
    """Its rows."""

    @property
    def printed(self) -> tuple[Printed, ...]:
        """All texts of the table."""
        captions = (caption.printed for caption in self.captions)
        return (self.title, *captions, *(cell for row in self.rows for cell in row.printed))

    @property
    def correction_count(self) -> int:
        """How many corrections there are. [corrections]"""
        return sum(len(printed.reasons) for printed in self.printed)


@frozen(kw_only=True)
class Scenario:
    """The commands that perform the rows of a table."""

    name: str
    """Its name."""

    notes: tuple[str, ...]
    """Why the commands are as they are."""

    steps: tuple[tuple[Command, ...], ...]
    """The commands of each row, as requests of the line protocol."""
