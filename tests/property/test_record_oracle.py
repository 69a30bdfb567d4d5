"""The library beside a model of single records that shares no code with it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from attrs import evolve

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, Profile
from sharestate.partition.record_machine import step
from sharestate.testing import (
    ORDINARY,
    STEPS,
    Exchange,
    InProcessServer,
    Mix,
    Request,
    Response,
    mix_for,
    observe,
    seeded,
)
from sharestate.testing.protocol.record_oracle import RecordOracle
from sharestate.testing.search import by_record
from sharestate.testing.search.library import given
from tests.support.failover_runs import seeds

MIXES = {
    "ordinary": ORDINARY,
    "late": Mix(trouble=70, steps={**STEPS, "log": 30, "complete": 5}),
    "unanswered": Mix(trouble=90, steps={**STEPS, "acknowledge": 40, "complete": 30, "log": 25, "take_over": 1}),
    "idle": Mix(trouble=60, steps={**STEPS, "acknowledge": 5, "time": 40, "take_over": 0}),
}
"""What the sequences are made of."""

PROFILES = (KAFKA_4_2.healed, KAFKA_4_3.healed, KAFKA_4_4.healed, KIP_932)


@pytest.fixture
def forgotten_rules() -> Iterator[None]:
    """What the library remembers of its table is forgotten before a test that changes it, and after it."""
    step.cache_clear()
    yield
    step.cache_clear()


def judged(seed: int, profile: Profile, mix: Mix) -> list[Exchange]:
    """Return the exchanges of a sequence, which the model has judged."""
    return observe(seeded(seed, mix_for(profile, mix)), InProcessServer(profile), [RecordOracle(profile)])


def all_judged(count: int, profile: Profile) -> None:
    """Judge sequences under *profile*, half of them record by record, by the rules of Kafka 4.4 without its bugs."""
    healed, server = KAFKA_4_4.healed, InProcessServer(profile)
    for seed in range(count):
        observe(seeded(seed, mix_for(healed, ORDINARY)), server, [RecordOracle(healed)])
        observe(by_record(seed, ORDINARY), server, [RecordOracle(healed)])


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_the_library_does_what_the_model_of_single_records_says(profile: Profile, mix: str) -> None:
    """Every result, write and state agrees, with batches, holes, transactions and a dead-letter queue."""
    assert sum(len(judged(seed, profile, MIXES[mix])) for seed in seeds(40)) > 800


@pytest.mark.parametrize("plant", ["b1", "b3", "b9a", "b13", "gap_to_the_queue", "release_count", "throttle"])
@pytest.mark.usefixtures("forgotten_rules")
def test_an_old_rule_in_the_library_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the library follows a rule that Kafka has changed since, the model says otherwise."""
    rule = import_module(f"tests.planted.rules.{plant}")
    monkeypatch.setattr(rule, "put", monkeypatch.setattr)
    rule.plant()

    with pytest.raises(AssertionError, match="the model says"):
        all_judged(100, KAFKA_4_4.healed)


def test_the_bugs_of_a_release_are_found() -> None:
    """A profile with quirks is not what the model says, and cannot be asked for."""
    with pytest.raises(AssertionError, match="the model says"):
        all_judged(20, KAFKA_4_4)
    with pytest.raises(ValueError, match="take its healed form"):
        RecordOracle(KAFKA_4_3)


@pytest.mark.parametrize(("config", "state"), [({}, 3), (None, 4)], ids=["nothing set", "no configuration"])
def test_a_group_without_a_configuration_has_no_dead_letter_queue(config: dict[str, Any] | None, state: int) -> None:
    """One that sets nothing keeps the topic with which the share partition was opened."""
    requests: list[Request] = [
        {"op": "open", "lifecycle": "ACTIVE", "config": {"dlq_topic": "dead letters"}},
        {"op": "configure", "config": config},
        {"op": "acquire", "member": "m1", "batch_size": 1, "max_records": 1, "fetch_offset": 0, "batches": [[0, 0]]},
        {"op": "acknowledge", "member": "m1", "batches": [[0, 0, [3]]]},
    ]
    profile = KAFKA_4_4.healed

    *_, rejected = observe(given(requests), InProcessServer(profile), [RecordOracle(profile)])
    assert rejected.writes[0]["state_batches"] == [[0, 0, state, 1]]


def test_the_model_passes_terminal_records_between_two_holes_of_the_log() -> None:
    """Both holes are passed by one fetch that begins after them, so there is room for what comes next."""
    persisted = {"start_offset": 0, "state_batches": [[1, 2, 2, 1], [5, 5, 0, 1]]}
    batches = [[4, 5], [6, 8]]
    requests: list[Request] = [
        {"op": "open", "config": {"max_record_locks": 5}},
        {"op": "initialize", "answer": persisted},
        {"op": "acquire", "member": "m", "batch_size": 5, "max_records": 5, "fetch_offset": 0, "batches": batches},
    ]
    profile = KAFKA_4_4.healed

    *_, acquired = observe(given(requests), InProcessServer(profile), [RecordOracle(profile)])
    assert acquired.result["acquired"] == [[4, 4, 1], [5, 5, 2], [6, 8, 1]]


@pytest.mark.parametrize("part", ["state", "events"])
def test_what_is_not_shown_is_not_judged(part: str) -> None:
    """Answers alone are judged too."""
    server = InProcessServer(KAFKA_4_3.healed)

    def answers(request: Request) -> Response:
        return {**server(request), part: None}

    def answers_wrongly(request: Request) -> Response:
        response = answers(request)
        return {**response, "result": response["result"] + 1} if request["op"] == "next_fetch_offset" else response

    events_are_needed = evolve(ORDINARY, trouble=0, steps={**STEPS, "persister": 0, "take_over": 0})
    oracle = RecordOracle(KAFKA_4_3.healed)
    assert observe(seeded(1, events_are_needed), answers, [oracle])
    with pytest.raises(AssertionError, match=r"result: the model says \d+, got \d+"):
        observe(seeded(1, events_are_needed), answers_wrongly, [oracle])
