"""
The order in which the timer of Kafka's tests runs what is due at the same time.

A broker's timer has no such order to rely on. The driver has this one, so a comparison with it needs it: a heap in
which those with the same deadline stand as earlier insertions and removals have left them.

Source:
    MockCoordinatorTimer (Kafka 4.3.1), java.util.PriorityQueue (OpenJDK 17).
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import define, field

Key: TypeAlias = tuple[str, str]
"""A group and a member of it."""

_Timeout: TypeAlias = tuple[int, Key]


@define
class MockTimer:
    """Timers by key, in a heap of deadlines."""

    _heap: list[_Timeout] = field(factory=list)
    _by_key: dict[Key, _Timeout] = field(factory=dict)

    def schedule(self, key: Key, deadline_ms: int) -> None:
        """Set a timer, in the place of the key's last one."""
        self.cancel(key)
        timeout = deadline_ms, key
        self._by_key[key] = timeout
        self._heap.append(timeout)
        self._sift_up(len(self._heap) - 1, timeout)

    def cancel(self, key: Key) -> None:
        """Take a timer away, if there is one (``removeAt``)."""
        timeout = self._by_key.pop(key, None)
        if timeout is None:
            return
        index = self._heap.index(timeout)
        moved = self._heap.pop()
        if index < len(self._heap):
            self._sift_down(index, moved)
            if self._heap[index] is moved:
                self._sift_up(index, moved)

    def due(self, now_ms: int) -> list[Key]:
        """Take the timers that are due, in their order (``poll``)."""
        keys = []
        while self._heap and self._heap[0][0] <= now_ms:
            keys.append(self._heap[0][1])
            del self._by_key[keys[-1]]
            moved = self._heap.pop()
            if self._heap:
                self._sift_down(0, moved)
        return keys

    def _sift_up(self, index: int, timeout: _Timeout) -> None:
        while index > 0:
            parent = (index - 1) // 2
            if timeout[0] >= self._heap[parent][0]:
                break
            self._heap[index] = self._heap[parent]
            index = parent
        self._heap[index] = timeout

    def _sift_down(self, index: int, timeout: _Timeout) -> None:
        size = len(self._heap)
        while index < size // 2:
            child = 2 * index + 1
            if child + 1 < size and self._heap[child][0] > self._heap[child + 1][0]:
                child += 1
            if timeout[0] <= self._heap[child][0]:
                break
            self._heap[index] = self._heap[child]
            index = child
        self._heap[index] = timeout
