"""Invariants over a sequence: each finds a bug that only it, or it first, finds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, Effects, Profile, SharePartition
from sharestate.testing import (
    HEALED_OVER_TIME,
    OVER_TIME,
    STEPS,
    InProcessServer,
    Mix,
    OverTime,
    Request,
    Response,
    invariants_of,
    observe,
    seeded,
)
from sharestate.testing.protocol.exchange import Exchange, batch_runs
from sharestate.testing.search.library import given

TOP = Path(__file__).parents[4]

LATE = Mix(trouble=70, steps={**STEPS, "complete": 30, "take_over": 4})
"""A slow persister, and a new leader now and then."""

IDLE = Mix(steps={**STEPS, "acknowledge": 5, "time": 40, "take_over": 0})
"""Members that do not acknowledge what they have, until their locks expire."""

DATA = TOP / "tests/data/vectors"


def first_broken(answer: Callable[[Request], Response], profile: Profile, mix: Mix = LATE, most: int = 300) -> str:
    """Return the name of the first invariant that *answer* breaks."""
    for seed in range(most):
        try:
            observe(seeded(seed, mix), answer, invariants_of(profile))
        except AssertionError as error:
            return str(error).split(": ")[1]
    return "none"


class Faulty(InProcessServer):
    """The library with a bug: another request is carried out, or another response given."""

    def __call__(self, value: Request) -> Response:
        """Return the response with the bug in it."""
        response = deepcopy(super().__call__(self.instead(deepcopy(value))))
        self.spoil(value, response)
        return response

    def instead(self, request: Request) -> Request:
        """Return the request that is carried out."""
        return request

    def spoil(self, request: Request, response: Response) -> None:
        """Change the response."""


class LosesDeliveries(Faulty):
    """A delivery whose acknowledgement could not be written does not count."""

    def spoil(self, request: Request, response: Response) -> None:
        """Lower the counts of what is acquired after a failure."""
        if request["op"] == "complete" and any(e[0] == "future" and e[2] != "ok" for e in response["events"]):
            for record in records_in(response):
                if record[0] == "ACQUIRED":
                    record[1] -= 1


class ForgetsTheLimit(Faulty):
    """An expired lock makes a record available however often it was delivered."""

    def spoil(self, request: Request, response: Response) -> None:
        """Show as available what has just been archived, and write it so."""
        if request["op"] != "advance":
            return
        for _, write, *_ in (event for event in response["events"] if event[0] == "write"):
            for first, _, state, _ in write["state_batches"]:
                for batch in response["state"]["batches"] if state == 4 else ():
                    for run in batch_runs(batch):
                        if run[0] <= first <= run[1] and run[2][0] == "ARCHIVED":
                            run[2][0] = "AVAILABLE"


class Overfills(Faulty):
    """Ten more records may be in flight than the group allows."""

    def instead(self, request: Request) -> Request:
        """Raise the bound."""
        config = request.get("config") or {}
        return (
            request | {"config": config | {"max_record_locks": config.get("max_record_locks", 200) + 10}}
            if (request["op"] == "open")
            else request
        )


class WakesNobody(Faulty):
    """Nobody is told that there is something to fetch."""

    def spoil(self, request: Request, response: Response) -> None:  # noqa: ARG002 - whatever was asked
        """Leave out the wake-ups."""
        response["events"] = [event for event in response["events"] if event != ["wake"]]


class LosesABatch(Faulty):
    """A new leader leaves out the last state batch."""

    def instead(self, request: Request) -> Request:
        """Read less."""
        if request["op"] == "initialize" and isinstance(request.get("answer"), dict):
            request["answer"]["state_batches"] = request["answer"].get("state_batches", [])[:-1]
        return request


class PersistsNoAcceptance(Faulty):
    """ACCEPT is written as if the records were available."""

    def spoil(self, request: Request, response: Response) -> None:  # noqa: ARG002 - whatever was asked
        """Change what is written."""
        for event in response["events"]:
            for batch in event[1]["state_batches"] if event[0] == "write" else ():
                batch[2] = 0 if batch[2] == 2 else batch[2]


def records_in(response: Response) -> list[Any]:
    """Return the cells of all records in flight in *response*."""
    return [run[2] for batch in response["state"]["batches"] for run in batch_runs(batch)]


PLANTED: list[tuple[str, type[Faulty]]] = [
    ("a_failed_write_gives_back_what_it_took", LosesDeliveries),
    ("records_are_archived_exactly_at_the_limit", ForgetsTheLimit),
    ("the_window_is_overfilled_by_one_log_batch_at_most", Overfills),
    ("waiting_fetches_are_woken", WakesNobody),
    ("a_new_leader_takes_what_is_persisted", LosesABatch),
    ("what_is_acknowledged_is_persisted", PersistsNoAcceptance),
]


@pytest.mark.parametrize(("name", "server"), PLANTED)
def test_an_invariant_finds_its_bug(name: str, server: type[Faulty]) -> None:
    """The bug is found, and by no other invariant before."""
    profile = KAFKA_4_3.healed

    assert first_broken(server(profile), profile) == name


def test_effects_that_are_no_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command returns is data: a list in it is found at the first request."""
    release = SharePartition.release

    def with_a_list(self: SharePartition, member_id: str, *, now_ms: int) -> Effects:
        effects = release(self, member_id, now_ms=now_ms)
        return effects._replace(writes=list(effects.writes))  # type: ignore[arg-type]

    monkeypatch.setattr(SharePartition, "release", with_a_list)
    requests = [{"op": "open", "lifecycle": "ACTIVE"}, {"op": "release", "member": "m"}]

    with pytest.raises(AssertionError, match="a list is among the effects"):
        observe(given(requests), InProcessServer(KAFKA_4_3), [])


def recorded(name: str) -> list[dict[str, Any]]:
    """Return the requests of a recording, each with what Kafka has answered."""
    _, *lines = map(json.loads, (DATA / f"{name}.jsonl").read_text().splitlines())
    return lines


@pytest.mark.parametrize(
    ("name", "invariants"),
    [
        ("stall-in-a-full-window", {"a_full_window_waits_for_something"}),
        ("stall-after-the-log-start", {"a_full_window_waits_for_something"}),
        ("stall-in-a-gap-below-the-log-start", {"no_fetch_begins_below_the_start"}),
        (
            "stall-at-a-record-below-the-log-start",
            {"no_fetch_begins_below_the_start", "nothing_is_acquired_below_the_start"},
        ),
        ("stall-after-compaction", {"a_full_window_waits_for_something"}),
        ("stall-after-an-aborted-transaction", {"a_full_window_waits_for_something"}),
    ],
)
def test_kafka_s_own_answers_are_judged_where_it_stalls(name: str, invariants: set[str]) -> None:
    """F1 and F4 to F8 are found in them, and by no other invariants."""
    before, found = None, set()
    judges = invariants_of(KAFKA_4_3.healed)
    for line in recorded(f"found/found-{name}"):
        for judge in judges:
            try:
                judge(Exchange(**line, before=before))
            except AssertionError:
                found.add(judge.__name__)
        before = line["response"]["state"]

    assert found == invariants


@pytest.mark.parametrize(("name", "locks"), [("found/found-stall-in-a-full-window", 10), ("section19/ex-19.B10", 15)])
def test_a_bug_of_kafka_that_loses_records_is_found(name: str, locks: int) -> None:
    """With F1, and with B10 once the window is full, nothing is to change any more and no fetch is taken."""
    requests = [line["request"] for line in recorded(name)]
    requests[0]["config"]["max_record_locks"] = locks
    with pytest.raises(AssertionError, match="a_full_window_waits_for_something"):
        observe(given([*requests, {"op": "can_acquire"}]), InProcessServer(KAFKA_4_3), healed_over_time())

    observe(given([*requests, {"op": "can_acquire"}]), InProcessServer(KAFKA_4_3.healed), healed_over_time())


def test_a_write_that_fails_after_the_log_start_has_archived_all_stalls_in_kafka() -> None:
    """The last answer that anything waited for moves no SPSO there (F4); healed, it does."""
    requests: list[Request] = [
        {"op": "open", "lifecycle": "ACTIVE", "config": {"max_record_locks": 10}},
        acquisition(0, 1),
        {"op": "acknowledge", "member": "m", "batches": [[0, 1, [2]]], "answers": ["hold"]},
        acquisition(2, 21),
        {"op": "acknowledge", "member": "m", "batches": [[2, 21, [1]]]},
        {"op": "log_start", "offset": 2},
        {"op": "complete", "write": 0, "answer": {"error": "NOT_COORDINATOR"}},
        {"op": "can_acquire"},
    ]

    with pytest.raises(AssertionError, match="a_full_window_waits_for_something"):
        observe(given(requests), InProcessServer(KAFKA_4_3), healed_over_time())
    *_, last = observe(given(requests), InProcessServer(KAFKA_4_3.healed), healed_over_time())

    assert last.result is True


def acquisition(first: int, last: int) -> Request:
    """Return a request for a log batch."""
    limits = {"batch_size": 100, "max_records": 100}
    return {"op": "acquire", "member": "m", "fetch_offset": first, "batches": [[first, last]], **limits}


@pytest.mark.parametrize("profile", [KAFKA_4_3.healed, KAFKA_4_4.healed, KIP_932], ids=lambda profile: profile.name)
def test_terminal_records_between_two_holes_of_the_log_are_passed(profile: Profile) -> None:
    """Where B10 is healed, one fetch that begins after both holes moves the SPSO past what lies between them."""
    persisted = {"start_offset": 0, "state_batches": [[2, 3, 2, 1], [12, 14, 0, 1]]}
    requests: list[Request] = [
        {"op": "open", "config": {"max_record_locks": 10}},
        {"op": "initialize", "answer": persisted},
        {**acquisition(12, 14), "fetch_offset": 0},
        {"op": "acknowledge", "member": "m", "batches": [[12, 14, [1]]]},
        {"op": "can_acquire"},
    ]

    *_, last = observe(given(requests), InProcessServer(profile), healed_over_time())

    assert last.result is True


def healed_over_time() -> list[OverTime]:
    """Return what profiles without quirks keep over time."""
    return [OverTime(begin, KAFKA_4_3.healed) for begin in HEALED_OVER_TIME]


@pytest.mark.parametrize(
    ("name", "rule"),
    [("what_keeps_failing_is_halved", "_LEAST_THRESHOLD"), ("a_last_attempt_is_alone", "_LEAST_LIMIT")],
)
def test_a_rule_of_throttling_that_is_left_out_is_found(name: str, rule: str) -> None:
    """Each of the two rules of KAFKA-17541 has an invariant that misses it."""
    # In a process of its own: the library remembers what its rules have said.
    program = (
        f"from sharestate.partition import throttling; throttling.{rule} = 2**31\n"
        "from sharestate import KAFKA_4_3\n"
        "from sharestate.testing import InProcessServer\n"
        "from tests.unit.testing.protocol.test_over_time import IDLE, first_broken\n"
        "print(first_broken(InProcessServer(KAFKA_4_3), KAFKA_4_3, IDLE))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=TOP, capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == name


def test_each_has_a_planted_bug() -> None:
    """Every invariant over time is in this file."""
    names = {begin.__name__ for begin in OVER_TIME + HEALED_OVER_TIME}

    assert names <= set(re.findall(r"\w+", Path(__file__).read_text()))


def test_an_invariant_begins_anew_with_each_share_partition() -> None:
    """After a contradiction, and with every `open`, what was remembered is forgotten."""
    profile = KAFKA_4_3.healed
    invariants = invariants_of(profile)
    for seed in range(40):
        try:
            observe(seeded(seed, LATE), PersistsNoAcceptance(profile), invariants)
        except AssertionError:
            break
    else:
        pytest.fail("nothing was found")

    assert observe(seeded(1, LATE), InProcessServer(profile), invariants)
