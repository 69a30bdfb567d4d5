"""
What happens to a record, delivery by delivery, and what becomes of it.

A *delivery* is an acquisition that was answered: what is filtered out of it, as its transaction was aborted, was never
delivered. It *ends* where its member has the record no more, but for one that the member accepts or rejects: that is an
*outcome*, as is what archives a record otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.explain.replayed import has_expired
from sharestate.explain.words import sentence
from sharestate.history.events import Event
from sharestate.history.rows import OutputRow
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState

_KEPT_ENDS: Final = 10
"""The most ends of deliveries that are kept of a record, the last ones: brokers allow 10 deliveries. [deliveries]"""


class End(StrEnum):
    """How a delivery has ended of a record that its member neither accepted nor rejected."""

    RELEASED = "released"
    """The member has given it back."""

    LOCK_EXPIRED = "lock expired"
    """The member has held it for too long."""

    SESSION_CLOSED = "session closed"
    """The member has left, or its connection was lost."""

    WRITE_FAILED = "write failed"
    """What the member said of it was not persisted, and its lock has expired (B15)."""

    NEW_LEADER = "new leader"
    """Another leader has read the state, in which deliveries are not."""

    MOVED_BACK = "SPSO moved back"
    """The SPSO had passed it, and was moved back: somebody has reset the group's offsets."""

    UNKNOWN = "not known"
    """It was before the history began, or where the state is not known."""


OUTCOMES: Final = MappingProxyType(
    {
        Cause.ACCEPTED: "accepted",
        Cause.ARCHIVED_AT_LIMIT: "archived at the limit",
        Cause.REJECTED: "rejected",
        Cause.GAP: "reported as missing",
        Cause.ABORTED: "lost to aborted transactions",
        Cause.BELOW_LOG_START: "passed by the log start",
        Cause.COMPACTED_AWAY: "compacted away",
    }
)
"""What may become of a record, in the order in which lists have them."""


class Lived(NamedTuple):
    """
    What has happened to a record so far.

    Attributes:
        deliveries: How often it was delivered as the history has it. [deliveries]
        earlier: How often it was delivered before that, or at other leaders. [deliveries]
        ends: Member and end of each delivery that has ended, the last ``_KEPT_ENDS``.
        member_id: Who holds it, or has accepted or rejected it; empty for nobody.
        first_us: When it was delivered first; None if that is not known. [µs since 1970]
        outcome: What has become of it; None as long as that is open.
        outcome_us: When that was; None if that is not known. [µs since 1970]
        is_dead_letter: Whether it was handed to the dead-letter queue.
        is_redelivered: Whether it counts as delivered more than once.
    """

    deliveries: int = 0
    earlier: int = 0
    ends: tuple[tuple[str, End], ...] = ()
    member_id: str = ""
    first_us: int | None = None
    outcome: Cause | None = None
    outcome_us: int | None = None
    is_dead_letter: bool = False
    is_redelivered: bool = False

    @property
    def all_deliveries(self) -> int:
        """How often it was delivered in all. [deliveries]"""
        return self.deliveries + self.earlier

    @property
    def is_held(self) -> bool:
        """Whether a member holds it."""
        return bool(self.member_id) and self.outcome is None

    def delivered(self, member_id: str, at_us: int | None) -> Lived:
        """Return it after *member_id* has got it."""
        open_ = self.ended(End.UNKNOWN) if self.is_held else self
        first_us = at_us if self.deliveries == 0 else self.first_us
        again = open_.all_deliveries > 0
        return Lived(open_.deliveries + 1, open_.earlier, open_.ends, member_id, first_us, is_redelivered=again)

    def ended(self, how: End) -> Lived:
        """Return it after the delivery at hand has ended."""
        return self._replace(ends=(*self.ends, (self.member_id, how))[-_KEPT_ENDS:], member_id="", outcome=None)

    def became(self, outcome: Cause, at_us: int | None) -> Lived:
        """Return it after its *outcome*."""
        return self._replace(outcome=outcome, outcome_us=at_us)

    def rolled_back(self, member_id: str, state: int, at_us: int | None) -> Lived:
        """Return it after the write of its last change has failed, which leaves it in *state*."""
        if self.outcome is not None and self.outcome not in WRITTEN_OUTCOMES:  # archived meanwhile
            return self
        if state == RecordState.ACQUIRED:
            ends = self.ends if self.member_id else self.ends[:-1]
            return self._replace(ends=ends, member_id=member_id, outcome=None, outcome_us=None)
        left = self.ended(End.WRITE_FAILED) if self.member_id else self._replace(outcome=None, outcome_us=None)
        return left.became(Cause.ARCHIVED_AT_LIMIT, at_us) if state in _GIVEN_UP else left

    def read(self, row: OutputRow, how: End) -> Lived:
        """Return it after another leader has read it; *how* a delivery has ended of which the state says nothing."""
        _, _, _, count, _, _, state, _ = row.values
        if state != RecordState.AVAILABLE:
            became = Cause.ACCEPTED if state == RecordState.ACKNOWLEDGED else None
            return self._replace(outcome=became, outcome_us=row.at_us) if self.is_held else self
        kept = self.lost(how)
        missed = count - kept.all_deliveries
        return kept if missed <= 0 else kept._replace(earlier=kept.earlier + missed)

    def lost(self, how: End) -> Lived:
        """Return it after what was not persisted of it is lost."""
        return self.ended(how)._replace(outcome_us=None) if self.member_id else self._replace(outcome=None)

    def moved_back(self) -> Lived:
        """Return it after the SPSO had passed it, and was moved back."""
        return self.ended(End.MOVED_BACK) if self.all_deliveries else self._replace(outcome=None)

    def last_end(self) -> tuple[str, End]:
        """Return member and end of the delivery before the one at hand."""
        return self.ends[-1] if self.ends else ("", End.UNKNOWN)

    def to_json(self, client_ids: Mapping[str, str]) -> dict[str, Any]:
        """Return it as JSON with the *client_ids* of members that are known; what is null or empty is left out."""
        fields = {
            "deliveries": self.all_deliveries,
            "earlier": self.earlier or None,
            "ends": [{**_member(member_id, client_ids), "how": how.value} for member_id, how in self.ends] or None,
            **_member(self.member_id, client_ids),
            "first_us": self.first_us,
            "outcome": None if self.outcome is None else self.outcome.value,
            "outcome_us": self.outcome_us,
            "is_dead_letter": self.is_dead_letter or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _member(member_id: str, client_ids: Mapping[str, str]) -> dict[str, str]:
    fields = {"member_id": member_id, "client_id": client_ids.get(member_id, "")}
    return {name: value for name, value in fields.items() if value}


WRITTEN_OUTCOMES: Final = frozenset({Cause.ACCEPTED, Cause.REJECTED, Cause.GAP, Cause.ARCHIVED_AT_LIMIT})
"""The outcomes that are written, and rolled back if the write fails."""

_GIVEN_UP: Final = frozenset({RecordState.ARCHIVED, RecordState.ARCHIVING})
_ENDS: Final = MappingProxyType({Cause.RELEASED: End.RELEASED, Cause.SESSION_CLOSED: End.SESSION_CLOSED})


def lived_after(lived: Lived, event: Event, row: OutputRow) -> Lived:
    """Return what has happened to a record after a transition of *event*; but for a read, and for an abort of it."""
    _, _, member_id, _, name, before, after, _ = row.values
    cause = Cause(name)
    match cause:
        case Cause.ACQUIRED:
            return lived.delivered(member_id, row.at_us)
        case Cause.RELEASED | Cause.SESSION_CLOSED:
            return lived.ended(_ENDS[cause])
        case Cause.LOCK_EXPIRED:
            return lived.ended(End.LOCK_EXPIRED) if before == RecordState.ACQUIRED else lived
        case Cause.ARCHIVED_AT_LIMIT:
            return lived.ended(_end_at_limit(event, row, lived.member_id)).became(cause, row.at_us)
        case Cause.ROLLED_BACK:
            return lived.rolled_back(member_id, after, row.at_us)
        case _:
            return lived.became(cause, row.at_us) if cause in OUTCOMES else lived


def _end_at_limit(event: Event, row: OutputRow, owner: str) -> End:
    if has_expired(event, row, owner):
        return End.LOCK_EXPIRED
    return End.RELEASED if event.kind == "acknowledge" else End.SESSION_CLOSED


def filtered_out(rows: Iterable[OutputRow]) -> list[tuple[int, int]]:
    """Return the ranges, in order, that an event's *rows* say were archived as aborted: what it acquired of them."""
    return sorted(row.values[:2] for row in rows if row.kind == "transition" and row.values[4] == Cause.ABORTED)


# ---- words

_END_WORDS: Final = MappingProxyType(
    {
        End.RELEASED: "released by {}",
        End.LOCK_EXPIRED: "lost to an expired lock of {}",
        End.SESSION_CLOSED: "lost to the closed session of {}",
        End.WRITE_FAILED: "lost by {} to a failed write",
        End.NEW_LEADER: "lost by {} to a new leader",
        End.MOVED_BACK: "passed by an SPSO that has moved back",
        End.UNKNOWN: "ended in a way that is not known",
    }
)
"""How a delivery has ended, and of which member it was."""

OUTCOME_SENTENCES: Final = MappingProxyType(
    {
        Cause.ACCEPTED: "accepted by {member} at {outcome}, delivery {deliveries}[; {ends}]",
        Cause.ARCHIVED_AT_LIMIT: "ARCHIVED at the limit after {deliveries:delivery}[, {ends}]",
        Cause.REJECTED: "ARCHIVED, rejected by {member} at {outcome}, delivery {deliveries}[; {ends}]",
        Cause.GAP: "ARCHIVED, reported as missing (GAP) by {member} at {outcome}, delivery {deliveries}[; {ends}]",
        Cause.ABORTED: (
            "ARCHIVED at {outcome}, its transaction was aborted[; delivered {times:time}][; {never} delivered]"
        ),
        Cause.BELOW_LOG_START: (
            "ARCHIVED at {outcome}, the log start moved past it[; delivered {times:time}][; {never} delivered]"
        ),
        Cause.COMPACTED_AWAY: (
            "ARCHIVED at {outcome}, the log no longer has it[; delivered {times:time}][; {never} delivered]"
        ),
    }
)
"""What has become of a record, in words; *deliveries* are all of it."""


def ends_in_words(lived: Lived, name: Callable[[str], str]) -> str:
    """
    Return in words how the deliveries of a record have ended; empty if none has.

    >>> twice = Lived(2, ends=(("m1", End.RELEASED), ("m1", End.RELEASED)))
    >>> ends_in_words(twice, str), ends_in_words(twice.delivered("m2", 0).ended(End.LOCK_EXPIRED), str)
    ('each released by m1', '2 released by m1, 1 lost to an expired lock of m2')
    """
    counts = Counter(_END_WORDS[how].format(name(member_id)) for member_id, how in lived.ends)
    if len(counts) != 1 or counts.total() != lived.all_deliveries:
        return ", ".join(f"{count} {words}" for words, count in counts.items())
    (words,) = counts
    return words if lived.all_deliveries == 1 else f"each {words}"


def outcome_in_words(lived: Lived, name: Callable[[str], str]) -> str:
    """Return in words what has become of a record; empty if that is open."""
    if lived.outcome is None:
        return ""
    facts = {
        "member": name(lived.member_id),
        "outcome_us": lived.outcome_us,
        "deliveries": lived.all_deliveries,
        "ends": ends_in_words(lived, name) or None,
        "times": lived.all_deliveries or None,
        "never": None if lived.all_deliveries else "never",
    }
    dead = ", handed to the dead-letter queue" if lived.is_dead_letter else ""
    return sentence(OUTCOME_SENTENCES[lived.outcome], facts, None) + dead
