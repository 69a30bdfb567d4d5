"""The recorder and the comparer themselves, with the test broker on both sides and no time that passes."""

from __future__ import annotations

import copy
import uuid
from pathlib import Path

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3
from sharestate.broker import TestBroker
from tests.lockstep.__main__ import record
from tests.lockstep.compare import LEFT_OUT, differences, told
from tests.lockstep.names import Names
from tests.lockstep.runner import Runner, TooSlowError
from tests.lockstep.standing import standing_runner
from tests.lockstep.steps import BUSY_MS, LASTING_MS, LONG_MS, ROUND_MS, SETTINGS, How, Step, Taken, read, write
from tests.lockstep.wire import Fields

STEPS = 200


class SteppingClock:
    """A time that has moved on each time it is looked at."""

    def __init__(self, step_ms: float) -> None:
        """Begin at 0."""
        self._now_ms, self._step_ms = 0.0, step_ms

    def now_ms(self) -> float:
        """Return the time. [ms]"""
        self._now_ms += self._step_ms
        return self._now_ms

    def sleep_ms(self, duration_ms: float) -> None:
        """Let no time pass."""

    def wait_ms(self, max_wait_ms: float) -> None:
        """Let no time pass."""


def recorded(seed: int) -> list[Taken]:
    """Return a script, and what the test broker has answered."""
    with standing_runner(KAFKA_4_3) as runner:
        return record(runner, seed, STEPS)


@pytest.fixture(scope="module")
def script() -> list[Taken]:
    """A script, and what the test broker has answered."""
    return recorded(1)


def test_equal_seeds_make_equal_scripts(script: list[Taken]) -> None:
    """A seed and equal answers make the same steps, whatever ids the broker draws."""
    again = recorded(1)

    assert [taken.step for taken in again] == [taken.step for taken in script]
    assert list(differences(script, again)) == []
    assert [taken.step for taken in recorded(2)] != [taken.step for taken in script]


def test_scripts_reach_far(script: list[Taken]) -> None:
    """Records are acquired and acknowledged, transactions end, fetches wait, and something is refused."""
    asked = {taken.step.api for taken in script}
    acquired = [taken for taken in script if any(part.get("acquired_records") for part in parts_of(taken))]

    assert {"produce", "share_fetch", "share_acknowledge", "share_group_heartbeat", "end_txn"} <= asked
    assert {How.SEND, How.RECEIVE} <= {taken.step.how for taken in script}
    assert len(acquired) > 5
    assert any("_session_" in str(taken.answer) for taken in script)


def test_a_script_is_read_as_it_was_written(script: list[Taken], tmp_path: Path) -> None:
    """A file has all of a script, and of the answers."""
    write(tmp_path / "script.jsonl", script)

    assert list(differences(script, read(tmp_path / "script.jsonl"))) == []


def test_a_difference_is_found(script: list[Taken]) -> None:
    """A delivery count that is another one is a difference, told with the steps that lead there."""
    at, taken = next(
        (number, taken)
        for number, taken in enumerate(script)
        if any(part.get("acquired_records") for part in parts_of(taken))
    )
    answer = copy.deepcopy(taken.answer)
    changed = evolve(taken, answer=answer)
    part = next(part for part in parts_of(changed) if part.get("acquired_records"))
    part["acquired_records"][0]["delivery_count"] = 9
    other = [*script[:at], changed, *script[at + 1 :]]

    (found,) = differences(script, other)

    assert found.number == at
    assert found.fields[0].endswith("delivery_count: 1 != 9")
    words = told(found, script, ("Kafka", "ours"))
    assert f"step {at}, " in words
    assert "Kafka: {" in words


def parts_of(taken: Taken) -> list[Fields]:
    """Return the partitions of an answer to a ShareFetch."""
    return [part for topic in (taken.answer or {}).get("responses", ()) for part in topic.get("partitions", ())]


@pytest.mark.parametrize(("api", "name"), sorted(LEFT_OUT))
def test_what_is_left_out(api: str, name: str) -> None:
    """What no two brokers have in common is no difference."""
    step = Step(0, "admin", "metadata" if api == "*" else api)
    answers = [Taken(step, {"brokers": [{name: value, "node_id": 1}]}) for value in ("one", "other")]

    assert list(differences(answers[:1], answers[1:])) == []


def test_topics_are_named_by_their_making() -> None:
    """A topic that is made again has another name, and an id of nobody's has one that says so."""
    names = Names()
    ids = [uuid.UUID(int=2**100 + number) for number in range(3)]
    names.made("t0", ids[0])
    names.made("t0", ids[1])

    assert [names.of_topic_id(each) for each in ids] == ["t0#1", "t0#2", "some id"]
    assert names.topic_id("t0#1") == ids[0]
    assert names.of_topic_id(names.topic_id("nowhere-7")) == "nowhere-7"


def test_producers_are_named_by_their_order() -> None:
    """Producer ids are counted as they are seen, and none stays none."""
    names = Names()

    assert [names.of_producer_id(each) for each in (4000, -1, 17, 4000)] == ["pid-1", "none", "pid-2", "pid-1"]
    assert [names.producer_id(each) for each in ("pid-2", "none")] == [17, -1]


def test_a_round_that_takes_too_long() -> None:
    """A script is not gone on with whose locks may have ended between two steps."""
    with TestBroker(profile=KAFKA_4_3, config=SETTINGS) as broker:
        runner = Runner(broker.bootstrap_servers, SteppingClock(BUSY_MS))
        step = Step(
            0,
            "admin",
            "describe_cluster",
            2,
            {"include_cluster_authorized_operations": False, "include_fenced_brokers": False},
        )

        with pytest.raises(TooSlowError, match="into round 0"):
            [runner.take(step) for _ in range(3)]
        runner.close()


@pytest.mark.parametrize("lasts_ms", [*LASTING_MS, LONG_MS])
def test_what_lasts_ends_between_steps(lasts_ms: int) -> None:
    """A lock ends 300 ms and more after the last step of a round, and as long before the first one of the next."""
    for begins_ms in (0, BUSY_MS):
        ends_ms = (begins_ms + lasts_ms) % ROUND_MS
        assert BUSY_MS + 300 <= ends_ms <= ROUND_MS - 300
