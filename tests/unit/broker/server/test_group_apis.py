"""What administrators ask about groups on the wire, in the oldest and the newest version of each request."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from sharestate import InMemoryPersister
from sharestate.broker.node import CreatableTopic, CreateTopicsRequest, LogRecord, ProducedBatch, ShareBroker
from sharestate.broker.server import TestBroker
from sharestate.persister import DeleteStateParameters, InitializeStateParameters, ReadSummaryParameters
from tests.support.wire_client import WireClient, id_of

DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS, HEARTBEAT, SHARE_GROUP_DESCRIBE = 15, 16, 42, 76, 77
DESCRIBE_OFFSETS, ALTER_OFFSETS, DELETE_OFFSETS = 90, 91, 92

UNKNOWN_SERVER_ERROR = -1
UNKNOWN_TOPIC_OR_PARTITION, INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND = 3, 24, 68, 69

T1 = "AAAAAAAAAAAAAAAAAAAAAg"
"""The id of the first topic of a node."""

NO_TOPIC_ID = None
"""What kio reads where there is no id."""

NO_OPERATIONS = -(2**31)
GROUP_OPERATIONS = 0b1101_0100_1000
"""READ 3, DELETE 6, DESCRIBE 8, DESCRIBE_CONFIGS 10 and ALTER_CONFIGS 11 (AclOperation, AclEntry)."""

MEMBER = "AAAAAAAAAAAAAAAAAAAAZg"


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with a topic of two partitions, of which the first one has ten records; two groups, one has a member."""
    with TestBroker(config={"group.share.assignment.interval.ms": "0"}) as broker:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="t", partition_count=2)])
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        broker.run(fill)
        with WireClient(broker.port) as client:
            assert alter(client, ("t", 0, 4))[0] == 0
            joined = client.ask(
                HEARTBEAT,
                1,
                group_id="busy",
                member_id=MEMBER,
                member_epoch=0,
                rack_id="r",
                subscribed_topic_names=["t"],
            )
            assert code(joined) == 0
        yield broker


def fill(node: ShareBroker) -> None:
    """Append ten records."""
    node.log("t", 0).append(ProducedBatch(records=[LogRecord(b"k")] * 10))


@pytest.fixture
def client(broker: TestBroker) -> Iterator[WireClient]:
    """A connection to it."""
    with WireClient(broker.port) as client:
        yield client


def code(part: Any) -> int:  # noqa: ANN401 - of kio
    """Return the number of an error code."""
    return int(part.error_code.value)


def alter(client: WireClient, *offsets: tuple[str, int, int], group_id: str = "idle") -> tuple[int, list[Any]]:
    """Alter offsets of a group, and return the error of the request and what is said of each topic."""
    topics = [
        {"topic_name": topic, "partitions": [{"partition_index": number, "start_offset": offset}]}
        for topic, number, offset in offsets
    ]
    response = client.ask(ALTER_OFFSETS, 0, group_id=group_id, topics=topics)
    return code(response), list(response.responses)


# ---- groups


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(client: WireClient, version: int) -> None:
    """States come with version 4, types with version 5."""
    listed = client.ask(LIST_GROUPS, version).groups

    assert sorted(group.group_id for group in listed) == ["busy", "idle"]
    assert {group.protocol_type for group in listed} == {"share"}
    if version >= 4:
        assert {group.group_id: group.group_state for group in listed} == {"busy": "Stable", "idle": "Empty"}
    if version >= 5:
        assert {group.group_type for group in listed} == {"share"}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"states_filter": ("stable",)}, ["busy"]),
        ({"states_filter": (" EMPTY ", "Dead")}, ["idle"]),
        ({"types_filter": ("Share",)}, ["busy", "idle"]),
        ({"types_filter": ("classic", "consumer")}, []),
        ({"types_filter": ("nonsense",)}, []),
    ],
    ids=str,
)
def test_groups_are_listed_by_states_and_types(client: WireClient, filters: dict[str, Any], found: list[str]) -> None:
    """In letters of either case (GroupMetadataManager.listGroups)."""
    assert sorted(group.group_id for group in client.ask(LIST_GROUPS, 5, **filters).groups) == found


@pytest.mark.parametrize("version", [0, 5])
def test_old_requests_find_every_group_dead(client: WireClient, version: int) -> None:
    """They are about classic groups, of which there is none."""
    for group in client.ask(DESCRIBE_GROUPS, version, groups=("busy", "none")).groups:
        assert (code(group), group.group_state, group.members) == (0, "Dead", ())


def test_a_group_that_is_not_classic_is_not_found(client: WireClient) -> None:
    """From version 6 on that is an error, which says why (KIP-1043)."""
    response = client.ask(DESCRIBE_GROUPS, 6, groups=("busy", "none"), include_authorized_operations=True)

    assert [(code(group), group.group_state, group.error_message) for group in response.groups] == [
        (GROUP_ID_NOT_FOUND, "Dead", "Group busy is not a classic group."),
        (GROUP_ID_NOT_FOUND, "Dead", "Group none not found."),
    ]
    assert {group.authorized_operations for group in response.groups} == {NO_OPERATIONS}


def test_share_groups_are_described(client: WireClient) -> None:
    """With their members and what they have."""
    # A member gets what is initialized: with its second heartbeat.
    epoch = client.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=("busy",)).groups[0].members[0].member_epoch
    client.ask(HEARTBEAT, 1, group_id="busy", member_id=MEMBER, member_epoch=epoch)
    response = client.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=("busy", "idle", "none", ""))

    busy, idle, none, nameless = response.groups
    assert (busy.group_id, busy.group_state, busy.assignor_name) == ("busy", "Stable", "simple")
    (member,) = busy.members
    assert (member.member_id, member.rack_id, member.client_id, member.client_host) == (
        MEMBER,
        "r",
        "wire",
        "/127.0.0.1",
    )
    assert (member.member_epoch, member.subscribed_topic_names) == (busy.group_epoch, ("t",))
    (topic,) = member.assignment.topic_partitions
    assert (id_of(topic.topic_id), topic.topic_name, sorted(topic.partitions)) == (T1, "t", [0, 1])
    assert (code(idle), idle.group_state, idle.members) == (0, "Empty", ())
    assert (code(none), none.error_message) == (GROUP_ID_NOT_FOUND, "Group none not found.")
    assert code(nameless) == INVALID_GROUP_ID


def test_what_may_be_done_with_a_group_is_said_if_it_is_asked(client: WireClient) -> None:
    """Everything; of a group that there is not, nothing is said."""
    asked, not_asked = (
        client.ask(SHARE_GROUP_DESCRIBE, 1, group_ids=("busy", "none"), include_authorized_operations=is_asked).groups
        for is_asked in (True, False)
    )

    assert [group.authorized_operations for group in asked] == [GROUP_OPERATIONS, NO_OPERATIONS]
    assert [group.authorized_operations for group in not_asked] == [NO_OPERATIONS] * 2


@pytest.mark.parametrize("version", [0, 2])
def test_groups_without_members_are_deleted(client: WireClient, version: int) -> None:
    """Each has an answer, whatever comes of the others."""
    results = client.ask(DELETE_GROUPS, version, groups_names=("busy", "idle", "none", "idle")).results

    assert {result.group_id: code(result) for result in results} == {
        "busy": NON_EMPTY_GROUP,
        "idle": 0,
        "none": GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 3
    assert [group.group_id for group in client.ask(LIST_GROUPS, 5).groups] == ["busy"]


# ---- offsets


def described(client: WireClient, version: int, **group: Any) -> Any:  # noqa: ANN401
    """Describe the offsets of a group."""
    (found,) = client.ask(DESCRIBE_OFFSETS, version, groups=[group]).groups
    return found


def rows(group: Any) -> list[tuple[str, int, int, int]]:  # noqa: ANN401 - of kio
    """Return topic, partition, start offset and error of each partition of a described group."""
    return [
        (topic.topic_name, part.partition_index, part.start_offset, code(part))
        for topic in group.topics
        for part in topic.partitions
    ]


@pytest.mark.parametrize("version", [0, 1])
def test_offsets_are_described(client: WireClient, version: int) -> None:
    """Those that have state; version 1 says how many records are not done."""
    group = described(client, version, group_id="idle", topics=None)

    assert (code(group), rows(group), id_of(group.topics[0].topic_id)) == (0, [("t", 0, 4, 0)], T1)
    if version == 1:
        assert group.topics[0].partitions[0].lag == 6


def test_offsets_of_what_has_no_state_are_unknown(client: WireClient) -> None:
    """That is no error: of unknown topics and partitions, such that cannot be, and of groups without a name."""
    topics = [{"topic_name": "t", "partitions": (1, 7, -1)}, {"topic_name": "u", "partitions": (0,)}]

    group = described(client, 1, group_id="idle", topics=topics)
    assert sorted(rows(group)) == [("t", -1, -1, 0), ("t", 1, -1, 0), ("t", 7, -1, 0), ("u", 0, -1, 0)]
    assert {topic.topic_name: topic.topic_id and id_of(topic.topic_id) for topic in group.topics} == {
        "t": T1,
        "u": None,
    }
    nameless = described(client, 1, group_id="", topics=topics)
    assert (code(nameless), {row[2:] for row in rows(nameless)}) == (0, {(-1, 0)})


def test_every_group_has_its_own_description(client: WireClient) -> None:
    """In the order of the request; nothing at all is asked of none."""
    groups = [
        {"group_id": "none", "topics": None},
        {"group_id": "idle", "topics": ()},
        {"group_id": "idle", "topics": None},
    ]

    response = client.ask(DESCRIBE_OFFSETS, 1, groups=groups)

    assert [(group.group_id, len(group.topics)) for group in response.groups] == [("none", 0), ("idle", 0), ("idle", 1)]
    assert client.ask(DESCRIBE_OFFSETS, 1, groups=()).groups == ()


def test_offsets_are_altered(client: WireClient) -> None:
    """Each partition has an answer; what there is not does not keep the others."""
    error, topics = alter(client, ("t", 1, 9), ("u", 0, 0))

    assert error == 0
    assert [(topic.topic_name, [code(part) for part in topic.partitions]) for topic in topics] == [
        ("t", [0]),
        ("u", [UNKNOWN_TOPIC_OR_PARTITION]),
    ]
    assert topics[1].partitions[0].error_message == "This server does not host this topic-partition."
    assert topics[1].topic_id is NO_TOPIC_ID
    assert rows(described(client, 1, group_id="idle", topics=None)) == [("t", 0, 4, 0), ("t", 1, 9, 0)]


def test_of_a_topic_that_comes_twice_the_first_one_counts(client: WireClient) -> None:
    """Kafka reads the topics into a collection that takes each once."""
    error, topics = alter(client, ("t", 0, 1), ("t", 0, 2))

    assert (error, len(topics)) == (0, 1)
    assert rows(described(client, 0, group_id="idle", topics=None)) == [("t", 0, 1, 0)]


def test_offsets_of_a_group_with_members_stay(client: WireClient) -> None:
    """Neither are they altered nor deleted."""
    assert alter(client, ("t", 0, 1), group_id="busy") == (NON_EMPTY_GROUP, [])
    deleted = client.ask(DELETE_OFFSETS, 0, group_id="busy", topics=[{"topic_name": "t"}])
    assert (code(deleted), deleted.error_message, deleted.responses) == (NON_EMPTY_GROUP, "The group is not empty.", ())


class BrokenPersister(InMemoryPersister):
    """Reads, initializes and deletes nothing once it is broken."""

    is_broken = False

    def initialize_state(self, request: InitializeStateParameters, /) -> Future[Any]:
        """Fail, or not yet."""
        return failed() if self.is_broken else super().initialize_state(request)

    def delete_state(self, request: DeleteStateParameters, /) -> Future[Any]:
        """Fail, or not yet."""
        return failed() if self.is_broken else super().delete_state(request)

    def read_summary(self, request: ReadSummaryParameters, /) -> Future[Any]:
        """Fail, or not yet."""
        return failed() if self.is_broken else super().read_summary(request)


def failed() -> Future[Any]:
    """Return a future that has failed."""
    future: Future[Any] = Future()
    future.set_exception(OSError("no disk"))
    return future


def test_a_persister_that_fails_fails_the_request() -> None:
    """Whatever is asked of it, with UNKNOWN_SERVER_ERROR and its text."""
    persister = BrokenPersister()
    with TestBroker(persister=persister) as broker, WireClient(broker.port) as client:
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
        broker.run(lambda node: node.call(topics, now_ms=node.now_ms))
        assert alter(client, ("t", 0, 4))[0] == 0
        persister.is_broken = True

        group = described(client, 1, group_id="idle", topics=None)
        deletion = client.ask(DELETE_OFFSETS, 0, group_id="idle", topics=[{"topic_name": "t"}])

        text = "The server experienced an unexpected error when processing the request."
        assert (code(group), group.error_message, group.topics) == (UNKNOWN_SERVER_ERROR, text, ())
        assert (code(deletion), deletion.error_message, deletion.responses) == (UNKNOWN_SERVER_ERROR, text, ())
        assert alter(client, ("t", 0, 1)) == (UNKNOWN_SERVER_ERROR, [])


def test_offsets_that_there_are_not(client: WireClient) -> None:
    """A topic without state is told from one that there is not, without its id, as 4.3.1 and 4.4.0 answer."""
    client.ask(DELETE_OFFSETS, 0, group_id="idle", topics=[{"topic_name": "t"}])

    topics = [{"topic_name": "t"}, {"topic_name": "none"}]
    response = client.ask(DELETE_OFFSETS, 0, group_id="idle", topics=topics)

    assert {topic.topic_name: (code(topic), topic.topic_id, topic.error_message) for topic in response.responses} == {
        "t": (UNKNOWN_TOPIC_OR_PARTITION, None, "There is no offset information to delete."),
        "none": (UNKNOWN_TOPIC_OR_PARTITION, None, "This server does not host this topic-partition."),
    }


def test_a_group_has_a_name(client: WireClient) -> None:
    """Else its offsets are neither altered nor deleted."""
    assert alter(client, ("t", 0, 1), group_id="")[0] == INVALID_GROUP_ID
    assert code(client.ask(DELETE_OFFSETS, 0, group_id="", topics=())) == INVALID_GROUP_ID


def test_offsets_are_deleted(client: WireClient) -> None:
    """By topic; those without state are unknown."""
    response = client.ask(DELETE_OFFSETS, 0, group_id="idle", topics=[{"topic_name": "t"}, {"topic_name": "u"}])

    assert code(response) == 0
    found = {topic.topic_name: (code(topic), topic.topic_id and id_of(topic.topic_id)) for topic in response.responses}
    assert found == {"t": (0, T1), "u": (UNKNOWN_TOPIC_OR_PARTITION, None)}
    assert rows(described(client, 0, group_id="idle", topics=None)) == []
    assert code(client.ask(DELETE_OFFSETS, 0, group_id="none", topics=())) == GROUP_ID_NOT_FOUND
