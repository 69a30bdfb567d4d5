"""
Records on their way to the dead-letter queue (rule 21).

What is expected is what Kafka 4.4.0 answered, in the recordings under tests/data/vectors/kafka-4.4 that the tests name.
"""

from __future__ import annotations

import json

import pytest

from sharestate import (
    KAFKA_4_3,
    KAFKA_4_4,
    PROFILES,
    BrokerWritePolicy,
    Cause,
    ErrorCode,
    InitializationError,
    InvalidRecordStateError,
    KipWritePolicy,
    MalformedInputError,
    Profile,
    ShareConfig,
    SharePartition,
    Snapshot,
    SnapshotError,
    UnknownDeadLetterError,
)
from tests.support.scenes import KEY, Scene, state

NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE
WITHOUT_B15 = Profile(
    name="without B15",
    quirks=KAFKA_4_4.quirks - {"B15"},
    configurable=KAFKA_4_4.configurable,
    has_dead_letter_queue=True,
)


def queued(*, limit: int = 5, profile: Profile = KAFKA_4_4, record_transitions: bool = False) -> Scene:
    """Return a scene of a group that has a dead-letter queue."""
    return Scene(profile=profile, queue=True, limit=limit, lock_ms=1000, record_transitions=record_transitions).load()


def delivered_as_often_as_allowed(profile: Profile = KAFKA_4_4) -> Scene:
    """Return a scene in which m1 holds 0-4 for the second time of two."""
    scene = queued(limit=2, profile=profile)
    scene.acquire("m1", 0, "[0-4]")
    assert scene.wait(1001) == ("W(0; 0-4 st0 dc1; cc 0)",)
    assert scene.acquire("m1", 0, "[0-4]") == ((0, 4, 2),)
    return scene


# ---- phase 1: which records, and when they are handed over


def test_rejected_records_are_archiving_until_the_queue_has_answered() -> None:
    """They do not count as complete, the SPSO waits for them, and the second write counts them (dlq-two-batches)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-2]")
    scene.acquire("m1", 3, "[3-5]")

    assert scene.acknowledge("m1", "0-5:reject") == ("W(0; 0-2 st3 dc1, 3-5 st3 dc1; cc 0)",)
    assert scene.dead_letters == ["0: 0-2 x1 client_reject", "1: 3-5 x1 client_reject"]
    assert scene.batches == ["[0-2] ARCHIVING/1/-", "[3-5] ARCHIVING/1/-"]

    assert scene.dead_letter(0) == ("W(0; 0-2 st4 dc1; cc 3)",)
    assert scene.effects[-1].wake
    assert scene.dead_letter(1) == ("W(3; 3-5 st4 dc1; cc 3)",)
    assert (scene.offsets, scene.partition.delivery_complete_count, scene.batches) == ((6, 6), 0, [])


def test_nothing_is_handed_over_before_its_write_has_succeeded() -> None:
    """The first write has to be answered first (dlq-reject-held)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True

    scene.acknowledge("m1", "0-4:reject")

    assert (scene.dead_letters, scene.batches) == ([], ["[0-4] ARCHIVING/1/-*"])
    scene.succeed(0)
    assert scene.dead_letters == ["0: 0-4 x1 client_reject"]


def test_a_change_that_is_not_persisted_is_rolled_back() -> None:
    """Its member holds the records again, and nothing goes to the queue (dlq-write-fails)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.failure = NOT_NOW

    assert scene.acknowledge("m1", "0-4:reject") == ("W(0; 0-4 st3 dc1; cc 0)",)

    assert (scene.dead_letters, scene.batches) == ([], ["[0-4] ACQUIRED/1/m1"])


@pytest.mark.parametrize("leave", ["release", "acknowledge"])
def test_records_given_back_at_the_limit_go_to_the_queue(leave: str) -> None:
    """The cause is the count (dlq-release-at-the-limit, dlq-session-release-at-the-limit)."""
    scene = delivered_as_often_as_allowed()

    writes = scene.release("m1") if leave == "release" else scene.acknowledge("m1", "0-4:release")

    assert writes == ("W(0; 0-4 st3 dc2; cc 0)",)
    assert scene.dead_letters == ["0: 0-4 x2 delivery_count_exceeded"]
    assert scene.dead_letter(0) == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_each_type_of_one_acknowledgement_goes_its_own_way() -> None:
    """Only what is rejected goes to the queue; a gap is archived at once (dlq-types-mixed)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")

    assert scene.acknowledge("m1", "0-4:accept,gap,release,reject,accept") == (
        "W(0; 0 st2 dc1, 1 st4 dc1, 2 st0 dc1, 3 st3 dc1, 4 st2 dc1; cc 3)",
    )
    assert scene.dead_letters == ["0: 3 x1 client_reject"]
    assert scene.dead_letter(0) == ("W(2; 3 st4 dc1; cc 2)",)
    assert not scene.effects[-1].wake
    assert scene.batches == [
        "[0-4] split: 0 ACKNOWLEDGED/1/-, 1 ARCHIVED/1/-, 2 AVAILABLE/1/-, 3 ARCHIVED/1/-, 4 ACKNOWLEDGED/1/-"
    ]


def test_a_renewed_record_can_be_rejected_with_others() -> None:
    """A renewal in the same request changes nothing about it (dlq-renew-then-reject)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-3]")

    assert scene.acknowledge("m1", "0-3:renew,reject,renew,accept") == ("W(0; 1 st3 dc1, 3 st2 dc1; cc 1)",)
    assert scene.dead_letter(0) == ("W(0; 1 st4 dc1; cc 2)",)


def test_rejections_at_the_limit_are_still_rejections() -> None:
    """A rejection is one whatever the count; what is released beside it has exceeded the count (KIP-1191)."""
    scene = delivered_as_often_as_allowed()

    scene.acknowledge("m1", "0-4:reject,release,reject,release,accept")

    assert scene.dead_letters == [
        "0: 0 x2 client_reject",
        "1: 1 x2 delivery_count_exceeded",
        "2: 2 x2 client_reject",
        "3: 3 x2 delivery_count_exceeded",
    ]


@pytest.mark.parametrize("failure", [None, NOT_NOW])
def test_an_expiry_at_the_limit_goes_to_the_queue_whatever_becomes_of_its_write(failure: ErrorCode | None) -> None:
    """The expiry stands, so its records go there too (dlq-timeout-at-the-limit, dlq-timeout-write-fails)."""
    scene = delivered_as_often_as_allowed()
    scene.failure = failure

    assert scene.wait(1001) == ("W(0; 0-4 st3 dc2; cc 0)",)

    assert scene.dead_letters == ["0: 0-4 x2 delivery_count_exceeded"]
    assert scene.dead_letter(0) == ("W(0; 0-4 st4 dc2; cc 5)",)
    assert scene.offsets == (5, 5)


def test_an_expiry_record_by_record_hands_over_record_by_record() -> None:
    """Each record has a write, a request and a second write (dlq-timeout-split-batch)."""
    scene = queued(limit=2)
    scene.acquire("m1", 0, "[0-3]")
    scene.wait(1001)
    scene.acquire("m1", 0, "[0-3]")
    assert scene.acknowledge("m1", "1:accept") == ("W(0; 1 st2 dc2; cc 1)",)
    scene.now_ms += 1001

    assert scene.expire() == ("W(0; 0 st3 dc2; cc 1)",)
    assert scene.dead_letter(0) == ("W(0; 0 st4 dc2; cc 2)",)
    assert scene.expire() == ("W(2; 2 st3 dc2; cc 0)",)
    assert scene.dead_letter(1) == ("W(2; 2 st4 dc2; cc 1)",)


def test_below_the_start_nothing_goes_to_the_queue() -> None:
    """What the log start has passed is archived at once (dlq-release-split-by-log-start)."""
    scene = delivered_as_often_as_allowed()
    scene.partition.advance_log_start(3)

    assert scene.release("m1") == ("W(3; 0 st4 dc2, 1 st4 dc2, 2 st4 dc2, 3 st3 dc2, 4 st3 dc2; cc 0)",)

    assert scene.dead_letters == ["0: 3 x2 delivery_count_exceeded", "1: 4 x2 delivery_count_exceeded"]


# ---- while they are archiving


def test_archiving_records_are_in_flight_and_belong_to_nobody() -> None:
    """They cannot be acknowledged, and no session or lock gives them back (dlq-acknowledge-archiving)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "0-4:reject")
    with pytest.raises(InvalidRecordStateError, match="The batch is not in the acquired state"):
        scene.acknowledge("m1", "0-4:accept")
    assert scene.acknowledge("m1", "5:reject") == ("W(0; 5 st3 dc1; cc 0)",)
    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "5-6:accept")

    assert scene.release("m1") == ("W(0; 6 st0 dc1, 7 st0 dc1, 8 st0 dc1, 9 st0 dc1; cc 0)",)
    assert scene.wait(1001) == ()
    assert scene.batches == ["[0-4] ARCHIVING/1/-", "[5-9] split: 5 ARCHIVING/1/-, 6-9 AVAILABLE/1/-"]


def test_archiving_records_take_room_and_hold_the_start_back() -> None:
    """With a full cache nothing is acquired until the queue answers (dlq-blocks-the-start)."""
    scene = Scene(profile=KAFKA_4_4, queue=True, max_locks=10).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "0-4:reject")
    assert scene.acknowledge("m1", "5-9:accept") == ("W(0; 5-9 st2 dc1; cc 5)",)
    assert (scene.partition.next_fetch_offset(), scene.partition.can_acquire()) == (10, False)

    assert scene.dead_letter(0) == ("W(0; 0-4 st4 dc1; cc 10)",)

    assert (scene.offsets, scene.partition.can_acquire()) == ((10, 10), True)


def test_the_log_start_may_pass_them() -> None:
    """They are archived like others, and those below the SPSO do not count (dlq-log-start-during-first-write)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.is_holding = True
    scene.acknowledge("m1", "0-9:reject")
    scene.partition.advance_log_start(7)
    scene.succeed(0)
    scene.is_holding = False

    assert scene.dead_letters == ["0: 0-4 x1 client_reject", "1: 5-9 x1 client_reject"]
    assert scene.dead_letter(0) == ("W(7; 0-4 st4 dc1; cc 0)",)
    assert not scene.effects[-1].wake
    assert scene.dead_letter(1) == ("W(7; 5-9 st4 dc1; cc 3)",)
    assert scene.offsets == (10, 10)


def test_requests_may_be_answered_in_any_order() -> None:
    """Each is archived when it is answered, and the SPSO waits for the first."""
    scene = queued()
    scene.acquire("m1", 0, "[0-2][3-5]", cut=3)
    scene.acknowledge("m1", "0-5:reject")

    assert scene.dead_letter(1) == ("W(0; 3-5 st4 dc1; cc 3)",)
    assert scene.offsets == (0, 5)
    assert scene.dead_letter(0) == ("W(0; 0-2 st4 dc1; cc 6)",)
    assert scene.offsets == (6, 6)


def test_a_request_is_answered_once() -> None:
    """Another answer is refused and says so, and nothing has changed."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:reject")
    scene.dead_letter(0)
    before = scene.partition.snapshot()

    for number in (0, 1):
        with pytest.raises(UnknownDeadLetterError, match="answered already; the next one is 1") as refused:
            scene.partition.dead_letter_answered(number)
        assert refused.value.number == number
    assert scene.partition.snapshot() == before


def test_a_second_write_that_fails_changes_nothing() -> None:
    """The records stay archived, and the SPSO passes them (dlq-second-write-fails)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-9]")
    scene.acknowledge("m1", "0-4:reject")
    scene.failure = NOT_NOW

    assert scene.dead_letter(0) == ("W(0; 0-4 st4 dc1; cc 5)",)

    assert scene.effects[-1].wake
    assert (scene.offsets, scene.batches) == ((5, 9), ["[5-9] ACQUIRED/1/m1"])


def test_a_fenced_share_partition_goes_on() -> None:
    """The second write has the old epochs (KIP-1191)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:reject")
    scene.partition.fence()

    assert scene.dead_letter(0) == ("W(0; 0-4 st4 dc1; cc 5)",)


def test_switching_the_queue_off_later_does_not_stop_it() -> None:
    """The setting that counts is that of the change (dlq-switched-off-meanwhile)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:reject")
    scene.partition.configure(ShareConfig())
    scene.is_holding = False
    scene.succeed(0)

    assert scene.dead_letters == ["0: 0-4 x1 client_reject"]
    scene.acquire("m1", 5, "[5-9]")
    assert scene.acknowledge("m1", "5-9:reject") == ("W(0; 5-9 st4 dc1; cc 5)",)


# ---- locks that expire during the first write


def test_with_kafkas_bugs_a_lost_write_archives_past_the_queue_and_uncounted() -> None:
    """B15 archives in memory only, and B23 does not count it: the count falls below zero (dlq-B23-negative-count)."""
    scene = delivered_as_often_as_allowed()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:reject")
    assert scene.wait(1001) == ()
    scene.fail(1, NOT_NOW)
    scene.is_holding = False
    assert (scene.batches, scene.dead_letters) == (["[0-4] ARCHIVED/2/-"], [])
    assert scene.partition.delivery_complete_count == 0

    scene.acquire("m1", 5, "[5-9]")
    scene.acquire("m1", 10, "[10-14]")
    assert scene.acknowledge("m1", "5-9:accept") == ("W(0; 5-9 st2 dc1; cc 5)",)
    assert (scene.offsets, scene.partition.delivery_complete_count) == ((10, 14), -5)


def test_below_the_limit_they_are_offered_again() -> None:
    """B15 takes the records from their member, and nothing goes to the queue (dlq-write-fails-after-expiry)."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:reject")
    scene.wait(1001)
    scene.fail(0, NOT_NOW)

    assert (scene.batches, scene.dead_letters) == (["[0-4] AVAILABLE/1/-"], [])


def test_without_b23_alone_they_are_counted() -> None:
    """Counted as they are archived, the complete count is that of the terminal records."""
    profile = Profile(
        name="without B23",
        quirks=KAFKA_4_4.quirks - {"B23"},
        configurable=KAFKA_4_4.configurable,
        has_dead_letter_queue=True,
    )
    scene = delivered_as_often_as_allowed(profile)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:reject")
    scene.wait(1001)
    scene.fail(1, NOT_NOW)

    assert (scene.batches, scene.partition.delivery_complete_count) == (["[0-4] ARCHIVED/2/-"], 5)


@pytest.mark.parametrize("profile", [KAFKA_4_4.healed, WITHOUT_B15])
def test_healed_they_expire_again_and_go_to_the_queue(profile: Profile) -> None:
    """Rolled back, their lock is due at once, and the expiry hands them over."""
    scene = delivered_as_often_as_allowed(profile)
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:reject")
    scene.wait(1001)
    scene.fail(1, NOT_NOW)
    scene.is_holding = False

    assert scene.wait(0) == ("W(0; 0-4 st3 dc2; cc 0)",)
    assert scene.dead_letters == ["0: 0-4 x2 delivery_count_exceeded"]


# ---- initialization


def test_archiving_records_that_are_read_go_to_the_queue_again() -> None:
    """In their order; the cause is guessed from the count, which alone is persisted (dlq-initialize-resumes)."""
    scene = Scene(profile=KAFKA_4_4, queue=True).load(10, "[10-14 st3][15-19 st3 dc5][20-24 st0 dc5]")

    assert scene.dead_letters == ["0: 10-14 x1 client_reject", "1: 15-19 x5 delivery_count_exceeded"]
    assert scene.dead_letter(0) == ("W(10; 10-14 st4 dc1; cc 5)",)
    assert scene.dead_letter(1) == ("W(15; 15-19 st4 dc5; cc 5)",)
    assert (scene.offsets, scene.partition.next_fetch_offset()) == ((20, 24), 20)


def test_without_a_queue_they_go_there_all_the_same() -> None:
    """Whoever carries it out refuses, and they are archived (dlq-initialize-resumes-without-queue)."""
    scene = Scene(profile=KAFKA_4_4).load(10, "[10-14 st3]")

    assert scene.dead_letters == ["0: 10-14 x1 client_reject"]
    assert scene.partition.next_fetch_offset() == 15
    assert scene.dead_letter(0) == ("W(10; 10-14 st4 dc1; cc 5)",)
    assert scene.offsets == (15, 15)


@pytest.mark.parametrize("name", ["kafka-4.2", "kafka-4.3", "kip-932"])
def test_before_4_4_a_coordinator_never_stores_them(name: str) -> None:
    """The initialization fails (rule 24.2)."""
    partition = SharePartition(KEY, profile=PROFILES[name])
    partition.initialize()

    error = partition.read_succeeded(state(10, "[10-14 st3]")).error

    assert isinstance(error, InitializationError)
    assert error.reason == "state batch 10-14 has state 3, which is never persisted"


def test_an_initialization_that_fails_resumes_nothing() -> None:
    """What was read before the fault stays where it is (dlq-initialize-fails)."""
    partition = SharePartition(KEY)
    partition.initialize()

    effects = partition.read_succeeded(state(10, "[10-14 st3][5-9 st0]"))

    assert (effects.error is not None, effects.dead_letters) == (True, ())


# ---- settings and profiles


def test_a_profile_without_one_refuses_a_queue() -> None:
    """A queue under an older release is an error, and says of which."""
    with pytest.raises(MalformedInputError, match=r"kafka-4\.3 has no dead-letter queue") as refused:
        SharePartition(KEY, profile=KAFKA_4_3, config=ShareConfig(dead_letter_queue=True))
    assert refused.value.field == "config.dead_letter_queue"


def test_a_profile_without_one_keeps_it_switched_off() -> None:
    """``configure`` takes what the profile lets change, and no more."""
    partition = SharePartition(KEY, profile=KAFKA_4_3)

    partition.configure(ShareConfig(dead_letter_queue=True))

    assert not partition.config.dead_letter_queue


def test_a_queue_goes_with_the_writes_of_brokers() -> None:
    """The KIP's policy is older than the queue, and leaves out writes that it needs."""
    with pytest.raises(MalformedInputError, match="goes with a BrokerWritePolicy"):
        Profile(name="mine", write_policy=KipWritePolicy(), has_dead_letter_queue=True)
    with pytest.raises(MalformedInputError, match="dead_letter_queue is a setting of profiles that have"):
        Profile(name="mine", write_policy=BrokerWritePolicy(), configurable=frozenset({"dead_letter_queue"}))


# ---- copies and transitions


def test_a_snapshot_keeps_what_is_on_its_way() -> None:
    """Restored in the middle, every request and write is answered as by the original."""
    scene = queued(limit=2)
    scene.acquire("m1", 0, "[0-4]")
    scene.wait(1001)
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[5-7][8-9]", cut=2)
    scene.acknowledge("m1", "8-9:reject")
    scene.is_holding = True
    scene.acknowledge("m1", "5-6:reject")
    scene.wait(1001)
    assert scene.dead_letter(0) == ("W(0; 8-9 st4 dc1; cc 2)",)

    text = scene.partition.snapshot().to_json()
    twin = SharePartition.restore(Snapshot.from_json(text))
    twin.check()
    for partition in (scene.partition, twin):
        for number in sorted(row.number for row in partition.snapshot().writes):
            partition.write_succeeded(number)
        for row in partition.snapshot().dead_letters:
            partition.dead_letter_answered(row.number)

    assert twin.snapshot() == scene.partition.snapshot()
    assert Snapshot.from_json(text).to_json() == text


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"next_dead_letter": 0}, "dead_letters[0][0]"),
        ({"next_dead_letter": 2**62}, "next_dead_letter"),
        ({"dead_letters": []}, "batches"),
        ({"dead_letters": [[0, [0, 4, 1, "client_reject"]], [0, [0, 4, 1, "client_reject"]]]}, "dead_letters"),
        ({"dead_letters": [[0, [0, 4, 1, "client_reject"]], [1, [0, 4, 1, "client_reject"]]]}, "batches"),
    ],
)
def test_a_snapshot_that_loses_or_repeats_a_dead_letter_is_refused(change: dict[str, object], where: str) -> None:
    """What is wrong is named by its path."""
    scene = queued()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:reject")
    spoiled = {**json.loads(scene.partition.snapshot().to_json()), "next_dead_letter": 2, **change}

    with pytest.raises(SnapshotError) as refused:
        SharePartition.restore(Snapshot.from_json(json.dumps(spoiled)))
    assert refused.value.field == where


def test_a_snapshot_with_a_queue_that_its_profile_lacks_is_refused() -> None:
    """A setting that the rules do not know is no setting."""
    spoiled = json.loads(Scene(profile=KAFKA_4_3).load().partition.snapshot().to_json())
    spoiled["config"]["dead_letter_queue"] = True

    with pytest.raises(SnapshotError, match=r"kafka-4\.3 has none") as refused:
        SharePartition.restore(Snapshot.from_json(json.dumps(spoiled)))
    assert refused.value.field == "config.dead_letter_queue"


def test_transitions_say_why_records_are_archiving() -> None:
    """First the cause with the first write, then the queue's answer with the second."""
    scene = queued(record_transitions=True)
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "0-4:reject")
    scene.dead_letter(0)

    seen = [(step.cause, step.state.name, step.write) for effects in scene.effects for step in effects.transitions]
    assert seen == [
        (Cause.ACQUIRED, "ACQUIRED", None),
        (Cause.REJECTED, "ARCHIVING", 0),
        (Cause.CONFIRMED, "ARCHIVING", 0),
        (Cause.DEAD_LETTERED, "ARCHIVED", 1),
        (Cause.PASSED, "ARCHIVED", None),
    ]


def test_at_the_limit_the_transition_names_the_limit() -> None:
    """Whether or not they go to the queue, the limit is why they are not offered again."""
    scene = delivered_as_often_as_allowed()
    recording = SharePartition.restore(scene.partition.snapshot(), record_transitions=True)

    (step,) = recording.release("m1", now_ms=scene.now_ms).transitions

    assert (step.cause, step.state.name) == (Cause.ARCHIVED_AT_LIMIT, "ARCHIVING")
