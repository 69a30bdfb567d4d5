"""What a command did, for the caller to carry out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sharestate.errors import ShareStateError
    from sharestate.values.records import AcquiredRecords
    from sharestate.values.requests import WriteShareGroupState
    from sharestate.values.transitions import Transition


class Effects(NamedTuple):
    """
    What every command returns: everything that it wants done or known.

    >>> Effects().wake
    False
    """

    acquired: tuple[AcquiredRecords, ...] = ()
    """The records that the member has acquired, in ascending order."""

    writes: tuple[WriteShareGroupState, ...] = ()
    """Writes to send to the persister, in this order."""

    wake: bool = False
    """Fetches that wait for this share partition should look again."""

    transitions: tuple[Transition, ...] = ()
    """What has happened to which records and why, in this order; only if the share partition was told to say so."""

    error: ShareStateError | None = None
    """How the initialisation or the write that this command settled has failed."""

    @property
    def acquired_count(self) -> int:
        """How many records were acquired. [records]"""
        return sum(last - first + 1 for first, last, _ in self.acquired)


NOTHING: Final = Effects()
"""The effects of a command that asks for nothing."""

WAKE: Final = Effects(wake=True)
"""The effects of a command after which waiting fetches should look again, and that asks for nothing else."""
