"""
Kafka's own hash table, from which the group coordinator reads groups and members in an order of its own.

Entries go into a slot by the highest bits of their mixed hash, and those of a slot are read from the last that has come
to the first. As slots are split when the table grows, the order of all is that of the mixed hash, to as many bits as
there are.

Source:
    BaseHashTable, SnapshottableHashTable, TimelineHashMap (Kafka 4.3.1; the same in 4.2.1 and 4.4.0).
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from attrs import define, field

from sharestate.coordinator.placement import java_hash

V = TypeVar("V")

_MIN_CAPACITY: Final = 2
"""The slots of a table that is made for nothing (``MIN_CAPACITY``)."""

_MIX: Final = -7046029254386353131
"""The factor by which hashes are mixed (``findSlot``)."""


@define
class TimelineMap(Generic[V]):
    """Values by texts, which can be read in the order of Kafka's table."""

    values: dict[str, V] = field(factory=dict)
    """The values, in the order in which their keys came."""

    capacity: int = field(default=_MIN_CAPACITY, eq=False)
    """The slots of Kafka's table: what it once had, so a table that was filled otherwise may have more."""

    def __setitem__(self, key: str, value: V) -> None:
        """Store *value*, as ``put`` does: the table grows before it looks whether it has the key."""
        self.capacity = self._capacity_to_put()
        self.values[key] = value

    def in_order(self, added: str | None = None) -> list[str]:
        """
        Return the keys in the order of Kafka's table, as it is or will be with *added*.

        Complexity:
            O(n log n).
        """
        capacity = self.capacity if added is None else self._capacity_to_put()
        shift = 65 - capacity.bit_length()
        keys = list(self.values)
        if added is not None and added not in self.values:
            keys.append(added)
        keys.reverse()  # what has come last into a slot is read first
        return sorted(keys, key=lambda key: (java_hash(key) * _MIX) % 2**64 >> shift)

    def _capacity_to_put(self) -> int:
        return self.capacity * 2 if (len(self.values) + 1) * 3 > self.capacity * 4 else self.capacity
