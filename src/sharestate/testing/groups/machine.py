"""
A test of share groups from their clients' side: inherit ``ShareGroupMachine`` and implement a few methods.

It is a state machine of Hypothesis (extra ``testing``): members fetch and acknowledge, time passes, transactions abort,
the leader fails over, in random order, and every response is judged by what clients can rely on: see ``Guarantee``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Final, NoReturn, TypeVar

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import initialize, rule
    from hypothesis.strategies import DrawFn, SearchStrategy
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.groups needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.audit.guarantees import GuaranteeBrokenError
from sharestate.error_codes import ErrorCode
from sharestate.testing.coroutines import CoroutineRunner, at_once, overlapping
from sharestate.testing.groups.allowances import Allowance
from sharestate.testing.groups.event_checks import EVENT_CHECKS
from sharestate.testing.groups.events import EVERYTHING, ClientEvents, Pick, Range, left_out
from sharestate.testing.groups.knowledge import ClientKnowledge
from sharestate.testing.groups.known_partitions import (
    KnownPartition,
    concerned,
    known_partitions_of,
    named_at,
    numbered_at,
)
from sharestate.testing.groups.model import ClientModel, Delivery
from sharestate.testing.groups.overlaps import OVERLAPS, batches_of, by_offset, code_of
from sharestate.testing.groups.programs import passes
from sharestate.testing.groups.settings import SMALL_SETTINGS, GroupSettings
from sharestate.testing.groups.situations import situations
from sharestate.testing.program_machine import ProgramMachine
from sharestate.testing.programs import Event, ProgramPass
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.records import AcquireMode

T = TypeVar("T")


class _RunEndedError(Exception):
    """The run ends without a verdict."""


RUNS: Final = 1_600
"""Runs of a search at least, but sixteen for each example of the profile at most: they are short."""

OPTIONAL: Final = (
    "abort_transaction",
    "advance_clock",
    "close_session",
    "delete_records",
    "fail_over",
    "fail_writes",
)
"""The methods that an implementation may lack, and with them what they do."""


OVERLAPPING: Final = ("fetch", "acknowledge", "close_session", "advance_clock")
"""The methods whose calls overlap if one of them is a coroutine."""


@cache
def _indexes(count: int) -> SearchStrategy[int]:
    """Return a strategy for indexes; to make one for each event would take longer than all the rest."""
    return st.integers(0, count - 1)


def _picker(draw: DrawFn) -> Pick:
    def pick(options: Sequence[T]) -> T:
        return options[draw(_indexes(len(options)))]

    return pick


@st.composite
def _settings(draw: DrawFn) -> GroupSettings:
    """Draw the settings of the group that the machine has not declared."""
    machine: ShareGroupMachine = draw(st.runner())
    pick = _picker(draw)
    machine.pick_kinds(pick)
    return machine.pick_settings(pick)


@st.composite
def _events(draw: DrawFn) -> Event:
    """Draw the next event."""
    machine: ShareGroupMachine = draw(st.runner())
    return machine.pick_event(_picker(draw))


class ShareGroupMachine(ProgramMachine):
    """
    One share group that consumes one topic partition, as its clients see it.

    Implement ``start``, ``produce``, ``fetch`` and ``acknowledge``, and of the other methods what there is; what is not
    overridden does not happen. A method may be a coroutine: all of a machine run in one event loop. Whatever it raises
    fails the test.

    A setting of the group that is set as a class attribute is as it says; the others are drawn, small ones first. All
    of them go to ``start``.
    """

    _runs = RUNS
    _runs_for_an_example = 16
    _door = "groups"
    _event_checks = EVENT_CHECKS
    _start = "group_starts"
    _start_arguments = ("settings", "count")

    # ---- declarations

    delivery_count_limit: ClassVar[int | None] = None
    """The group's delivery count limit; None to draw it. [deliveries]"""

    lock_duration_ms: ClassVar[int | None] = 1_000
    """How long a member owns what it acquires; None to draw it. [ms]"""

    max_record_locks: ClassVar[int | None] = None
    """The most records in flight; None to draw it. [records]"""

    isolation_level: ClassVar[str | None] = None
    """READ_COMMITTED or READ_UNCOMMITTED; None to draw it."""

    renews: ClassVar[bool] = False
    """Whether members may send RENEW (KIP-1222)."""

    delivers_ranges: ClassVar[bool] = False
    """
    Whether ``fetch`` returns what was acquired, as a broker does: with transaction markers and holes of the log, which
    members acknowledge as GAP. Otherwise it returns what an application gets: records only.
    """

    acquire_mode: ClassVar[AcquireMode] = AcquireMode.BATCH_OPTIMIZED
    """What ``max_records`` means: about as many, by batches of the log, or with RECORD_LIMIT no more (KIP-1206)."""

    reads_one_batch: ClassVar[bool] = False
    """
    Whether a fetch looks at one batch of the log only, also one that is acquired: then it may bring nothing although
    there is something further on. Fetches that pass a batch of aborted records, or a marker, may bring nothing anyway.
    """

    clock_tolerance_ms: ClassVar[int] = 0
    """By how much locks may expire earlier or later than ``advance_clock`` says; more if time is real. [ms]"""

    members_overlap: ClassVar[bool] = False
    """
    Whether a member may call while an earlier call of its own has not returned. A member of Kafka has one request at a
    time on its way to a broker, and a share session refuses the second one of an epoch.
    """

    members: ClassVar[Sequence[str]] = ("m1", "m10")
    """The member ids; one of them begins as another one does, since they are no prefixes."""

    share_partitions: ClassVar[Sequence[tuple[int, int]]] = ((0, 0),)
    """
    The numbers of the group and of the partition of each share partition; half of what happens does at the first. With
    several of them ``select_share_partition`` is needed, and calls do not overlap.
    """

    allowances: ClassVar[Sequence[Allowance]] = ()
    """The known bugs: a guarantee that one of them breaks ends the run, and not the test."""

    # ---- to be implemented

    def start(self, settings: GroupSettings) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Begin with an empty log and a new group that consumes it from its beginning (auto.offset.reset=earliest)."""
        raise NotImplementedError

    def produce(self, count: int, producer: str | None) -> Iterable[int] | Awaitable[Iterable[int]]:
        """Append a batch of *count* records, in the transaction of *producer* if given; return their offsets."""
        raise NotImplementedError

    def fetch(self, member: str, max_records: int) -> Iterable[Sequence[int | None]] | Awaitable[Any]:
        """Fetch for a member, without waiting; return a Delivery, or a tuple like it, for each range."""
        raise NotImplementedError

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int | Awaitable[Any] | None:
        """Acknowledge; return the error code (0 or None for none), or raise an error that has it as ``code``."""
        raise NotImplementedError

    # ---- to be implemented if there is such a thing

    def select_share_partition(self, group: int, partition: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """
        Let the other methods be about a group and a partition from now on; the first of ``share_partitions`` at first.

        Members and producers of the same name are others in another group, and in another partition. Sessions are those
        of a group, and time, leaders and failing writes those of everybody.
        """

    def begin_transaction(self, producer: str) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Begin a transaction, before its first batch is produced; only if that does not begin it."""

    def commit_transaction(self, producer: str) -> int | Awaitable[Any] | None:
        """Commit; return the offset of the marker, or None if it is the next one."""

    def abort_transaction(self, producer: str) -> int | Awaitable[Any] | None:
        """Abort; return the offset of the marker, or None if it is the next one."""

    def close_session(self, member: str) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Close the share session of a member; its next fetch opens another."""

    def advance_clock(self, ms: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let time pass."""

    def delete_records(self, before_offset: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Move the log start offset, as retention does."""

    def fail_over(self) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let another leader take over, which knows what was persisted and nothing else."""

    def fail_writes(self) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let writes of the state fail from now on: acknowledgements get an error, and are rolled back."""

    def mend_writes(self) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let writes succeed again."""

    def stop(self) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Clean up; called once, at the end."""

    # ---- what happens

    def __init__(self) -> None:
        """Begin with nothing; the first rule starts the group."""
        super().__init__()
        self._model = ClientModel(GroupSettings())
        self._events = ClientEvents(model=self._model, members=self.members, has=frozenset(), renews=False)
        self._left_out: frozenset[int] = frozenset()
        self._known_partitions: Sequence[KnownPartition] = ()
        self._here = 0
        self._so_far: list[Event] = []
        self._runner = CoroutineRunner()
        self._passed_ms = 0
        self._is_started = False
        self._is_over = False

    @initialize(settings=_settings(), count=st.integers(1, 3))
    def group_starts(self, settings: GroupSettings, count: int) -> None:
        """Start the group, and produce a first batch."""
        self._so_far.append(("group_starts", settings, count))
        has = frozenset(name for name in OPTIONAL if getattr(type(self), name) is not getattr(ShareGroupMachine, name))
        known = ClientModel(
            settings,
            clock_tolerance_ms=self.clock_tolerance_ms,
            delivers_ranges=self.delivers_ranges,
            is_record_limit=self.acquire_mode is AcquireMode.RECORD_LIMIT,
            reads_one_batch=self.reads_one_batch,
        )
        events = ClientEvents(
            model=known,
            members=self.members,
            has=has,
            renews=self.renews,
            overlaps=any(iscoroutinefunction(getattr(self, name)) for name in OVERLAPPING),
            members_overlap=self.members_overlap,
            left_out=self._left_out,
        )
        self._known_partitions = known_partitions_of(self.share_partitions, events)
        self._model, self._events = self._known_partitions[0].model, self._known_partitions[0].events
        with suppress(_RunEndedError):
            self._call(self.start, settings)
            self._is_started = True
            self.producer_sends(count)

    @rule(event=_events())
    def happens(self, event: Event) -> None:
        """Let one of the following events happen: its name, and its arguments."""
        name, *arguments = event
        if not self._is_over:
            self._so_far.append(event)
            for noted in (name, *situations(self._model, event)):
                self.note(noted)
            with suppress(_RunEndedError):
                getattr(self, name)(*arguments)

    def elsewhere(self, number: int, event: Event) -> None:
        """Let an event happen at another share partition, by its number in ``share_partitions``."""
        self._select(number)
        self.note(event[0])
        getattr(self, event[0])(*event[1:])
        self._select(0)

    def producer_sends(self, count: int, producer: str | None = None) -> None:
        """Produce a batch, perhaps in a transaction, which begins with its first batch."""
        if producer is not None and producer not in self._model.open_transactions():
            self._call(self.begin_transaction, producer)
        offsets = self._call(self.produce, count, producer)
        self._judge(self._model.produced, offsets, producer or "")

    def transaction_ends(self, producer: str, how: str) -> None:
        """Commit or abort a transaction."""
        marker = self._call(self.commit_transaction if how == "commit" else self.abort_transaction, producer)
        self._judge(self._model.transaction_ended, producer, marker, is_committed=how == "commit")

    def member_fetches(self, member: str, max_records: int) -> list[int]:
        """Fetch for a member; return the offsets that it got."""
        return self._note_fetch(member, self._call(self.fetch, member, max_records), max_records)

    def every_member_fetches(self, max_records: int) -> None:
        """Fetch for all members: at once if ``fetch`` is a coroutine, else for one after the other."""
        returned = self._call(self._fetch_for_all, max_records)
        for member, deliveries in zip(self.members, returned, strict=True):
            self._note_fetch(member, deliveries, max_records)

    def member_fetches_all(self, member: str) -> None:
        """Fetch until that brings nothing more: what nobody owns is delivered by then."""
        waiting = self._model.waiting()
        self._fetch_until_nothing(member, self.member_fetches)
        self._judge(self._model.expect_delivered, member, waiting)

    def member_acknowledges(self, member: str, ranges: Iterable[Range]) -> None:
        """Acknowledge ranges, with one type for all offsets or one for each; it may be wrong of the member to do so."""
        ranges = [*ranges]
        code = self._call(self._answer, member, batches_of(ranges))
        self._judge(self._model.acknowledged, member, by_offset(ranges), code)

    def at_once(self, delays: Sequence[int], events: Sequence[Event]) -> None:
        """Let fetches, acknowledgements, closed sessions and time overlap: *delays* says which of them goes on when."""
        calls = [partial(OVERLAPS[name].begin, self, *arguments) for name, *arguments in events]
        returned = self._call(overlapping, calls, delays)
        judgements = [
            partial(_judge_overlap, OVERLAPS[name].judge, result, arguments)
            for (name, *arguments), result in zip(events, returned, strict=True)
        ]
        self._judge(self._model.happened_at_once, judgements)

    def member_acknowledges_all(self, member: str, name: str) -> None:
        """Acknowledge all that a member owns in the same way."""
        self.member_acknowledges(member, self._events.everything(member, name))

    def member_renews_later(self, member: str, ms: int) -> None:
        """Let time pass, but no lock expire, and renew all that a member owns."""
        self.time_passes(ms)
        self.member_acknowledges_all(member, "RENEW")

    def member_leaves(self, member: str) -> None:
        """Close the share session of a member."""
        self._call(self.close_session, member)
        self._judge(self._model.left, member)

    def time_passes(self, ms: int) -> None:
        """Let time pass."""
        self._call(self.advance_clock, ms)
        self._judge(self._model.time_passed, ms)

    def records_are_deleted(self, before_offset: int) -> None:
        """Move the log start offset."""
        self._call(self.delete_records, before_offset)
        self._judge(self._model.deleted, before_offset)

    def leader_fails_over(self) -> None:
        """Let another leader take over."""
        self._call(self.fail_over)
        self._judge(self._model.failed_over)

    def writes_fail(self) -> None:
        """Let writes of the state fail."""
        self._call(self.fail_writes)
        self._judge(self._model.writes_changed, is_failing=True)

    def writes_succeed(self) -> None:
        """Let writes of the state succeed again."""
        self._call(self.mend_writes)
        self._judge(self._model.writes_changed, is_failing=False)

    def teardown(self) -> None:
        """End the trouble: everything is decided, locks expire, and a member accepts what it gets."""
        try:
            if self._is_started and not self._is_over:
                with suppress(_RunEndedError):
                    self._everywhere(self._end_trouble)
                    self._everywhere(self._accept_everything)
                    if "fail_over" in self._events.has:  # it heals what is wrong before, and may be wrong itself
                        self.leader_fails_over()
                        self._everywhere(self._accept_everything)
        finally:
            try:
                if self._is_started:
                    self._call(self.stop)
            finally:
                self._runner.close()

    def pick_settings(self, pick: Pick) -> GroupSettings:
        """Pick the group's settings: those that are declared, the others small."""
        declared: dict[str, Any] = {name: getattr(self, name, None) for name in SMALL_SETTINGS}
        if not self.renews:
            declared["renew_acknowledge_enable"] = False
        picked = {
            name: pick(small) if declared[name] is None else declared[name] for name, small in SMALL_SETTINGS.items()
        }
        return GroupSettings(**picked)

    def pick_kinds(self, pick: Pick) -> None:
        """Pick the kinds of events that happen in this run."""
        self._left_out = left_out(pick)

    def pick_event(self, pick: Pick) -> Event:
        """Pick the next event; an override may leave out what an implementation is not meant to bear."""
        return self._events.next(pick)

    # ---- the search

    def _happens_at_random(self, pick: Pick, count: int) -> None:
        self.pick_kinds(pick)
        self.group_starts(self.pick_settings(pick), pick((1, 2, 3)))
        for _ in range(count):
            self.happens(self.pick_event(pick))

    @property
    def _program(self) -> list[Event]:
        return self._so_far

    @classmethod
    def _kind_of(cls, error: Exception) -> Hashable:
        return super()._kind_of(error), getattr(error, "guarantee", None)

    @classmethod
    def _passes(cls) -> Sequence[ProgramPass]:
        plain = {name: small[0] for name, small in SMALL_SETTINGS.items() if getattr(cls, name, None) is None}
        if not cls.renews:
            del plain["renew_acknowledge_enable"]
        return passes(plain, cls.members[0])

    def _numbered(self, event: Event) -> Event | None:
        numbered = numbered_at(self._known_partitions, event)
        return numbered if numbered and (not self._known_partitions or self._events.is_possible(numbered)) else None

    def _named(self, event: Event) -> Event:
        return named_at(self._known_partitions, event)

    def _run(self, number: int, event: Event) -> None:
        ends = [place.model.log_end for place in self._known_partitions] or [0] * len(self.share_partitions)
        if event[0] == "group_starts":
            _, settings, count = event
            self.group_starts(settings, count)
        else:
            self.happens(event)
        for place, end in zip(self._known_partitions, ends, strict=True):
            place.offsets.appended(number, range(end, place.model.log_end))

    def time_passed(self, ms: int) -> None:
        """
        Say that time has passed by itself, as it does in front of a real server: any method may, while it is called.

        What the method returns is judged as of then; ``clock_tolerance_ms`` has to cover one fetch of each member.

        Args:
            ms: How much since the last time, without what ``advance_clock`` has let pass. [ms]
        """
        self._passed_ms += ms

    def give_up(self, why: str) -> NoReturn:
        """
        End this run without a verdict, from within a method that cannot say what has happened; it is counted.

        Args:
            why: What `reached` counts it as, after "given up: ".
        """
        self.note(f"given up: {why}")
        raise _RunEndedError(why)

    @property
    def known(self) -> ClientKnowledge:
        """What clients know at this moment."""
        return self._model

    # ---- share partitions beside each other

    def _select(self, number: int) -> None:
        """Let events happen at another share partition from now on."""
        if number != self._here:
            self._here = number
            place = self._known_partitions[number]
            self._model, self._events = place.model, place.events
            self._call(self.select_share_partition, place.group, place.partition)

    def _everywhere(self, event: Callable[[], None]) -> None:
        for number in range(len(self._known_partitions)):
            self._select(number)
            event()
        self._select(0)

    # ---- behind the events

    def _answer(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Return the error code of an acknowledgement, however the implementation reports it."""
        try:
            return int(self._runner.result_of(self.acknowledge(member, batches)) or ErrorCode.NONE)
        except Exception as error:  # noqa: BLE001 - those without a code are raised again
            return code_of(error)

    def _fetch_for_all(self, max_records: int) -> Any:  # noqa: ANN401 - what users return, or an awaitable
        return at_once([self.fetch(member, max_records) for member in self.members])

    def _note_fetch(self, member: str, returned: Iterable[Sequence[Any]], max_records: int) -> list[int]:
        deliveries = [Delivery(*delivery) for delivery in returned]
        return self._judge(self._model.delivered, member, deliveries, max_records)

    def _end_trouble(self) -> None:
        if self._model.writes_fail:
            self.writes_succeed()
        for producer in self._events.producers():
            self.transaction_ends(producer, "commit")

    def _let_locks_expire(self) -> None:
        """Let all locks expire, one after the other, and accept what is available after each."""
        if "advance_clock" in self._events.has:
            for until_ms in self._events.until_locks_expire_ms():
                if until_ms > self._model.now_ms:
                    self.time_passes(until_ms - self._model.now_ms)
                    self._accept_what_is_available()
            self.time_passes(self._model.settings.lock_duration_ms + 2 * self.clock_tolerance_ms + 1)
        else:
            for member in self._events.owners():
                self.member_acknowledges_all(member, "ACCEPT")

    def _accept_everything(self) -> None:
        """Accept what is available: at once, when locks have expired, and when they have once more."""
        self._accept_what_is_available()
        for _ in range(2):
            self._let_locks_expire()
            self._accept_what_is_available()
        self._judge(self._model.expect_nothing_left)

    def _accept_what_is_available(self) -> None:
        """Accept until fetches bring nothing."""
        member = self.members[0]
        waiting = self._model.waiting()
        self._fetch_until_nothing(member, self._fetch_and_accept)
        self._judge(self._model.expect_delivered, member, waiting)

    def _fetch_and_accept(self, member: str, max_records: int) -> list[int]:
        offsets = self.member_fetches(member, max_records)
        if offsets:
            self.member_acknowledges_all(member, "ACCEPT")
        return offsets

    def _fetch_until_nothing(self, member: str, fetch: Callable[[str, int], list[int]]) -> None:
        empty = 0
        most = left = 4 * len(self._model.records) + 10
        while left:
            if fetch(member, EVERYTHING):
                empty, left = 0, left - 1
            else:
                empty += 1
                if empty == self._model.empty_fetches():
                    return
        self._judge(self._model.expect_end, most)

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - what users return
        """Call a method of the implementation; whatever it raises ends the run."""
        self._is_over = True
        result = self._runner.result_of(method(*args))
        passed_ms, self._passed_ms = self._passed_ms, 0
        if passed_ms:
            for place in self._known_partitions:
                place.model.time_passed(passed_ms)
        self._is_over = False
        return result

    def _judge(self, method: Callable[..., T], *args: Any, **named: Any) -> T:  # noqa: ANN401 - those of *method*
        """Judge what has happened; a guarantee that does not hold ends the run."""
        self._is_over = True
        try:
            result = method(*args, **named)
            for other in concerned(self._known_partitions, self._here, getattr(method, "__name__", "")):
                getattr(other, method.__name__)(*args, **named)
        except GuaranteeBrokenError as error:
            if any(row.guarantee is error.guarantee and row.applies(self) for row in self.allowances):
                raise _RunEndedError from error
            raise
        self._is_over = False
        return result


def _judge_overlap(judge: Callable[..., Any], result: Any, arguments: Sequence[Any], model: ClientModel) -> None:  # noqa: ANN401 - what users return
    judge(model, result, *arguments)
