"""Which settings would have avoided what a diagnosis of a history has found, computed from the load that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from sharestate.diagnose import Diagnosis, DiagnosisFinding
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.explain.words import counted
from sharestate.history import Event, HistoryReader
from sharestate.simulate.advice import Advised, advise
from sharestate.simulate.distributions import RecordedArrival
from sharestate.simulate.fitting import Fit, fit
from sharestate.simulate.load import Load, setting_words
from sharestate.simulate.result import MEASURES, SimulationResult, measure_text

MOST_SIMULATED: Final = 20_000
"""The most records of a load that are simulated for a diagnosis: half a second of CPU at the most. [records]"""

_ALIKE: Final = 2
"""By which factor what is simulated may differ from what was seen: beyond that it is another load."""

_OF_DUPLICATES: Final = ("lock_duration_ms", "poll_records", "acquire_mode", "renew_interval_ms", "acknowledging")

SETTINGS_OF_RULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "lock-too-short": _OF_DUPLICATES,
        "late-acknowledgements": _OF_DUPLICATES,
        "more-than-polled": _OF_DUPLICATES,
        "poison-records": ("delivery_count_limit",),
        "given-up-in-numbers": ("delivery_count_limit",),
        "limit-of-two": ("delivery_count_limit",),
        "window-full-of-held-records": ("max_record_locks",),
        "window-full-of-done-records": ("max_record_locks",),
        "lag-grows": ("members",),
    }
)
"""Of which rules of a diagnosis settings can be computed, and which."""

_MEASURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        _OF_DUPLICATES[0]: "duplicates",
        "delivery_count_limit": "archived_at_limit",
        "max_record_locks": "throughput",
        "members": "throughput",
    }
)
"""The measure in which the simulated load has to be like the history, by the first of the settings of a rule."""


def advise_findings(
    found: Diagnosis,
    source: Path,
    *,
    is_over: Callable[[], bool] = lambda: False,
    watch: Callable[[HistoryReader], Iterable[Event]] = iter,
) -> Diagnosis:
    """
    Return a diagnosis with what was computed about its findings: settings that would have been better, and by how much.

    The load of each group is fitted to the history, and simulated. Nothing is said where what is simulated as it was
    is not like the history; a note says why.

    Args:
        found: The diagnosis.
        source: The history that it is of.
        is_over: Whether no more is to be tried; a place to bound the time.
        watch: Yields the events of the history; a place to show progress.

    Raises:
        UnreadableFileError: The history cannot be read.

    Complexity:
        For each group with such a finding that of ``fit``, and of some dozen simulations of 20,000 records at the most
        with each of five seeds, until the time is over.
    """
    findings: list[DiagnosisFinding] = []
    notes = list(found.notes)
    by_group: dict[str, tuple[Fit, Advised] | None] = {}
    said: set[tuple[str, tuple[str, ...]]] = set()
    for each in found.findings:
        group_id, settings = each.place.group_id, SETTINGS_OF_RULES.get(each.rule.name, ())
        if not settings:
            findings.append(each)
            continue
        if group_id not in by_group:
            rules = {other.rule.name for other in found.findings if other.place.group_id == group_id}
            by_group[group_id], note = _advised(source, group_id, rules, is_over, watch)
            notes.append(f"group {group_id}: {note}.")
        advised = by_group[group_id]
        is_new = (group_id, settings) not in said
        said.add((group_id, settings))
        computed = tuple(_computed(settings, *advised)) if advised is not None and is_new else ()
        findings.append(each._replace(computed=computed))
    if findings and not by_group:
        notes.append("No settings were computed: no finding is about one that can be.")
    return found._replace(findings=tuple(findings), notes=tuple(notes))


def _advised(
    source: Path,
    group_id: str,
    rules: Collection[str],
    is_over: Callable[[], bool],
    watch: Callable[[HistoryReader], Iterable[Event]],
) -> tuple[tuple[Fit, Advised] | None, str]:
    """Return what is fitted to a group, and advised, None if there is no such load; and what was done in words."""
    if is_over():
        return None, "settings were not computed, because the time for it was over"
    try:
        fitted = fit(source, group=group_id, watch=watch)
        load, words = _shortened(fitted.load)
    except UnreadableFileError:
        raise
    except MalformedInputError as error:  # it shows no load that can be simulated
        return None, f"settings were not computed, because {error.message}"
    advised = advise(
        load, settings={name for rule in rules for name in SETTINGS_OF_RULES.get(rule, ())}, is_over=is_over
    )
    return (fitted, advised), f"computed with {words}"


def _shortened(load: Load) -> tuple[Load, str]:
    """Return a load of so many records that it takes no time, and in words what it is."""
    if load.records <= MOST_SIMULATED:
        return load, f"the load that the history shows, {counted(load.records, 'record')}"
    if isinstance(load.arrival, RecordedArrival):
        seen = 0
        batches: list[tuple[int, int, int]] = []
        for batch in load.arrival.batches:
            seen += batch[2]
            if batches and seen > MOST_SIMULATED:
                break
            batches.append(batch)
        load = attrs.evolve(load, arrival=RecordedArrival(batches), records=sum(batch[2] for batch in batches))
    else:
        load = attrs.evolve(load, records=MOST_SIMULATED)
    return load, f"the first {counted(load.records, 'record')} of the load that the history shows"


def _computed(settings: Sequence[str], fitted: Fit, advised: Advised) -> Iterator[str]:
    """Yield what was computed about settings, or why nothing was."""
    measure = _MEASURES[settings[0]]
    both = _both(measure, fitted, advised.results)
    if not _is_alike(measure, fitted, advised.results):
        yield f"nothing, because the simulated load is not like the history: {both}"
        return
    sentences = [each.sentence for each in advised.advice if each.setting in settings]
    sentences += [note for note in advised.notes if note.partition(":")[0] in map(setting_words, settings)]
    if sentences:
        yield f"as it was, {both}"
        yield from sentences
    else:
        yield f"nothing: the simulated load does without another value; {both}"


def _rate(measure: str, results: Sequence[SimulationResult]) -> float:
    """Return a measure for each record, or a throughput as it is."""
    of = len(results) if measure == "throughput" else sum(each.records for each in results)
    return math.fsum(getattr(each, measure) for each in results) / of


def _observed_rate(measure: str, fitted: Fit) -> float:
    return fitted.observed[measure] / (1 if measure == "throughput" else max(fitted.observed["records"], 1))


def _is_alike(measure: str, fitted: Fit, results: Sequence[SimulationResult]) -> bool:
    """Return whether what is simulated is half to twice of what was seen."""
    seen, simulated = _observed_rate(measure, fitted), _rate(measure, results)
    return seen <= _ALIKE * simulated and simulated <= _ALIKE * seen


def _both(measure: str, fitted: Fit, results: Sequence[SimulationResult]) -> str:
    """Return a measure of the simulation, as if it had as many records as the history, and that of the history."""
    mean = _rate(measure, results) * (1 if measure == "throughput" else max(fitted.observed["records"], 1))
    seen = measure_text(measure, fitted.observed[measure])
    return f"{MEASURES[measure]}: {measure_text(measure, mean)} simulated, {seen} in the history"
