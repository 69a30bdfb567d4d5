"""
What a share group's clients know: one entry for each offset, and what follows from them.

Plain ``if`` and ``elif``, and no code of the library: what the library has wrong is not wrong here as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import copy
from typing import Final, Self

from sharestate.error_codes import ErrorCode
from sharestate.testing.groups.known_records import (
    ACQUIRED,
    AVAILABLE,
    RECORD,
    TERMINAL,
    Content,
    GroupHappening,
    KnownRecord,
)
from sharestate.testing.groups.settings import READ_COMMITTED, GroupSettings

MOST_HAPPENINGS: Final = 100
"""How much is kept of what has happened: more than a run has events. [events]"""


class ClientKnowledge:
    """
    All that clients of one share group know of one topic partition.

    Args:
        settings: The settings of the group.
        clock_tolerance_ms: By how much the implementation's time may differ from this one's. [ms]
        delivers_ranges: Whether responses are ranges of acquired offsets, in which control records and holes of the log
            may be, as a broker answers; else they are the records that an application gets.
        is_record_limit: Whether a response has at most as many records as were asked for.
        reads_one_batch: Whether a fetch may find nothing because it looks at one batch of the log only.
    """

    def __init__(
        self,
        settings: GroupSettings,
        *,
        clock_tolerance_ms: int = 0,
        delivers_ranges: bool = False,
        is_record_limit: bool = False,
        reads_one_batch: bool = False,
    ) -> None:
        """Begin with an empty log."""
        self.settings = settings
        self.clock_tolerance_ms = clock_tolerance_ms
        self.delivers_ranges = delivers_ranges
        self.is_record_limit = is_record_limit
        self.reads_one_batch = reads_one_batch
        self.now_ms = 0
        self.log_start = 0
        self.log_end = 0
        self.leader = 0
        self.writes_fail = False
        self.records: dict[int, KnownRecord] = {}
        self.shared: set[int] = set()  # offsets of which other knowledge has the same record
        self.largest_batch = 1
        self.happenings: deque[GroupHappening] = deque(maxlen=MOST_HAPPENINGS)

    def copy(self) -> Self:
        """Return the same knowledge, which changes by itself: what both know of a record is copied when it changes."""
        other = copy(self)
        other.records = self.records.copy()
        self.shared, other.shared = {*self.records}, {*self.records}
        other.happenings = self.happenings.copy()  # none of them changes once something else happens
        return other

    def _changing(self, offset: int) -> KnownRecord:
        """Return a record that is there, to change it: nobody else has it."""
        if offset in self.shared:
            self.shared.remove(offset)
            self.records[offset] = self.records[offset].copy()
        return self.records[offset]

    # ---- questions

    def open_transactions(self) -> dict[str, int]:
        """Return the first offset of each transaction that has not ended, by producer."""
        first: dict[str, int] = {}
        for record in self.records.values():
            if record.producer and not record.is_aborted:
                first.setdefault(record.producer, record.offset)
        return first

    def owned(self, member: str) -> list[int]:
        """Return the offsets that *member* owns for certain, ascending."""
        return sorted(
            [offset for offset, record in self.records.items() if record.owner == member and self._is_acquired(record)]
        )

    def owners(self) -> set[str]:
        """Return the members that own something for certain."""
        return {record.owner for record in self.records.values() if record.owner and self._is_acquired(record)}

    def is_renewal_of_use(self, member: str) -> bool:
        """Return whether a lock of *member* was not taken or renewed just now."""
        latest_ms = self._deadline_ms + self.clock_tolerance_ms
        return any(self.records[offset].latest_ms < latest_ms for offset in self.owned(member))

    def deadlines_ms(self) -> set[tuple[int, int]]:
        """Return from when on, and after when, each lock expires, or would have expired without a renewal. [ms]"""
        acquired = [record for record in self.records.values() if record.state is ACQUIRED]
        deadlines = {(record.earliest_ms, record.latest_ms) for record in acquired}
        return deadlines | {(record.renewed_ms, record.renewed_ms) for record in acquired if record.renewed_ms}

    def verdicts(self, member: str, types: Mapping[int, str]) -> dict[int, bool | None]:
        """Return whether *member* may acknowledge each offset with its type; None where that is open."""
        first_owed = self._first_owed()
        return {offset: self._verdict(member, offset, type_, first_owed) for offset, type_ in types.items()}

    def _verdict(self, member: str, offset: int, type_: str, first_owed: int) -> bool | None:
        record = self.records.get(offset)
        if offset >= self.log_end:
            return False
        if record is None or offset < self.log_start:
            return None
        if record.state is ACQUIRED and record.owner == member:
            if not self._is_acquired(record):
                return None
            return type_ != "RENEW" or self.settings.renew_acknowledge_enable
        if record.content is Content.HOLE:  # a broker passes what it has nothing of, between what it has
            return None
        return None if offset < first_owed else False

    def left_over(self) -> list[KnownRecord]:
        """Return the records that have to be delivered still."""
        return [
            record
            for record in self.records.values()
            if record.state is not TERMINAL
            and record.content is RECORD
            and not self.may_be_terminal(record)
            and (record.producer == "" or not self._is_read_committed)
        ]

    def waiting(self) -> list[int]:
        """
        Return the offsets that a member gets if it goes on fetching: nobody owns them, and there is room for them.

        None of them if writes fail, since a lock that expires then may come back with a write that fails.
        """
        is_room = self.log_end <= self.settings.max_record_locks
        if not is_room or self.writes_fail:
            return []
        opened = self.open_transactions().values() if self._is_read_committed else ()
        last_stable_offset = min(opened, default=self.log_end)
        return [
            record.offset
            for record in self.left_over()
            if record.state is AVAILABLE and not record.may_be_unwritten and record.offset < last_stable_offset
        ]

    def empty_fetches(self) -> int:
        """
        Return how many fetches in a row have to bring nothing for the next one to bring nothing either.

        One may only find out that the log start has moved. Others pass what lies before what is left over and is not to
        be delivered: a log batch each, or as few records as there is room for.
        """
        if self.reads_one_batch:
            return 2 + len({record.batch for record in self.records.values()})
        last = max((record.offset for record in self.left_over()), default=-1)
        passed = [
            record
            for record in self.records.values()
            if record.offset < last and (record.content is not RECORD or record.is_aborted)
        ]
        return 2 + len({record.batch for record in passed}) + len(passed) // self.settings.max_record_locks

    # ---- what may be

    @property
    def _is_read_committed(self) -> bool:
        return self.settings.isolation_level == READ_COMMITTED

    def _is_acquired(self, record: KnownRecord) -> bool:
        """Return whether a record is acquired for certain."""
        return record.state is ACQUIRED and self.now_ms < record.earliest_ms

    def _may_be_owner(self, member: str, offset: int) -> bool:
        record = self.records.get(offset)
        return record is not None and record.state is ACQUIRED and record.owner == member

    def may_be_terminal(self, record: KnownRecord) -> bool:
        """Return whether nobody need get a record any more."""
        if record.state is TERMINAL or record.content is not RECORD or record.offset < self.log_start:
            return True
        if (record.is_aborted and self._is_read_committed) or record.may_be_terminal:
            return True
        return record.most >= self.settings.delivery_count_limit and not self._is_acquired(record)

    def _first_owed(self) -> int:
        """Return the highest offset at which the SPSO may lie: below it a broker ignores acknowledgements."""
        owed = (
            record.offset
            for record in self.records.values()
            if record.state is not TERMINAL and not self.may_be_terminal(record)
        )
        return next(owed, self.log_end)  # records are in the order of their offsets, but for holes

    def _is_refusal(self, code: int, verdicts: Mapping[int, bool | None]) -> bool:
        if code == ErrorCode.INVALID_REQUEST:  # what no leader has delivered yet lies past what is in flight
            return any(
                offset not in self.records or self.records[offset].leader != self.leader
                for offset, may in verdicts.items()
                if may is not True
            ) or any(may is None for may in verdicts.values())
        return code == ErrorCode.INVALID_RECORD_STATE

    def _why_not(self, member: str, offset: int) -> str:
        """Return why *member* may not acknowledge *offset*."""
        if self._may_be_owner(member, offset):
            return "the group has renew_acknowledge_enable off"
        return f"it does not own {offset}"

    def _takes_a_lock(self, record: KnownRecord) -> bool:
        """Return whether a record counts among those that are acquired: nothing else of a range does."""
        return record.content is RECORD and record.offset >= self.log_start and self._is_acquired(record)

    @property
    def _deadline_ms(self) -> int:
        return self.now_ms + self.settings.lock_duration_ms
