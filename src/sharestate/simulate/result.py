"""What comes of a load: the counts of a simulation, and what they amount to."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Self

import attrs
from attrs import field, frozen

from sharestate.json_checks import Check, Field, nullable, one_of, record, version
from sharestate.json_checks import integer as an_integer
from sharestate.json_lines import Json
from sharestate.simulate.distributions import number_within
from sharestate.values.effects import Cause, Transition
from sharestate.values.records import AcquiredRecords

RESULT_VERSION: Final = 1
"""The version of the form of results that is written, and the only one that is read."""

ENDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "done": "every record was accepted or archived",
        "stalled": "nothing can happen any more, and some records are neither accepted nor archived",
        "time limit": "the longest simulated time was over",
        "work limit": "there were too many events for so few records",
    }
)
"""How a simulation may end, and what that means."""

_US: Final = 1000
_SECOND_MS: Final = 1000


class SimulationCounts:
    """
    What is counted while a simulation goes on.

    Attributes:
        fetches: Answers to fetches.
        empty_fetches: Those without records.
        acknowledgements: Requests that acknowledge.
        renewals: Requests that renew locks.
        state_writes: Writes of state.
        dead_letters: Records that went to the dead-letter queue. [records]
        expired: Records whose acquisition lock has expired. [records]
        refused: Records whose acknowledgement was refused, or has come to nothing. [records]
        crashes: Members that have crashed.
        deliveries: Records that were acquired, as often as they were. [records]
        duplicates: Those that were not acquired for the first time. [records]
        in_flight_max: The most records in flight in one share partition. [records]
        processing_us: How long members have processed records. [µs]
        wasted_us: How much of that was for nothing: its acknowledgement was refused, or the member crashed. [µs]
        causes: How many records have changed for which cause. [records]
        latencies_us: How long it took until each record was durably accepted, since it was appended. [µs]
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.fetches = self.empty_fetches = self.acknowledgements = self.renewals = self.state_writes = 0
        self.dead_letters = self.expired = self.refused = self.crashes = 0
        self.deliveries = self.duplicates = self.in_flight_max = 0
        self.processing_us = self.wasted_us = 0
        self.causes: Counter[Cause] = Counter()
        self.latencies_us = array("q")

    def acquired(self, acquired: Iterable[AcquiredRecords], in_flight: int) -> None:
        """Count what a member has acquired of a share partition that has so many records *in_flight* now."""
        for first, last, delivery_count in acquired:
            self.deliveries += last - first + 1
            if delivery_count > 1:
                self.duplicates += last - first + 1
        self.in_flight_max = max(self.in_flight_max, in_flight)

    def changed(self, transitions: Iterable[Transition]) -> None:
        """Count changes of records."""
        for transition in transitions:
            self.causes[transition[2]] += transition[1] - transition[0] + 1


def percentile(ascending: Sequence[int], percent: float) -> float | None:
    """
    Return the least of *ascending* numbers that so many of a hundred of them do not exceed; None if there are none.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99)
    (2, 4)
    """
    if not ascending:
        return None
    place = math.ceil(len(ascending) * percent / 100) - 1
    return ascending[min(max(place, 0), len(ascending) - 1)]


_COUNT: Final = an_integer(0)
_NUMBER: Final = number_within(0, 1e18)


def _result(check: Any, words: str) -> Any:  # noqa: ANN401 - a check of JSON, a field of attrs
    return field(metadata={"check": check, "words": words})


@frozen(kw_only=True)
class SimulationResult:
    """
    What comes of a load.

    Each record is in the end accepted, archived at the delivery count limit, rejected, or left. The latency is that of
    accepted records, from the append to the log until their acceptance is durable.

    Attributes:
        seed: The seed.
        ended: How the simulation has ended; one of ``ENDS``.
        duration_ms: The simulated time. [ms]
        records: The records that were produced. [records]
        accepted: Records that were accepted. [records]
        archived_at_limit: Records that were delivered as often as the group allows. [records]
        rejected: Records that were rejected. [records]
        left: Records of which nothing has become. [records]
        dead_letters: Records that went to the dead-letter queue. [records]
        throughput: Accepted records in a second. [records/s]
        latency_p50_ms: The latency that half of the accepted records do not exceed. [ms]
        latency_p95_ms: Likewise of 95 in a hundred. [ms]
        latency_p99_ms: Likewise of 99 in a hundred. [ms]
        latency_max_ms: The longest latency. [ms]
        deliveries: Records that were acquired, each time. [records]
        duplicates: Deliveries of records beyond the first. [records]
        expired: Records whose acquisition lock has expired, each time. [records]
        refused: Records whose acknowledgement was refused, or came too late to matter, each time. [records]
        processing_ms: How long all members have processed records. [ms]
        wasted_ms: How much of that was for nothing: its acknowledgement was refused, or the member crashed. [ms]
        utilization: The part of their time for which members have processed records.
        fetches: Fetches that were answered.
        empty_fetches: Those without records.
        acknowledgements: Requests that acknowledge.
        renewals: Requests that renew locks.
        state_writes: Writes of state.
        in_flight_max: The most records in flight in one share partition. [records]
        crashes: Members that have crashed.
    """

    seed: int = _result(an_integer(), "seed")
    ended: str = _result(one_of({name: name for name in ENDS}), "ended")
    duration_ms: float = _result(_NUMBER, "duration")
    records: int = _result(_COUNT, "records")
    accepted: int = _result(_COUNT, "accepted")
    archived_at_limit: int = _result(_COUNT, "archived at the limit")
    rejected: int = _result(_COUNT, "rejected")
    left: int = _result(_COUNT, "left")
    dead_letters: int = _result(_COUNT, "dead letters")
    throughput: float = _result(_NUMBER, "accepted/s")
    latency_p50_ms: float | None = _result(nullable(_NUMBER), "latency, median")
    latency_p95_ms: float | None = _result(nullable(_NUMBER), "latency, 95 %")
    latency_p99_ms: float | None = _result(nullable(_NUMBER), "latency, 99 %")
    latency_max_ms: float | None = _result(nullable(_NUMBER), "latency, longest")
    deliveries: int = _result(_COUNT, "deliveries")
    duplicates: int = _result(_COUNT, "duplicates")
    expired: int = _result(_COUNT, "expired")
    refused: int = _result(_COUNT, "refused")
    processing_ms: float = _result(_NUMBER, "processing")
    wasted_ms: float = _result(_NUMBER, "wasted")
    utilization: float = _result(_NUMBER, "utilization")
    fetches: int = _result(_COUNT, "fetches")
    empty_fetches: int = _result(_COUNT, "empty fetches")
    acknowledgements: int = _result(_COUNT, "acknowledgements")
    renewals: int = _result(_COUNT, "renewals")
    state_writes: int = _result(_COUNT, "state writes")
    in_flight_max: int = _result(_COUNT, "most in flight")
    crashes: int = _result(_COUNT, "crashes")

    @classmethod
    def of(  # noqa: PLR0913 - what is not counted
        cls, counts: SimulationCounts, *, seed: int, ended: str, duration_us: int, records: int, members: int
    ) -> Self:
        """Return what *counts* amount to, of a load of so many *records* and *members*."""
        latencies = sorted(counts.latencies_us)
        accepted = len(latencies)
        at_limit, rejected = counts.causes[Cause.ARCHIVED_AT_LIMIT], counts.causes[Cause.REJECTED]
        latency = {
            f"latency_{name}_ms": _ms(percentile(latencies, percent))
            for name, percent in (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100))
        }
        return cls(
            seed=seed,
            ended=ended,
            duration_ms=duration_us / _US,
            records=records,
            accepted=accepted,
            archived_at_limit=at_limit,
            rejected=rejected,
            left=records - accepted - at_limit - rejected,
            dead_letters=counts.dead_letters,
            throughput=round(accepted * 1_000_000 / duration_us, 3) if duration_us else 0.0,
            **latency,
            deliveries=counts.deliveries,
            duplicates=counts.duplicates,
            expired=counts.expired,
            refused=counts.refused,
            processing_ms=counts.processing_us / _US,
            wasted_ms=counts.wasted_us / _US,
            utilization=round(counts.processing_us / (members * duration_us), 4) if duration_us else 0.0,
            fetches=counts.fetches,
            empty_fetches=counts.empty_fetches,
            acknowledgements=counts.acknowledgements,
            renewals=counts.renewals,
            state_writes=counts.state_writes,
            in_flight_max=counts.in_flight_max,
            crashes=counts.crashes,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON, with the version of its form."""
        return {"result": RESULT_VERSION, **attrs.asdict(self)}

    @classmethod
    def from_json(cls, value: Json) -> Self:
        """
        Return the result that *value* is the form of.

        Raises:
            MalformedInputError: It is of another version, or a field is missing or not what it has to be.
        """
        return _read(value, "")  # type: ignore[no-any-return] # of this class


def _ms(us: float | None) -> float | None:
    return None if us is None else us / _US


MEASURES: Final[Mapping[str, str]] = MappingProxyType(
    {each.name: each.metadata["words"] for each in attrs.fields(SimulationResult)}
)
"""The fields of a result, and what tables call them."""


def measure_text(name: str, value: float) -> str:
    """
    Return a measure in words.

    >>> from sharestate.simulate import measure_text
    >>> measure_text("duration_ms", 90_500.25), measure_text("utilization", 0.25), measure_text("duplicates", 1234.0)
    ('90.5 s', '25.0 %', '1,234')
    """
    if name.endswith("_ms"):
        return f"{value / _SECOND_MS:,.4g} s" if value >= _SECOND_MS else f"{value:.4g} ms"
    if name == "utilization":
        return f"{value:.1%}".replace("%", " %")
    return f"{value:,.2f}" if name == "throughput" else f"{value:,.0f}"


_read: Final[Check[Any]] = record(
    {
        "result": Field(version(RESULT_VERSION)),
        **{each.name: Field(each.metadata["check"]) for each in attrs.fields(SimulationResult)},
    },
    lambda result, **fields: SimulationResult(**fields),  # noqa: ARG005 - the version has been checked
)
