"""A served share partition: its clock, persister, futures, look-ups and fetch lock."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.conversation import BadRequestError
from tests.support.client import Client

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


def topic(answer: object, *, same_topic_id: bool | str = True, partition: int = 0) -> dict[str, Any]:
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
            ({"topics": [topic("ok", same_topic_id="equal")]}, "ok"),
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
    def test_an_answer_completes_the_future(self, active: Client, answer: object, status: object) -> None:
        """A well-formed answer counts; a malformed one, or an exception, fails the write (rule 11)."""
        active.acquire(0, 4)

        response = active.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=[answer])

        assert response["result"] == {"future": 0, "status": status}
        assert response["events"][0][2] == answer
        assert names(response["events"]) == ["write", "wake"] if status == "ok" else ["write"]

    def test_a_held_write_completes_its_future_and_then_wakes(self, active: Client) -> None:
        """The future comes before the wake-up of the waiting fetches."""
        active.acquire(0, 4)

        held = active.result("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])

        assert held == {"future": 0, "status": "pending"}
        assert active.events("complete", write=0, answer="ok") == [["future", 0, "ok"], ["wake"]]

    def test_a_held_write_fails_as_the_answer_says(self, active: Client) -> None:
        """The persister's code is mapped (rule 4.1), its message kept."""
        active.acquire(0, 4)
        active.ask("release", member="m1", answers=["hold"])

        assert active.events("complete", write=0, answer=FENCED) == [["future", 0, NOT_LEADER]]

    def test_a_write_is_completed_once(self, active: Client) -> None:
        """A write that was completed is not held any more."""
        active.acquire(0, 4)
        active.ask("release", member="m1", answers=["hold"])
        active.ask("complete", write=0, answer="ok")

        with pytest.raises(BadRequestError) as refusal:
            active.ask("complete", write=0, answer="ok")
        assert refusal.value.field == "write"

    def test_writes_without_an_answer_of_their_own_get_the_default(self, active: Client) -> None:
        """The default answer stays until it is set again; answers that are left over are dropped."""
        active.acquire(0, 4)
        active.ask("default_answer", answer="hold")
        active.ask("state", answers=["ok"])

        held = active.result("acknowledge", member="m1", batches=[[0, 0, [1]]])
        answered = active.result("acknowledge", member="m1", batches=[[1, 1, [1]]], answers=["ok"])

        assert (held["status"], answered["status"]) == ("pending", "ok")


class TestExpiry:
    """Acquisition locks that expire."""

    def test_each_write_is_answered_before_the_next_lock(self, active: Client) -> None:
        """Each expired lock has its write, then its wake-up; then comes the next one (rule 24.5)."""
        active.acquire(0, 4)
        active.acquire(5, 9)

        events = active.events("advance", ms=1001, answers=[FENCED, "hold"])

        assert names(events) == ["write", "wake", "write", "wake"]
        assert [event[2] for event in events if event[0] == "write"] == [FENCED, "hold"]

    def test_a_lock_has_not_expired_at_its_deadline(self, active: Client) -> None:
        """A lock expires after its deadline, not at it."""
        active.acquire(0, 4)

        assert (active.events("advance", ms=1000), active.result("timers")) == ([], 1)
        assert (names(active.events("advance", ms=1)), active.result("timers")) == (["write", "wake"], 0)

    def test_a_held_write_of_an_expiry_has_no_future(self, active: Client) -> None:
        """No future waits for the write of an expiry, and its outcome wakes nobody again."""
        active.acquire(0, 4)
        active.ask("advance", ms=1001, answers=["hold"])

        assert active.events("complete", write=0, answer="ok") == []

    def test_locks_that_a_failed_write_made_due_expire_last(self, healed: Client) -> None:
        """In a healed profile they take the answers left over, after the outcome that made them due (B15)."""
        healed.ask("open", lifecycle="ACTIVE", config={"record_lock_duration_ms": 1000})
        healed.acquire(0, 4)
        healed.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])
        assert healed.events("advance", ms=1001) == []

        events = healed.events("complete", write=0, answer=FENCED, answers=["null"])

        assert names(events) == ["future", "write", "wake"]
        assert events[1][1]["state_batches"] == [[0, 4, 0, 1]]
        assert events[1][2] == "null"

    def test_with_the_quirk_a_failed_write_is_followed_by_no_other(self, active: Client) -> None:
        """Kafka changes its memory only (B15)."""
        active.acquire(0, 4)
        active.ask("acknowledge", member="m1", batches=[[0, 4, [1]]], answers=["hold"])
        active.ask("advance", ms=1001)

        assert names(active.events("complete", write=0, answer=FENCED)) == ["future"]

    def test_the_clock_ends_at_the_largest_timestamp(self, active: Client) -> None:
        """Time beyond 2^63-1 ms is refused."""
        active.ask("advance", ms=2**62)

        with pytest.raises(BadRequestError) as refusal:
            active.ask("advance", ms=2**62)
        assert refusal.value.field == "ms"


class TestFutures:
    """Future ids."""

    def test_each_share_partition_counts_its_own_futures(self, active: Client) -> None:
        """Ids count from 0 for each key."""
        active.ask("open", key="1", lifecycle="ACTIVE")

        ids = [active.result("release", member="m1", key=key)["future"] for key in ("", "1", "", "1")]

        assert ids == [0, 0, 1, 1]

    def test_refused_acknowledgements_take_an_id(self, active: Client) -> None:
        """Reversed ranges and short lists of types are valid requests, whose futures fail with INVALID_REQUEST."""
        active.acquire(0, 4)

        results = [
            active.result("acknowledge", member="m1", batches=[batch])
            for batch in ([4, 0, [1]], [0, 4, []], [0, 4, [1, 1]], [0, 4, [9]])
        ]

        assert [result["future"] for result in results] == [0, 1, 2, 3]
        assert {result["status"]["error"] for result in results} == {"INVALID_REQUEST"}

    def test_a_key_can_be_opened_again(self, active: Client) -> None:
        """A key that is opened again has a new share partition, a new clock and new ids."""
        active.acquire(0, 4)
        active.ask("release", member="m1")
        active.ask("open", lifecycle="ACTIVE")

        assert active.state()["batches"] == []
        assert active.result("release", member="m1")["future"] == 0


class TestOpen:
    """New share partitions."""

    @pytest.mark.parametrize("lifecycle", ["EMPTY", "INITIALIZING", "ACTIVE", "FAILED", "FENCED"])
    def test_a_share_partition_can_be_opened_in_any_lifecycle_state(self, client: Client, lifecycle: str) -> None:
        """The commands that lead there take no event and no id."""
        response = client.ask("open", lifecycle=lifecycle)

        assert response["state"]["lifecycle"] == lifecycle
        assert (response["result"], response["events"]) == (None, [])
        assert client.result("release", member="m1")["future"] == 0

    def test_a_new_share_partition_is_empty_by_default(self, client: Client) -> None:
        """EMPTY is the default lifecycle state."""
        assert client.ask("open")["state"]["lifecycle"] == "EMPTY"

    def test_the_leader_epoch_is_written(self, client: Client) -> None:
        """Writes carry the leader epoch that was given."""
        client.ask("open", lifecycle="ACTIVE", leader_epoch=7)
        client.acquire(0, 4)

        assert client.events("release", member="m1")[0][1]["leader_epoch"] == 7

    def test_quiet_leaves_the_state_out(self, client: Client) -> None:
        """A quiet request is answered without a state."""
        assert client.ask("open", quiet=True) == {"result": None, "events": [], "state": None}


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
    def test_the_answer_completes_the_initialization(
        self, client: Client, answer: object, status: object, lifecycle: str
    ) -> None:
        """The read is an event with its answer, which completes the future (rule 4.1)."""
        client.ask("open")

        response = client.ask("initialize", answer=answer)

        assert response["events"] == [["read", answer]]
        assert response["result"] == {"future": 0, "status": status}
        assert response["state"]["lifecycle"] == lifecycle

    def test_a_held_read_completes_its_future_later(self, client: Client) -> None:
        """The future is pending until then."""
        client.ask("open")

        assert client.result("initialize", answer="hold") == {"future": 0, "status": "pending"}
        assert client.events("complete", write="read", answer="ok") == [["future", 0, "ok"]]

    def test_a_read_fails_after_fencing(self, client: Client) -> None:
        """An answer after fencing is ignored, and no offset is looked up for it (B14)."""
        client.ask("open")
        client.ask("initialize", answer="hold")
        client.ask("fence")

        response = client.ask("complete", write="read", answer={"start_offset": -1})

        (event,) = response["events"]
        assert event[2]["message"] == "Share partition is fenced <key>"
        assert response["state"]["lifecycle"] == "FENCED"

    @pytest.mark.parametrize(
        ("answer", "exception"),
        [({"throws": "java.lang.RuntimeException"}, "RuntimeException"), ("null_future", "NullPointerException")],
    )
    def test_a_read_that_throws_takes_no_id(self, client: Client, answer: object, exception: str) -> None:
        """The exception is raised, and the share partition stays INITIALIZING."""
        client.ask("open")

        response = client.ask("initialize", answer=answer)

        assert response["result"]["raised"]["exception"] == exception
        assert response["state"]["lifecycle"] == "INITIALIZING"
        assert client.result("initialize")["future"] == 0

    @pytest.mark.parametrize(
        ("lifecycle", "message"),
        [
            ("INITIALIZING", "Share partition is already initializing <key>"),
            ("FAILED", "Share partition failed to load <key>"),
            ("FENCED", "Share partition is fenced <key>"),
        ],
    )
    def test_only_an_empty_share_partition_is_read(self, client: Client, lifecycle: str, message: str) -> None:
        """Initialize takes an id all the same (rule 3)."""
        client.ask("open", lifecycle=lifecycle)

        response = client.ask("initialize")

        assert response["events"] == []
        assert response["result"]["future"] == 0
        assert response["result"]["status"]["message"] == message

    def test_initialize_succeeds_when_active(self, active: Client) -> None:
        """An ACTIVE share partition has nothing to read."""
        assert active.ask("initialize")["result"] == {"future": 0, "status": "ok"}


class TestLookups:
    """Finding the start offset when nothing is persisted."""

    @pytest.mark.parametrize(
        ("reset", "kind"),
        [(None, "latest"), ("latest", "latest"), ("earliest", "earliest"), ("by_duration:PT1H", "timestamp")],
    )
    def test_the_reset_strategy_decides_the_lookup(self, client: Client, reset: str | None, kind: str) -> None:
        """share.auto.offset.reset decides (rule 4.2)."""
        client.ask("open")
        client.ask("configure", config={"auto_offset_reset": reset})

        response = client.ask("initialize", answer=NOTHING, lookup={kind: 42})

        assert response["events"] == [["read", NOTHING], ["lookup", kind, 42]]
        assert response["state"]["start_offset"] == 42

    @pytest.mark.parametrize(
        ("value", "error", "message"),
        [
            (None, "OFFSET_NOT_AVAILABLE", "Offset for latest timestamp not found for topic partition: "),
            ({"exception": "java.lang.RuntimeException", "message": "broken"}, "UNKNOWN_SERVER_ERROR", "broken"),
        ],
    )
    def test_a_failed_lookup_fails_the_initialization(
        self, client: Client, value: object, error: str, message: str
    ) -> None:
        """The log does not have the offset, or fails (rule 4.2)."""
        client.ask("open")

        response = client.ask("initialize", answer=NOTHING, lookup={"latest": value})

        assert response["events"][1] == ["lookup", "latest", value]
        assert response["result"]["status"]["error"] == error
        assert response["result"]["status"]["message"].startswith(message)
        assert response["state"]["lifecycle"] == "FAILED"

    def test_a_time_beyond_the_log_fails_the_initialization(self, client: Client) -> None:
        """Looking up by duration, Kafka names the time: now less the duration (rule 4.2)."""
        client.ask("open")
        client.ask("advance", ms=5000)
        client.ask("configure", config={"auto_offset_reset": "by_duration:PT1.5S"})

        status = client.result("initialize", answer=NOTHING, lookup={"timestamp": None})["status"]

        assert status["message"].startswith("Offset for timestamp 3500 not found for topic partition: ")

    def test_the_table_can_be_replaced_while_the_read_is_held(self, client: Client) -> None:
        """The table at the time of the answer counts."""
        client.ask("open")
        client.ask("initialize", answer="hold", lookup={"latest": 1})
        client.ask("lookup", lookup={"latest": 2})

        assert client.events("complete", write="read", answer=NOTHING) == [
            ["lookup", "latest", 2],
            ["future", 0, "ok"],
        ]

    def test_complete_may_bring_its_own_table(self, client: Client) -> None:
        """A missing kind finds offset 0."""
        client.ask("open")
        client.ask("initialize", answer="hold", lookup={"latest": 1})

        events = client.events("complete", write="read", answer=NOTHING, lookup={"earliest": 3})

        assert events[0] == ["lookup", "latest", 0]


class TestFetchLock:
    """The fetch lock."""

    ANN, BOB = "KGir7ipdRBC6LOoMnLj2Lg", "7B9HbESGQzav-KId6D0Cag"

    def test_one_fetch_may_have_the_lock(self, active: Client) -> None:
        """While the lock is taken nobody gets it, its owner included (rule 6)."""
        assert [active.result("lock_fetch", id=owner) for owner in (self.ANN, self.ANN, self.BOB)] == [
            True,
            False,
            False,
        ]
        assert active.state()["internal"]["fetch_lock"] == self.ANN

    def test_any_fetch_may_release_the_lock(self, active: Client) -> None:
        """Kafka logs another id than the owner's, and releases the lock all the same (rule 6)."""
        active.ask("lock_fetch", id=self.ANN)
        active.ask("unlock_fetch", id=self.BOB)

        assert active.result("lock_fetch", id=self.BOB + "==") is True
        assert active.state()["internal"]["fetch_lock"] == self.BOB

    def test_nobody_gets_the_lock_unless_active(self, client: Client) -> None:
        """Only an active share partition is fetched for."""
        client.ask("open")

        assert client.result("lock_fetch", id=self.ANN) is False


class TestConfigure:
    """The group's configuration."""

    def test_settings_that_are_not_named_are_as_opened(self, active: Client) -> None:
        """A missing setting has the value given to open, whatever was configured before."""
        active.ask("configure", config={"record_lock_duration_ms": 5})
        active.ask("configure", config={"delivery_count_limit": 2})
        active.acquire(0, 4)

        assert active.state()["batches"] == [[0, 4, ["ACQUIRED", 1, "m1", 1000, ""]]]

    def test_no_config_is_the_opened_config(self, active: Client) -> None:
        """A group without a configuration follows the broker's."""
        active.ask("configure", config={"record_lock_duration_ms": 0})
        active.ask("configure", config=None)
        active.acquire(0, 4)

        assert active.state()["batches"][0][2][3] == 1000

    def test_renewal_can_be_switched_off(self, active: Client) -> None:
        """The switch of KIP-1222 is one of the group's."""
        active.acquire(0, 4)
        renewal = {"member": "m1", "batches": [[0, 4, [4]]]}

        allowed = active.result("acknowledge", **renewal)["status"]
        active.ask("configure", config={"renew_acknowledge_enable": False})
        refused = active.result("acknowledge", **renewal)["status"]

        assert allowed == "ok"
        assert refused["message"] == "Renewing acquisition locks is not enabled for the group."

    def test_a_config_of_zeros_is_legal(self, active: Client) -> None:
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
        {"op": "default_dlq_answer", "answer": THROWS},
        {"op": "complete", "dlq": 0, "answer": "null_future"},
        {"op": "acknowledge", "member": "m1", "batches": [[0, 4, [3]]], "dlq_answers": ["ok", THROWS]},
    ],
    ids=lambda request: f"{request['op']}-{len(str(request))}",
)
def test_an_unsupported_operation_changes_nothing(active: Client, request_: dict[str, Any]) -> None:
    """An operation that only Kafka's driver has is answered with its name."""
    active.acquire(0, 4)
    active.ask("acknowledge", member="m1", batches=[[0, 0, [1]]], answers=["hold"])
    before = active.state()

    response = active.conversation.answer(request_, 1)

    assert response == {"result": {"unsupported": request_["op"]}, "events": [], "state": before}


def test_a_share_partition_with_a_mock_timer_is_not_opened(client: Client) -> None:
    """The response has no state, because there is no share partition."""
    response = client.ask("open", timer="mock")

    assert response == {"result": {"unsupported": "open"}, "events": [], "state": None}
    with pytest.raises(BadRequestError):
        client.ask("state")


def test_a_refusal_without_a_future_is_raised(active: Client) -> None:
    """An operation that returns no future raises the core's refusal: here of a split beyond the limit."""
    active.acquire(0, 2**40)
    active.ask("release", member="m1")

    response = active.ask(
        "acquire", member="m1", mode="record_limit", batch_size=9, max_records=9, fetch_offset=0, batches=[[0, 2**40]]
    )

    assert response["result"]["raised"]["error"] == "INVALID_REQUEST"


def test_neighbors_with_the_same_visible_state_are_one_run(active: Client) -> None:
    """Neighboring records of a split batch are shown as one run, whatever led to their states."""
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
