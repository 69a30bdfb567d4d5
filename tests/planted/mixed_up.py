"""Bugs planted in the share partitions of `mock_neighbours`: groups or partitions are mixed up."""

# ruff: noqa: D102 - a bug says in its class what its method does

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sharestate.testing.groups import AcknowledgementBatch
from tests.support.mock_neighbours import MockNeighbours


class SessionsByMember(MockNeighbours):
    """A member that closes its session closes that of the member of the same name in another group."""

    def close_session(self, member: str) -> None:
        for each in self.all.values():
            each.close_session(member)


class AcknowledgementsByOffset(MockNeighbours):
    """An acknowledgement at one partition is one at the same offsets of the group's other partitions, too."""

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        code = super().acknowledge(member, batches)
        for (group, partition), each in self.all.items():
            if code == 0 and group == self.group and partition != self.partition:
                each.acknowledge(member, batches)
        return code


class StatesByPartition(MockNeighbours):
    """Groups store their states at the same place, so that a new leader may find that of another group."""

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        code = super().acknowledge(member, batches)
        for each in self.of_partition():
            each.stored.update(self.here.stored)
        return code


MIXED_UP: Final[Sequence[type[MockNeighbours]]] = (SessionsByMember, AcknowledgementsByOffset, StatesByPartition)
