"""What a share coordinator would have stored, rebuilt from the writes that succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import Factory, define

if TYPE_CHECKING:
    from collections.abc import Iterator


@define
class StoredState:
    """
    The persisted start offset and, for each offset that was written, its state and delivery count.

    >>> stored = StoredState(state_epoch=2)
    >>> stored.write({"start_offset": 0, "state_batches": [[0, 4, 2, 1], [5, 9, 0, 1]]})
    >>> stored.write({"start_offset": 3, "state_batches": [[5, 6, 2, 2]]})
    >>> stored.as_answer()["state_batches"]
    [[3, 4, 2, 1], [5, 6, 2, 2], [7, 9, 0, 1]]

    Source:
        PersisterStateBatchCombiner (Kafka 4.3.1): the higher (delivery count, state) wins, equal neighbours merge.
    """

    start_offset: int = -1
    """The SPSO, or -1 as long as nothing was written."""

    state_epoch: int = 0
    """The epoch of the state."""

    records: dict[int, tuple[int, int]] = Factory(dict)
    """Delivery count and state of each offset."""

    def write(self, write: dict[str, Any]) -> None:
        """Take over a write that was answered with success; its fields are those of the line protocol."""
        self.start_offset = max(self.start_offset, write["start_offset"])
        for first, last, state, delivery_count in write["state_batches"]:
            for offset in range(first, last + 1):
                new = (delivery_count, state)
                self.records[offset] = max(new, self.records.get(offset, new))
        self.records = {offset: record for offset, record in self.records.items() if offset >= self.start_offset}

    def as_answer(self) -> dict[str, Any]:
        """Return what the persister answers to a read now."""
        return {
            "state_epoch": self.state_epoch,
            "start_offset": self.start_offset,
            "state_batches": list(self._runs()),
        }

    def _runs(self) -> Iterator[list[int]]:
        run: list[int] = []
        for offset in sorted(self.records):
            delivery_count, state = self.records[offset]
            if run and run[1:] == [offset - 1, state, delivery_count]:
                run[1] = offset
                continue
            if run:
                yield run
            run = [offset, offset, state, delivery_count]
        if run:
            yield run
