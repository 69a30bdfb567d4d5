"""What becomes of a ShareFetch and a ShareAcknowledge, and of the sessions that they belong to (node 2, 3, 7 and 9)."""

from __future__ import annotations

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_2,
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AutoOffsetReset,
    ErrorCode,
    Lifecycle,
    Profile,
    ShareConfig,
)
from sharestate.broker.node import (
    DeletedRecords,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    GroupConfig,
    LeaderIdAndEpoch,
    PartitionOfRequest,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from tests.support.nodes import GROUP, GROUP_CONFIG, TOPIC, Member, Node, acquired

HEALED = KAFKA_4_4.healed
OTHER_TOPIC = "IoNTqcc65nJltKVVhKBPPQ"

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def test_acknowledgements_come_before_records() -> None:
    """A ShareFetch acknowledges first: what it releases it can acquire again (node 2)."""
    node = Node()
    node.produce(3)
    member = Member(node)
    member.got(0)
    response = member.got(acknowledge={0: [AcknowledgementBatch(0, 2, (ACCEPT, RELEASE, ACCEPT))]})

    assert acquired(response) == {0: [(1, 1, 2)]}
    assert response.partitions[0].acknowledge_error == (ErrorCode.NONE, None)
    assert response.acquisition_lock_timeout_ms == 1000


def test_what_is_released_goes_to_those_who_wait() -> None:
    """A fetch that waits is woken by another member's acknowledgements, before that member's own fetch (node 7)."""
    node = Node()
    node.produce(2)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    number = second.fetch(0)
    first.fetch(acknowledge={0: [AcknowledgementBatch(0, 1, (RELEASE,))]})

    assert {each: acquired(response) for each, response in node.taken().items()} == {number: {0: [(0, 1, 2)]}}


def test_partitions_are_acknowledged_whether_or_not_they_are_fetched() -> None:
    """Each has an outcome of its own, with Kafka's text, and those that are not fetched come last (node 2)."""
    node = Node(3)
    node.produce(1)
    node.produce(1, partition=1)
    member, other = Member(node), Member(node, "m2")
    other.got(1)
    member.got(0)
    accept = AcknowledgementBatch(0, 0, (ACCEPT,))
    unknown = PartitionOfRequest(OTHER_TOPIC, 0, [accept])
    listed = [PartitionOfRequest(node.topic_id, each, [accept]) for each in (0, 1, 2)]
    number = member.send(evolve(member.acknowledgement(), partitions=[*listed, unknown]))

    assert [each[1:3] for each in node.taken()[number].partitions] == [
        (0, (ErrorCode.NONE, None)),
        (1, (ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")),
        # No fetch has opened its share partition.
        (2, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")),
        (0, (ErrorCode.UNKNOWN_TOPIC_ID, None)),
    ]


def test_the_outcome_of_no_acknowledgements_does_not_tell_of_a_new_partition() -> None:
    """What joins beside an acknowledgement has an outcome, and is told of once it was fetched (sessions 6 and 7)."""
    share = ShareConfig(max_record_locks=2, auto_offset_reset=AutoOffsetReset.earliest())
    node = Node(2, group=GroupConfig(share=share))
    node.produce(2)
    node.produce(1, partition=1)
    holder, member = Member(node, "m1"), Member(node, "m2")
    holder.got(0)  # which is full now, and left out of fetches
    member.got(1)
    accept = AcknowledgementBatch(0, 0, (ACCEPT,))
    told = [[each.partition for each in member.got(0, acknowledge={1: [accept]}).partitions]]
    holder.acknowledge(AcknowledgementBatch(0, 1, (ACCEPT,)))
    told += [[each.partition for each in member.got().partitions] for _ in range(2)]

    assert told == [[1, 0], [0], []]


def test_a_fetch_that_renews_fetches_nothing() -> None:
    """Locks begin anew, and no record is acquired, though there are some (KIP-1222; node 2)."""
    node = Node()
    node.produce(1)
    member = Member(node)
    member.got(0)
    node.produce(1)
    node.advance(900)
    renew = {0: [AcknowledgementBatch(0, 0, (RENEW,))]}
    response = member.got(acknowledge=renew, is_renew_ack=True, min_bytes=0, max_bytes=0, max_records=0)

    assert acquired(response) == {0: []}
    assert node.broker.next_deadline_ms() == 900 + 1000 + 1


def test_a_fetch_that_renews_must_not_ask_for_records() -> None:
    """It is refused as a whole, and its epoch can be used again (sessions 2)."""
    node = Node()
    member = Member(node)
    member.got(0)

    assert member.got(is_renew_ack=True) == ShareFetchResponse(ErrorCode.INVALID_REQUEST)


def test_requests_need_a_session() -> None:
    """Without one, and with another epoch than the next one, a request is refused as a whole (sessions 3)."""
    node = Node()
    member = Member(node)
    member.epoch = 5
    assert member.got() == ShareFetchResponse(ErrorCode.SHARE_SESSION_NOT_FOUND)
    assert member.acknowledge().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    member.got(0)
    member.epoch = 5

    assert member.got() == ShareFetchResponse(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    assert member.got(member_id="") == ShareFetchResponse(ErrorCode.INVALID_REQUEST)
    assert member.acknowledge(group_id=None).error_code is ErrorCode.INVALID_REQUEST


def test_a_request_that_opens_a_session_acknowledges_nothing() -> None:
    """It is refused as a whole, and the session of before stays (sessions 3)."""
    node = Node()
    member = Member(node)
    member.got(0)
    member.epoch = 0

    batches = [AcknowledgementBatch(0, 0, (ACCEPT,))]
    assert member.got(acknowledge={0: batches}) == ShareFetchResponse(ErrorCode.INVALID_REQUEST)
    member.epoch = 1
    assert member.got().error_code is ErrorCode.NONE


@pytest.mark.parametrize(("profile", "fails"), [(KAFKA_4_3, True), (KAFKA_4_4, True), (HEALED, False)])
def test_an_acknowledgement_across_the_start_of_nothing_fails_its_request(profile: Profile, *, fails: bool) -> None:
    """As brokers of 4.3.1 and 4.4.0 answer, where Kafka's leader throws (N4); its session goes on."""
    node = Node(profile=profile)
    node.produce(3)
    member = Member(node)
    member.got(0)
    member.acknowledge(AcknowledgementBatch(0, 2, (ACCEPT,)))
    across = AcknowledgementBatch(1, 4, (ACCEPT,))
    answered, fetched = member.acknowledge(across), member.got(acknowledge={0: [across]})

    if fails:
        assert answered == ShareAcknowledgeResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
        assert fetched == ShareFetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        assert answered.partitions[0].error.error_code is ErrorCode.INVALID_RECORD_STATE
        assert fetched.partitions[0].acknowledge_error.error_code is ErrorCode.INVALID_RECORD_STATE
    assert member.got().error_code is ErrorCode.NONE


@pytest.mark.parametrize(("profile", "stays"), [(KAFKA_4_3, True), (KAFKA_4_4, True), (HEALED, False)])
def test_the_start_stays_past_a_split_batch(profile: Profile, *, stays: bool) -> None:
    """As with brokers of 4.3.1 and 4.4.0, whose leader throws (N5), the next fetch begins at the log start."""
    node = Node(profile=profile)
    node.produce(10)
    member = Member(node)
    member.got(0)
    member.acknowledge(AcknowledgementBatch(0, 4, (ACCEPT,)))
    node.produce(5, 5)
    node.broker.call(DeleteRecordsRequest(partitions=[DeletedRecords(TOPIC, 0, 15)]), now_ms=node.now_ms)
    other = Member(node, "m2")
    other.got(0)  # learns where the log begins
    node.advance(1001)  # and the locks of the first one end

    assert other.acquired() == {0: [(15, 19, 1)]}
    led = node.broker.share_partition(GROUP, TOPIC, 0)
    assert led is not None
    assert [batch.first_offset for batch in led.batches()] == ([0, 15] if stays else [15])


def test_a_session_too_many_is_refused_late() -> None:
    """A member for which there is no session left waits as long as it would have for records (sessions 3)."""
    node = Node(max_share_sessions=1)
    Member(node, "m1").got(0)
    number = Member(node, "m2").fetch(0, max_wait_ms=200)

    assert node.broker.next_deadline_ms() == 200
    assert node.advance(200) == {number: ShareFetchResponse(ErrorCode.SHARE_SESSION_LIMIT_REACHED)}


def test_a_request_that_closes_a_session_releases_its_records() -> None:
    """Its own acknowledgements come first; what is left goes to a member that waits (sessions 8)."""
    node = Node()
    node.produce(2)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    number = second.fetch(0)
    closing = first.acknowledgement(AcknowledgementBatch(0, 0, (ACCEPT,)), share_session_epoch=-1)
    assert first.send(closing) == number + 1
    answers = node.taken()

    assert answers[number + 1].partitions[0].error.error_code is ErrorCode.NONE
    assert acquired(answers[number]) == {0: [(1, 1, 2)]}
    assert first.got(share_session_epoch=1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_fetch_may_close_its_session() -> None:
    """It fetches nothing, and its answer has what it acknowledges (sessions 5 and 6)."""
    node = Node()
    node.produce(2)
    member = Member(node)
    member.got(0)
    batches = [AcknowledgementBatch(0, 0, (ACCEPT,))]
    response = member.got(acknowledge={0: batches}, share_session_epoch=-1)

    assert acquired(response) == {0: []}
    assert node.broker.sessions.sessions == {}
    assert Member(node, "m2").acquired(0) == {0: [(1, 1, 2)]}


def test_an_answer_that_comes_after_the_next_request_is_stale() -> None:
    """A fetch that waits while its member sends another one has no records in the end (sessions 6)."""
    node = Node()
    member = Member(node)
    member.got(0)
    number = member.fetch()
    member.fetch()
    node.produce(1)

    assert node.taken()[number] == ShareFetchResponse(ErrorCode.INVALID_SHARE_SESSION_EPOCH, 1000)


def test_an_unknown_topic_is_an_error_of_its_partition() -> None:
    """The others are fetched (sessions 5)."""
    node = Node()
    node.produce(1)
    listed = [PartitionOfRequest(OTHER_TOPIC, 0), PartitionOfRequest(node.topic_id, 0)]
    response = Member(node).got(partitions=listed)

    assert [(each.topic_id, each.error.error_code) for each in response.partitions] == [
        (node.topic_id, ErrorCode.NONE),
        (OTHER_TOPIC, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(
    ("profile", "error"),
    [
        (KAFKA_4_2, ErrorCode.UNKNOWN_SERVER_ERROR),
        (KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR),
        (KAFKA_4_3.healed, ErrorCode.NONE),
        (KAFKA_4_4, ErrorCode.NONE),
    ],
)
def test_an_unknown_topic_may_fail_the_whole_fetch(profile: Profile, error: ErrorCode) -> None:
    """Until the session forgets it, as a broker of 4.3.1 answers, and one of 4.4.0 does not (sessions 10, S7)."""
    member = Member(Node(profile=profile))
    nowhere = [PartitionOfRequest(OTHER_TOPIC, 0)]

    assert [
        (response.error_code, response.acquisition_lock_timeout_ms)
        for response in (
            member.got(partitions=nowhere),
            member.got(),
            member.got(forgotten=nowhere),
            member.got(share_session_epoch=-1),
        )
    ] == [(error, 0 if error else 1000)] * 2 + [(ErrorCode.NONE, 1000)] * 2


def test_all_else_is_done_of_a_fetch_that_fails_for_a_deleted_topic() -> None:
    """What is acquired has a lock though nobody is told, the epoch is used up, and acknowledgements count (S7)."""
    node = Node(2, profile=KAFKA_4_3)
    other = node.create("other")
    node.produce(1, 1, partition=1)
    member, second = Member(node), Member(node, "m2")
    both = [PartitionOfRequest(other, 0), PartitionOfRequest(node.topic_id, 1)]
    assert acquired(member.got(partitions=both, max_records=1)) == {0: [], 1: [(0, 0, 1)]}
    node.broker.call(DeleteTopicsRequest(names=["other"]), now_ms=0)
    response = member.got(acknowledge={1: [AcknowledgementBatch(0, 0, (ACCEPT,))]})

    assert response == ShareFetchResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert acquired(second.got(1)) == {1: []}
    number = second.fetch(max_wait_ms=2_000)
    assert acquired(node.advance(1_001)[number]) == {1: [(1, 1, 2)]}
    assert member.got(share_session_epoch=1).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_a_fetch_that_waits_knows_the_topics_that_there_were() -> None:
    """The names of topics are taken when a request comes: one deleted meanwhile does not fail it (S7)."""
    node = Node(profile=KAFKA_4_3)
    member = Member(node)
    number = member.fetch(0)
    node.broker.call(DeleteTopicsRequest(names=["orders"]), now_ms=0)

    assert node.advance(500)[number].error_code is ErrorCode.NONE
    assert member.got().error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_deleted_topic_has_no_share_partition() -> None:
    """Who waits for it is answered at its deadline; who asks again is told (node 3)."""
    node = Node()
    member = Member(node)
    number = member.fetch(0)
    node.broker.call(DeleteTopicsRequest(names=["orders"]), now_ms=0)

    assert node.taken() == {}
    assert acquired(node.advance(500)[number]) == {}
    (partition,) = member.got().partitions
    assert partition.error.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_end_of_a_connection_closes_its_session() -> None:
    """What its member has held is available again; the last one of a group closes its share partitions (sessions 8)."""
    node = Node()
    node.produce(2)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    number = second.fetch(0)
    first.disconnect()
    assert acquired(node.taken()[number]) == {0: [(0, 1, 2)]}
    assert node.broker.share_partition("g", "orders", 0) is not None
    second.disconnect()

    assert node.broker.share_partition("g", "orders", 0) is None


@pytest.mark.parametrize(("profile", "holder"), [(KAFKA_4_4, "m1"), (HEALED, "")], ids=["kafka-4.4", "healed"])
def test_n3_a_fetch_goes_on_without_its_connection(profile: Profile, holder: str) -> None:
    """N3: records are acquired for a member that is gone; healed: they are not (node 9)."""
    node = Node(profile=profile)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.fetch(0)
    second.got(0)
    first.disconnect()
    node.produce(1)
    partition = node.broker.share_partition("g", "orders", 0)

    assert node.taken() == {}
    assert partition is not None
    assert "".join(run.member_id for batch in partition.batches() for run in batch.runs) == holder


# ---- a persister that answers late


@pytest.mark.parametrize(("profile", "is_woken"), [(KAFKA_4_4, False), (HEALED, True)], ids=["kafka-4.4", "healed"])
def test_n1_a_fetch_sleeps_when_a_release_is_stored(profile: Profile, *, is_woken: bool) -> None:
    """
    N1: what was released is not given to who waits until something else happens; healed: it is (node 9).

    The broker of 4.3.1 in `k431-seq` did so in its 72nd request: released records came 6 ms later, with a record that
    was produced then.
    """
    node = Node(profile=profile)
    node.produce(2)
    member = Member(node)
    member.got(0)
    node.persister.is_holding = True
    number = member.fetch(acknowledge={0: [AcknowledgementBatch(1, 1, (RELEASE,))]})
    node.persister.held[0].answer()

    answers = node.advance(0)
    if not is_woken:
        assert answers == {}
        node.produce(1)
        answers = node.taken()

    later = [] if is_woken else [(2, 2, 1)]
    assert acquired(answers[number]) == {0: [(1, 1, 2), *later]}


def test_an_acknowledgement_is_answered_when_it_is_stored() -> None:
    """Its answer waits for the persister, and has its error (node 2)."""
    node = Node()
    node.produce(1)
    member = Member(node)
    member.got(0)
    node.persister.is_holding = True
    number = member.send(member.acknowledgement(AcknowledgementBatch(0, 0, (ACCEPT,))))
    assert node.advance(10) == {}
    node.persister.held[0].fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    (partition,) = node.advance(0)[number].partitions

    assert partition.error.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("code", "error_code", "is_dropped"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, False),
    ],
)
def test_errors_of_the_persister_may_cost_a_share_partition(
    code: ErrorCode, error_code: ErrorCode, *, is_dropped: bool
) -> None:
    """Those that say that another leader has it, or nobody, drop it; the member is told who leads (rule 16)."""
    node = Node()
    node.produce(1)
    member = Member(node)
    member.got(0)
    node.persister.is_holding = True
    number = member.send(member.acknowledgement(AcknowledgementBatch(0, 0, (ACCEPT,))))
    node.persister.held[0].fail(code)
    (partition,) = node.advance(0)[number].partitions

    assert partition.error.error_code is error_code
    is_led_elsewhere = error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader == (LeaderIdAndEpoch(1, 0) if is_led_elsewhere else LeaderIdAndEpoch())
    assert (node.broker.share_partition("g", "orders", 0) is None) is is_dropped


def test_a_share_partition_is_fetched_once_its_state_is_loaded() -> None:
    """A fetch that opens it waits for the persister, and those that come meanwhile do (node 3)."""
    node = Node()
    node.produce(2)
    node.persister.is_holding = True
    first = Member(node, "m1").fetch(0, max_records=1)
    second = Member(node, "m2").fetch(0)
    assert node.advance(10) == {}
    node.persister.held[0].answer()
    answers = node.advance(0)

    assert acquired(answers[first]) == {0: [(0, 1, 1)]}
    assert second not in answers


@pytest.mark.parametrize("profile", [KAFKA_4_4, HEALED], ids=["kafka-4.4", "healed"])
def test_n2_a_failure_to_load_is_told_late(profile: Profile) -> None:
    """N2: who opened it is told at its deadline, who came later never; healed: both, at once (node 9)."""
    node = Node(profile=profile)
    node.persister.is_holding = True
    first, second = Member(node, "m1").fetch(0), Member(node, "m2").fetch(0)
    node.persister.held[0].fail(ErrorCode.NOT_COORDINATOR)
    answers = node.advance(0)
    if profile is KAFKA_4_4:
        assert answers == {}
        answers = node.advance(500)
    codes = {number: [each.error.error_code for each in response.partitions] for number, response in answers.items()}

    told = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert codes == {first: told, second: told if profile is HEALED else []}
    assert node.broker.share_partition("g", "orders", 0) is None


def test_a_failure_to_load_that_comes_at_once_is_told_at_once() -> None:
    """A group whose state nobody has initialized cannot be fetched for (node 3)."""
    node = Node()
    (partition,) = Member(node, group_id="nobody").got(0, max_wait_ms=500).partitions

    assert partition.error.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_dropped_share_partition_writes_on() -> None:
    """Locks run on after a failover, and their writes come too late for the state of the next leader (rule 16)."""
    node = Node()
    node.produce(1)
    first, second = Member(node, "m1"), Member(node, "m2")
    first.got(0)
    node.broker.fail_over("orders", 0, 0)
    assert second.acquired(0) == {0: [(0, 0, 1)]}
    before = len(node.persister.requests)
    node.advance(1001)
    epochs = [entry.leader_epoch for request in node.persister.requests[before:] for _, entry in request.entries()]

    assert epochs == [0, 1]
    state = node.persister.stored("g", node.topic_id, 0)
    assert state is not None
    assert state.leader_epoch == 1
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert partition.lifecycle is Lifecycle.ACTIVE


def test_settings_of_a_group_may_change() -> None:
    """What its share partitions follow at once is the profile's affair; answers name the new duration (rule 1)."""
    node = Node()
    node.produce(1, 1)
    member = Member(node)
    member.got(0, max_bytes=1)
    share = evolve(GROUP_CONFIG.share, record_lock_duration_ms=5000)
    node.broker.configure_group("g", evolve(GROUP_CONFIG, share=share), 0)
    response = member.got()

    assert response.acquisition_lock_timeout_ms == 5000
    assert node.broker.next_deadline_ms() == 1001  # of the record that was acquired before
    partition = node.broker.share_partition("g", "orders", 0)
    assert partition is not None
    assert partition.batches()[1].runs[0].lock_deadline_ms == 5000
