"""
A node of several partitions as a machine of the kit: members have sessions, connections and fetches that wait.

An event happens at one partition, and whatever it changes at the others is judged there.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    ErrorCode,
    InMemoryPersister,
    Profile,
    RecordState,
)
from sharestate.broker.node import (
    NodeAnswer,
    NodeConfig,
    ShareBroker,
)
from sharestate.coordinator import COORDINATOR_PROFILES
from sharestate.testing.groups import (
    AcquireMode,
    Allowance,
    Guarantee,
)
from sharestate.testing.groups.events import EVERYTHING, Pick, Range
from sharestate.testing.groups.model import Delivery
from sharestate.testing.programs import Event
from tests.support.node_adapter import GROUP, MAX_WAIT_MS, RENEW, TOPIC, NodeAdapter
from tests.support.node_members import Waiting, code_of, types_of

EVERYWHERE: Final = frozenset({"time_passed", "writes_changed"})
"""What happens to all partitions at once."""


class NodeMachine(NodeAdapter):
    """A node with a group that fetches a topic of several partitions."""

    # ---- events of its own

    @property
    def owners(self) -> list[str]:
        """The members that own records of the partition at which things happen."""
        return self._events.owners()

    @property
    def with_session(self) -> list[str]:
        """The members that have a session."""
        return [name for name, consumer in self.consumers.items() if consumer.epoch]

    @property
    def may_lose_state(self) -> bool:
        """True if what is not persisted may be forgotten: nothing is on its way to be."""
        return not self._model.writes_fail

    def some(self, pick: Pick) -> tuple[str, list[Range]]:
        """Pick an acknowledgement of what a member owns."""
        return self._events.some(pick)

    def pick_event(self, pick: Pick) -> Event:
        """Pick a partition, and what happens there: one of the kit's events, or one of those below."""
        partition = pick(range(self.partition_count))
        self.turn_to(partition)
        kind = pick(BY_WEIGHT)
        if kind is None or not kind.may_happen(self):
            return "at", partition, *super().pick_event(pick)
        return "at", partition, kind.method, *kind.arguments(self, pick)

    def at(self, partition: int, name: str, *arguments: Any) -> None:  # noqa: ANN401 - as events have them
        """Let an event happen at a partition."""
        self.program.append(("at", partition, name, *arguments))
        self.turn_to(partition)
        getattr(self, name)(*arguments)

    def turn_to(self, partition: int) -> None:
        """Let events happen at a partition from now on."""
        self.partition = partition
        self._model, self._events = self.models[partition], self.events[partition]

    def member_waits(self, member: str, max_records: int) -> None:
        """Fetch, and wait if there is nothing."""
        self.finish_waiting(member)
        self._call(self.begin_to_wait, member, max_records)
        self.judge_unjudged()

    def begin_to_wait(self, member: str, max_records: int) -> None:
        """Send a fetch that may wait, and take its answer if it comes at once."""
        consumer = self.consumers[member]
        request = self.fetch_request(consumer, max_records, max_wait_ms=MAX_WAIT_MS)
        number = self.send(consumer, request)
        consumer.waiting = Waiting(number, self.now_ms + MAX_WAIT_MS, max_records, self._model.writes_fail)
        self.take(())

    def finish_waiting(self, member: str) -> None:
        """Let time pass until a member's fetch is answered: a client has one request on its way at a time."""
        waiting = self.consumers[member].waiting
        if waiting is not None:
            self.time_passes(waiting.deadline_ms - self.now_ms)

    def member_acknowledges_and_fetches(self, member: str, ranges: Iterable[Range], max_records: int) -> None:
        """Acknowledge with a fetch: it acquires what it has released itself, too."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        batches = [AcknowledgementBatch(first, last, types_of(names)) for first, last, names in ranges]
        if consumer.epoch == 0 or any(RENEW in types for *_, types in batches):
            self.member_acknowledges(member, ranges)
            return
        request = self.fetch_request(consumer, max_records, acknowledged={self.partition: batches})
        response = self._call(self.ask, consumer, request)
        listed = [each.partition for each in request.partitions]  # each has an outcome, if only of no batches
        found = self._call(self.found, consumer, response, listed, max_records)
        (answer,) = [each for each in response.partitions if each.partition == self.partition]
        types = {
            offset: AcknowledgeType(types[0 if len(types) == 1 else index]).name
            for first, last, types in batches
            for index, offset in enumerate(range(first, last + 1))
        }
        self.note_found(consumer, found, max_records)
        self._judge(self._model.acknowledged, member, types, code_of(answer.acknowledge_error.error_code))

    def member_accepts_and_leaves(self, member: str) -> None:
        """Close the session with an acknowledgement of what the member has of a partition."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        owned = self._model.owned(member)
        batches = [
            AcknowledgementBatch(first, last, types_of(names))
            for first, last, names in self._events.everything(member, "ACCEPT")
        ]
        if consumer.epoch == 0 or not owned:
            self.member_leaves(member)
            return
        response = self._call(self.ask, consumer, self.acknowledge_request(consumer, batches, -1))
        consumer.forget_session()
        code = response.error_code or code_of(response.partitions[0].error.error_code)
        super()._judge(self._model.acknowledged, member, dict.fromkeys(owned, "ACCEPT"), code)
        self._judge(self._model.left, member)

    def connection_ends(self, member: str) -> None:
        """End a member's connection, and with it its session."""
        if self.profile.quirks:  # N3: what waits goes on
            self.finish_waiting(member)
        consumer = self.consumers[member]
        had_session = consumer.has_had_session
        consumer.forget_session()
        self._call(self.broker.disconnect, consumer.reconnect(), self.now_ms)
        self._call(self.take_due)
        self._judge(self._model.left, member)
        if had_session and not any(each.epoch for each in self.consumers.values()):
            # Nobody is left: the node leads the group's share partitions no longer, until the next fetch. What was held
            # of partitions that were forgotten goes on being locked, and its expiry is written.
            self.has_former_leaders |= any(model.owned(each) for model in self.models for each in self.members)
            self.judge_everywhere("failed_over")

    def member_comes_back(self, member: str, max_records: int) -> None:
        """Open another session on another connection, while there is one; then the former connection ends."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        consumer.forget_session()
        before = consumer.reconnect()
        self.member_fetches(member, max_records)
        self._call(self.broker.disconnect, before, self.now_ms)
        self._call(self.take_due)
        self.judge_unjudged()

    def member_forgets(self, member: str) -> None:
        """Fetch, but nothing of this partition: its next fetch has it again."""
        self.finish_waiting(member)
        consumer = self.consumers[member]
        request = self.fetch_request(consumer, 1, forgotten=[self.partition])
        response = self._call(self.ask, consumer, request)
        self.note_found(consumer, self._call(self.found, consumer, response, (), 1), 1)
        self.judge_unjudged()

    def node_restarts(self) -> None:
        """Let the node start again: it knows what was persisted, and no session."""
        self._call(self.broker.restart, self.now_ms)
        for consumer in self.consumers.values():
            consumer.forget_session()
            consumer.reconnect()
        self.judge_everywhere("failed_over")

    def take_due(self) -> None:
        """Take the answers that are due."""
        self.take(self.broker.answers())

    # ---- the kit's events, at several partitions

    def member_fetches(self, member: str, max_records: int) -> list[int]:
        waiting = self.consumers[member].waiting
        if waiting is not None and (waiting.may_lack_a_leader or self.profile.quirks):
            # Nobody wakes it if the leader has changed, and in Kafka not in other cases either (N1).
            self.finish_waiting(member)
        return super().member_fetches(member, max_records)

    def member_acknowledges(self, member: str, ranges: Iterable[Range]) -> None:
        self.finish_waiting(member)
        super().member_acknowledges(member, ranges)

    def member_leaves(self, member: str) -> None:
        self.finish_waiting(member)
        super().member_leaves(member)

    def time_passes(self, ms: int) -> None:
        """Let time pass from one deadline of the node to the next: what happens then is judged as of then."""
        until_ms = self.now_ms + ms
        while (deadline_ms := self.broker.next_deadline_ms()) is not None and self.now_ms < deadline_ms < until_ms:
            super().time_passes(deadline_ms - self.now_ms)
        super().time_passes(until_ms - self.now_ms)

    def transaction_ends(self, producer: str, how: str) -> None:
        """End a transaction wherever it has records."""
        markers = self._call(partial(self.end_transaction, producer, committed=how == "commit"))
        for partition, marker in markers.items():
            model = self.models[partition]
            super()._judge(partial(model.transaction_ended, producer, marker, is_committed=how == "commit"))
        self.judge_unjudged()

    # ---- judgement

    def _judge(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401 - those of *method*
        """Judge an event, wherever it happens, and what members have got by it."""
        name = getattr(method, "__name__", "")
        result = None
        if name == "left":
            for partition in self.consumers[args[0]].left:
                super()._judge(self.models[partition].left, *args)
        elif name in EVERYWHERE:
            for model in self.models:
                super()._judge(getattr(model, name), *args, **named)
        else:
            result = super()._judge(method, *args, **named)
        self.judge_unjudged()
        return result

    def judge_everywhere(self, name: str) -> None:
        """Judge an event without arguments at all partitions."""
        for model in self.models:
            super()._judge(getattr(model, name))
        self.judge_unjudged()

    def judge_unjudged(self) -> None:
        """Judge what members have got beside the event: by fetches that have waited, and of other partitions."""
        while self.unjudged:
            member, partition, ranges, max_records = self.unjudged.popleft()
            deliveries = [Delivery(*each) for each in ranges]
            super()._judge(self.models[partition].delivered, member, deliveries, max_records)
        self.judge_sleepers()

    def judge_sleepers(self) -> None:
        """Judge that no fetch goes on waiting for what is available."""
        if self.profile.quirks:
            return  # N1
        for consumer in self.consumers.values():
            if consumer.waiting is not None and not consumer.waiting.may_lack_a_leader:
                for partition in consumer.joined:
                    super()._judge(
                        self.models[partition].expect_delivered, consumer.name, self.models[partition].waiting()
                    )

    def _end_trouble(self) -> None:
        for partition in range(self.partition_count):
            self.turn_to(partition)
            super()._end_trouble()

    def _accept_everything(self) -> None:
        for partition in range(self.partition_count):
            self.turn_to(partition)
            super()._accept_everything()
            self._judge(self._model.expect_nothing_left)

    def _fetch_and_accept(self, member: str, max_records: int) -> list[int]:
        offsets = super()._fetch_and_accept(member, max_records)
        here = self.partition
        for partition in range(self.partition_count):
            self.turn_to(partition)
            if self._model.owned(member):
                self.member_acknowledges_all(member, "ACCEPT")
        self.turn_to(here)
        return offsets


# ---- events of its own


class Kind(NamedTuple):
    """
    A kind of event.

    Attributes:
        method: The method of the machine that lets it happen.
        may_happen: Whether it may happen now.
        arguments: Picks the arguments of the method.
    """

    method: str
    may_happen: Callable[[NodeMachine], object]
    arguments: Callable[[NodeMachine, Pick], tuple[Any, ...]]


MAX_RECORDS: Final = (EVERYTHING, 1, 2)

KINDS: Final = (
    Kind("member_waits", lambda _: True, lambda machine, pick: (pick(machine.members), pick(MAX_RECORDS))),
    Kind("member_waits", lambda _: True, lambda machine, pick: (pick(machine.members), pick(MAX_RECORDS))),
    Kind(
        "member_acknowledges_and_fetches",
        lambda machine: machine.owners,
        lambda machine, pick: (*machine.some(pick), pick(MAX_RECORDS)),
    ),
    Kind(
        "member_accepts_and_leaves",
        lambda machine: machine.owners,
        lambda machine, pick: (pick(machine.owners),),
    ),
    Kind(
        "connection_ends",
        lambda machine: machine.with_session and machine.may_lose_state,
        lambda machine, pick: (pick(machine.with_session),),
    ),
    Kind(
        "member_comes_back",
        lambda machine: machine.with_session,
        lambda machine, pick: (pick(machine.with_session), pick(MAX_RECORDS)),
    ),
    Kind("member_forgets", lambda machine: machine.with_session, lambda machine, pick: (pick(machine.with_session),)),
    Kind("node_restarts", lambda machine: machine.may_lose_state, lambda _machine, _pick: ()),
)
"""What may happen around a node, beside what happens around any share group."""

BY_WEIGHT: Final = (*(None,) * 2 * len(KINDS), *KINDS)
"""One event in three is one of these."""


# ---- Kafka's bugs


def stalls_in_the_gap(machine: NodeMachine) -> bool:
    """Return whether a gap of the previous leader is fetched next, though the SPSO has passed it."""
    partition = machine.broker.share_partition(GROUP, TOPIC, machine.partition)
    window = partition and partition.gap_window
    return bool(partition and window and window.first_offset < partition.start_offset)


def is_full_of_terminal_records(machine: NodeMachine) -> bool:
    """Return whether nothing beyond what is in flight can be acquired, and nothing in flight is to be delivered."""
    partition = machine.broker.share_partition(GROUP, TOPIC, machine.partition)
    if partition is None:
        return False
    states = {run.state for batch in partition.batches() for run in batch.runs}
    size = partition.end_offset - partition.start_offset + 1
    is_full = size >= partition.config.max_record_locks
    return is_full and states <= {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


def is_left_below_log_start(machine: NodeMachine) -> bool:
    """Return whether the next fetch begins at an available record below the SPSO, and so is out of range."""
    partition = machine.broker.share_partition(GROUP, TOPIC, machine.partition)
    if partition is None or not partition.find_next:
        return False
    runs = (run for batch in partition.batches() for run in batch.runs)
    return any(run.state is RecordState.AVAILABLE and run.first_offset < partition.start_offset for run in runs)


def may_move_back(machine: NodeMachine) -> bool:
    """Return whether a former leader may have lowered the start offset, which the coordinator lets it."""
    return machine.has_former_leaders and COORDINATOR_PROFILES[machine.profile.name].lets_start_offset_move_back


ALLOWANCES: Final = (
    Allowance("F5", Guarantee.NOTHING_LOST, stalls_in_the_gap),
    Allowance("F4 and F7", Guarantee.NOTHING_LOST, is_full_of_terminal_records),
    Allowance("F8", Guarantee.NOTHING_LOST, is_left_below_log_start),
    # The write of a former leader, whose epoch is the same, brings a lower start offset back.
    Allowance("F3", Guarantee.ACCEPTED_IS_FINAL, may_move_back),
    Allowance("F3", Guarantee.REJECTED_IS_FINAL, may_move_back),
)
"""The bugs of Kafka that clients notice under the profiles of releases: docs/kafka-bugs.md."""


class UnwrittenMachine(NodeMachine):
    """A node whose persister may fail, of a group that gets no more records than it asks for."""

    acquire_mode = AcquireMode.RECORD_LIMIT

    def node(self, config: NodeConfig) -> ShareBroker:
        self.persister = InMemoryPersister()
        return ShareBroker(config, persister=self.persister)

    def fail_writes(self) -> None:
        self.persister.is_holding = True

    def mend_writes(self) -> None:
        self.persister.is_holding = False

    def take(self, answers: Iterable[NodeAnswer]) -> None:
        """Let the requests fail that are held back: some are not carried out, of others only the answer gets lost."""
        taken = [*answers]
        while self.persister.held:
            held = self.persister.held[0]
            if len(self.persister.requests) % 2:
                held.fail(ErrorCode.NOT_COORDINATOR)
            else:
                held.lose()
            taken += self.broker.advance(self.now_ms)
        super().take(taken)


def machine_of(machine: type[NodeMachine], profile: Profile) -> type[NodeMachine]:
    """Return a machine under a profile; its runs are counted from 0."""
    fields = {"profile": profile, "allowances": ALLOWANCES if profile.quirks else (), "runs": 0}
    return type(machine.__name__, (machine,), fields)
