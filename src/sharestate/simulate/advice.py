"""
Advice on settings, computed: each candidate is simulated with the same luck as the load, with several seeds.

A sentence is said where the candidate is better with every seed, so where the difference is not within the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import attrs
from attrs import frozen

from sharestate.json_lines import Json
from sharestate.simulate.load import SETTINGS, Acknowledging, Load, setting_words, value_text
from sharestate.simulate.result import SimulationResult
from sharestate.simulate.simulation import simulate
from sharestate.values.checks import refuse
from sharestate.values.records import AcquireMode

ADVICE_VERSION: Final = 1
"""The version of the form of advice that is written."""

DEFAULT_SEEDS: Final = range(5)
"""The seeds, if nothing else is asked for."""

_LOCKS_MS: Final = (1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 120_000, 300_000, 900_000)
_BROKERS_LOCKS_MS: Final = (15_000, 60_000)
"""The shortest and the longest lock that brokers allow if they are not configured otherwise. [ms]"""

_BROKERS_LOCKS: Final = 4_000
_POLLS: Final = (1, 10, 20, 50, 100, 200, 500)
_ENOUGH: Final = 0.95
"""Which part of what can be avoided at all is enough, so that a smaller change is preferred."""

_SOME: Final = 0.02
"""The least part that is worth a sentence."""

_WORSE: Final = 0.05
"""By which part a candidate may be worse in another measure before it is no advice."""


class Candidate(NamedTuple):
    """
    A changed load with its results.

    Attributes:
        setting: The setting that it is about.
        changed: The settings that differ, that one first.
        load: The load.
        results: What comes of it, with each seed.
    """

    setting: str
    changed: tuple[str, ...]
    load: Load
    results: tuple[SimulationResult, ...]


@frozen(kw_only=True)
class Advice:
    """
    A piece of advice.

    Attributes:
        setting: The setting to change; the sentence says with which others, if any.
        value: The value, in words.
        measure: The measure that gets better.
        before: Its mean as it is.
        after: Its mean with the change.
        low: The least part by which it gets better, over the seeds.
        high: The greatest one.
        throughput: By which part the throughput changes, on average.
        sentence: All of it in words.
    """

    setting: str
    value: str
    measure: str
    before: float
    after: float
    low: float
    high: float
    throughput: float
    sentence: str


@frozen(kw_only=True)
class Advised:
    """
    What can be said of a load.

    Attributes:
        load: The load.
        results: What comes of it as it is, with each seed.
        advice: The advice, the most effective first.
        notes: What was looked at without a difference that is beyond chance, and why there is no advice on it.
    """

    load: Load
    results: tuple[SimulationResult, ...]
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON, with the version of its form."""
        return {
            "advice": ADVICE_VERSION,
            "load": self.load.to_json(),
            "results": [each.to_json() for each in self.results],
            "sentences": [attrs.asdict(each) for each in self.advice],
            "notes": list(self.notes),
        }


def advise(
    load: Load,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    *,
    settings: Collection[str] | None = None,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[Iterable[Load]], Iterable[Load]] = iter,
) -> Advised:
    """
    Return which settings would have been better for a load.

    Locks, polls, renewals, members, record locks and delivery limits are tried where the results of the load say that
    they matter. The load itself is not questioned: a member that fails goes on failing.

    Args:
        load: The load.
        seeds: The seeds; at least two, or a difference may be chance.
        settings: The settings that may be changed; all if None.
        is_over: Whether no more loads are to be tried; a place to bound the time. A note names what was not tried.
        watch: Yields the loads that are tried; to show progress.

    Raises:
        MalformedInputError: There are fewer than two seeds.

    Complexity:
        That of some dozen simulations for each seed.

    >>> from sharestate.simulate import Load, advise
    >>> slow = Load(records=1000, members=2, lock_duration_ms=4_000)
    >>> advised = advise(slow, range(2))
    >>> [each.setting for each in advised.advice][:1], advised.advice[0].value
    (['lock_duration_ms'], '10s')
    """
    if len(seeds) < 2:  # noqa: PLR2004 - the least that have a spread
        refuse("expected at least two seeds", "seeds")
    now = tuple(simulate(load, seed) for seed in seeds)
    said: list[Advice] = []
    notes: list[str] = []
    for question in _questions(load, now):
        setting = question.setting
        if not question.loads or (settings is not None and setting not in settings):  # as small or large as may be
            continue
        candidates: list[Candidate] = []
        best, is_decided = None, False
        for each in watch(question.loads):
            if is_over():
                break
            results = tuple(simulate(each, seed) for seed in seeds)
            candidates.append(Candidate(setting, _differing(load, each, setting), each, results))
            best = _best(now, candidates, question)
            is_decided = best is not None and best.low >= _ENOUGH and not question.rises  # nothing falls by more than 1
            if is_decided:
                break
        if len(candidates) < len(question.loads) and not is_decided:
            tried = f"{len(candidates)} of {len(question.loads)} values"
            notes.append(f"{setting_words(setting)}: nothing is said, as the time was over when {tried} were tried.")
            continue
        if best is None:
            tried = ", ".join(map(_values, candidates))
            notes.append(f"{setting_words(setting)}: {tried}: {question.noun} not better with every seed.")
        else:
            said.append(best)
    said.sort(key=lambda each: -each.low)
    return Advised(load=load, results=now, advice=tuple(said), notes=tuple(notes))


class _Question(NamedTuple):
    """What is tried: loads that differ in a setting, the smallest change first; and the measure that has to fall."""

    setting: str
    loads: Sequence[Load]
    measure: str
    noun: str
    rises: bool = False


def _questions(load: Load, now: Sequence[SimulationResult]) -> Iterator[_Question]:
    """Yield what is worth trying, as the results say."""
    expired, at_limit = _mean(now, "expired"), _mean(now, "archived_at_limit")
    if expired:
        locks = [ms for ms in _LOCKS_MS if ms > load.lock_duration_ms]
        yield _Question("lock_duration_ms", _changed(load, "lock_duration_ms", locks), "duplicates", "duplicates")
        polls = [size for size in reversed(_POLLS) if size < load.poll_records]
        yield _Question("poll_records", _changed(load, "poll_records", polls), "duplicates", "duplicates")
        if load.acquire_mode is AcquireMode.BATCH_OPTIMIZED:  # a poll is rounded up to whole batches
            strict = attrs.evolve(load, acquire_mode=AcquireMode.RECORD_LIMIT)
            yield _Question("acquire_mode", _changed(strict, "poll_records", polls), "duplicates", "duplicates")
        if not load.renew_interval_ms:
            interval = max(1, load.lock_duration_ms // 3)
            renewals = _changed(load, "renew_interval_ms", [interval])
            yield _Question("renew_interval_ms", renewals, "duplicates", "duplicates")
        if load.acknowledging is Acknowledging.EACH_POLL:
            each = _changed(load, "acknowledging", [Acknowledging.EACH_RECORD])
            yield _Question("acknowledging", each, "duplicates", "duplicates")
    if at_limit and load.delivery_count_limit < 10 and (expired or load.failure_rate):  # noqa: PLR2004 - of brokers
        limits = range(load.delivery_count_limit + 1, 11)
        yield _Question(
            "delivery_count_limit",
            _changed(load, "delivery_count_limit", limits),
            "archived_at_limit",
            "records given up",
        )
    if max(each.in_flight_max for each in now) >= load.max_record_locks:
        locks = [count for count in (2_000, 4_000, 10_000) if count > load.max_record_locks]
        yield _Question("max_record_locks", _changed(load, "max_record_locks", locks), "throughput", "throughput", True)  # noqa: FBT003 - it rises
    if _mean(now, "utilization") > 0.8:  # noqa: PLR2004 - busy
        members = sorted({load.members + 1, math.ceil(load.members * 1.5), load.members * 2} & set(range(1, 1001)))
        yield _Question("members", _changed(load, "members", members), "latency_p95_ms", "latency (95 %)")


def _differing(load: Load, other: Load, first: str) -> tuple[str, ...]:
    """Return the settings in which loads differ, *first* in front."""
    names = [name for name in SETTINGS if getattr(load, name) != getattr(other, name)]
    return tuple(sorted(names, key=lambda name: name != first))


def _values(candidate: Candidate) -> str:
    return " with ".join(value_text(name, getattr(candidate.load, name)) for name in candidate.changed)


def _changed(load: Load, setting: str, values: Iterable[Any]) -> list[Load]:
    return [attrs.evolve(load, **{setting: value}) for value in values]


def _best(now: Sequence[SimulationResult], candidates: Sequence[Candidate], question: _Question) -> Advice | None:
    """Return the smallest change that comes close to the best one; None if none is better with every seed."""
    gains = [(candidate, _gains(now, candidate.results, question)) for candidate in candidates]
    better = [(candidate, gain) for candidate, gain in gains if min(gain) > _SOME and not _is_worse(now, candidate)]
    if not better:
        return None
    most = max(math.fsum(gain) for _, gain in better)
    candidate, gain = next(each for each in better if math.fsum(each[1]) >= _ENOUGH * most)
    return _advice(now, candidate, gain, question)


def _gains(now: Sequence[SimulationResult], then: Sequence[SimulationResult], question: _Question) -> list[float]:
    """Return by which part the measure gets better with each seed; 0 where it is not known."""
    gains = []
    for before, after in zip(now, then, strict=True):
        was, is_now = getattr(before, question.measure), getattr(after, question.measure)
        if not was or is_now is None:
            gains.append(0.0)
        else:
            gains.append((is_now - was if question.rises else was - is_now) / was)
    return gains


def _is_worse(now: Sequence[SimulationResult], candidate: Candidate) -> bool:
    """Return whether fewer records are accepted, or much more slowly."""
    return _mean(candidate.results, "accepted") < _mean(now, "accepted") * (1 - _SOME) or _mean(
        candidate.results, "throughput"
    ) < _mean(now, "throughput") * (1 - _WORSE)


def _advice(
    now: Sequence[SimulationResult], candidate: Candidate, gain: Sequence[float], question: _Question
) -> Advice:
    setting = candidate.setting
    value = value_text(setting, getattr(candidate.load, setting))
    named = " with ".join(
        f"{setting_words(name)} {value_text(name, getattr(candidate.load, name))}" for name in candidate.changed
    )
    before, after = _mean(now, question.measure), _mean(candidate.results, question.measure)
    throughput = _mean(candidate.results, "throughput") / max(_mean(now, "throughput"), 1e-9) - 1
    mean, low, high = math.fsum(gain) / len(gain), min(gain), max(gain)
    if question.rises:
        effect = f"throughput {_signed(mean)} ({_percent(low)} to {_percent(high)} over {len(gain)} seeds)"
    else:
        of = f"{_number(before)} {question.noun}" if question.measure != "latency_p95_ms" else _number(before) + " ms"
        avoided = "avoided" if question.measure != "latency_p95_ms" else "taken off the latency (95 %)"
        effect = (
            f"{avoided} {_percent(mean)} of {of} ({_percent(low)} to {_percent(high)} over {len(gain)} seeds);"
            f" throughput {_signed(throughput)}"
        )
    verb = "would have given" if question.rises else "would have"
    return Advice(
        setting=setting,
        value=value,
        measure=question.measure,
        before=before,
        after=after,
        low=low,
        high=high,
        throughput=throughput,
        sentence=f"{named} {verb} {effect}.{_reservation(candidate.load, setting)}",
    )


def _reservation(load: Load, setting: str) -> str:
    """Return what an administrator has to know of a value."""
    if setting == "lock_duration_ms" and load.lock_duration_ms > _BROKERS_LOCKS_MS[1]:
        return " Brokers allow it if group.share.max.record.lock.duration.ms is raised."
    if setting == "lock_duration_ms" and load.lock_duration_ms < _BROKERS_LOCKS_MS[0]:
        return " Brokers allow it if group.share.min.record.lock.duration.ms is lowered."
    if setting == "max_record_locks" and load.max_record_locks > _BROKERS_LOCKS:
        return " Brokers allow it if group.share.max.partition.max.record.locks is raised."
    return ""


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _signed(part: float) -> str:
    return _percent(part, "+") if abs(part) >= 0.005 else "unchanged"  # noqa: PLR2004 - half a percent


def _percent(part: float, sign: str = "-") -> str:
    return f"{100 * part:{sign}.0f} %"


def _mean(results: Sequence[SimulationResult], measure: str) -> float:
    return math.fsum(getattr(each, measure) or 0 for each in results) / len(results)
