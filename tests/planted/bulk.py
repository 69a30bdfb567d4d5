"""More bugs planted in the share group of `mock_share_group`: those that show where there are many records."""

# ruff: noqa: D102 - a bug says in its class what its methods do

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from tests.support.mock_share_group import MockRecord, MockShareGroup, MockState

HUNDRED: Final = 100
"""As many as somebody thought would do. [records]"""


class HundredOffsetsRead(MockShareGroup):
    """A fetch reads a hundred offsets from the first record on that is not done, also those that others have."""

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        undone = (each for each in super().readable() if each[1].state is not MockState.TERMINAL)
        return islice(undone, HUNDRED)


class HundredReleasedByClosing(MockShareGroup):
    """Of what a member owns that leaves a hundred records become available, and the others when their locks expire."""

    def close_session(self, member: str) -> None:
        owned = [record for record in self.log.values() if record.owner == member]
        for record in owned[HUNDRED:]:
            record.owner = f"{member}, gone"
        super().close_session(member)


MANY: Final[Sequence[type[MockShareGroup]]] = (HundredOffsetsRead, HundredReleasedByClosing)
