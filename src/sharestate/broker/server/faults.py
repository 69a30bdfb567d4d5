"""
Faults: what goes wrong on purpose, as values; a table of them, and what is held back because of them.

A fault names an API and says what becomes of its requests or of their answers. Those of the five APIs of the share
coordinator (InitializeShareGroupState and so on) are about what the node asks its persister; all others are about what
clients ask.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen, validators

from sharestate.broker.server.api_versions import ANNOUNCED
from sharestate.broker.server.clocks import Clock, Timer
from sharestate.errors import ErrorCode
from sharestate.persister.requests import (
    DeleteStateParameters,
    InitializeStateParameters,
    Parameters,
    ReadStateParameters,
    ReadSummaryParameters,
    WriteStateParameters,
)
from sharestate.values.checks import a_callable, instance, number, refuse

STATE_APIS: Final[Mapping[type[Parameters[Any, Any]], str]] = MappingProxyType(
    {
        InitializeStateParameters: "InitializeShareGroupState",
        ReadStateParameters: "ReadShareGroupState",
        WriteStateParameters: "WriteShareGroupState",
        DeleteStateParameters: "DeleteShareGroupState",
        ReadSummaryParameters: "ReadShareGroupStateSummary",
    }
)
"""What Kafka calls the requests of a persister."""

_APIS: Final = frozenset(api.name for api in ANNOUNCED.values())


# ---- what is done


@frozen
class Fail:
    """
    Answer with an error.

    Attributes:
        error_code: The error, such as ``ErrorCode.COORDINATOR_NOT_AVAILABLE``.
        is_carried_out: Whether the request is carried out all the same: its answer is lost, and not the request.
    """

    error_code: int
    is_carried_out: bool = False


@frozen
class Delay:
    """
    Answer later; the request is carried out at once.

    Attributes:
        delay_ms: How much later, by the broker's clock. [ms]
    """

    delay_ms: int = field(validator=number(0))


@frozen
class Drop:
    """Do not answer; the request is carried out. Its connection stays open, and nothing more is read from it."""


@frozen
class Disconnect:
    """Close the connection instead of answering; the request is carried out."""


@frozen
class Reorder:
    """
    Hold answers back, and give them in another order, which the seed decides; the requests are carried out at once.

    Attributes:
        count: How many are held back before they are given. [answers]
        at_most_ms: How long the first of them is held back at most, by the broker's clock. [ms]
    """

    count: int = field(default=2, validator=number(2, 1_000))
    at_most_ms: int = field(default=1_000, validator=number(0))


Action: TypeAlias = Fail | Delay | Drop | Disconnect | Reorder
"""What becomes of a request, or of its answer."""


# ---- of what


@frozen(kw_only=True)
class SeenRequest:
    """
    A request, as faults see it.

    Attributes:
        api: Kafka's name of its API, such as ``"ShareFetch"``.
        group_id: The group that it names; None if it names none.
        partitions: The partitions that it names, each with the name of the topic; its id if there is no such topic.
        client_id: What the client calls itself; None of what the node asks its persister.
        request: The request: its fields by the names of kio's schemas, or what the persister is asked.
    """

    api: str
    group_id: str | None = None
    partitions: frozenset[tuple[str, int]] = frozenset()
    client_id: str | None = None
    request: Any = None


@frozen(kw_only=True)
class Fault:
    """
    What goes wrong, and when: a row of the table of faults.

    Attributes:
        on: Kafka's name of the API, such as ``"WriteShareGroupState"``, ``"ShareFetch"`` or ``"Produce"``.
        action: What becomes of it.
        group_id: Only requests of this group; None for any.
        topic: Only requests that name a partition of this topic; None for any.
        partition: Only requests that name a partition with this index; None for any.
        client_id: Only requests of clients that call themselves so; None for any.
        where: Only requests of which this is true; None for any.
        skip: How many such requests go well first. [requests]
        times: To how many requests it happens then; None for all. [requests]
        probability: To which part of them it happens, as the seed decides.

    Raises:
        MalformedInputError: There is no such API, an argument is of the wrong type or out of bounds, or a connection is
            to be closed where there is none.
    """

    on: str = field(validator=instance(str))
    action: Action = field(validator=validators.instance_of((Fail, Delay, Drop, Disconnect, Reorder)))
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    where: Callable[[SeenRequest], object] | None = None
    skip: int = field(default=0, validator=number(0))
    times: int | None = field(default=None, validator=validators.optional(number(0)))
    probability: float = field(default=1.0, validator=[validators.ge(0), validators.le(1)])

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.on not in _APIS:
            refuse(f"expected the name of an API, such as 'ShareFetch', got {self.on!r}", "on")
        if self.on in STATE_APIS.values() and isinstance(self.action, Disconnect):
            refuse("the node and its persister have no connection that could be closed", "action")
        if self.where is not None:
            a_callable(self.where, "where")

    def concerns(self, seen: SeenRequest) -> bool:
        """Return whether it is about *seen*, however often it has happened."""
        return (
            self.on == seen.api
            and self.group_id in {None, seen.group_id}
            and self.client_id in {None, seen.client_id}
            and (self._names_no_partition or any(map(self._is_of, seen.partitions)))
            and (self.where is None or bool(self.where(seen)))
        )

    @property
    def _names_no_partition(self) -> bool:
        return self.topic is None and self.partition is None

    def _is_of(self, topic_partition: tuple[str, int]) -> bool:
        topic, partition = topic_partition
        return self.topic in {None, topic} and self.partition in {None, partition}


# ---- the table


@define(eq=False)
class AppliedFault:
    """
    A fault that is in the table, or was.

    Attributes:
        fault: The fault.
        seen: How many requests it was about. [requests]
        happened: To how many of them it has happened. [requests]
    """

    fault: Fault
    _table: Faults = field(repr=False)
    seen: int = 0
    happened: int = 0
    _held: list[Callable[[], None]] = field(factory=list, repr=False)
    _timer: Timer | None = field(default=None, repr=False)

    def take(self, seen: SeenRequest) -> bool:
        """Return whether it happens to *seen*."""
        fault = self.fault
        if not fault.concerns(seen):
            return False
        self.seen += 1
        if self.seen <= fault.skip or (fault.times is not None and self.happened >= fault.times):
            return False
        if fault.probability < 1 and self._table.random.random() >= fault.probability:
            return False
        self.happened += 1
        return True

    def hold(self, answer: Callable[[], None], clock: Clock) -> None:
        """Hold *answer* back until it is time to give it."""
        match self.fault.action:
            case Delay(delay_ms):
                clock.call_at(clock.now_ms() + delay_ms, answer)
            case Reorder(count, at_most_ms):
                if not self._held:
                    self._timer = clock.call_at(clock.now_ms() + at_most_ms, self.release)
                self._held.append(answer)
                if len(self._held) >= count:
                    self.release()
            case _:  # dropped
                pass

    def release(self) -> None:
        """Give the answers that are held back to be reordered."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        held, self._held = self._held, []
        self._table.random.shuffle(held)
        self._table.give(held)


class Faults:
    """
    The table of faults: of those that are about a request, the first one that still happens does.

    Args:
        seed: Decides which requests a fault happens to, and in which order answers come.

    Attributes:
        random: What the seed decides.
    """

    def __init__(self, seed: int = 0) -> None:
        """Begin with none."""
        self.random = Random(seed)  # noqa: S311 - a seed makes a failure come again
        self._rows: dict[AppliedFault, None] = {}
        self._due: deque[Callable[[], None]] = deque()

    def __bool__(self) -> bool:
        """Return whether there is one."""
        return bool(self._rows)

    def apply(self, fault: Fault) -> AppliedFault:
        """Put *fault* into the table, behind those that are there."""
        applied = AppliedFault(fault, self)
        self._rows[applied] = None
        return applied

    def happening_to(self, seen: SeenRequest) -> AppliedFault | None:
        """Return what happens to a request; None if all goes well."""
        return next((row for row in self._rows if row.take(seen)), None)

    def remove(self, applied: AppliedFault) -> None:
        """Take a fault out: what it holds back to be reordered is given; what is delayed comes when it is due."""
        if applied in self._rows:
            del self._rows[applied]
            applied.release()

    def give(self, answers: Iterable[Callable[[], None]]) -> None:
        """Have *answers* given one after the other: what follows from one comes before the next."""
        is_idle = not self._due
        self._due.extend(answers)
        if is_idle and self._due:
            asyncio.get_running_loop().call_soon(self._go_on)

    def give_next(self) -> bool:
        """Give the next answer; False if there is none."""
        if not self._due:
            return False
        self._due.popleft()()
        return True

    def _go_on(self) -> None:
        if self.give_next():
            asyncio.get_running_loop().call_soon(self._go_on)


SESSION_LIMIT: Final = Fault(
    on="ShareFetch",
    action=Fail(ErrorCode.SHARE_SESSION_LIMIT_REACHED),
    where=lambda seen: seen.request["share_session_epoch"] == 0,
)
"""No share session can be opened, as if the broker's cache of them were full."""
