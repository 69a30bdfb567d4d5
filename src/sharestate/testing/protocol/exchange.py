"""A request with its response and the state before: what invariants and *sometimes* properties look at."""

from __future__ import annotations

from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from sharestate.conversation.traces import TraceHeader, write_trace
from sharestate.testing.generator.operations import converse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sharestate.testing.generator.surroundings import Request, Response, Steps

TERMINAL: Final = frozenset({"ACKNOWLEDGED", "ARCHIVED"})
"""The names of the terminal record states."""

NO_RESPONSE: Final[dict[str, Any]] = {"result": {"raised": None}, "events": [], "state": None}
"""The response in a trace to a request at which the server under test raised an error."""


@frozen
class InFlightRecord:
    """
    One record in flight, as a response describes it.

    Attributes:
        state: The name of its RecordState.
        delivery_count: The delivery count. [deliveries]
        member: The member that holds it, or an empty string.
        lock_deadline_ms: The time at which its acquisition lock expires; None without a lock. [ms]
        flags: ``o``: a write is pending; ``x``: its lock has expired meanwhile; ``t``: archived, even if the write
            fails.
    """

    state: str
    delivery_count: int
    member: str
    lock_deadline_ms: int | None
    flags: str

    @property
    def visible(self) -> tuple[str, int, str]:
        """State, delivery count and member: all but lock and flags."""
        return self.state, self.delivery_count, self.member


@frozen(kw_only=True)
class Exchange:
    """
    A request, its response, and the state before.

    Attributes:
        request: The request.
        response: The response, with the state: the request must not be quiet.
        before: The state in the response before; None for an ``open``.
    """

    request: Request
    response: Response
    before: dict[str, Any] | None

    @property
    def op(self) -> str:
        """The request's name."""
        return str(self.request["op"])

    @property
    def after(self) -> dict[str, Any]:
        """
        The state after the request.

        Raises:
            LookupError: The response shows none.
        """
        state: dict[str, Any] | None = self.response.get("state")
        if state is None:
            message = "the response shows no state, which invariants look at: compare() does without, at level answers"
            raise LookupError(message)
        return state

    @cached_property
    def records_before(self) -> Mapping[int, InFlightRecord]:
        """The records in flight before the request, by offset; none before an ``open``."""
        return records(self.before)

    @cached_property
    def records_after(self) -> Mapping[int, InFlightRecord]:
        """The records in flight after the request, by offset; a LookupError like that of ``after``."""
        return records(self.after)

    @property
    def result(self) -> Any:  # noqa: ANN401 - a result may be anything
        """The result."""
        return self.response["result"]

    @property
    def acquired(self) -> list[list[int]]:
        """The ranges that were acquired."""
        return self.result["acquired"] if self.op == "acquire" and "acquired" in self.result else []

    @property
    def error(self) -> dict[str, Any] | None:
        """The error of a future that has failed already when the response was made."""
        status = self.result.get("status") if isinstance(self.result, dict) else None
        return status if isinstance(status, dict) else None

    @property
    def writes(self) -> list[dict[str, Any]]:
        """The writes that were issued."""
        return [event[1] for event in self.response["events"] if event[0] == "write"]

    @property
    def dead_letters(self) -> list[dict[str, Any]]:
        """The requests to the dead-letter queue."""
        return [event[1] for event in self.response["events"] if event[0] == "dlq"]

    @property
    def completes_write(self) -> bool:
        """True if the request answers a held write."""
        return self.op == "complete" and self.request.get("write") not in {None, "read"}

    @property
    def completes_dead_letter(self) -> bool:
        """True if the request answers what the dead-letter queue holds."""
        return self.op == "complete" and "dlq" in self.request

    @property
    def same_partition(self) -> bool:
        """True if *before* and *after* are states of the same share partition."""
        return self.before is not None and self.op != "open"


def records(state: dict[str, Any] | None) -> dict[int, InFlightRecord]:
    """Return the records in flight in *state*, by offset."""
    return dict(_each_record(state)) if state else {}


def _each_record(state: dict[str, Any]) -> Iterator[tuple[int, InFlightRecord]]:
    for batch in state["batches"]:
        for first, last, fields in batch_runs(batch):
            record = InFlightRecord(*fields)
            for offset in range(first, last + 1):
                yield offset, record


def batch_runs(batch: list[Any]) -> list[list[Any]]:
    """
    Return the runs of equal records of a batch in a response: one if the batch is whole.

    >>> batch_runs([0, 4, ["AVAILABLE", 1, "", None, ""]])
    [[0, 4, ['AVAILABLE', 1, '', None, '']]]
    """
    runs: list[list[Any]] = batch[2] if len(batch) > 3 else [batch]  # noqa: PLR2004 - the fourth is "per_offset"
    return runs


def exchanges(sequence: Steps[None], answer: Callable[[Request], Response]) -> Iterator[Exchange]:
    """Send every request of *sequence* to *answer*, and yield the exchanges."""
    before = None
    for request, response in converse(sequence, answer):
        yield Exchange(request=request, response=response, before=None if request["op"] == "open" else before)
        before = response.get("state")


def trace(name: str, conversation: Iterable[Exchange], unanswered: Iterable[Request] = ()) -> str:
    """
    Return *conversation* as a trace file for ``sharestate replay``; *unanswered* requests come last.

    >>> print(trace("empty", []), end="")
    {"trace":1,"source":"sharestate","name":"empty","status":"FAILED","partitions":1,"calls":0,"flags":[]}
    """
    steps = [(exchange.request, exchange.response) for exchange in conversation]
    steps += [(request, NO_RESPONSE) for request in unanswered]
    header = TraceHeader(source="sharestate", name=name, status="FAILED", partitions=1, calls=len(steps))
    stream = StringIO()
    write_trace(stream, header, steps)
    return stream.getvalue()
