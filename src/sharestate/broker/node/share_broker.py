"""One node of Kafka, as far as share groups see it: requests in, answers out when they are due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import starmap
from typing import Any, Final, TypeAlias, get_args

from sharestate.broker.groups import GroupCoordinator
from sharestate.broker.node.copies import copied
from sharestate.broker.node.dead_letter_topic import DeadLetterTopic
from sharestate.broker.node.fetch_queue import LogKey
from sharestate.broker.node.group_requests import ConfigureGroupRequest, GroupRequest, GroupResponse
from sharestate.broker.node.group_service import GroupService, TakeResult
from sharestate.broker.node.log_batches import Decoder
from sharestate.broker.node.log_fetches import LogFetches
from sharestate.broker.node.log_requests import FetchRequest, LogRequest
from sharestate.broker.node.log_service import LogService
from sharestate.broker.node.node_config import GroupConfig, GroupConfigs, NodeConfig
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.profiles import NODE_PROFILES
from sharestate.broker.node.share_fetch import ShareFetches
from sharestate.broker.node.share_partitions import SharePartitions
from sharestate.broker.node.share_requests import ShareAcknowledgeRequest, ShareFetchRequest
from sharestate.broker.node.share_service import NodeAnswer, Response, ShareService
from sharestate.broker.node.state_rpcs import STATE_REQUESTS, NodeCoordinator, StateRpcs
from sharestate.broker.node.topic_requests import CreatePartitionsRequest, DeleteTopicsRequest
from sharestate.broker.node.topics import Topics
from sharestate.broker.node.transactions import EndedTransaction
from sharestate.broker.sessions import ShareSessionCache
from sharestate.coordinator.profiles import (
    ALL_COORDINATORS,
    LATEST_COORDINATOR,
    CoordinatorProfile,
)
from sharestate.coordinator.state_log import MemoryLog
from sharestate.errors import ErrorCode, LeaderStateError, NoAnswerError, NodeError, TimeReversedError
from sharestate.leader.observed import Observer
from sharestate.partition.share_partition import SharePartition
from sharestate.persister.protocol import Persister
from sharestate.persister.requests import (
    Parameters,
)
from sharestate.values.checks import brief_repr, expect, integer, refuse, text
from sharestate.values.profiles import Profile

Request: TypeAlias = (
    ShareFetchRequest
    | ShareAcknowledgeRequest
    | GroupRequest
    | ConfigureGroupRequest
    | LogRequest
    | Parameters[Any, Any]
)
"""What may be sent: by members, by who asks about groups, topics and logs, and the requests of a persister."""

_REQUESTS: Final = frozenset(
    {
        ShareFetchRequest,
        ShareAcknowledgeRequest,
        ConfigureGroupRequest,
        *get_args(GroupRequest),
        *get_args(LogRequest),
        *STATE_REQUESTS,
    }
)


def coordinator_profile(profile: Profile) -> CoordinatorProfile:
    """Return the rules of a share coordinator of the same release as the node that follows *profile*."""
    return ALL_COORDINATORS.get(profile.name.removesuffix("-healed"), LATEST_COORDINATOR)


def persister_in_memory(profile: Profile, clock: Callable[[], int]) -> NodeCoordinator:
    """Return a share coordinator in memory; *clock* returns the time. [ms]"""
    return NodeCoordinator(MemoryLog(), profile=coordinator_profile(profile), clock=clock)


class ShareBroker:
    """
    One node of Kafka, as far as share groups see it.

    **Who asks.** The caller, who has the connections and the clock. A request gets a number; its answer comes out of
    ``answers`` or ``advance`` as soon as it is due, exactly once. Call ``advance`` when ``next_deadline_ms`` has come.

    Every command takes the caller's time: what is due by ``now_ms`` happens before the command.

    Args:
        config: The node's settings.
        persister: Stores the state of share partitions. None for a share coordinator in memory, which is the node's.
        decode: Returns the records of batches that come as bytes; see ``PartitionLog``.
        observer: Gets what happens to share partitions, as from a ``Leader``.
        notify: Called, in whatever thread, when a persister that answers later has answered: call ``advance`` then.
        marked: Called with each transaction that has ended, when its markers are written; a copy has none.
        give_answers: Lets those answers of the persister come that it holds back while a request is carried out, and
            returns whether there were any; called when the request is done, before what is due. A copy has none.

    Not thread-safe: one caller at a time.

    Source:
        KafkaApis, SharePartitionManager, DelayedShareFetch (Kafka 4.4).
    """

    def __init__(  # noqa: PLR0913 - what a node is made of
        self,
        config: NodeConfig | None = None,
        *,
        persister: Persister | None = None,
        decode: Decoder | None = None,
        observer: Observer | None = None,
        notify: Callable[[], None] | None = None,
        marked: Callable[[EndedTransaction], None] | None = None,
        give_answers: Callable[[], bool] | None = None,
    ) -> None:
        """Begin without topics and groups."""
        self._config = NodeConfig() if config is None else expect(config, NodeConfig, "config")
        self._now_ms = 0
        self._persister: Persister = (
            StateRpcs(persister_in_memory(self._config.profile, self._clock)) if persister is None else persister
        )
        self._decode = decode
        self._notify = notify
        self._marked = marked
        self._give_answers = give_answers
        self._next_number = 0
        self._unanswered: dict[int, str] = {}
        self._of_connection: dict[str, dict[int, None]] = {}
        self._stored: deque[tuple[TakeResult, Future[Any]]] = deque()
        self._groups = GroupConfigs(self._config)
        self._logs = LogService(
            topics=Topics(default_partition_count=self._config.default_partition_count),
            decode=decode,
            auto_create_topics_enable=self._config.auto_create_topics_enable,
            marked=marked,
        )
        self._dead_letters = DeadLetterTopic(self._logs, self._groups.dead_letters_of)
        self._share_partitions = SharePartitions(
            self._config,
            self._groups,
            self._persister,
            self._log_of,
            dead_letter_queue=self._dead_letters,
            observer=observer,
            notify=notify,
        )
        self._group_service = GroupService(self._config, self._logs, self._ask, self._answer)
        self._start()

    def _start(self) -> None:
        """Begin without sessions and fetches."""
        self._fetches = ShareFetches(NODE_PROFILES[self._config.profile.name], self._share_partitions)
        self._service = ShareService(self._config, self._groups, self.topics, self._share_partitions, self._fetches)
        self._log_fetches = LogFetches(self._logs, self._config.fetch_max_bytes, self._answer)

    @property
    def now_ms(self) -> int:
        """The time of the last command. [ms]"""
        return self._now_ms

    # ---- requests

    def send(self, request: Request, *, connection_id: str, now_ms: int) -> int:
        """
        Take *request*, and return its number; its answer comes out of ``answers``, at once or later (node 1).

        Args:
            request: The request.
            connection_id: The connection on which it comes.
            now_ms: The caller's time. [ms]

        Raises:
            MalformedInputError: An argument, or a part of the request, is of the wrong type or out of bounds; nothing
                was changed but the time.
        """
        text(connection_id, "connection_id")
        if type(request) not in _REQUESTS:
            refuse(f"expected a request, got {brief_repr(request)}", "request")
        self._set_time(now_ms)
        number = self._next_number
        self._next_number += 1  # whatever comes of it: no other request gets an answer to a part of this one
        if isinstance(request, ShareFetchRequest):
            self._service.fetch(number, request, connection_id=connection_id, now_ms=now_ms)
        elif isinstance(request, ShareAcknowledgeRequest):
            self._service.acknowledge(number, request, now_ms=now_ms)
        elif isinstance(request, Parameters):
            self._ask_coordinator(number, request)
        elif isinstance(request, GroupRequest):
            self._group_service.take(number, request, now_ms)
        elif isinstance(request, ConfigureGroupRequest):
            self._configure_group(request.group_id, request.config, now_ms)
            self._answer(number, GroupResponse())
        elif isinstance(request, FetchRequest):
            self._log_fetches.take(number, request, now_ms)
        else:
            self._answer_about_logs(number, request, now_ms)
        self._unanswered[number] = connection_id
        self._of_connection.setdefault(connection_id, {})[number] = None
        self._catch_up(now_ms)
        return number

    def call(self, request: Request, *, now_ms: int) -> Response:
        """
        Return the answer to *request*, which has to come at once.

        Raises:
            NoAnswerError: It does not: what the request does has happened, and nobody gets its answer.
            MalformedInputError: As ``send``.
        """
        number = self.send(request, connection_id="", now_ms=now_ms)
        for answer in self._service.answers:
            if answer.number == number:
                self._service.answers.remove(answer)
                self._forget(number)
                return answer.response
        self._forget(number)
        message = f"request {number} is not answered at once: send it, and take its answer when it comes"
        raise NoAnswerError(message)

    def answers(self) -> tuple[NodeAnswer, ...]:
        """Return the answers that are due, and none of them again."""
        answers = self._service.answers
        due = tuple(answer for answer in answers if self._forget(answer.number))
        answers.clear()
        return due

    def advance(self, now_ms: int) -> tuple[NodeAnswer, ...]:
        """
        Let it be *now_ms*, and return the answers that are due by then.

        What is due before happens in its order, each at its own time.

        Raises:
            MalformedInputError: *now_ms* is no time.
            TimeReversedError: It is before the time of the last command.
        """
        self._set_time(now_ms)
        return self.answers()

    def next_deadline_ms(self) -> int | None:
        """Return when ``advance`` has something to do; None if that is only after another command. [ms]"""
        earliest_ms = None
        for deadline_ms in (
            self._share_partitions.next_deadline_ms(),
            self._service.next_deadline_ms(),
            self._fetches.waiting.next_deadline_ms(),
            self._log_fetches.next_deadline_ms(),
            self._logs.next_deadline_ms(),
            self._group_service.next_deadline_ms(),
        ):
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        return earliest_ms

    def disconnect(self, connection_id: str, now_ms: int) -> None:
        """End a connection; its requests get no answer any more, and its share sessions are closed (sessions 8)."""
        text(connection_id, "connection_id")
        self._set_time(now_ms)
        numbers = self._of_connection.pop(connection_id, {})
        for number in numbers:
            del self._unanswered[number]
        self._service.disconnect(connection_id, numbers, now_ms)
        self._log_fetches.forget(numbers)
        self._complete_requests(now_ms)
        self._take_held_back()

    # ---- what administrators do

    def restart(self, now_ms: int) -> None:
        """
        Start again: topics, logs, and the state that the persister has, stay; connections and sessions are gone.

        Requests without an answer get none.
        """
        self._set_time(now_ms)
        self._share_partitions.restart()
        for topic in self.topics:
            for partition in range(topic.partition_count):
                self._share_partitions.fail_over(LogKey(topic.topic_id, partition), now_ms)
        for forgotten in (self._unanswered, self._of_connection, self._stored):
            forgotten.clear()
        self._start()
        self._group_service.restart(now_ms)

    def fail_over(self, topic: str, partition: int, now_ms: int) -> None:
        """Give a partition to its leader again, with the next epoch, as if it had been elsewhere meanwhile."""
        key = self._key(topic, partition)
        self._set_time(now_ms)
        self._share_partitions.fail_over(key, now_ms)
        self._complete_requests(now_ms)

    def configure_group(self, group_id: str, config: GroupConfig, now_ms: int) -> None:
        """Give a group settings of its own."""
        text(group_id, "group_id")
        expect(config, GroupConfig, "config")
        self._set_time(now_ms)
        self._configure_group(group_id, config, now_ms)
        self._complete_requests(now_ms)

    # ---- looking at it

    def copy(
        self,
        *,
        persister: Persister | None = None,
        observer: Observer | None = None,
        notify: Callable[[], None] | None = None,
    ) -> ShareBroker:
        """
        Return another node that behaves exactly like this one, and shares nothing with it but the decoder.

        Args:
            persister: Its persister. None for a copy of that of this node, which has to be in memory.
            observer: Takes the place of the observer of this node, which has to have one.
            notify: Takes the place of that of this node, which has to have one.

        Raises:
            MalformedInputError: There is nothing in whose place *observer* or *notify* could be.
            LeaderStateError: Something is on its way to the persister.
            TypeError: The persister cannot be copied.

        Complexity:
            Linear in all that the node has.
        """
        if observer is not None and self._share_partitions.observer is None:
            refuse("the node has none", "observer")
        if notify is not None and self._notify is None:
            refuse("the node has none", "notify")
        if self._stored or not self._share_partitions.is_idle:
            message = "the persister has not answered everything yet"
            raise LeaderStateError(message)
        shared = {
            "decode": self._decode,
            "observer": self._share_partitions.observer,
            "notify": self._notify,
            "persister": None if persister is None else self._persister,
            "marked": self._marked,
            "give_answers": self._give_answers,
        }
        others = {
            "decode": self._decode,
            "observer": observer,
            "notify": notify,
            "persister": persister,
            "marked": None,
            "give_answers": None,
        }
        return copied(self, shared, others)

    @property
    def topics(self) -> Topics:
        """The topics, to look at."""
        return self._logs.topics

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator, to look at."""
        return self._group_service.coordinator

    @property
    def group_configs(self) -> Mapping[str, GroupConfig]:
        """The settings of the groups that have some of their own, by group, to look at."""
        return self._groups.own

    @property
    def sessions(self) -> ShareSessionCache:
        """The share sessions, to look at."""
        return self._service.sessions

    def log(self, topic: str, partition: int) -> PartitionLog:
        """
        Return the log of a partition, to look at.

        Raises:
            NodeError: There is no such partition.
        """
        log = self._logs.log(*self._key(topic, partition))
        if log is None:  # pragma: no cover - the key is that of a partition
            raise NodeError(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return log

    def leader_epoch(self, topic: str, partition: int) -> int:
        """
        Return the epoch of a partition's leader: 0, and one more after each failover.

        Raises:
            NodeError: There is no such partition.
        """
        return self._share_partitions.leader_epochs.get(self._key(topic, partition), 0)

    def share_partitions(self) -> tuple[SharePartition, ...]:
        """Return the share partitions that fetches have opened, in that order, to look at."""
        return tuple(led.leader.partition for led in self._share_partitions)

    def share_partition(self, group_id: str, topic: str, partition: int) -> SharePartition | None:
        """
        Return a share partition, to look at; None if no fetch has opened it.

        Raises:
            NodeError: There is no such partition.
        """
        topic_id, _ = self._key(topic, partition)
        led = self._share_partitions.find(text(group_id, "group_id"), topic_id, partition)
        return None if led is None else led.leader.partition

    # ---- inside

    def _configure_group(self, group_id: str, config: GroupConfig, now_ms: int) -> None:
        self._groups.configure(group_id, config)
        self._group_service.coordinator.configure(config.coordinator, group_id)
        self._share_partitions.configure(group_id, now_ms)

    def _clock(self) -> int:
        return self._now_ms

    def _log_of(self, key: LogKey) -> PartitionLog | None:
        return self._logs.log(*key)

    def _key(self, topic: str, partition: int) -> LogKey:
        known = self.topics.by_name(text(topic, "topic"))
        if known is None or not 0 <= integer(partition, "partition") < known.partition_count:
            raise NodeError(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return LogKey(known.topic_id, partition)

    def _set_time(self, now_ms: int) -> None:
        """Let it be *now_ms*: first locks expire, then requests are answered, both at the time that they are due."""
        if integer(now_ms, "now_ms", 0) < self._now_ms:
            message = f"the time goes backwards: {now_ms} after {self._now_ms}"
            raise TimeReversedError(message, "now_ms")
        self._catch_up(now_ms)

    def _catch_up(self, now_ms: int) -> None:
        """Let happen what is due by *now_ms*, and take what the persister has answered (node 8)."""
        self._take_held_back()
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            self._now_ms = self._dead_letters.now_ms = max(self._now_ms, deadline_ms)
            is_expired = (
                self._share_partitions.expire_next(self._now_ms)
                or self._service.expire_next(self._now_ms)
                or self._fetches.expire_next(self._now_ms)
                or self._log_fetches.expire_next(self._now_ms)
                or self._group_service.expire_next(self._now_ms)
            )
            if not is_expired:
                self._logs.advance(self._now_ms)
            self._complete_requests(self._now_ms)
            self._take_held_back()
        self._now_ms = self._dead_letters.now_ms = now_ms
        self._take_stored(now_ms)

    def _take_held_back(self) -> None:
        """Take the answers that the persister has held back, and those to what follows from them."""
        while self._give_answers is not None and self._give_answers():
            self._take_stored(self._now_ms)

    def _take_stored(self, now_ms: int) -> None:
        """Take what the persister has answered."""
        self._share_partitions.take_arrived(now_ms)
        while self._stored:
            take, future = self._stored.popleft()
            take(future, now_ms)
        self._complete_requests(now_ms)

    def _complete_requests(self, now_ms: int) -> None:
        """Answer what can be answered, and wake fetches of logs that have changed, until nothing is left to do."""
        if len(self._logs.topics) != len(self._group_service.coordinator.state.topics.by_id):
            self._group_service.update_topics(now_ms)  # dead letters make topics too
        self._service.complete_requests(now_ms)
        while changes := self._logs.take_changes():  # dead letters change logs too
            keys = tuple(starmap(LogKey, changes))
            self._share_partitions.woken.update(dict.fromkeys(keys))
            self._log_fetches.wake(keys)
            self._service.complete_requests(now_ms)

    def _answer_about_logs(self, number: int, request: LogRequest, now_ms: int) -> None:
        self._answer(number, self._logs.answer(request, now_ms=now_ms))
        if isinstance(request, DeleteTopicsRequest):
            self._share_partitions.drop_deleted(now_ms)
            self._log_fetches.wake_all()
        if isinstance(request, DeleteTopicsRequest | CreatePartitionsRequest):
            self._group_service.update_topics(now_ms)

    def _forget(self, number: int) -> bool:
        """Forget the request *number*, and return whether somebody waits for its answer."""
        connection_id = self._unanswered.pop(number, None)
        if connection_id is None:
            return False
        numbers = self._of_connection[connection_id]
        del numbers[number]
        if not numbers:
            del self._of_connection[connection_id]
        return True

    def _ask(self, request: Parameters[Any, Any], take: TakeResult) -> None:
        """Send *request* to the persister; *take* gets what it answers, when the node is called next."""
        future = getattr(self._persister, STATE_REQUESTS[type(request)])(request)
        future.add_done_callback(partial(self._note_stored, take))

    def _ask_coordinator(self, number: int, request: Parameters[Any, Any]) -> None:
        """Answer a request for a share coordinator as the one that the persister asks does, if there is one."""
        persister = self._persister
        coordinator = persister.coordinator if isinstance(persister, StateRpcs) else persister
        future = getattr(coordinator, STATE_REQUESTS[type(request)])(request)
        future.add_done_callback(partial(self._note_stored, partial(self._answer_stored, number, request)))

    def _answer(self, number: int, response: Response) -> None:
        self._service.answers.append(NodeAnswer(number, response))

    def _note_stored(self, take: TakeResult, future: Future[Any]) -> None:
        """Note that the persister has answered, in whatever thread."""
        self._stored.append((take, future))
        if self._notify is not None:
            self._notify()

    def _answer_stored(self, number: int, request: Parameters[Any, Any], future: Future[Any], _: int) -> None:
        """Answer a request of the persister; UNKNOWN_SERVER_ERROR if its future has failed."""
        has_failed = future.cancelled() or future.exception() is not None
        self._answer(number, request.failed(ErrorCode.UNKNOWN_SERVER_ERROR) if has_failed else future.result())
