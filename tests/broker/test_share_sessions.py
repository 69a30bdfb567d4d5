"""Share sessions of brokers beside the library's: the same requests, the same errors, partitions and order."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from types import MappingProxyType
from typing import Final, NamedTuple

import pytest
from attrs import define
from kio.schema.errors import ErrorCode
from kio.schema.share_acknowledge.v2.response import ShareAcknowledgeResponse
from kio.schema.share_fetch.v2.response import ShareFetchResponse

from sharestate import AcknowledgementBatch, ShareStateError
from sharestate.broker.sessions import (
    SESSION_PROFILES,
    FetchedPartition,
    Rpc,
    SessionQuirk,
    ShareFetchContext,
    ShareRequest,
    ShareSessionCache,
    TopicIdPartition,
    plan_acknowledgements,
    request_error,
)
from sharestate.coordinator.wire import topic_id_bytes, topic_id_text
from sharestate.testing.servers import RawConnection
from sharestate.testing.servers.raw_members import JOIN, partitions_of
from sharestate.testing.servers.share_sessions import (
    ACCEPT,
    NOTHING,
    RELEASE,
    RENEW,
    Acknowledgement,
    Acknowledgements,
    Fetched,
    FetchLimits,
    Partition,
    acknowledge_request,
    acknowledged_of,
    fetch_request,
    fetched_of,
)
from tests.broker.administration import delete_topic
from tests.broker.conftest import SETTINGS
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, produce
from tests.broker.share_groups import Group, connected

pytestmark = pytest.mark.broker

PROFILES: Final = {"4.3.1": "kafka-4.3", "4.4.0": "kafka-4.4"}
MOST: Final = int(SETTINGS["group.share.max.share.sessions"])
PARTITIONS: Final = 4
BATCHES: Final = 2
"""How many each partition of the topic has."""

BATCH: Final = 10
"""How many records each of them has."""

OPEN: Final = 0
CLOSE: Final = -1
QUICK: Final = FetchLimits(max_wait_ms=20)
ONE: Final = FetchLimits(max_records=1, max_wait_ms=20)
"""What acquires a whole batch of the first partition that has one."""


@define
class Topic:
    """A topic, and the log end of each of its partitions, which is the same for all of them."""

    name: str
    topic_id: str
    log_end: int = 0


class Place:
    """
    A broker with share sessions, and the library's beside it.

    Attributes:
        group: A group whose topic has a state.
        topic: The topic.
        cache: The library's sessions.
        profile: The rules of the broker's release.
        connections: Those that have not ended.
    """

    def __init__(self, group: Group, topic: Topic) -> None:
        """Begin without a session."""
        self.group, self.topic = group, topic
        self.profile = SESSION_PROFILES[PROFILES[group.broker.kafka]]
        self.cache = ShareSessionCache(MOST, self.profile)
        self.connections: list[Connection] = []

    def partitions(self, *indices: int) -> list[Partition]:
        """Return partitions of the topic."""
        return partitions_of({self.group.topic_id: indices})

    def known(self, partition: Partition) -> TopicIdPartition:
        """Return a partition as the library has it."""
        topic_id = topic_id_text(partition[0].bytes)
        return TopicIdPartition(topic_id, partition[1], self.group.topic if topic_id == self.group.topic_id else None)

    def may_read(self, _: str) -> bool:
        """Return True, as nobody is kept from reading anything."""
        return True

    def has_partition(self, _: str, partition: int) -> bool:
        """Return whether the topic has the partition."""
        return 0 <= partition < PARTITIONS


class Connection:
    """
    A member's connection to the broker, whose requests the library gets too.

    Attributes:
        member_id: The member.
        order: The partitions of its last fetch, in the order in which the library fetches them.
    """

    def __init__(self, place: Place, member_id: str, group_id: str | None = None) -> None:
        """Connect, with no session."""
        self.member_id = member_id
        self.order: list[int] = []
        self._place = place
        self._group_id = group_id or place.group.group_id
        self._raw = RawConnection(place.group.broker.address, member_id)
        place.connections.append(self)

    def fetch(
        self,
        epoch: int,
        listed: Iterable[Partition] = (),
        *,
        forgotten: Iterable[Partition] = (),
        limits: FetchLimits = QUICK,
        acknowledgements: Acknowledgements = MappingProxyType({}),
    ) -> Fetched:
        """Send a ShareFetch; the library has the same error, or the same partitions."""
        topics = {**dict.fromkeys(listed, ()), **acknowledgements}
        request = fetch_request(self._group_id, self.member_id, epoch, topics, forgotten=forgotten, limits=limits)
        fetched = fetched_of(self._raw.ask(request, ShareFetchResponse))
        try:
            context = self._place.cache.new_context(
                self._group_id,
                self.member_id,
                epoch,
                map(self._place.known, topics),
                connection_id=self.member_id,
                forgotten=map(self._place.known, forgotten),
                has_acknowledgements=bool(acknowledgements),
            )
        except ShareStateError as refused:
            expected = ErrorCode(refused.code).name
        else:
            expected = self._answer(fetched, context)
        assert fetched.error == expected
        if (epoch, expected) == (CLOSE, "none"):
            self._place.cache.release(self._group_id, self.member_id)
        return fetched

    def _answer(self, fetched: Fetched, context: ShareFetchContext) -> str:
        """Answer what the broker has found with the same partitions, and return the error's name."""
        valid, errors = context.fetch_order(self._place)
        self.order = [partition.partition for partition in valid]
        records = {self._place.known(partition): len(ranges) for partition, ranges in fetched.acquired.items()}
        # With all the records that it may have, a broker's fetch says nothing of the partitions that are left. It says
        # nothing at all where others fetch from each of them for so long as it may wait (DelayedShareFetch.onComplete).
        says_nothing_of_others = any(records.values()) or not fetched.codes
        found = {
            **{partition: FetchedPartition(error_code=code) for partition, code in errors.items()},
            **{
                partition: FetchedPartition(records_size=records[partition])
                for partition in records
                if partition in valid
            },
            **({} if says_nothing_of_others else dict.fromkeys(valid, FetchedPartition())),
        }
        answer = context.respond(found)
        assert {self._place.known(partition): code for partition, (code, _) in fetched.codes.items()} == {
            partition: each.error_code.name.lower() for partition, each in answer.partitions.items()
        }
        return answer.error_code.name.lower()

    def acknowledge(
        self, epoch: int, acknowledgements: Acknowledgements, *, renews: bool = False
    ) -> dict[Partition | None, str]:
        """Send a ShareAcknowledge; the library has the same error, or refuses the same partitions for the same."""
        place = self._place
        request = acknowledge_request(self._group_id, self.member_id, epoch, acknowledgements, renews=renews)
        codes = acknowledged_of(self._raw.ask(request, ShareAcknowledgeResponse))
        try:
            place.cache.acknowledge(self._group_id, self.member_id, epoch)
        except ShareStateError as refused:
            expected: dict[Partition | None, str] = {None: ErrorCode(refused.code).name}
            passed: set[Partition] = set()
        else:
            expected, passed = self._planned(acknowledgements, renews=renews)
        assert {at: code for at, code in codes.items() if at not in passed} == expected
        if (epoch, expected[None]) == (CLOSE, "none"):
            place.cache.release(self._group_id, self.member_id)
        return codes

    def _planned(
        self, acknowledgements: Acknowledgements, *, renews: bool
    ) -> tuple[dict[Partition | None, str], set[Partition]]:
        """Return the errors of what the library refuses, and the partitions of which share partitions decide."""
        place = self._place
        names = {place.known(partition): partition for partition in acknowledgements}
        listed = {known: [AcknowledgementBatch(*each) for each in acknowledgements[at]] for known, at in names.items()}
        plan = plan_acknowledgements(listed, place, version=2, is_renew=renews, profile=place.profile)
        answers: dict[Partition | None, str] = {None: "none"}
        answers.update((names[known], code.name.lower()) for known, code in plan.answers.items())
        return answers, {names[known] for known in plan.passed}

    def hang_up(self) -> None:
        """Close the connection without a word, and return when the broker knows it."""
        self._raw.close()
        self._place.connections.remove(self)
        self._place.cache.disconnect(self.member_id)
        question = fetch_request(self._group_id, self.member_id, 99, {})  # an epoch that no session expects here
        to = self._place.group.to
        until(lambda: fetched_of(to.ask(question, ShareFetchResponse)).error == "share_session_not_found")


@pytest.fixture(scope="module")
def topic(broker: KafkaBroker) -> Topic:
    """A topic without records."""
    return Topic("letters", broker.create_topic("letters", PARTITIONS))


@pytest.fixture
def place(broker: KafkaBroker, topic: Topic, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A group whose share partitions are there, but have no records yet, and no session on the broker."""
    with connected(broker) as to:
        group = Group(broker, to, (topic.name, topic.topic_id), group_id=request.node.name)
        place = Place(group, topic)
        until(lambda: group.beat("A", JOIN).error == "none" and group.is_initialized(PARTITIONS))
        listed = dict.fromkeys(place.partitions(*range(PARTITIONS)), ())
        opening = fetch_request(group.group_id, "first", OPEN, listed, limits=QUICK)
        until(lambda: len(fetched_of(to.ask(opening, ShareFetchResponse)).codes) == PARTITIONS)
        closing = fetch_request(group.group_id, "first", CLOSE, {})
        assert fetched_of(to.ask(closing, ShareFetchResponse)).error == "none"
        try:
            yield place
        finally:
            for connection in list(place.connections):
                connection.hang_up()


def until(holds: Callable[[], bool]) -> None:
    """Return when *holds* does."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


# ---- epochs and partitions


def test_epochs(place: Place) -> None:
    """A request has to have the epoch that the session expects, which every answer but a refusal moves on."""
    member, partitions = Connection(place, "A"), place.partitions(0)
    accepted = {partitions[0]: [(0, 0, (ACCEPT,))]}

    assert member.fetch(5).error == "share_session_not_found"
    assert member.fetch(CLOSE).error == "share_session_not_found"
    assert member.acknowledge(1, accepted) == {None: "share_session_not_found"}
    assert member.acknowledge(OPEN, accepted) == {None: "invalid_share_session_epoch"}
    assert member.fetch(OPEN, acknowledgements=accepted).error == "invalid_request"

    assert member.fetch(OPEN, partitions).error == "none"
    assert member.fetch(2).error == "invalid_share_session_epoch"
    assert member.fetch(1).error == "none"
    assert member.fetch(1).error == "invalid_share_session_epoch"
    assert member.acknowledge(2, {})[None] == "none"
    assert member.acknowledge(2, {}) == {None: "invalid_share_session_epoch"}
    assert member.fetch(3).error == "none"

    assert member.fetch(OPEN, partitions).error == "none"
    assert member.fetch(4).error == "invalid_share_session_epoch"
    assert member.fetch(CLOSE).error == "none"
    assert member.fetch(1).error == "share_session_not_found"


def test_partitions_take_turns(place: Place) -> None:
    """Each fetch begins with another one, but the one before it last; one that had records moves to the end."""
    left = dict.fromkeys(range(PARTITIONS), BATCHES)
    before = -1
    for order, partition in take_all(place).turns:
        # Where the fetch before has acquired something, the broker has to look the log up anew, and what it has looked
        # up comes last (DelayedShareFetch.combineLogReadResponse, Kafka 4.3.1).
        with_records = [each for each in order if left[each] and each != before]
        assert partition == [*with_records, before][0]
        left[partition] -= 1
        before = partition

    assert set(left.values()) == {0}


class Taken(NamedTuple):
    """
    What a member has taken.

    Attributes:
        member: The member.
        epoch: The next epoch of its session.
        first: The offset of the first record in each partition.
        turns: For each fetch the order of the library, and the partition whose records came.
    """

    member: Connection
    epoch: int
    first: int
    turns: list[tuple[list[int], int]]


def take_all(place: Place) -> Taken:
    """Write two batches to each partition, and let a member take them batch by batch."""
    broker, topic = place.group.broker, place.topic
    first = topic.log_end
    for partition in range(PARTITIONS):
        produce(broker, topic.name, BATCHES * BATCH, batch=BATCH, partition=partition)
    topic.log_end += BATCHES * BATCH
    member = Connection(place, "first")
    listed = place.partitions(*range(PARTITIONS))
    turns: list[tuple[list[int], int]] = []
    for epoch in range(PARTITIONS * BATCHES):
        acquired = member.fetch(epoch, listed if epoch == OPEN else (), limits=ONE).acquired
        ((_, taken),) = [each for each, ranges in acquired.items() if ranges]
        turns.append((member.order, taken))
    return Taken(member, PARTITIONS * BATCHES, first, turns)


def test_partitions_join_and_leave(place: Place) -> None:
    """The response has those that have joined, then what is new; what is unknown has an error."""
    member = Connection(place, "A")

    assert named(member.fetch(OPEN, place.partitions(0, 1))) == {0: "none", 1: "none"}
    assert named(member.fetch(1)) == {}
    assert named(member.fetch(2, place.partitions(1, 2), forgotten=place.partitions(0))) == {2: "none"}
    assert named(member.fetch(3, place.partitions(3), forgotten=place.partitions(3))) == {}
    assert named(member.fetch(4, place.partitions(7))) == {7: "unknown_topic_or_partition"}
    assert named(member.fetch(5)) == {7: "unknown_topic_or_partition"}
    assert named(member.fetch(CLOSE)) == {}


def test_an_unknown_topic_id(place: Place) -> None:
    """It is an error of its partition; in 4.3.1 it is one of the whole request, until the session forgets it (S7)."""
    if place.group.broker.kafka == "4.3.1":
        raw = place.group.to
        nowhere = [(uuid.UUID(int=7), 0)]
        for epoch, listed, forgotten, error in [
            (OPEN, nowhere, [], "unknown_server_error"),
            (1, [], [], "unknown_server_error"),
            (2, [], nowhere, "none"),
            (CLOSE, [], [], "none"),
        ]:
            request = fetch_request(
                place.group.group_id, "A", epoch, dict.fromkeys(listed, ()), forgotten=forgotten, limits=QUICK
            )
            assert fetched_of(raw.ask(request, ShareFetchResponse)).error == error
    else:
        member = Connection(place, "A")
        assert named(member.fetch(OPEN, [(uuid.UUID(int=7), 5)])) == {5: "unknown_topic_id"}
        assert named(member.fetch(1, place.partitions(0))) == {0: "none", 5: "unknown_topic_id"}
        assert named(member.fetch(CLOSE)) == {}


def test_a_deleted_topic(place: Place, broker: KafkaBroker) -> None:
    """It is an error of its partition; in 4.3.1 the whole fetch fails, and has acquired what it does not say (S7)."""
    gone = (uuid.UUID(bytes=topic_id_bytes(broker.create_topic("ephemeral", 1))), 0)
    (partition,) = place.partitions(0)
    raw, group_id = place.group.to, place.group.group_id

    def fetch(member_id: str, epoch: int, listed: Iterable[Partition] = ()) -> Fetched:
        request = fetch_request(group_id, member_id, epoch, dict.fromkeys(listed, ()), limits=QUICK)
        return fetched_of(raw.ask(request, ShareFetchResponse))

    assert fetch("A", OPEN, [partition, gone]).error == "none"
    delete_topic(broker, "ephemeral")
    lost = {gone: ("unknown_topic_id", 0)}
    until(lambda: (tried := fetch("B", OPEN, [gone])).error == "unknown_server_error" or tried.codes == lost)
    produce(broker, place.topic.name, BATCH, batch=BATCH)
    for index in range(1, PARTITIONS):  # as many in each, which other tests count on
        produce(broker, place.topic.name, BATCH, batch=BATCH, partition=index)
    place.topic.log_end += BATCH
    fetched = fetch("A", 1)
    if place.profile.has(SessionQuirk.FAILS_FOR_UNKNOWN_TOPICS):
        assert (fetched.error, fetched.codes) == ("unknown_server_error", {})
    else:
        assert fetched.codes == {partition: ("none", 0), gone: ("unknown_topic_or_partition", 0)}
    assert fetch("C", OPEN, [partition]).acquired == {partition: []}
    assert [fetch(member_id, CLOSE).error for member_id in "ABC"] == ["none"] * 3


def named(fetched: Fetched) -> dict[int, str]:
    """Return the errors of a response by the indices of partitions."""
    return {partition: code for (_, partition), (code, _) in fetched.codes.items()}


def test_as_many_sessions_as_may_be(place: Place) -> None:
    """One more is refused after its wait; who has one may open it again, and a connection that ends makes room."""
    members = [Connection(place, f"member-{number}") for number in range(MOST)]
    late, partitions = Connection(place, "late"), place.partitions(0)
    assert {member.fetch(OPEN, partitions).error for member in members} == {"none"}

    begun_s = time.monotonic()
    refused = late.fetch(OPEN, partitions, limits=FetchLimits(max_wait_ms=300))
    waited_s = time.monotonic() - begun_s
    assert (refused.error, waited_s >= 0.3) == ("share_session_limit_reached", True)
    assert late.fetch(1).error == "share_session_not_found"
    assert members[0].fetch(OPEN, partitions).error == "none"

    members[1].hang_up()
    assert late.fetch(OPEN, partitions).error == "none"


# ---- the end of a session


def delivered(place: Place) -> set[tuple[int, int]]:
    """Return the partitions and delivery counts of what another member gets, until it has had each partition."""
    member, found = Connection(place, "next"), set[tuple[int, int]]()
    listed = place.partitions(*range(PARTITIONS))
    epochs = count(OPEN)
    give_up_s = time.monotonic() + PATIENCE_S
    while len(found) < PARTITIONS:
        assert time.monotonic() < give_up_s
        epoch = next(epochs)
        acquired = member.fetch(epoch, listed if epoch == OPEN else ()).acquired
        found |= {(partition, each[2]) for (_, partition), ranges in acquired.items() for each in ranges}
    return found


@pytest.mark.parametrize("end", ["fetch", "acknowledge", "hang up"])
def test_what_a_session_holds_is_released_at_its_end(place: Place, end: str) -> None:
    """Whether its member closes it or its connection ends, another member gets the records, once more delivered."""
    member = take_all(place).member
    if end == "fetch":
        assert member.fetch(CLOSE).error == "none"
    elif end == "acknowledge":
        assert member.acknowledge(CLOSE, {}) == {None: "none"}
    else:
        member.hang_up()

    assert delivered(place) == {(partition, 2) for partition in range(PARTITIONS)}


def test_a_closing_request_acknowledges_first(place: Place) -> None:
    """What it accepts is not released."""
    member, _, first, _ = take_all(place)
    accepted = {partition: [(first, first + 19, (ACCEPT,))] for partition in place.partitions(0, 1)}
    assert set(member.acknowledge(CLOSE, accepted).values()) == {"none"}

    fetched = Connection(place, "next").fetch(OPEN, place.partitions(0, 2))
    assert {partition for (_, partition), each in fetched.acquired.items() if each} == {2}


# ---- acknowledgements


REFUSED: Final[list[list[Acknowledgement]]] = [
    [(5, 4, (ACCEPT,))],
    [(0, 4, ())],
    [(0, 4, (ACCEPT, ACCEPT))],
    [(0, 4, (5,))],
    [(0, 4, (-1,))],
    [(0, 4, (RENEW,))],
    [(5, 9, (ACCEPT,)), (0, 4, (ACCEPT,))],
    [(-2, 4, (ACCEPT,))],
]
"""Lists that a broker does not take: sessions 7, row 2."""


def test_lists_that_are_refused(place: Place) -> None:
    """Each is an INVALID_REQUEST, and changes nothing: in the end all can be acknowledged."""
    member, epoch, first, _ = take_all(place)
    (at,) = place.partitions(0)
    answers = [member.acknowledge(epoch + number, {at: batches})[at] for number, batches in enumerate(REFUSED)]

    assert answers == ["invalid_request"] * len(REFUSED)
    accepted = {at: [(first, first + 19, (ACCEPT,))]}
    assert member.acknowledge(epoch + len(REFUSED), accepted) == {None: "none", at: "none"}


def test_partitions_are_answered_one_by_one(place: Place) -> None:
    """Each has its own error, whether it is in the session or not; an empty list needs others that are not (S6)."""
    member, epoch, first, _ = take_all(place)
    empty, fine, reversed_, missing = place.partitions(0, 1, 2, 7)
    nowhere = (uuid.UUID(int=7), 0)
    accepted = [(first + 10, first + 19, (ACCEPT,))]
    lists = {empty: [], fine: accepted, reversed_: [(5, 4, (ACCEPT,))], missing: accepted, nowhere: accepted}

    assert member.acknowledge(epoch, lists) == {
        None: "none",
        empty: "none",
        fine: "none",
        reversed_: "invalid_request",
        missing: "unknown_topic_or_partition",
        nowhere: "unknown_topic_id",
    }
    assert member.acknowledge(epoch + 1, {fine: accepted}) == {None: "none", fine: "invalid_record_state"}
    assert member.acknowledge(epoch + 2, {empty: []}) == {None: "none"}
    renewed = {empty: [(first, first + 9, (RENEW,))]}
    assert member.acknowledge(epoch + 3, renewed, renews=True) == {None: "none", empty: "none"}
    overlapping = {empty: [(first, first + 9, (ACCEPT,)), (first + 9, first + 19, (RELEASE,))]}
    assert member.acknowledge(epoch + 4, overlapping) == {None: "none", empty: "invalid_record_state"}  # S5


def test_who_has_no_share_partition(place: Place) -> None:
    """A partition that nobody of the group has fetched from this broker cannot be acknowledged."""
    member = Connection(place, "A", "a group of its own")
    (at,) = place.partitions(0)
    member.fetch(OPEN)

    assert member.acknowledge(1, {at: [(0, 0, (ACCEPT,))]}) == {None: "none", at: "unknown_topic_or_partition"}


@pytest.mark.parametrize(
    ("group_id", "member_id", "limits", "renews", "expected"),
    [
        (None, "A", QUICK, False, "invalid_request"),
        ("g", "", QUICK, False, "invalid_request"),
        ("g", "m" * 37, QUICK, False, "invalid_request"),
        ("g", "m" * 36, QUICK, False, "share_session_not_found"),
        ("g", "A", QUICK, True, "invalid_request"),
        ("g", "A", NOTHING, True, "share_session_not_found"),
    ],
)
def test_requests_that_are_refused(  # noqa: PLR0913 - a row of a table
    broker: KafkaBroker, group_id: str | None, member_id: str, limits: FetchLimits, expected: str, *, renews: bool
) -> None:
    """A group, a member of 1 to 36 characters, and nothing to fetch in what renews: sessions 2."""
    with connected(broker) as to:
        request = fetch_request(group_id, member_id, 1, {}, limits=limits, renews=renews)
        error = fetched_of(to.ask(request, ShareFetchResponse)).error

    ours = request_error(
        ShareRequest(
            rpc=Rpc.SHARE_FETCH,
            group_id=group_id,
            member_id=member_id,
            is_renew=renews,
            max_bytes=limits.max_bytes,
            min_bytes=limits.min_bytes,
            max_records=limits.max_records,
            max_wait_ms=limits.max_wait_ms,
        )
    )
    assert error == expected
    assert (ours.error_code.name.lower() if ours else "share_session_not_found") == expected
