"""
ShareFetch and ShareAcknowledge as a node answers them: sessions, acknowledgements, fetches, in a broker's order.

Source:
    KafkaApis.handleShareFetchRequest, handleShareAcknowledgeRequest; SharePartitionManager (Kafka 4.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import define, field
from sortedcontainers import SortedDict

from sharestate.broker.node.fetch_queue import LogKey
from sharestate.broker.node.group_requests import GroupResponse
from sharestate.broker.node.log_requests import LogResponse
from sharestate.broker.node.node_config import GroupConfigs, NodeConfig
from sharestate.broker.node.profiles import NODE_PROFILES, NodeQuirk
from sharestate.broker.node.share_fetch import FetchParameters, Found, ShareFetches
from sharestate.broker.node.share_partitions import LedPartition, SharePartitions
from sharestate.broker.node.share_requests import (
    NO_ERROR,
    NO_LEADER,
    LeaderIdAndEpoch,
    PartitionError,
    PartitionOfRequest,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    error_of,
)
from sharestate.broker.node.topics import Topics
from sharestate.broker.sessions import (
    FINAL_EPOCH,
    SESSION_PROFILES,
    AcknowledgementPlan,
    FetchedPartition,
    SessionQuirk,
    ShareFetchContext,
    ShareSessionCache,
    TopicIdPartition,
    plan_acknowledgements,
    request_error,
    with_acknowledgements,
)
from sharestate.errors import (
    DuplicatePartitionError,
    ErrorCode,
    InvalidSessionRequestError,
    InvalidShareSessionEpochError,
    RequestRefusedError,
    ShareSessionLimitReachedError,
    ShareSessionNotFoundError,
)
from sharestate.partition.acknowledge import NOT_FOUND
from sharestate.persister.requests import Result

_LED_ELSEWHERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors of a partition whose answer says who leads it (KafkaApis.processShareFetchResponse, Kafka 4.4)."""

_NOT_LED: Final = PartitionError(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)
"""The error of an acknowledgement for a share partition that was not opened, with Kafka's text (Errors, Kafka 4.4)."""

_SESSION_REFUSALS: Final = (
    DuplicatePartitionError,
    InvalidSessionRequestError,
    InvalidShareSessionEpochError,
    ShareSessionNotFoundError,
)
"""What a request as a whole is refused with because of its session."""

_NO_PLAN: Final = AcknowledgementPlan({}, {})


Response: TypeAlias = ShareFetchResponse | ShareAcknowledgeResponse | GroupResponse | LogResponse | Result[Any]
"""What is answered: to members, about groups, topics and logs, and to the requests of a persister."""


class NodeAnswer(NamedTuple):
    """
    The answer to a request.

    Attributes:
        number: The request's number.
        response: What is answered.
    """

    number: int
    response: Response


@define(eq=False)
class _Unanswered:
    """
    A request that is not answered yet.

    Attributes:
        number: Its number.
        request: It.
        context: Its context in its session; None for a ShareAcknowledge.
        found: What its fetch has found; None while it waits.
        errors: The errors of partitions that are not fetched.
        nameless: The ids of no topic with which its fetch fails as a whole (sessions 10, S7).
        outcomes: What has come of its acknowledgements.
        pending_count: How many acknowledgements are not stored yet. [partitions]
    """

    number: int
    request: ShareFetchRequest | ShareAcknowledgeRequest
    context: ShareFetchContext | None
    found: Found | None = None
    errors: Found = field(factory=dict)
    nameless: frozenset[str] = frozenset()
    outcomes: dict[TopicIdPartition, PartitionError] = field(factory=dict)
    pending_count: int = 0


class ShareService:
    """
    The share sessions of a node, and the requests that belong to them.

    Args:
        config: The node's settings.
        groups: The settings of groups.
        topics: Its topics.
        share_partitions: The share partitions that it leads.
        fetches: Their fetches.

    Attributes:
        sessions: The share sessions.
        answers: The answers that are due; ``ShareBroker`` takes them out.
    """

    def __init__(
        self,
        config: NodeConfig,
        groups: GroupConfigs,
        topics: Topics,
        share_partitions: SharePartitions,
        fetches: ShareFetches,
    ) -> None:
        """Begin without sessions."""
        self._config = config
        self._groups = groups
        self._topics = topics
        self._share_partitions = share_partitions
        self._fetches = fetches
        self._profile = SESSION_PROFILES[config.profile.name]
        self._unanswered: dict[int, _Unanswered] = {}
        self._ready: deque[_Unanswered] = deque()
        self._refused: SortedDict[tuple[int, int], ShareFetchResponse] = SortedDict()
        self.sessions = ShareSessionCache(config.max_share_sessions, self._profile)
        self.answers: deque[NodeAnswer] = deque()

    # ---- requests

    def fetch(self, number: int, request: ShareFetchRequest, *, connection_id: str, now_ms: int) -> None:
        """
        Take a ShareFetch; its answer comes in ``answers``, now or later (node 2).

        Raises:
            MalformedInputError: A part of it is of the wrong type or out of bounds; nothing was changed.
        """
        if (error := request_error(request)) is not None:
            self.answers.append(NodeAnswer(number, ShareFetchResponse(error.error_code)))
            return
        # First, for it refuses what is malformed before anything is changed.
        plan = self._plan(request) if request.has_acknowledgements else _NO_PLAN
        try:
            context = self._context(request, connection_id, now_ms)
        except ShareSessionLimitReachedError as refusal:
            self._refused[refusal.due_ms or now_ms, number] = ShareFetchResponse(refusal.code)
            return
        except _SESSION_REFUSALS as refusal:
            self.answers.append(NodeAnswer(number, ShareFetchResponse(refusal.code)))
            return
        unanswered = self._unanswered[number] = _Unanswered(number, request, context)
        if not self._acknowledge(unanswered, plan, now_ms):
            self._fail(number, ShareFetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
            return
        if request.renews_in_fetch or 0 in {request.max_bytes, request.max_records}:  # no share partition is touched
            unanswered.found = {}
        elif not self._fetch(unanswered, request, context, now_ms):
            self._fail(number, ShareFetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
            return
        self._ready.append(unanswered)
        self.complete_requests(now_ms)

    def acknowledge(self, number: int, request: ShareAcknowledgeRequest, *, now_ms: int) -> None:
        """
        Take a ShareAcknowledge; its answer comes in ``answers``, now or later (node 2).

        Raises:
            MalformedInputError: A part of it is of the wrong type or out of bounds; nothing was changed.
        """
        if (error := request_error(request)) is not None:
            self.answers.append(NodeAnswer(number, ShareAcknowledgeResponse(error.error_code)))
            return
        plan = self._plan(request)
        try:
            self.sessions.acknowledge(str(request.group_id), str(request.member_id), request.share_session_epoch)
        except _SESSION_REFUSALS as refusal:
            self.answers.append(NodeAnswer(number, ShareAcknowledgeResponse(refusal.code)))
            return
        unanswered = self._unanswered[number] = _Unanswered(number, request, None, found={})
        if not self._acknowledge(unanswered, plan, now_ms):
            self._fail(number, ShareAcknowledgeResponse(ErrorCode.UNKNOWN_SERVER_ERROR), now_ms)
            return
        self._ready.append(unanswered)
        self.complete_requests(now_ms)

    def disconnect(self, connection_id: str, numbers: Iterable[int], now_ms: int) -> None:
        """
        Close what a connection that has ended leaves behind (sessions 8).

        In Kafka what waits for records goes on waiting, and acquires them, for an answer that nobody gets.

        Args:
            connection_id: The connection.
            numbers: Its requests that are not answered.
            now_ms: The time. [ms]

        Source:
            ShareSessionCache.connectionDisconnectListener, SharePartitionManager.ShareGroupListenerImpl (Kafka 4.4).
        """
        if not NODE_PROFILES[self._config.profile.name].has(NodeQuirk.FETCHES_FOR_NOBODY):
            for number in numbers:
                if number in self._fetches.waiting:
                    self._fetches.waiting.remove(number)
                    del self._unanswered[number]
        closed, empty_groups = self.sessions.disconnect(connection_id)
        for key, partitions in closed.items():
            self._release(key.group_id, key.member_id, partitions, now_ms)
        for group_id in empty_groups:
            self._share_partitions.drop_group(group_id, now_ms)
        self.complete_requests(now_ms)

    # ---- time

    def next_deadline_ms(self) -> int | None:
        """Return when the first request that is refused late has to be answered; None if none has. [ms]"""
        return self._refused.peekitem(0)[0][0] if self._refused else None

    def expire_next(self, now_ms: int) -> bool:
        """Answer the request that is refused late and due first; return False if none is by *now_ms*."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return False
        (_, number), response = self._refused.popitem(0)
        self.answers.append(NodeAnswer(number, response))
        return True

    def complete_requests(self, now_ms: int) -> None:
        """Wake the fetches that have to look again, and answer what can be answered, until nothing is left."""
        woken, completed = self._share_partitions.woken, self._fetches.completed
        while woken or completed or self._ready:
            self._wake(now_ms)
            while completed:
                fetch, found = completed.popleft()
                unanswered = self._unanswered[fetch.number]
                unanswered.found = found | unanswered.errors
                self._ready.append(unanswered)
            while self._ready:
                unanswered = self._ready.popleft()
                if unanswered.found is not None and not unanswered.pending_count:
                    self._answer(unanswered, now_ms)

    # ---- inside: requests

    def _named(self, each: PartitionOfRequest) -> TopicIdPartition:
        return TopicIdPartition(each.topic_id, each.partition, self._topics.name_of(each.topic_id))

    def _plan(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> AcknowledgementPlan:
        return plan_acknowledgements(
            {self._named(each): each.acknowledgement_batches for each in request.partitions},
            self._topics,
            version=request.version,
            is_renew=request.is_renew_ack,
            profile=self._profile,
        )

    def _context(
        self,
        request: ShareFetchRequest,
        connection_id: str,
        now_ms: int,
    ) -> ShareFetchContext:
        return self.sessions.new_context(
            str(request.group_id),
            str(request.member_id),
            request.share_session_epoch,
            [self._named(each) for each in request.partitions],
            connection_id=connection_id,
            forgotten=[self._named(each) for each in request.forgotten],
            has_acknowledgements=request.has_acknowledgements,
            now_ms=now_ms,
            max_wait_ms=max(0, request.max_wait_ms),
        )

    def _fetch(
        self, unanswered: _Unanswered, request: ShareFetchRequest, context: ShareFetchContext, now_ms: int
    ) -> bool:
        """
        Begin to fetch what the session has; return False if the request fails as a whole, for its mode is none.

        Source:
            KafkaApis.handleFetchFromShareFetchRequest, the constructor of ShareFetch (Kafka 4.4).
        """
        valid, errors = context.fetch_order(self._topics)
        unanswered.errors = {each: _partition(each, PartitionError(code)) for each, code in errors.items()}
        if self._profile.has(SessionQuirk.FAILS_FOR_UNKNOWN_TOPICS):  # by the topics that there are now, not later
            topic_ids = {each.topic_id for each in (*valid, *errors)}
            unanswered.nameless = frozenset(each for each in topic_ids if self._topics.name_of(each) is None)
        if not valid:
            unanswered.found = unanswered.errors
            return True
        if request.share_acquire_mode is None:
            return False
        max_bytes = min(request.max_bytes, self._config.fetch_max_bytes)
        group_id = str(request.group_id)
        asked = FetchParameters(
            group_id=group_id,
            member_id=str(request.member_id),
            deadline_ms=now_ms + max(0, request.max_wait_ms),
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=request.batch_size,
            mode=request.share_acquire_mode,
            isolation=self._groups.config_of(group_id).isolation_level,
        )
        self._fetches.begin(unanswered.number, asked, valid, now_ms)
        return True

    def _fail(self, number: int, response: Response, now_ms: int) -> None:
        """Answer a request with an error of its own, whatever becomes of what follows from it."""
        del self._unanswered[number]
        self.answers.append(NodeAnswer(number, response))
        self.complete_requests(now_ms)

    def _acknowledge(self, unanswered: _Unanswered, plan: AcknowledgementPlan, now_ms: int) -> bool:
        """
        Acknowledge what *plan* passes on; after each partition the fetches that wait for it look again.

        Return False if the request fails as a whole (N4).

        Source:
            KafkaApis.handleAcknowledgements, SharePartitionManager.acknowledge (Kafka 4.4).
        """
        outcomes = unanswered.outcomes
        for partition, batches in plan.passed.items():
            led = self._led(str(unanswered.request.group_id), partition)
            if led is None:
                outcomes[partition] = _NOT_LED
                continue
            try:
                future = led.leader.acknowledge(str(unanswered.request.member_id), batches, now_ms=now_ms)
            except RequestRefusedError as refusal:
                if self._throws(led, refusal):
                    return False
                outcomes[partition] = error_of(refusal)
            else:
                unanswered.pending_count += 1
                future.add_done_callback(partial(self._take_outcome, unanswered, partition))
            self._share_partitions.take_effects(led, now_ms)
            self._wake(now_ms)
        outcomes.update((partition, PartitionError(code)) for partition, code in plan.answers.items())
        return True

    def _throws(self, led: LedPartition, refusal: RequestRefusedError) -> bool:
        """Return whether Kafka has an exception instead of *refusal*: its range reaches across the SPSO (B5)."""
        first, last = refusal.first_offset, refusal.last_offset
        if refusal.message != NOT_FOUND or first is None or last is None:
            return False
        has_quirk = NODE_PROFILES[self._config.profile.name].has(NodeQuirk.FAILS_ACROSS_THE_START)
        return has_quirk and first < led.leader.partition.start_offset <= last

    def _take_outcome(self, unanswered: _Unanswered, partition: TopicIdPartition, future: Future[None]) -> None:
        error = future.exception()
        unanswered.outcomes[partition] = NO_ERROR if error is None else error_of(error)
        unanswered.pending_count -= 1
        self._ready.append(unanswered)

    def _release(self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition], now_ms: int) -> None:
        """
        Release what a member holds of the partitions of its session, which is closed.

        Source:
            SharePartitionManager.releaseSession (Kafka 4.4).
        """
        for partition in partitions:
            if (led := self._led(group_id, partition)) is not None:
                led.leader.release(member_id, now_ms=now_ms)
                self._share_partitions.take_effects(led, now_ms)
                self._wake(now_ms)

    def _led(self, group_id: str, partition: TopicIdPartition) -> LedPartition | None:
        return self._share_partitions.find(group_id, partition.topic_id, partition.partition)

    def _wake(self, now_ms: int) -> None:
        self._fetches.wake(self._share_partitions.woken, now_ms)

    # ---- inside: answers

    def _answer(self, unanswered: _Unanswered, now_ms: int) -> None:
        """Answer a request of which nothing is missing; one that closes its session does so now."""
        # A request may become ready more than once before it is answered.
        if self._unanswered.pop(unanswered.number, None) is None:
            return
        request, context = unanswered.request, unanswered.context
        group_id, member_id = str(request.group_id), str(request.member_id)
        timeout_ms = self._groups.config_of(group_id).share.record_lock_duration_ms
        response: ShareFetchResponse | ShareAcknowledgeResponse
        if context is not None:
            response = self._fetch_response(unanswered, context, timeout_ms)
        else:
            partitions = tuple(
                ShareAcknowledgePartition(each.topic_id, each.partition, error, self._leader(each, error))
                for each, error in unanswered.outcomes.items()
            )
            response = ShareAcknowledgeResponse(ErrorCode.NONE, timeout_ms, partitions)
        if request.share_session_epoch == FINAL_EPOCH and (group_id, member_id) in self.sessions.sessions:
            self._release(group_id, member_id, self.sessions.release(group_id, member_id), now_ms)
        self.answers.append(NodeAnswer(unanswered.number, response))

    def _fetch_response(
        self, unanswered: _Unanswered, context: ShareFetchContext, timeout_ms: int
    ) -> ShareFetchResponse:
        """
        Return what the answer to a ShareFetch has of what was found, and what has come of its acknowledgements.

        Source:
            KafkaApis.processShareFetchResponse, combineShareFetchAndShareAcknowledgeResponses (Kafka 4.4).
        """
        found = unanswered.found or {}
        code, selected = context.respond(
            {
                partition: FetchedPartition(
                    sum(batch.size_in_bytes for batch in each.records),
                    each.error.error_code,
                    len(each.acquired_records),
                )
                for partition, each in found.items()
            }
        )
        if unanswered.nameless and any(each.topic_id in unanswered.nameless for each in selected):
            return ShareFetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
        outcomes, response = unanswered.outcomes, selected
        if outcomes:
            codes = {each: outcome.error_code for each, outcome in outcomes.items()}
            response = with_acknowledgements(selected, codes)
        errors = {each[:2]: outcome for each, outcome in outcomes.items()}
        partitions = []
        for each in response:
            partition = found[each] if each in selected else _partition(each)
            acknowledge_error, leader = errors.get(each[:2], NO_ERROR), self._leader(each, partition.error)
            if acknowledge_error is not NO_ERROR or leader is not NO_LEADER:
                partition = partition._replace(acknowledge_error=acknowledge_error, current_leader=leader)
            partitions.append(partition)
        return ShareFetchResponse(code, timeout_ms, tuple(partitions))

    def _leader(self, partition: TopicIdPartition, error: PartitionError) -> LeaderIdAndEpoch:
        if error.error_code not in _LED_ELSEWHERE:
            return NO_LEADER
        key = LogKey(partition.topic_id, partition.partition)
        return LeaderIdAndEpoch(self._config.node_id, self._share_partitions.leader_epochs.get(key, 0))


def _partition(partition: TopicIdPartition, error: PartitionError = NO_ERROR) -> ShareFetchPartition:
    return ShareFetchPartition(partition.topic_id, partition.partition, error)
