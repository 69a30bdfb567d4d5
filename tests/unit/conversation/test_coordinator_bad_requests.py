"""Lines that are not valid requests to a share coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.conversation import BadRequestError, CoordinatorConversation
from sharestate.conversation.coordinator import served_coordinator
from sharestate.conversation.coordinator.conversation import MAX_COORDINATORS
from sharestate.conversation.coordinator.grammar import MAX_BATCHES, MAX_ENTRIES, MAX_RECORDS
from sharestate.coordinator import COORDINATOR_4_3

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
OPEN = {"op": "open", "partitions": 2, "topics": {TOPIC: 9}}
ENTRY = {"topic": TOPIC, "partition": 0, "state_epoch": 1}
RECORD = {"type": "snapshot", "group": "g", "topic": TOPIC, "partition": 0}


def asked(op: str, *entries: Any, **fields: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a request for share partitions of the group ``g``."""
    return {"op": op, "group": "g", "entries": list(entries), **fields}


BAD = [
    ({}, "op"),
    ({"op": "acquire"}, "op"),
    ({"op": "state", "key": "elsewhere"}, "key"),
    ({"op": "state", "key": "k" * 257}, "key"),
    ({"op": "state", "quiet": None}, "quiet"),
    ({"op": "state", "append": "ok"}, "append"),
    ({"op": "open", "partitions": 0}, "partitions"),
    ({"op": "open", "partitions": 257}, "partitions"),
    ({"op": "open", "now": -1}, "now"),
    ({"op": "open", "config": {"updates_per_snapshot": 501}}, "config.updates_per_snapshot"),
    ({"op": "open", "config": {"cold_interval_ms": 0}}, "config.cold_interval_ms"),
    ({"op": "open", "topics": {"t": 1}}, "topics"),
    ({"op": "open", "topics": {TOPIC: -1}}, f"topics.{TOPIC}"),
    ({"op": "open", "order": "any"}, "order"),
    ({"op": "read", "entries": []}, "group"),
    (asked("read", group="\ud800"), "group"),
    (asked("read", {"partition": 0}), "entries[0].topic"),
    (asked("read", ENTRY, {**ENTRY, "topic": "short"}), "entries[1].topic"),
    (asked("read", {**ENTRY, "topic": TOPIC[:-1] + "x"}), "entries[0].topic"),
    (asked("read", {**ENTRY, "partition": 2**31}), "entries[0].partition"),
    (asked("write", {**ENTRY, "batches": [[0, 9, 0]]}), "entries[0].batches[0]"),
    (asked("write", {**ENTRY, "batches": [[0, 9, 128, 1]]}), "entries[0].batches[0][2]"),
    (asked("write", {**ENTRY, "batches": [[0, 9, 0, 2**15]]}), "entries[0].batches[0][3]"),
    (asked("write", {**ENTRY, "batches": [[0, 9, 0, 1]] * (MAX_BATCHES + 1)}), "entries[0].batches"),
    (asked("write", *[ENTRY] * (MAX_ENTRIES + 1)), "entries"),
    (asked("write", *[{**ENTRY, "batches": [[0, 9, 0, 1]] * MAX_BATCHES}] * 2), "entries"),
    (asked("write", ENTRY, append="later"), "append"),
    (asked("write", ENTRY, append={"error": "NONE"}), "append.error"),
    (asked("write", ENTRY, append={"error": "NO_SUCH_ERROR"}), "append.error"),
    ({"op": "cold", "shard": 2}, "shard"),
    ({"op": "cold", "shard": -1}, "shard"),
    ({"op": "metadata", "topics": {TOPIC: 1}, "shard": 2}, "shard"),
    ({"op": "metadata", "delete": ["t"]}, "delete[0]"),
    ({"op": "advance", "ms": -1}, "ms"),
    ({"op": "advance", "ms": 2**63 - 1}, "ms"),
    ({"op": "commit", "upto": 2**63}, "upto"),
    ({"op": "timeout"}, "pending"),
    ({"op": "restart", "keep": "all"}, "keep"),
    ({"op": "restart", "keep": True}, "keep"),
    ({"op": "fold", "shard": 2, "records": []}, "shard"),
    ({"op": "fold", "records": [RECORD] * (MAX_RECORDS + 1)}, "records"),
    ({"op": "fold", "records": [{**RECORD, "offset": -1}]}, "records[0].offset"),
    ({"op": "fold", "records": [{**RECORD, "data": {"batches": [[0, 0, 0, 0]] * MAX_BATCHES}}] * 2}, "records"),
    ({"op": "replay", "offset": 0, "record": {**RECORD, "type": "tombstone"}}, "record.type"),
    ({"op": "replay", "offset": 0, "record": {**RECORD, "partition": -1}}, "record.partition"),
    ({"op": "replay", "offset": 0, "record": {**RECORD, "data": {"created": 2**63}}}, "record.data.created"),
    ({"op": "decode", "record": {"key": "AA=B"}}, "record.key"),
    ({"op": "decode", "record": {"key": "AAAA", "value": "\u00e9"}}, "record.value"),
    ({"op": "encode", "record": {**RECORD, "type": "update", "data": {"state_epoch": 1}}}, "record.data.state_epoch"),
    ({"op": "route", "group": "g", "topic": TOPIC, "partition": 0, "partitions": 0}, "partitions"),
    ({"op": "route", "group": "g", "topic": None, "partition": 0}, "topic"),
    ({"op": "combine", "existing": [], "new": [[5, 2, 2, 2]]}, "new[0]"),
    ({"op": "combine", "existing": []}, "new"),
]


@pytest.fixture
def opened() -> CoordinatorConversation:
    """A conversation with a coordinator that stores one share partition, and an operation that is pending."""
    conversation = CoordinatorConversation(COORDINATOR_4_3)
    conversation.answer({**OPEN, "now": 1}, 1)
    conversation.answer(asked("initialize", ENTRY), 2)
    assert conversation.answer(asked("read", {**ENTRY, "leader_epoch": 1}, append="hold"), 3)["result"] == [
        {"pending": 0}
    ]
    return conversation


@pytest.mark.parametrize(("request_", "field"), BAD, ids=[f"{number} {field}" for number, (_, field) in enumerate(BAD)])
def test_a_bad_request_names_the_field_and_changes_nothing(
    opened: CoordinatorConversation, request_: dict[str, Any], field: str
) -> None:
    """The error has the line and the path of the wrong part."""
    before = opened.answer({"op": "state"}, 4)

    with pytest.raises(BadRequestError) as refusal:
        opened.answer(request_, 5)

    assert (refusal.value.line, refusal.value.field) == (5, field)
    assert opened.answer({"op": "state"}, 6) == before


def test_a_bad_request_takes_no_number(opened: CoordinatorConversation) -> None:
    """The next operation that is pending is number 1."""
    with pytest.raises(BadRequestError):
        opened.answer(asked("write", ENTRY, {}, append="hold"), 4)

    assert opened.answer(asked("summary", ENTRY), 5)["result"] == [{"pending": 1}]


def test_the_order_of_kafkas_maps_is_not_supported() -> None:
    """Nothing is opened then."""
    conversation = CoordinatorConversation(COORDINATOR_4_3)

    response = conversation.answer({"op": "open", "order": "kafka"}, 1)

    assert response == {"result": {"unsupported": "open"}, "records": [], "events": [], "state": None}
    with pytest.raises(BadRequestError, match="no share coordinator is open"):
        conversation.answer({"op": "state"}, 2)


def test_there_is_a_limit_to_coordinators() -> None:
    """One more is refused; one of them can be opened anew."""
    conversation = CoordinatorConversation(COORDINATOR_4_3)
    for number in range(MAX_COORDINATORS):
        conversation.answer({"op": "open", "key": str(number)}, number)

    with pytest.raises(BadRequestError) as refusal:
        conversation.answer({"op": "open", "key": "one more"}, 100)
    assert refusal.value.field == "key"
    assert conversation.answer({"op": "open", "key": "0"}, 101)["result"] is None


def test_there_is_a_limit_to_what_is_stored_of_a_share_partition(opened: CoordinatorConversation) -> None:
    """Writes that might lead beyond it are refused, all of their entries; what needs no room is not."""
    batches = [[2 * number, 2 * number, 2, 1] for number in range(MAX_BATCHES)]
    opened.answer({"op": "flush"}, 4)
    (result,) = opened.answer(asked("write", {**ENTRY, "leader_epoch": 1, "batches": batches}), 5)["result"]
    assert result["error"] == "NONE"

    with pytest.raises(BadRequestError, match="state batches"):
        opened.answer(asked("write", {**ENTRY, "partition": 1}, {**ENTRY, "batches": [[1, 1, 2, 1]]}), 5)
    update = {**RECORD, "type": "update", "data": {"batches": [[1, 1, 2, 1]]}}
    with pytest.raises(BadRequestError, match="state batches"):
        opened.answer({"op": "replay", "offset": 9, "record": update}, 6)
    assert (
        opened.answer(asked("write", {**ENTRY, "leader_epoch": 1, "start_offset": 9000}), 7)["result"][0]["error"]
        == "NONE"
    )


def test_there_is_a_limit_to_a_log(opened: CoordinatorConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """With records held back, too, what writes is refused when the log is full; deleting makes room."""
    monkeypatch.setattr(served_coordinator, "MAX_LOG", 100)

    with pytest.raises(BadRequestError, match="the log is full"):
        opened.answer(asked("initialize", ENTRY), 4)
    opened.answer(asked("delete", ENTRY), 5)
    (pruned, _) = sorted(opened.answer({"op": "prune"}, 6)["result"], key=lambda answer: not answer["deleted"])
    assert pruned["deleted"] == 2
    assert opened.answer(asked("initialize", ENTRY), 7)["result"][0]["error"] == "NONE"
    opened.answer({"op": "fold", "shard": pruned["shard"], "records": [RECORD] * 5}, 8)
    with pytest.raises(BadRequestError, match="the log is full"):
        opened.answer(asked("initialize", ENTRY), 9)
    opened.answer({"op": "restart", "keep": 0}, 10)
    assert opened.answer(asked("initialize", ENTRY), 11)["result"][0]["error"] == "NONE"


# ---- what Kafka stores and a model cannot go on with


def test_a_stored_batch_that_is_reversed_fails_the_operation_that_meets_it(opened: CoordinatorConversation) -> None:
    """Kafka's combiner would never come to an end; here the batch of records fails, and everything is as before."""
    reversed_ = {**RECORD, "data": {"state_epoch": 1, "batches": [[9, 4, 0, 1]]}}
    shard = opened.answer({"op": "route", "group": "g", "topic": TOPIC, "partition": 0}, 4)["result"]["shard"]
    opened.answer({"op": "fold", "shard": shard, "records": [reversed_]}, 5)
    before = opened.answer({"op": "state"}, 6)

    (result,) = opened.answer(asked("write", {**ENTRY, "batches": [[0, 9, 2, 1]]}), 7)["result"]

    assert result["error"] == "INVALID_REQUEST"
    assert "reversed" in result["message"]
    assert opened.answer({"op": "state"}, 8) == before


def test_an_epoch_that_is_used_up_fails_the_operation(opened: CoordinatorConversation) -> None:
    """A snapshot epoch with more than 32 bits cannot be written."""
    last = {**RECORD, "data": {"snapshot_epoch": 2**31 - 1}}
    shard = opened.answer({"op": "route", "group": "g", "topic": TOPIC, "partition": 0}, 4)["result"]["shard"]
    opened.answer({"op": "fold", "shard": shard, "records": [last]}, 5)

    (result,) = opened.answer(asked("initialize", ENTRY), 6)["result"]

    assert (result["error"], "snapshot_epoch" in result["message"]) == ("INVALID_REQUEST", True)


def test_a_log_that_cannot_be_loaded_fails_its_shard(opened: CoordinatorConversation) -> None:
    """The shard answers NOT_COORDINATOR from then on, as Kafka's does, until it has loaded another log."""
    tombstone = {**RECORD, "type": "update"}
    shard = opened.answer({"op": "route", "group": "g", "topic": TOPIC, "partition": 0}, 4)["result"]["shard"]

    response = opened.answer({"op": "fold", "shard": shard, "records": [tombstone]}, 5)

    assert response["result"]["raised"]["error"] == "UNKNOWN_SERVER_ERROR"
    assert response["state"][0]["failed"] is True
    assert opened.answer(asked("read", ENTRY), 6)["result"][0]["error"] == "NOT_COORDINATOR"
    assert opened.answer({"op": "replay", "offset": 0, "record": tombstone}, 7)["result"].keys() == {"raised"}
    opened.answer({"op": "fold", "shard": shard, "records": []}, 8)
    assert opened.answer(asked("read", ENTRY), 9)["result"][0]["error"] == "INVALID_REQUEST"
