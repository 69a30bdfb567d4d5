"""A peer that has a log of its own, as brokers have: requests of the protocol bring the log with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from sharestate.error_codes import ErrorCode
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sharestate.testing.generator.surroundings import Request, Response


ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}
"""The names of the error codes."""


class OwnLogPeer(ABC):
    """
    An implementation with a log of its own, as a peer for `plain` sequences at level answers.

    Implement what it has; the rest is not compared. Records come to its log in ascending order, as soon as a fetch
    could find them. The next offset may be higher than the last one + 1, where retention was faster than everybody.
    """

    def __init__(self) -> None:
        """Begin with nothing; the first request is ``open``."""
        self._end = 0
        self._futures = 0

    @abstractmethod
    def start(self, config: dict[str, int]) -> None:
        """
        Begin with an empty log, and a group that consumes it from offset 0 on.

        *config* has ``max_record_locks`` [records], ``delivery_count_limit`` [deliveries] and
        ``record_lock_duration_ms`` [ms].
        """

    @abstractmethod
    def append(self, offset: int, *, is_aborted: bool) -> None:
        """Append a record; one *is_aborted* is of an aborted transaction, which no member may get."""

    @abstractmethod
    def fetch(self, member: str, offsets: range, max_records: int) -> Iterable[Sequence[int]]:
        """Fetch for *member* from the records with *offsets*; return (first offset, last offset, delivery count)."""

    @abstractmethod
    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int | None:
        """Acknowledge; return the error code (0 or None for none), or raise an error that has it as ``code``."""

    def advance_clock(self, ms: int) -> None:
        """Let time pass: locks expire *after* their deadline."""
        raise NotImplementedError

    def close_session(self, member: str) -> None:
        """Close the share session of *member*."""
        raise NotImplementedError

    def delete_records(self, before_offset: int) -> None:
        """Move the log start offset."""
        raise NotImplementedError

    def __call__(self, request: Request) -> Response:
        """Return the response to *request*: its result, without events and state."""
        handler = getattr(self, f"_{request['op']}", None)
        result = {"unsupported": request["op"]} if handler is None else handler(request)
        return {"result": result, "events": None, "state": None}

    def _open(self, request: Request) -> None:
        self._end = self._futures = 0
        names = ("max_record_locks", "delivery_count_limit", "record_lock_duration_ms")
        self.start({name: request["config"][name] for name in names})

    def _initialize(self, _request: Request) -> Any:  # noqa: ANN401 - JSON, here and below
        return self._future(ErrorCode.NONE)

    def _acquire(self, request: Request) -> Any:  # noqa: ANN401
        batches = request["batches"]
        is_committed = request.get("isolation") == "read_committed"
        aborted = aborted_offsets(batches, request.get("aborted") or ()) if is_committed else ()
        for offset, *_ in batches:
            if offset >= self._end:
                self.append(offset, is_aborted=offset in aborted)
                self._end = offset + 1
        if not batches:
            return {"count": 0, "acquired": []}
        offsets = range(batches[0][0], batches[-1][1] + 1)
        ranges = self.fetch(request["member"], offsets, request["max_records"])
        acquired = [[offset, offset, count] for first, last, count in ranges for offset in range(first, last + 1)]
        return {"count": len(acquired), "acquired": acquired}

    def _acknowledge(self, request: Request) -> Any:  # noqa: ANN401
        batches = [
            AcknowledgementBatch(first, last, tuple(map(AcknowledgeType, types)))
            for first, last, types in request["batches"]
        ]
        try:
            return self._future(self.acknowledge(request["member"], batches) or ErrorCode.NONE)
        except Exception as error:
            code = getattr(error, "code", None)
            if isinstance(code, int):
                return self._future(code)
            raise

    def _advance(self, request: Request) -> None:
        self.advance_clock(request["ms"])

    def _release(self, request: Request) -> Any:  # noqa: ANN401
        self.close_session(request["member"])
        return self._future(ErrorCode.NONE)

    def _log_start(self, request: Request) -> None:
        self._end = max(self._end, request["offset"])
        self.delete_records(request["offset"])

    def _future(self, code: int) -> Any:  # noqa: ANN401
        future = self._futures
        self._futures += 1
        return {
            "future": future,
            "status": "ok" if code == ErrorCode.NONE else {"error": ERROR_NAMES.get(code, str(code))},
        }


def aborted_offsets(batches: Iterable[Sequence[Any]], aborted: Iterable[Sequence[int]]) -> frozenset[int]:
    """
    Return the offsets of aborted records among *batches*, given a fetch's list of aborted transactions.

    >>> batches = [[0, 1, {"producer_id": 1, "transactional": True, "control": None}], [2, 3]]
    >>> sorted(aborted_offsets(batches, [[1, 0]]))
    [0, 1]

    Source:
        KIP-98, "Aborted transactions"; rule 7.10.
    """
    waiting = sorted((offset, producer) for producer, offset in aborted)
    aborting: set[int] = set()
    found: set[int] = set()
    for first, last, *attributes in batches:
        while waiting and waiting[0][0] <= last:
            aborting.add(waiting.pop(0)[1])
        if not attributes:
            continue
        producer = attributes[0]["producer_id"]
        if str(attributes[0]["control"]).upper() == "ABORT":
            aborting.discard(producer)
        elif attributes[0]["transactional"] and producer in aborting:
            found.update(range(first, last + 1))
    return frozenset(found)
