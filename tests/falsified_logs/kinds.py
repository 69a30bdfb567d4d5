"""
Ways to falsify one line of a broker's request log.

A kind says which requests it changes, and how: what a fetch has acquired, how an acknowledgement was answered or what
it says, what a write of state says; or that a line is missing, or there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import frozen

from sharestate.broker_log.sessions import TopicPartition

Logged: TypeAlias = dict[str, Any]
"""A line of a request log: a request with its answer."""

FETCH, ACKNOWLEDGE = "SHARE_FETCH", "SHARE_ACKNOWLEDGE"
WRITE, READ = "WRITE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE"

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
NOT_COORDINATOR, INVALID_REQUEST, INVALID_RECORD_STATE = 16, 42, 121

BELOW_START: Final = "what is below the SPSO anybody may acknowledge, and nothing comes of it"


@frozen
class Part:
    """What a logged request says of one share partition."""

    logged: Logged
    partition: TopicPartition
    asked: dict[str, Any]
    answered: dict[str, Any]

    @property
    def acquired(self) -> list[dict[str, int]]:
        """Return the ranges that a fetch has acquired."""
        ranges: list[dict[str, int]] = self.answered.get("acquiredRecords", [])
        return ranges

    @property
    def acknowledged(self) -> list[dict[str, Any]]:
        """Return the batches of an acknowledgement."""
        batches: list[dict[str, Any]] = self.asked.get("acknowledgementBatches", [])
        return batches

    @property
    def written(self) -> list[dict[str, int]]:
        """Return the batches of a write, or of the answer to a read."""
        batches: list[dict[str, int]] = self.asked.get("stateBatches") or self.answered.get("stateBatches") or []
        return batches


def api_of(logged: Logged) -> str:
    """Return the name of a request's API."""
    name: str = logged["requestHeader"]["requestApiKeyName"]
    return name


def parts(logged: Logged) -> Iterator[Part]:
    """Yield what a request of members, or one that reads or writes state, says of each share partition."""
    index = "partition" if api_of(logged) in {WRITE, READ} else "partitionIndex"
    answers = logged["response"].get("results") or logged["response"].get("responses") or []
    answered = {(topic["topicId"], each[index]): each for topic in answers for each in topic["partitions"]}
    asked = {
        (topic["topicId"], each[index]): each for topic in logged["request"]["topics"] for each in topic["partitions"]
    }
    for partition in {**asked, **answered}:
        yield Part(logged, partition, asked.get(partition, {}), answered.get(partition, {}))


Change: TypeAlias = Callable[[Part], bool]
"""Falsifies a part, and returns whether it has."""


@frozen
class Kind:
    """A way to falsify a line."""

    api: str
    change: Change
    copies: int = 1
    """How often the changed line is there: not at all, once, or twice."""

    hides: str = ""
    """Where it may be that nothing contradicts, as what is said then may be so, too."""


# ---- what a fetch has acquired


def _ranges(change: Callable[[list[dict[str, int]]], bool]) -> Change:
    return lambda part: bool(part.acquired) and change(part.acquired)


def _add(index: int, *, first: int = 0, last: int = 0, count: int = 0) -> Callable[[list[dict[str, int]]], bool]:
    """Add to the fields of the range at *index*; refuse what would leave it empty, or a delivery count below 1."""

    def change(ranges: list[dict[str, int]]) -> bool:
        each = ranges[index]
        if each["lastOffset"] + last < each["firstOffset"] + first or each["deliveryCount"] + count < 1:
            return False
        each["firstOffset"] += first
        each["lastOffset"] += last
        each["deliveryCount"] += count
        return True

    return change


def _drop(index: int) -> Callable[[list[Any]], bool]:
    def change(ranges: list[Any]) -> bool:
        if len(ranges) < 2:
            return False
        del ranges[index]
        return True

    return change


def _nothing(ranges: list[dict[str, int]]) -> bool:
    ranges.clear()
    return True


def _one_more(ranges: list[dict[str, int]]) -> bool:
    end = ranges[-1]["lastOffset"]
    ranges.append({"firstOffset": end + 1, "lastOffset": end + 3, "deliveryCount": 1})
    return True


def _joined(ranges: list[dict[str, int]]) -> bool:
    """Join two ranges that lie side by side and have different counts."""
    for left, right in pairwise(ranges):
        if left["lastOffset"] + 1 == right["firstOffset"] and left["deliveryCount"] != right["deliveryCount"]:
            left["lastOffset"] = right["lastOffset"]
            ranges.remove(right)
            return True
    return False


def _doubled(ranges: list[dict[str, int]]) -> bool:
    ranges.append(dict(ranges[0]))
    return True


def _invented(part: Part) -> bool:
    """Let a fetch without records, which is no renewal, acquire what was delivered long ago."""
    is_renewal = part.logged["request"].get("isRenewAck", False)
    if not part.answered or part.acquired or part.answered["errorCode"] or is_renewal:
        return False
    part.answered["acquiredRecords"] = [{"firstOffset": 0, "lastOffset": 0, "deliveryCount": 1}]
    return True


def _other_duration(part: Part) -> bool:
    """Let the acquisition locks of a fetch, which are the same for all its partitions, last ten times as long."""
    if not part.acquired or len(part.logged["request"]["topics"]) > 1:
        return False
    part.logged["response"]["acquisitionLockTimeoutMs"] *= 10
    return True


def _fewer_asked(part: Part) -> bool:
    """Let a fetch that goes by records have asked for fewer than it has got."""
    request = part.logged["request"]
    got = sum(each["lastOffset"] - each["firstOffset"] + 1 for each in part.acquired)
    if request.get("shareAcquireMode") != 1 or got < 2:
        return False
    request["maxRecords"] = got - 1
    return True


# ---- acknowledgements


def _code(field: str, before: int, after: int) -> Change:
    def change(part: Part) -> bool:
        if not part.acknowledged or part.answered.get(field) != before:
            return False
        part.answered[field] = after
        return True

    return change


def _taken(change: Callable[[list[dict[str, Any]]], bool]) -> Change:
    """Change the batches of an acknowledgement that was taken, and renews nothing: what it renews shows much later."""

    def falsify(part: Part) -> bool:
        code = part.answered.get("acknowledgeErrorCode", part.answered.get("errorCode"))
        renews = any(RENEW in batch["acknowledgeTypes"] for batch in part.acknowledged)
        return bool(part.acknowledged) and code == 0 and not renews and change(part.acknowledged)

    return falsify


def _type(before: int, after: int) -> Callable[[list[dict[str, Any]]], bool]:
    """Change the first type that is *before*."""

    def change(batches: list[dict[str, Any]]) -> bool:
        for batch in batches:
            if before in batch["acknowledgeTypes"]:
                batch["acknowledgeTypes"][batch["acknowledgeTypes"].index(before)] = after
                return True
        return False

    return change


def _acknowledged(index: int, *, first: int = 0, last: int = 0) -> Callable[[list[dict[str, Any]]], bool]:
    """Move an end of the batch at *index*, which has one type for all of it."""

    def change(batches: list[dict[str, Any]]) -> bool:
        batch = batches[index]
        if len(batch["acknowledgeTypes"]) > 1 or batch["lastOffset"] + last < batch["firstOffset"] + first:
            return False
        batch["firstOffset"] += first
        batch["lastOffset"] += last
        return True

    return change


def _other_member(part: Part) -> bool:
    """Let somebody acknowledge who is no member."""
    part.logged["request"]["memberId"] = "a-stranger"
    return _is_written(part)


def _is_written(part: Part) -> bool:
    """Return whether an acknowledgement had to wait for a write; what is below the SPSO anybody may acknowledge."""
    return bool(part.acknowledged) and part.answered.get("errorCode") == 0 and part.logged["remoteTimeMs"] > 0


# ---- writes and reads of state


def _field(name: str, difference: int) -> Change:
    """Add to a field of a write; refuse what would make it negative."""

    def change(part: Part) -> bool:
        if part.asked.get(name, -1) + difference < 0 or part.asked[name] < 0:
            return False
        part.asked[name] += difference
        return True

    return change


def _written(change: Callable[[list[dict[str, int]]], bool]) -> Change:
    return lambda part: bool(part.asked.get("stateBatches")) and change(part.asked["stateBatches"])


def _state(before: int, after: int) -> Callable[[list[dict[str, int]]], bool]:
    """Change the first state that is *before*."""

    def change(batches: list[dict[str, int]]) -> bool:
        for batch in batches:
            if batch["deliveryState"] == before:
                batch["deliveryState"] = after
                return True
        return False

    return change


def _extra(batches: list[dict[str, int]]) -> bool:
    end = batches[-1]["lastOffset"]
    batches.append({"firstOffset": end + 1, "lastOffset": end + 1, "deliveryState": ACKNOWLEDGED, "deliveryCount": 1})
    return True


def _swapped(batches: list[dict[str, int]]) -> bool:
    """Swap the states of two batches that differ in them."""
    for left, right in pairwise(batches):
        if left["deliveryState"] != right["deliveryState"]:
            left["deliveryState"], right["deliveryState"] = right["deliveryState"], left["deliveryState"]
            return True
    return False


def _answer(code: int) -> Change:
    def change(part: Part) -> bool:
        if part.answered.get("errorCode") != 0:
            return False
        part.answered["errorCode"] = code
        return True

    return change


def _other_partition(part: Part) -> bool:
    """Let a write be one of another partition."""
    part.asked["partition"] = part.answered["partition"] = 1 - part.asked["partition"]
    return True


def _read_start(part: Part) -> bool:
    part.answered["startOffset"] = max(part.answered["startOffset"], 0) + 5
    return True


def _read_batch(part: Part) -> bool:
    start = max(part.answered["startOffset"], 0)
    batch = {"firstOffset": start, "lastOffset": start, "deliveryState": ACKNOWLEDGED, "deliveryCount": 1}
    part.answered["stateBatches"] = [batch, *part.answered["stateBatches"]]
    return start == max(part.answered["startOffset"], 0) and len(part.answered["stateBatches"]) == 1


FALSIFIED: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "a fetch has acquired one record more": Kind(FETCH, _ranges(_add(-1, last=1))),
        "a fetch has acquired one record less": Kind(FETCH, _ranges(_add(-1, last=-1))),
        "a fetch has acquired from the next record on": Kind(FETCH, _ranges(_add(0, first=1))),
        "a fetch has acquired other records": Kind(FETCH, _ranges(_add(0, first=1, last=1))),
        "a fetch has acquired with a higher count": Kind(FETCH, _ranges(_add(-1, count=1))),
        "a fetch has acquired with a lower count": Kind(FETCH, _ranges(_add(0, count=-1))),
        "a fetch has acquired a much higher count": Kind(FETCH, _ranges(_add(0, count=100))),
        "a fetch lacks its first range": Kind(FETCH, _ranges(_drop(0))),
        "a fetch lacks its last range": Kind(FETCH, _ranges(_drop(-1))),
        "a fetch has acquired nothing": Kind(FETCH, _ranges(_nothing)),
        "a fetch has acquired three records more": Kind(FETCH, _ranges(_one_more)),
        "a fetch has acquired two ranges with one count": Kind(FETCH, _ranges(_joined)),
        "a fetch has acquired a range twice": Kind(FETCH, _ranges(_doubled)),
        "a fetch without records has one": Kind(FETCH, _invented),
        "a fetch has asked for fewer records": Kind(FETCH, _fewer_asked),
        "a fetch was answered with another lock duration": Kind(FETCH, _other_duration),
        "a fetch is missing": Kind(FETCH, _ranges(bool), copies=0),
        "a fetch is there twice": Kind(FETCH, _ranges(bool), copies=2),
        "an acknowledgement of a fetch was refused": Kind(
            FETCH, _code("acknowledgeErrorCode", 0, INVALID_RECORD_STATE)
        ),
        "an acknowledgement of a fetch was malformed": Kind(FETCH, _code("acknowledgeErrorCode", 0, INVALID_REQUEST)),
        "an acknowledgement of a fetch was taken": Kind(FETCH, _code("acknowledgeErrorCode", INVALID_RECORD_STATE, 0)),
        "a fetch has rejected what it accepts": Kind(FETCH, _taken(_type(ACCEPT, REJECT))),
        "a fetch has acknowledged one record more": Kind(FETCH, _taken(_acknowledged(-1, last=1))),
        "an acknowledgement was refused": Kind(ACKNOWLEDGE, _code("errorCode", 0, INVALID_RECORD_STATE)),
        "an acknowledgement was malformed": Kind(ACKNOWLEDGE, _code("errorCode", 0, INVALID_REQUEST)),
        "an acknowledgement was taken": Kind(ACKNOWLEDGE, _code("errorCode", INVALID_RECORD_STATE, 0)),
        "a malformed acknowledgement was taken": Kind(ACKNOWLEDGE, _code("errorCode", INVALID_REQUEST, 0)),
        "an accepted record was released": Kind(ACKNOWLEDGE, _taken(_type(ACCEPT, RELEASE))),
        "an accepted record was rejected": Kind(ACKNOWLEDGE, _taken(_type(ACCEPT, REJECT))),
        "a released record was accepted": Kind(ACKNOWLEDGE, _taken(_type(RELEASE, ACCEPT))),
        "a rejected record was released": Kind(
            ACKNOWLEDGE, _taken(_type(REJECT, RELEASE)), hides="at the delivery limit both archive it"
        ),
        "one record more was acknowledged": Kind(ACKNOWLEDGE, _taken(_acknowledged(-1, last=1))),
        "one record less was acknowledged": Kind(ACKNOWLEDGE, _taken(_acknowledged(-1, last=-1))),
        "other records were acknowledged": Kind(ACKNOWLEDGE, _taken(_acknowledged(0, first=-1, last=-1))),
        "a batch of an acknowledgement is missing": Kind(ACKNOWLEDGE, _taken(_drop(-1)), hides=BELOW_START),
        "somebody else has acknowledged": Kind(ACKNOWLEDGE, _other_member),
        "an acknowledgement is missing": Kind(ACKNOWLEDGE, _is_written, copies=0),
        "an acknowledgement is there twice": Kind(ACKNOWLEDGE, _is_written, copies=2, hides=BELOW_START),
        "a write with a higher start offset": Kind(WRITE, _field("startOffset", 1)),
        "a write with a lower start offset": Kind(WRITE, _field("startOffset", -1)),
        "a write with a higher complete count": Kind(WRITE, _field("deliveryCompleteCount", 1)),
        "a write with a lower complete count": Kind(WRITE, _field("deliveryCompleteCount", -1)),
        "a write with another state epoch": Kind(WRITE, _field("stateEpoch", 1)),
        "a write with another leader epoch": Kind(WRITE, _field("leaderEpoch", 1)),
        "a write of an accepted record as archived": Kind(WRITE, _written(_state(ACKNOWLEDGED, ARCHIVED))),
        "a write of an archived record as accepted": Kind(WRITE, _written(_state(ARCHIVED, ACKNOWLEDGED))),
        "a write of an available record as accepted": Kind(WRITE, _written(_state(AVAILABLE, ACKNOWLEDGED))),
        "a write of an accepted record as available": Kind(WRITE, _written(_state(ACKNOWLEDGED, AVAILABLE))),
        "a write with a higher delivery count": Kind(WRITE, _written(_add(-1, count=1))),
        "a write with a lower delivery count": Kind(WRITE, _written(_add(0, count=-1))),
        "a write of one record more": Kind(WRITE, _written(_add(-1, last=1))),
        "a write of one record less": Kind(WRITE, _written(_add(-1, last=-1))),
        "a write of other records": Kind(WRITE, _written(_add(0, first=1, last=1))),
        "a write with a batch less": Kind(WRITE, _written(_drop(0))),
        "a write with a batch more": Kind(WRITE, _written(_extra)),
        "a write with the states of two batches swapped": Kind(WRITE, _written(_swapped)),
        "a write that was refused": Kind(WRITE, _answer(NOT_COORDINATOR), hides="an expired lock is gone either way"),
        "a write of another partition": Kind(WRITE, _other_partition),
        "a write is missing": Kind(WRITE, _written(bool), copies=0),
        "a write is there twice": Kind(WRITE, _written(bool), copies=2),
        "a read with another start offset": Kind(READ, _read_start),
        "a read with a batch more": Kind(READ, _read_batch),
    }
)
"""The kinds, by what a line says then that is not so."""
