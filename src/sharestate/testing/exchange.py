"""One request with its response and what was before, as the rules and the sightings look at it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from sharestate.conversation.traces import Header, write_trace
from sharestate.testing.operations import converse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sharestate.testing.world import Request, Response, Steps

TERMINAL: Final = frozenset({"ACKNOWLEDGED", "ARCHIVED"})
"""The record states that are never left."""


NO_RESPONSE: Final[dict[str, Any]] = {"result": {"raised": None}, "events": [], "state": None}
"""What a trace shows for a request that its peer did not survive."""


@frozen
class Cell:
    """What a response says of one record in flight."""

    state: str
    """The name of its RecordState."""

    delivery_count: int
    """How often it was delivered. [deliveries]"""

    member: str
    """Who holds it; empty for nobody."""

    lock_deadline_ms: int | None
    """When its acquisition lock lapses; None without a lock. [ms]"""

    flags: str
    """``o``: a write is in flight, ``x``: the lock has fired, ``t``: archived for good."""

    @property
    def record(self) -> tuple[str, int, str]:
        """What a member and an administrator can tell of the record: all but locks and flags."""
        return self.state, self.delivery_count, self.member


@frozen(kw_only=True)
class Exchange:
    """A request, its response, and the state before."""

    request: Request
    """What was asked."""

    response: Response
    """What was answered; it must not be quiet."""

    before: dict[str, Any] | None
    """The state before, as the response before gave it; None in front of an ``open``."""

    @property
    def op(self) -> str:
        """The request's name."""
        return str(self.request["op"])

    @property
    def after(self) -> dict[str, Any]:
        """The state after it."""
        state: dict[str, Any] = self.response["state"]
        return state

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
        """The error that a returned future has failed with at once."""
        status = self.result.get("status") if isinstance(self.result, dict) else None
        return status if isinstance(status, dict) else None

    @property
    def writes(self) -> list[dict[str, Any]]:
        """The writes that were issued."""
        return [event[1] for event in self.response["events"] if event[0] == "write"]

    @property
    def same_partition(self) -> bool:
        """Whether *before* and *after* are of one share partition, initialised or not in between."""
        return self.before is not None and self.op != "open"


def records(state: dict[str, Any] | None) -> dict[int, Cell]:
    """Return what *state* says of each record in flight, by its offset."""
    return dict(_each_record(state)) if state else {}


def _each_record(state: dict[str, Any]) -> Iterator[tuple[int, Cell]]:
    for batch in state["batches"]:
        for first, last, cell in batch_runs(batch):
            made = Cell(*cell)
            for offset in range(first, last + 1):
                yield offset, made


def batch_runs(batch: list[Any]) -> list[list[Any]]:
    """
    Return the runs of equal cells of a batch in a response: one if it is whole.

    >>> batch_runs([0, 4, ["AVAILABLE", 1, "", None, ""]])
    [[0, 4, ['AVAILABLE', 1, '', None, '']]]
    """
    runs: list[list[Any]] = batch[2] if len(batch) > 3 else [batch]  # noqa: PLR2004 - the fourth says "per_offset"
    return runs


def exchanges(sequence: Steps[None], answer: Callable[[Request], Response]) -> Iterator[Exchange]:
    """Have every request of *sequence* answered, and yield what was exchanged."""
    before = None
    for request, response in converse(sequence, answer):
        yield Exchange(request=request, response=response, before=None if request["op"] == "open" else before)
        before = response.get("state")


def trace(name: str, conversation: Iterable[Exchange], unanswered: Iterable[Request] = ()) -> str:
    """
    Return *conversation* as a trace file, for ``sharestate replay``; requests that are *unanswered* come last.

    >>> print(trace("empty", []), end="")
    {"trace":1,"source":"sharestate","name":"empty","status":"FAILED","partitions":1,"calls":0,"flags":[]}
    """
    steps = [(exchange.request, exchange.response) for exchange in conversation]
    steps += [(request, NO_RESPONSE) for request in unanswered]
    header = Header(source="sharestate", name=name, status="FAILED", partitions=1, calls=len(steps))
    stream = StringIO()
    write_trace(stream, header, steps)
    return stream.getvalue()
