"""More bugs planted in the share group of `mock_share_group`: those that another leader heals."""

# ruff: noqa: D102 - a bug says in its class what its methods do

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.planted.locks import NEVER_MS
from tests.support.mock_share_group import MockRecord, MockShareGroup, MockState


class RejectedRecordTakesAPlace(MockShareGroup):
    """A rejected record takes a place among the record locks for ever."""

    rejected: int = 0

    def room(self) -> int:
        return super().room() - self.rejected

    def reject(self, offset: int, record: MockRecord) -> None:
        super().reject(offset, record)
        self.rejected += 1

    def fail_over(self) -> None:
        super().fail_over()
        self.rejected = 0


class FailedCloseForEver(MockShareGroup):
    """What a member owns that leaves while writes fail is acquired for ever."""

    def close_session(self, member: str) -> None:
        super().close_session(member)
        for record in self.log.values():
            if record.state is MockState.ACQUIRED and record.owner == member:
                record.deadline_ms = NEVER_MS


HEALED_BY_FAILOVER: Final[Sequence[type[MockShareGroup]]] = (RejectedRecordTakesAPlace, FailedCloseForEver)
