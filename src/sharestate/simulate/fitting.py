"""
The load that a history shows: arrivals, processing times, failures, members and settings, and what it cannot show.

A member is taken to process one record after the other: what passes between an answer and its next acknowledgement is
the processing of what that acknowledges. So think time, pauses and other work of the member are processing, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from attrs import frozen

from sharestate.errors import HistoryError
from sharestate.explain import Survey
from sharestate.explain.words import counted
from sharestate.history import Event, HistoryReader
from sharestate.json_lines import Json, printable
from sharestate.simulate.distributions import (
    LONGEST_MS,
    MOST_RECORDS,
    MOST_VALUES,
    Constant,
    Empirical,
    LogNormal,
    RecordedArrival,
    Times,
)
from sharestate.simulate.load import SETTINGS, Acknowledging, Load, value_text
from sharestate.simulate.seen import SETTINGS_OF_GROUPS, SeenGroup, Turns
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.effects import Cause
from sharestate.values.profiles import PROFILES
from sharestate.values.records import AcquireMode

_US: Final = 1000
_KEPT_TIMES: Final = 10_000
"""The most times of an empirical distribution that is fitted: equally many hundredths of all of them."""

_LEAST_REQUEST_MS: Final = 0.01


class Fitted(NamedTuple):
    """
    A setting of a fitted load.

    Attributes:
        setting: Its name.
        value: Its value, in words.
        why: What it comes from, or why nothing is known.
    """

    setting: str
    value: str
    why: str


@frozen(kw_only=True)
class Fit:
    """
    What a history shows of a group's load.

    Attributes:
        group_id: The group.
        load: The load.
        known: The settings that the history shows.
        assumed: The settings that it does not show, and what is assumed.
        notes: What else is not as in the history.
        observed: What the history shows of the result, by measures of ``SimulationResult``.
    """

    group_id: str
    load: Load
    known: tuple[Fitted, ...]
    assumed: tuple[Fitted, ...]
    notes: tuple[str, ...]
    observed: Mapping[str, float]

    def to_json(self) -> dict[str, Json]:
        """Return the fit as JSON."""
        return {
            "group": self.group_id,
            "load": self.load.to_json(),
            "known": [each._asdict() for each in self.known],
            "assumed": [each._asdict() for each in self.assumed],
            "notes": list(self.notes),
            "observed": dict(self.observed),
        }


def fit(source: Path, *, group: str | None = None, watch: Callable[[HistoryReader], Iterable[Event]] = iter) -> Fit:
    """
    Return the load that a history shows.

    Args:
        source: The history, in causal order.
        group: The share group; the only one if None.
        watch: Yields the events of the history; a place to show progress.

    Raises:
        HistoryError: It is in order of arrival, has several groups and none is chosen, or shows no delivery.
        UnreadableFileError: It cannot be read.

    Complexity:
        That of two reads and a replay; a few numbers are kept of each request.
    """
    survey = Survey(source, watch)
    groups = list(dict.fromkeys(group_id for group_id, _, _ in survey.keys))
    if group is None and len(groups) > 1:
        message = f"{len(groups)} groups are in it; choose one: {', '.join(map(printable, groups[:10]))}"
        raise HistoryError(message, str(source))
    chosen = group if group is not None else next(iter(groups), "")
    keys = [key for key in survey.keys if key[0] == chosen]
    seen = SeenGroup(chosen, lacks=survey.header.lacks)
    survey.lives(keys, seen.begin)
    if not seen.deliveries:
        message = f"nothing was delivered to the group {printable(chosen)}: there is no load to fit"
        raise HistoryError(message, str(source))
    return _Fitting(seen).fit()


# ---- what that amounts to


class _Fitting:
    """A fit on its way."""

    def __init__(self, seen: SeenGroup) -> None:
        self._seen = seen
        self._values: dict[str, Any] = {}
        self._known: list[Fitted] = []
        self._assumed: list[Fitted] = []
        self._notes: list[str] = []

    def fit(self) -> Fit:
        """Return the fit."""
        self._fit_arrival()
        self._fit_members()
        self._fit_polls()
        self._fit_processing()
        self._fit_failures()
        self._fit_settings()
        load = Load(**self._values)
        known = [each._replace(value=value_text(each.setting, getattr(load, each.setting))) for each in self._known]
        assumed = [each._replace(value=value_text(each.setting, getattr(load, each.setting))) for each in self._assumed]
        return Fit(
            group_id=self._seen.group_id,
            load=load,
            known=tuple(known),
            assumed=tuple(assumed),
            notes=tuple(self._notes),
            observed=self._observed(load),
        )

    def _know(self, setting: str, value: Any, why: str) -> None:  # noqa: ANN401 - a value of the setting
        self._values[setting] = value
        self._known.append(Fitted(setting, "", why))

    def _assume(self, setting: str, why: str, value: Any = None) -> None:  # noqa: ANN401 - likewise
        if value is not None:
            self._values[setting] = value
        self._assumed.append(Fitted(setting, "", why))

    # ---- arrivals

    def _fit_arrival(self) -> None:
        seen = self._seen
        begin_us = seen.begin_us or 0
        batches = []
        for number, partition in enumerate(seen.partitions):
            start = partition.start_offset or 0
            for first, (at_us, last) in partition.batches.items():
                if last >= start:
                    batches.append((max(0, at_us - begin_us), number, last - max(first, start) + 1))
        batches.sort()
        self._values["partitions"] = max(1, len(seen.partitions))
        self._known.append(Fitted("partitions", "", "the share partitions of the group"))
        records = sum(size for _, _, size in batches)
        if not batches or len(batches) > MOST_VALUES or records > MOST_RECORDS or batches[-1][0] > LONGEST_MS * _US:
            self._assume("arrival", "the history does not have the batches of the log, or has too many", None)
            self._assume("records", "likewise", min(max(1, seen.deliveries - seen.duplicates), MOST_RECORDS))
            return
        has_log = all(partition.has_log for partition in seen.partitions)
        why = "the batches of the log" if has_log else "when fetches have read the batches of the log first"
        self._know("arrival", RecordedArrival(batches), why)
        self._values["records"] = records
        size = Counter(size for _, _, size in batches).most_common(1)[0][0]
        self._know("producer_batch", size, "the most frequent size of those batches; only for other arrivals")

    # ---- members

    def _fit_members(self) -> None:
        spans = [(each.first_us, each.last_us) for each in self._seen.members.values()]
        changes = sorted([(first, 1) for first, _ in spans] + [(last + 1, -1) for _, last in spans])
        most = there = 0
        for _, change in changes:
            there += change
            most = max(most, there)
        members = min(max(1, most), 1000)
        of = f"of {len(spans)} in all, " if len(spans) != members else ""
        self._know("members", members, f"the most that were there at once, {of}from their first request to their last")

    def _fit_polls(self) -> None:
        seen = self._seen
        if seen.polls:
            size, often = seen.polls.most_common(1)[0]
            self._know("poll_records", max(1, size), _often(often, seen.polls, "fetch"))
            mode, often = seen.modes.most_common(1)[0]
            self._know("acquire_mode", AcquireMode(mode), _often(often, seen.modes, "fetch"))
        if seen.waits:
            wait, often = seen.waits.most_common(1)[0]
            self._know("max_wait_ms", max(1, wait), _often(often, seen.waits, "fetch"))
        else:
            self._assume("max_wait_ms", "the fetches do not say it")

    # ---- processing

    def _fit_processing(self) -> None:
        turns = Turns()
        for member in self._seen.members.values():
            member.add_turns(turns)
        requests, writes, renewals = turns.requests, turns.writes_us, turns.renewals_us
        request_ms = max(_LEAST_REQUEST_MS, median(turns.idle_us) / _US) if turns.idle_us else _LEAST_REQUEST_MS
        if turns.idle_us:
            self._know("request_ms", round(request_ms, 3), "from an answer to the next request, half of the times")
        else:
            self._assume("request_ms", "no member has fetched after an acknowledgement", request_ms)
        self._fit_acknowledging([records for records, _ in requests], turns.answers)
        times, why = _times_of(requests, request_ms)
        if times is None:
            self._assume("processing", "nothing was acknowledged after it was acquired")
        else:
            self._know("processing", times, why)
        if writes:
            took = round(median(writes) / _US, 3)
            self._know("state_write_ms", took, "from an acknowledgement to its answer, half of the times")
        else:
            self._assume("state_write_ms", "the history has no times of answers")
        silent = self._seen.deliveries - sum(
            one.records for member in self._seen.members.values() for one in member.acknowledged.values()
        )
        if silent > 0:
            self._notes.append(
                f"{counted(silent, 'delivery')} without an acknowledgement: how long the processing took is not known."
            )
        if renewals:
            interval = max(1, round(median(renewals) / _US))
            self._know("renew_interval_ms", interval, "between renewals of a member, half of the times")

    def _fit_acknowledging(self, acknowledged: Sequence[int], answers: Sequence[int]) -> None:
        if not acknowledged or not answers:
            self._assume("acknowledging", "nothing was acknowledged")
            return
        each = median(acknowledged)
        if each == 1 and median(answers) > 1:
            self._know("acknowledging", Acknowledging.EACH_RECORD, "most requests acknowledge one record of several")
        else:
            self._know(
                "acknowledging", Acknowledging.EACH_POLL, f"half of the requests acknowledge up to {_records(each)}"
            )

    # ---- failures

    def _fit_failures(self) -> None:
        seen = self._seen
        limit = self._limit()
        judged = seen.kinds[AcknowledgeType.ACCEPT] + seen.kinds[AcknowledgeType.RELEASE]
        judged += seen.kinds[AcknowledgeType.REJECT]
        if not judged:
            self._assume("failure_rate", "nothing was acknowledged")
            return
        records = max(1, seen.deliveries - seen.duplicates)
        poison = min(seen.released_at_limit, records)
        released = max(0, seen.kinds[AcknowledgeType.RELEASE] - poison * limit)
        others = max(1, judged - poison * limit)
        of = f"of {counted(judged, 'acknowledged record')}"
        self._know(
            "failure_rate", _rate(released, others), f"{_were(released)} released {of}, and accepted later or not yet"
        )
        self._know(
            "poison_rate",
            _rate(poison, records),
            f"{poison:,} of {_records(records)} {_verb(poison)} released to the end",
        )
        rejected = seen.kinds[AcknowledgeType.REJECT]
        self._know("reject_rate", _rate(rejected, others), f"{_were(rejected)} rejected {of}")
        crashes = len(seen.lost)
        self._know(
            "crash_rate",
            _rate(crashes, seen.deliveries),
            f"sessions that ended with records held: {crashes:,}",
        )
        if crashes:
            self._assume("restart_ms", "the history does not say when another member was there in the place of one")
        self._assume("retry_backoff_ms", "a wait after a failure cannot be told from processing", 0)

    def _limit(self) -> int:
        return int(self._seen.settings.get("delivery_count_limit", Load().delivery_count_limit))

    # ---- settings

    def _fit_settings(self) -> None:
        seen = self._seen
        for name, setting in SETTINGS_OF_GROUPS.items():
            if name in seen.settings and name not in seen.assumed:
                changed = seen.changed[name]
                why = f"the last of {changed + 1} values" if changed else "the settings in the history"
                self._know(setting, seen.settings[name], why)
            else:
                self._assume(setting, "the history has no such setting: Kafka's default", seen.settings.get(name))
        profile = PROFILES.get(seen.settings.get("profile", ""))
        if profile is not None:
            self._know("profile", profile, "the settings in the history")
            if profile.has_dead_letter_queue and seen.settings.get("dlq_topic"):
                self._know("dead_letter_queue", True, "the settings in the history")  # noqa: FBT003 - a value
        else:
            self._assume("profile", "the history names none")
        if seen.settings.get("isolation") == "read_committed":
            self._notes.append("The group reads what is committed only; simulated records are visible at once.")
        if missing := seen.causes[Cause.GAP] + seen.causes[Cause.ABORTED]:
            self._notes.append(f"Markers, gaps or aborted: {_records(missing)}; simulated ones are all there.")
        gone = seen.causes[Cause.BELOW_LOG_START] + seen.causes[Cause.COMPACTED_AWAY]
        if gone:
            self._notes.append(f"Gone from the log: {_records(gone)}; simulated ones stay there.")

    def _observed(self, load: Load) -> dict[str, float]:
        seen = self._seen
        span_us = seen.end_us - (seen.begin_us or 0)
        accepted, rejected = seen.causes[Cause.ACCEPTED], seen.causes[Cause.REJECTED]
        fetches = len(seen.requests)
        with_records = sum(len(member.got) for member in seen.members.values())
        return {
            "duration_ms": span_us / _US,
            "records": load.records,
            "accepted": accepted,
            "archived_at_limit": seen.causes[Cause.ARCHIVED_AT_LIMIT],
            "rejected": rejected,
            "throughput": round(accepted * 1_000_000 / span_us, 3) if span_us else 0.0,
            "deliveries": seen.deliveries,
            "duplicates": seen.duplicates,
            "expired": seen.expired,
            "fetches": fetches,
            "empty_fetches": max(0, fetches - with_records),
        }


def _records(count: float) -> str:
    return f"{count:,} records" if count % 1 else counted(int(count), "record")


def _verb(count: int) -> str:
    return "was" if count == 1 else "were"


def _were(count: int) -> str:
    return f"{count:,} {_verb(count)}"


def _often(count: int, counter: Counter[Any], what: str) -> str:
    total = counter.total()
    of = counted(total, what)
    return f"all {of}" if count == total > 1 else of if count == total else f"{count:,} of {of}"


def _rate(count: int, of: int) -> float:
    return min(1.0, round(count / max(1, of), 6))


def _times_of(requests: Sequence[tuple[int, int]], request_ms: float) -> tuple[Times | None, str]:
    """Return the times of records, from numbers of records and the times of the requests that acknowledge them."""
    if not requests:
        return None, ""
    records = sum(count for count, _ in requests)
    spent = [(count, max(0.0, took_us / _US - request_ms)) for count, took_us in requests]
    mean = math.fsum(took for _, took in spent) / records
    if median(count for count, _ in requests) == 1:
        values = sorted(min(took / count, LONGEST_MS) for count, took in spent)
        step = max(1, math.ceil(len(values) / _KEPT_TIMES))
        why = f"from an answer to the acknowledgement of the next record, {counted(len(values), 'time')}"
        return Empirical([round(value, 3) for value in values[step // 2 :: step]]), why
    # If the times of records are independent, those of requests have the variance of one record, times their number.
    variance = math.fsum((took - count * mean) ** 2 / count for count, took in spent) / len(spent)
    why = f"mean and spread of {counted(len(spent), 'request')}, as if the times of their records were independent"
    if not mean or variance <= 0:
        return Constant(round(mean, 3)), why
    sigma = math.sqrt(math.log1p(variance / mean**2))
    return LogNormal(round(mean * math.exp(-(sigma**2) / 2), 6), min(5.0, round(sigma, 4))), why


def parts_line(fitted: Fit) -> str:
    """Return of what the parts in advice are parts, as a sentence."""
    seen = counted(int(fitted.observed["duplicates"]), "duplicate")
    return f"Parts are those of the simulated load, which is not the history itself; that has {seen}."


def fit_lines(fitted: Fit) -> Iterable[str]:
    """Yield what was fitted, and what is not known, in words."""
    width = max(map(len, SETTINGS))
    yield f"The load of group {printable(fitted.group_id)}, as the history shows it:"
    for each in fitted.known:
        yield f"  {each.setting:{width}}  {each.value}: {each.why}"
    yield "What the history does not show, and is assumed:"
    for each in fitted.assumed:
        yield f"  {each.setting:{width}}  {each.value}: {each.why}"
    yield from fitted.notes
