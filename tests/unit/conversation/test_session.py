"""What a conversation does around the core: clock, persister, futures, look-ups, fetch lock."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.conversation import BadRequestError

from .speaker import Speaker

FENCED = {"error": "FENCED_STATE_EPOCH", "message": "stale"}
NOT_LEADER = {"error": "NOT_LEADER_OR_FOLLOWER", "exception": "NotLeaderOrFollowerException", "message": "stale"}
UNWRITTEN = {
    "error": "UNKNOWN_SERVER_ERROR",
    "exception": "IllegalStateException",
    "message": "Failed to write the share group state for share partition <key>",
}
UNREAD = {
    "error": "UNKNOWN_SERVER_ERROR",
    "exception": "IllegalStateException",
    "message": "Failed to initialize the share partition <key>",
}


NOTHING = {"start_offset": -1}


def names(events: list[Any]) -> list[str]:
    """Return the events' names, in order."""
    return [event[0] for event in events]


def topic(answer: object, *, same_topic_id: bool = True, partition: int = 0) -> dict[str, Any]:
    """Return a topic that answers for one partition."""
    return {"same_topic_id": same_topic_id, "partitions": [{"partition": partition, "answer": answer}]}


class TestWrites:
    """Answers to writes."""

    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            ("ok", "ok"),
            ({"error": "NONE"}, "ok"),
            ({"topics": [topic("ok")]}, "ok"),
            (FENCED, NOT_LEADER),
            ({"topics": [topic(FENCED)]}, NOT_LEADER),
            ({"exception": "java.lang.RuntimeException", "message": "broken"}, UNWRITTEN),
            ("null", UNWRITTEN),
            ({"topics": None}, UNWRITTEN),
            ({"topics": []}, UNWRITTEN),
            ({"topics": [topic("ok"), topic("ok")]}, UNWRITTEN),
            ({"topics": [topic("ok", same_topic_id=False)]}, UNWRITTEN),
            ({"topics": [topic("ok", partition=1)]}, UNWRITTEN),
        ],
    )
    def test_an_answer_settles_the_future(self, active: Speaker, answer: object, status: object) -> None:
        """A well-formed answer counts; what is malformed, or an exception, fails the write (spec 11)."""
        active.acquire(0, 4)

        response = active.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=[answer])

        assert response["result"] == {"future": 0, "status": status}
        assert response["events"][0][2] == answer
        assert names(response["events"]) == ["write", "wake"] if status == "ok" else ["write"]

    def test_a_held_write_settles_its_future_and_then_wakes(self, active: Speaker) -> None:
        """What was returned as pending is told of before the fetches that it wakes."""
        active.acquire(0, 4)

        held = active.result("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])

        assert held == {"future": 0, "status": "pending"}
        assert active.events("complete", write=0, answer="ok") == [["future", 0, "ok"], ["wake"]]

    def test_a_held_write_fails_as_the_answer_says(self, active: Speaker) -> None:
        """The persister's code is mapped (spec 4.1), its message kept."""
        active.acquire(0, 4)
        active.ask("release", member="m1", answers=["hold"])

        assert active.events("complete", write=0, answer=FENCED) == [["future", 0, NOT_LEADER]]

    def test_a_write_is_completed_once(self, active: Speaker) -> None:
        """A write that was completed is not held any more."""
        active.acquire(0, 4)
        active.ask("release", member="m1", answers=["hold"])
        active.ask("complete", write=0, answer="ok")

        with pytest.raises(BadRequestError) as refusal:
            active.ask("complete", write=0, answer="ok")
        assert refusal.value.field == "write"

    def test_writes_without_an_answer_of_their_own_get_the_default(self, active: Speaker) -> None:
        """The default answer stays until it is set again; answers that are left over are forgotten."""
        active.acquire(0, 4)
        active.ask("default_answer", answer="hold")
        active.ask("state", answers=["ok"])

        held = active.result("acknowledge", member="m1", batches=[[0, 0, [1]]])
        answered = active.result("acknowledge", member="m1", batches=[[1, 1, [1]]], answers=["ok"])

        assert (held["status"], answered["status"]) == ("pending", "ok")


class TestLapsingLocks:
    """Locks that lapse."""

    def test_each_write_is_answered_before_the_next_lock(self, active: Speaker) -> None:
        """Each lapsed lock has its write, then its wake; then comes the next one (spec 24.5)."""
        active.acquire(0, 4)
        active.acquire(5, 9)

        events = active.events("advance", ms=1001, answers=[FENCED, "hold"])

        assert names(events) == ["write", "wake", "write", "wake"]
        assert [event[2] for event in events if event[0] == "write"] == [FENCED, "hold"]

    def test_at_its_deadline_a_lock_has_not_lapsed(self, active: Speaker) -> None:
        """A lock lapses after its deadline, not at it."""
        active.acquire(0, 4)

        assert (active.events("advance", ms=1000), active.result("timers")) == ([], 1)
        assert (names(active.events("advance", ms=1)), active.result("timers")) == (["write", "wake"], 0)

    def test_a_held_write_of_a_lapsed_lock_has_no_future(self, active: Speaker) -> None:
        """Nobody waits for what a lapsed lock writes, and its outcome wakes nobody again."""
        active.acquire(0, 4)
        active.ask("advance", ms=1001, answers=["hold"])

        assert active.events("complete", write=0, answer="ok") == []

    def test_healed_locks_that_a_failed_write_made_due_come_last(self, healed: Speaker) -> None:
        """They take the answers left over, after the outcome that made them due (B15)."""
        healed.ask("open", lifecycle="ACTIVE", config={"record_lock_duration_ms": 1000})
        healed.acquire(0, 4)
        healed.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])
        assert healed.events("advance", ms=1001) == []

        events = healed.events("complete", write=0, answer=FENCED, answers=["null"])

        assert names(events) == ["future", "write", "wake"]
        assert events[1][1]["state_batches"] == [[0, 4, 0, 1]]
        assert events[1][2] == "null"

    def test_with_the_quirk_nothing_is_written_then(self, active: Speaker) -> None:
        """Kafka changes its memory only (B15)."""
        active.acquire(0, 4)
        active.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])
        active.ask("advance", ms=1001)

        assert names(active.events("complete", write=0, answer=FENCED)) == ["future"]

    def test_the_clock_ends(self, active: Speaker) -> None:
        """Time beyond what a timestamp can say is refused."""
        active.ask("advance", ms=2**62)

        with pytest.raises(BadRequestError) as refusal:
            active.ask("advance", ms=2**62)
        assert refusal.value.field == "ms"


class TestFutures:
    """Future ids."""

    def test_each_share_partition_counts_its_own(self, active: Speaker) -> None:
        """Ids count from 0 for each key."""
        active.ask("open", key="1", lifecycle="ACTIVE")

        ids = [active.result("release", member="m1", key=key)["future"] for key in ("", "1", "", "1")]

        assert ids == [0, 0, 1, 1]

    def test_refused_acknowledgements_take_one(self, active: Speaker) -> None:
        """Reversed ranges and short lists of types are valid requests, whose futures fail with INVALID_REQUEST."""
        active.acquire(0, 4)

        results = [
            active.result("acknowledge", member="m1", batches=[batch])
            for batch in ([4, 0, [1]], [0, 4, []], [0, 4, [1, 1]], [0, 4, [9]])
        ]

        assert [result["future"] for result in results] == [0, 1, 2, 3]
        assert {result["status"]["error"] for result in results} == {"INVALID_REQUEST"}

    def test_opening_again_begins_anew(self, active: Speaker) -> None:
        """A key that is opened again has a new share partition, a new clock and new ids."""
        active.acquire(0, 4)
        active.ask("release", member="m1")
        active.ask("open", lifecycle="ACTIVE")

        assert active.state()["batches"] == []
        assert active.result("release", member="m1")["future"] == 0


class TestOpen:
    """Where a share partition starts."""

    @pytest.mark.parametrize("lifecycle", ["EMPTY", "INITIALIZING", "ACTIVE", "FAILED", "FENCED"])
    def test_it_starts_where_it_is_told_to(self, speaker: Speaker, lifecycle: str) -> None:
        """The commands that lead there take no event and no id."""
        response = speaker.ask("open", lifecycle=lifecycle)

        assert response["state"]["lifecycle"] == lifecycle
        assert (response["result"], response["events"]) == (None, [])
        assert speaker.result("release", member="m1")["future"] == 0

    def test_without_a_lifecycle_it_is_empty(self, speaker: Speaker) -> None:
        """EMPTY is the default."""
        assert speaker.ask("open")["state"]["lifecycle"] == "EMPTY"

    def test_the_leader_epoch_is_written(self, speaker: Speaker) -> None:
        """Writes carry the leader epoch that was given."""
        speaker.ask("open", lifecycle="ACTIVE", leader_epoch=7)
        speaker.acquire(0, 4)

        assert speaker.events("release", member="m1")[0][1]["leader_epoch"] == 7

    def test_quiet_leaves_the_state_out(self, speaker: Speaker) -> None:
        """A quiet request is answered without a state."""
        assert speaker.ask("open", quiet=True) == {"result": None, "events": [], "state": None}


class TestInitialize:
    """Reading the persisted state."""

    @pytest.mark.parametrize(
        ("answer", "status", "lifecycle"),
        [
            ("ok", "ok", "ACTIVE"),
            ({"state_epoch": 3, "start_offset": 5, "state_batches": [[5, 9, 0, 1]]}, "ok", "ACTIVE"),
            ({"topics": [topic({"start_offset": 5})]}, "ok", "ACTIVE"),
            ({"start_offset": 5, "error": "NONE"}, "ok", "ACTIVE"),
            ({**FENCED, "start_offset": 5}, NOT_LEADER, "FAILED"),
            ("null", UNREAD, "FAILED"),
            ({"topics": None}, UNREAD, "FAILED"),
            ({"topics": [topic("ok", partition=2)]}, UNREAD, "FAILED"),
            (
                {"exception": "org.apache.kafka.common.errors.TimeoutException", "message": "late"},
                {"error": "REQUEST_TIMED_OUT", "exception": "TimeoutException", "message": "late"},
                "FAILED",
            ),
            (
                {"exception": "java.util.concurrent.TimeoutException"},
                {"error": "UNKNOWN_SERVER_ERROR", "exception": "TimeoutException", "message": None},
                "FAILED",
            ),
        ],
    )
    def test_the_answer_decides(self, speaker: Speaker, answer: object, status: object, lifecycle: str) -> None:
        """The read is told of with its answer, which settles the future (spec 4.1)."""
        speaker.ask("open")

        response = speaker.ask("initialize", answer=answer)

        assert response["events"] == [["read", answer]]
        assert response["result"] == {"future": 0, "status": status}
        assert response["state"]["lifecycle"] == lifecycle

    def test_a_held_read_settles_its_future_when_it_is_completed(self, speaker: Speaker) -> None:
        """The future is pending until then."""
        speaker.ask("open")

        assert speaker.result("initialize", answer="hold") == {"future": 0, "status": "pending"}
        assert speaker.events("complete", write="read", answer="ok") == [["future", 0, "ok"]]

    def test_after_fencing_it_fails(self, speaker: Speaker) -> None:
        """What arrives after fencing is ignored, and no offset is looked up for it (B14)."""
        speaker.ask("open")
        speaker.ask("initialize", answer="hold")
        speaker.ask("fence")

        response = speaker.ask("complete", write="read", answer={"start_offset": -1})

        (event,) = response["events"]
        assert event[2]["message"] == "Share partition is fenced <key>"
        assert response["state"]["lifecycle"] == "FENCED"

    @pytest.mark.parametrize(
        ("answer", "exception"),
        [({"throws": "java.lang.RuntimeException"}, "RuntimeException"), ("null_future", "NullPointerException")],
    )
    def test_a_read_that_throws_takes_no_id(self, speaker: Speaker, answer: object, exception: str) -> None:
        """It is raised, and the share partition stays INITIALIZING."""
        speaker.ask("open")

        response = speaker.ask("initialize", answer=answer)

        assert response["result"]["raised"]["exception"] == exception
        assert response["state"]["lifecycle"] == "INITIALIZING"
        assert speaker.result("initialize")["future"] == 0

    @pytest.mark.parametrize(
        ("lifecycle", "message"),
        [
            ("INITIALIZING", "Share partition is already initializing <key>"),
            ("FAILED", "Share partition failed to load <key>"),
            ("FENCED", "Share partition is fenced <key>"),
        ],
    )
    def test_unless_empty_nothing_is_read(self, speaker: Speaker, lifecycle: str, message: str) -> None:
        """It takes an id all the same (spec 3)."""
        speaker.ask("open", lifecycle=lifecycle)

        response = speaker.ask("initialize")

        assert response["events"] == []
        assert response["result"]["future"] == 0
        assert response["result"]["status"]["message"] == message

    def test_when_active_it_succeeds(self, active: Speaker) -> None:
        """There is nothing to do, and that is fine."""
        assert active.ask("initialize")["result"] == {"future": 0, "status": "ok"}


class TestLookups:
    """Finding the start offset when nothing is persisted."""

    @pytest.mark.parametrize(
        ("reset", "kind"),
        [(None, "latest"), ("latest", "latest"), ("earliest", "earliest"), ("by_duration:PT1H", "timestamp")],
    )
    def test_the_reset_strategy_says_what_is_looked_up(self, speaker: Speaker, reset: str | None, kind: str) -> None:
        """share.auto.offset.reset decides (spec 4.2)."""
        speaker.ask("open")
        speaker.ask("configure", config={"auto_offset_reset": reset})

        response = speaker.ask("initialize", answer=NOTHING, lookup={kind: 42})

        assert response["events"] == [["read", NOTHING], ["lookup", kind, 42]]
        assert response["state"]["start_offset"] == 42

    @pytest.mark.parametrize(
        ("value", "error", "message"),
        [
            (None, "OFFSET_NOT_AVAILABLE", "Offset for latest timestamp not found for topic partition: "),
            ({"exception": "java.lang.RuntimeException", "message": "broken"}, "UNKNOWN_SERVER_ERROR", "broken"),
        ],
    )
    def test_what_cannot_be_found_fails_the_initialisation(
        self, speaker: Speaker, value: object, error: str, message: str
    ) -> None:
        """The log does not know the offset, or fails (spec 4.2)."""
        speaker.ask("open")

        response = speaker.ask("initialize", answer=NOTHING, lookup={"latest": value})

        assert response["events"][1] == ["lookup", "latest", value]
        assert response["result"]["status"]["error"] == error
        assert response["result"]["status"]["message"].startswith(message)
        assert response["state"]["lifecycle"] == "FAILED"

    def test_a_time_that_the_log_does_not_reach_fails_the_initialisation(self, speaker: Speaker) -> None:
        """Looking up by duration, Kafka names the time: now less the duration (spec 4.2)."""
        speaker.ask("open")
        speaker.ask("advance", ms=5000)
        speaker.ask("configure", config={"auto_offset_reset": "by_duration:PT1.5S"})

        status = speaker.result("initialize", answer=NOTHING, lookup={"timestamp": None})["status"]

        assert status["message"].startswith("Offset for timestamp 3500 not found for topic partition: ")

    def test_the_table_can_be_replaced_while_the_read_is_held(self, speaker: Speaker) -> None:
        """What counts is the table at the time of the answer."""
        speaker.ask("open")
        speaker.ask("initialize", answer="hold", lookup={"latest": 1})
        speaker.ask("lookup", lookup={"latest": 2})

        assert speaker.events("complete", write="read", answer=NOTHING) == [
            ["lookup", "latest", 2],
            ["future", 0, "ok"],
        ]

    def test_completing_may_bring_its_own_table(self, speaker: Speaker) -> None:
        """A missing kind finds offset 0."""
        speaker.ask("open")
        speaker.ask("initialize", answer="hold", lookup={"latest": 1})

        events = speaker.events("complete", write="read", answer=NOTHING, lookup={"earliest": 3})

        assert events[0] == ["lookup", "latest", 0]


class TestFetchLock:
    """Who may fetch."""

    ANN, BOB = "KGir7ipdRBC6LOoMnLj2Lg", "7B9HbESGQzav-KId6D0Cag"

    def test_one_may_have_it(self, active: Speaker) -> None:
        """While it is taken nobody gets it, its owner included (spec 6)."""
        assert [active.result("lock_fetch", id=owner) for owner in (self.ANN, self.ANN, self.BOB)] == [
            True,
            False,
            False,
        ]
        assert active.state()["internal"]["fetch_lock"] == self.ANN

    def test_anybody_may_let_it_go(self, active: Speaker) -> None:
        """Kafka takes note of a stranger, and lets go all the same (spec 6)."""
        active.ask("lock_fetch", id=self.ANN)
        active.ask("unlock_fetch", id=self.BOB)

        assert active.result("lock_fetch", id=self.BOB + "==") is True
        assert active.state()["internal"]["fetch_lock"] == self.BOB

    def test_nobody_gets_it_unless_active(self, speaker: Speaker) -> None:
        """Only an active share partition is fetched for."""
        speaker.ask("open")

        assert speaker.result("lock_fetch", id=self.ANN) is False


class TestConfigure:
    """The group's configuration."""

    def test_what_is_not_named_is_as_it_was_opened(self, active: Speaker) -> None:
        """A missing key has the value given to open, whatever was configured before."""
        active.ask("configure", config={"record_lock_duration_ms": 5})
        active.ask("configure", config={"delivery_count_limit": 2})
        active.acquire(0, 4)

        assert active.state()["batches"] == [[0, 4, ["ACQUIRED", 1, "m1", 1000, ""]]]

    def test_none_is_the_opened_configuration(self, active: Speaker) -> None:
        """A group without a configuration follows the broker's."""
        active.ask("configure", config={"record_lock_duration_ms": 0})
        active.ask("configure", config=None)
        active.acquire(0, 4)

        assert active.state()["batches"][0][2][3] == 1000

    def test_renewal_can_be_switched_off(self, active: Speaker) -> None:
        """The switch of KIP-1222 is one of the group's."""
        active.acquire(0, 4)
        renewal = {"member": "m1", "batches": [[0, 4, [4]]]}

        allowed = active.result("acknowledge", **renewal)["status"]
        active.ask("configure", config={"renew_acknowledge_enable": False})
        refused = active.result("acknowledge", **renewal)["status"]

        assert allowed == "ok"
        assert refused["message"] == "Renewing acquisition locks is not enabled for the group."

    def test_zero_is_legal(self, active: Speaker) -> None:
        """Kafka's own tests set 0."""
        active.ask("configure", config={"delivery_count_limit": 0, "max_record_locks": 0, "record_lock_duration_ms": 0})
        active.acquire(0, 4)

        assert names(active.events("advance", ms=1)) == ["write", "wake"]


THROWS = {"throws": "java.lang.RuntimeException"}
FETCH = {"member": "m1", "batch_size": 100, "max_records": 500, "fetch_offset": 0, "batches": [[0, 4]]}


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "fire_lock", "first": 0, "last": 4},
        {"op": "acquire", **FETCH, "isolation": "log_end"},
        {"op": "advance", "ms": 5000, "clock": "timer"},
        {"op": "advance", "ms": 5000, "clock": "time"},
        {"op": "open", "timer": "mock"},
        {"op": "default_answer", "answer": THROWS},
        {"op": "default_answer", "answer": "null_future"},
        {"op": "acknowledge", "member": "m1", "batches": [[0, 4, [1]]], "answers": ["ok", THROWS]},
        {"op": "advance", "ms": 5000, "answers": ["null_future"]},
        {"op": "release", "member": "m1", "answers": [{"topics": [topic(THROWS)]}]},
        {"op": "complete", "write": 0, "answer": THROWS},
    ],
    ids=lambda request: f"{request['op']}-{len(str(request))}",
)
def test_what_is_not_supported_changes_nothing(active: Speaker, request_: dict[str, Any]) -> None:
    """What only Kafka's driver has is answered with its op, and changes nothing."""
    active.acquire(0, 4)
    active.ask("acknowledge", member="m1", batches=[[0, 0, [1]]], answers=["hold"])
    before = active.state()

    response = active.conversation.answer(request_, 1)

    assert response == {"result": {"unsupported": request_["op"]}, "events": [], "state": before}


def test_a_share_partition_with_a_mock_timer_is_not_opened(speaker: Speaker) -> None:
    """There is nothing whose state could be shown."""
    response = speaker.ask("open", timer="mock")

    assert response == {"result": {"unsupported": "open"}, "events": [], "state": None}
    with pytest.raises(BadRequestError):
        speaker.ask("state")


def test_what_the_core_refuses_is_raised(active: Speaker) -> None:
    """An operation without a future that the core refuses is raised: here a split beyond its limit."""
    active.acquire(0, 2**40)
    active.ask("release", member="m1")

    response = active.ask(
        "acquire", member="m1", mode="record_limit", batch_size=9, max_records=9, fetch_offset=0, batches=[[0, 2**40]]
    )

    assert response["result"]["raised"]["error"] == "INVALID_REQUEST"


def test_neighbours_that_look_alike_are_one_run(active: Speaker) -> None:
    """Records of a split batch that look alike are shown as one, whatever led there."""
    active.acquire(0, 4)
    active.ask("acknowledge", member="m1", batches=[[1, 1, [1]]])
    active.ask("acknowledge", member="m1", batches=[[2, 2, [1]]])

    assert active.state()["batches"] == [
        [
            0,
            4,
            [
                [0, 0, ["ACQUIRED", 1, "m1", 1000, ""]],
                [1, 2, ["ACKNOWLEDGED", 1, "", None, ""]],
                [3, 4, ["ACQUIRED", 1, "m1", 1000, ""]],
            ],
            "per_offset",
        ]
    ]
