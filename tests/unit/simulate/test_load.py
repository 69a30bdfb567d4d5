"""Loads are read from JSON and from words, written back, and refused where they make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import MalformedInputError
from sharestate.errors import UnreadableFileError
from sharestate.simulate import (
    Acknowledging,
    Backlog,
    Bursts,
    Constant,
    ConstantRate,
    Empirical,
    Exponential,
    Load,
    LogNormal,
    Poisson,
    RecordedArrival,
)
from sharestate.simulate.distributions import Arrival, Times, arrival_of, times_of
from sharestate.simulate.load import SETTINGS, setting_name, settings_text

FULL = Load(
    members=3,
    partitions=2,
    processing=Empirical([1, 2.5]),
    arrival=RecordedArrival([(0, 1, 10), (50_000, 0, 1)]),
    failure_rate=0.25,
    acknowledging=Acknowledging.EACH_RECORD,
    lock_duration_ms=15_000,
)


def test_a_file_has_what_differs_from_the_defaults(tmp_path: Path) -> None:
    """A load is written and read back; settings that are Kafka's defaults are not in the file."""
    file = tmp_path / "load.json"
    FULL.write(file)

    assert Load.read(file) == FULL
    assert json.loads(file.read_text()).keys() == {
        "load",
        "members",
        "partitions",
        "processing",
        "arrival",
        "failure_rate",
        "acknowledging",
        "lock_duration_ms",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "expected an object"),
        ({}, "load: missing"),
        ({"load": 2}, "load: expected version 1, got 2"),
        ({"load": 1, "lock": 5}, "lock: unknown field"),
        ({"load": 1, "members": 0}, "members: expected an integer within 1..1000, got 0"),
        ({"load": 1, "members": True}, "members: expected an integer"),
        ({"load": 1, "failure_rate": 1.5}, "failure_rate: expected a number in 0..1, got 1.5"),
        ({"load": 1, "processing": 5}, "processing: expected an object"),
        ({"load": 1, "processing": {"kind": "gamma"}}, "processing.kind: expected one of constant, "),
        ({"load": 1, "processing": {"kind": "constant"}}, "processing.ms: missing"),
        ({"load": 1, "processing": {"kind": "empirical", "values": []}}, "values: expected 1 to 1048576 values"),
        (
            {"load": 1, "processing": {"kind": "empirical", "values": [-1]}},
            r"processing.values\[0\]: expected a number",
        ),
        (
            {"load": 1, "arrival": {"kind": "recorded", "batches": [[5, 0, 1], [4, 0, 1]]}},
            r"batches\[1\]: expected asc",
        ),
        ({"load": 1, "arrival": {"kind": "recorded", "batches": [[0, 1, 1]]}}, "arrival: a batch goes to partition 1"),
        ({"load": 1, "failure_rate": 0.6, "reject_rate": 0.6}, "failure_rate: failure_rate, reject_rate and crash"),
        ({"load": 1, "dead_letter_queue": True, "profile": "kafka-4.3"}, "dead_letter_queue: kafka-4.3 has no"),
    ],
)
def test_what_makes_no_sense_is_refused(value: Any, message: str) -> None:  # noqa: ANN401 - JSON
    """What is wrong in a load is named with its path."""
    with pytest.raises(MalformedInputError, match=message):
        Load.from_json(value)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    """The error of a file has its name and the field."""
    file = tmp_path / "load.json"
    file.write_text('{"load": 1, "members": -1}')

    with pytest.raises(UnreadableFileError, match=r"load.json: members: expected an integer"):
        Load.read(file)
    with pytest.raises(UnreadableFileError, match="No such file"):
        Load.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "times", [Constant(20), Exponential(20), LogNormal(20, 0.8), Constant(2.5), Constant(90_000)], ids=str
)
def test_times_in_words(times: Times) -> None:
    """A distribution of times is read from its own words."""
    assert times_of(str(times)) == times


@pytest.mark.parametrize("arrival", [Backlog(), ConstantRate(100), Poisson(2.5), Bursts(500, 60_000)], ids=str)
def test_arrivals_in_words(arrival: Arrival) -> None:
    """An arrival is read from its own words."""
    assert arrival_of(str(arrival)) == arrival


def test_changes_in_words() -> None:
    """A setting is named by its name, by Kafka's, or by the beginning; its value has a unit."""
    load = Load().changed("lock=1min", "max.poll.records=1,000", "failure-rate=2%", "ack=record", "dead=true")

    assert (load.lock_duration_ms, load.poll_records, load.failure_rate) == (60_000, 1_000, 0.02)
    assert (load.acknowledging, load.dead_letter_queue) == (Acknowledging.EACH_RECORD, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lock", "expected SETTING=VALUE"),
        ("=5", "no such setting"),
        ("speed=5", 'no such setting: "speed"; one of records, partitions'),
        ("re=5", 'several settings begin so: "re"; one of records, reject_rate, restart_ms, retry_'),
        ("lock=soon", "lock_duration_ms: expected a time such as 30s"),
        ("lock=0.5ms", "lock_duration_ms: expected whole milliseconds"),
        ("members=0", "members: expected an integer within 1..1000, got 0"),
        ("members=many", 'members: expected a whole number such as 20 or 10,000, got "many"'),
        ("records=1e12", 'records: expected a whole number such as 20 or 10,000, got "1e12"'),
        ("failure_rate=often", 'failure_rate: expected a rate such as 0.02 or 2%, got "often"'),
        ("failure_rate=%", 'failure_rate: expected a rate such as 0.02 or 2%, got "%"'),
        ("processing=fast", "processing: expected a time"),
        ("processing=gamma:1", "processing: expected 20ms, exponential:20ms or"),
        ("arrival=now", "arrival: expected backlog, constant"),
        ("arrival=poisson:often", "arrival: expected a number"),
        ("ack=never", "acknowledging: expected one of poll, record"),
        ("dead=yes", "dead_letter_queue: expected true or false"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change: str, message: str) -> None:
    """What is wrong in a change is named."""
    with pytest.raises(MalformedInputError, match=message):
        Load().changed(change)


def test_every_setting_is_read_from_its_own_words() -> None:
    """The words of a load's settings give the load."""
    changed: dict[str, Any] = {"dead_letter_queue": True, "acknowledging": Acknowledging.EACH_RECORD}
    load = Load(members=7, processing=LogNormal(3, 0.5), poison_rate=0.125, lock_duration_ms=1_500, **changed)

    assert Load().changed(*settings_text(load).split(" ")) == load
    assert [setting_name(name) for name in SETTINGS] == list(SETTINGS)


@pytest.mark.parametrize("wrong", [{"processing": 20}, {"arrival": "backlog"}, {"acknowledging": "poll"}])
def test_values_of_another_type_are_refused(wrong: dict[str, Any]) -> None:
    """A setting that is of another type is refused with its name."""
    with pytest.raises(MalformedInputError, match=next(iter(wrong))):
        Load(**wrong)
