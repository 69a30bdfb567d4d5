"""
What brokers themselves say in their request logs, counted from the lines alone.

The judge of imports, checks and replays: it reads JSON, and uses nothing of the library.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

RUNS: Final = Path(__file__).parents[1] / "data" / "broker-log"
COMPLETED: Final = b"Completed request:"
TERMINAL: Final = (2, 3, 4)
"""The states ACKNOWLEDGED, ARCHIVING and ARCHIVED."""

Key = tuple[str, str, int]
Write = tuple[int, int, tuple[tuple[int, int, int, int], ...]]
"""State epoch, leader epoch and state batches; heads are left out, as they may be read later than the rest."""


class Answers(NamedTuple):
    """
    The answers of the brokers of a run, for each share partition.

    Attributes:
        acquired: How many records members have acquired. [records]
        delivered: How often each offset was acquired.
        fetches: How many fetches have acquired some.
        writes: How often each write of state was sent; those that are sent again count again.
        persisted: The last state and delivery count of each offset that was written with success.
    """

    acquired: Counter[Key]
    delivered: dict[Key, Counter[int]]
    fetches: Counter[Key]
    writes: dict[Key, Counter[Write]]
    persisted: dict[Key, dict[int, tuple[int, int]]]


def brokers_of(run: str) -> list[Path]:
    """Return the directory of each broker of a run: request log, segments, properties."""
    return sorted((RUNS / run).glob("broker*")) or [RUNS / run]


def answers_of(run: str) -> Answers:
    """Return what the brokers of a run have answered."""
    answers = Answers(Counter(), defaultdict(Counter), Counter(), defaultdict(Counter), defaultdict(dict))
    requests = sorted(_requests(run), key=itemgetter("stamp"))
    begins = {request["connection"]: request["stamp"] for request in reversed(requests)}
    # A leader writes over one connection at a time, and its requests are in order there; stamps may be swapped.
    requests.sort(key=lambda each: (begins[each["connection"]], each["requestHeader"]["correlationId"]))
    for request in requests:
        api = request["requestHeader"]["requestApiKeyName"]
        if api == "SHARE_FETCH":
            _fetch(answers, request)
        elif api == "WRITE_SHARE_GROUP_STATE":
            _write(answers, request)
    return answers


def _requests(run: str) -> Iterator[dict[str, Any]]:
    for broker in brokers_of(run):
        with gzip.open(broker / "request.log.gz") as lines:
            for line in lines:
                stamp, _, text = line.partition(COMPLETED)
                yield {**json.loads(text), "stamp": stamp}


def _fetch(answers: Answers, request: dict[str, Any]) -> None:
    for topic in request["response"]["responses"]:
        for each in topic["partitions"]:
            key = request["request"]["groupId"], topic["topicId"], each["partitionIndex"]
            ranges = [(found["firstOffset"], found["lastOffset"]) for found in each["acquiredRecords"]]
            answers.acquired[key] += sum(last - first + 1 for first, last in ranges)
            answers.delivered[key].update(offset for first, last in ranges for offset in range(first, last + 1))
            answers.fetches[key] += bool(ranges)


def _write(answers: Answers, request: dict[str, Any]) -> None:
    failed = {
        (topic["topicId"], each["partition"])
        for topic in request["response"]["results"]
        for each in topic["partitions"]
        if each["errorCode"]
    }
    for topic in request["request"]["topics"]:
        for each in topic["partitions"]:
            key = request["request"]["groupId"], topic["topicId"], each["partition"]
            names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
            batches = tuple((*(batch[name] for name in names),) for batch in each["stateBatches"])
            answers.writes[key][each["stateEpoch"], each["leaderEpoch"], batches] += 1
            if key[1:] not in failed:
                for first, last, state, count in batches:
                    answers.persisted[key].update(dict.fromkeys(range(first, last + 1), (state, count)))
