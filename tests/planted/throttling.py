"""More bugs of a leader's side: which records of a batch that keeps failing are delivered, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sharestate.testing.record_model.in_flight import ModelBatch
from sharestate.testing.record_model.model import RecordModel


class RoundsTheThresholdDown(RecordModel):
    """Throttling begins one delivery too early if the delivery limit is odd: half of it is rounded down."""

    def _threshold(self) -> int:
        return max(2, int(self.config["delivery_count_limit"]) // 2)


class SkipsLastAttempts(RecordModel):
    """A record before its last delivery is skipped for those after it, instead of ending what is delivered."""

    def _choose(self, batch: ModelBatch, offsets: list[int], room: int | None) -> list[int]:
        last = self.config["delivery_count_limit"] - 1
        free = [offset for offset in offsets if self._is_free(offset)]
        if free and self.records[free[0]].count < last:
            offsets = [offset for offset in free if self.records[offset].count != last]
        return super()._choose(batch, offsets, room)


class ReleasesByPrefix(RecordModel):
    """The session of a member that leaves is closed for members too whose id begins with its id."""

    def _release(self, request: Any) -> Any:  # noqa: ANN401 - JSON
        for member in {record.member for record in self.records.values()}:
            if member.startswith(request["member"]) and member != request["member"]:
                super()._release({**request, "member": member})
        return super()._release(request)


BUGS: Final[Mapping[str, type[RecordModel]]] = {
    "threshold rounded down": RoundsTheThresholdDown,
    "last attempt skipped": SkipsLastAttempts,
    "session closed by prefix": ReleasesByPrefix,
}
