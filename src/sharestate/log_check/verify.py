"""The check of a history from a broker's log: whether everything the broker sent or stored follows from the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import groupby
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

from attrs import Factory, define, evolve, fields, frozen

from sharestate.errors import HistoryError, MalformedInputError
from sharestate.history import Event, Header, HistoryReader, Order
from sharestate.history.kafka_defects import REASONS
from sharestate.json_lines import Json
from sharestate.log_check.budget import LEAST_WORK, Budget, BudgetSpentError
from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.found_order import FoundOrder, Stopped, ordered_events
from sharestate.log_check.lock_durations import wrong_durations
from sharestate.log_check.partition_events import HELD, Key, Located, PartitionEvents
from sharestate.log_check.precedence import in_order
from sharestate.log_check.schedule import Schedule, Step, What, schedule
from sharestate.log_check.search import MOST_NAMED, Search, Stop
from sharestate.log_check.search_state import Counts, Defect
from sharestate.log_check.settings_evidence import doubt
from sharestate.log_check.unanswered import unanswered_fetch
from sharestate.log_check.visible_log import VisibleLog
from sharestate.values.records import unknown_state

MakeBudget = Callable[[int], Budget]
"""Says what the check of a share partition may cost, by the number of its events."""

REPORT_VERSION: Final = 1
"""The version of the JSON form of a report."""


class Verdict(Enum):
    """What was found out about a place of a history."""

    EXPLAINED = "explained"
    """It follows from Kafka's rules."""

    CONTRADICTION = "contradiction"
    """Nothing that the search knows explains it."""

    BOUND_REACHED = "search_bound_reached"
    """The search has stopped before it had tried everything that it knows, or fetches before it are undecided."""

    KAFKA_DEFECT = "kafka_defect"
    """A known defect of Kafka explains it, which this library does not copy."""

    NOT_CHECKED = "not_checked"
    """It cannot be checked."""


class Place(NamedTuple):
    """
    Where an event stands: in the request log, or in the history if that does not say where it comes from.

    Attributes:
        file: The file.
        line: The line, or the row of a history in Parquet, from 1 on.
    """

    file: str
    line: int

    @classmethod
    def of(cls, event: Event, file: str, line: int) -> Place:
        """Return the place of an *event* that the history *file* has in *line*."""
        if event.source_file is None or event.source_line is None:
            return cls(file, line)
        return cls(event.source_file, event.source_line)


@frozen(kw_only=True)
class Finding:
    """A place of a history with another verdict than EXPLAINED."""

    verdict: Verdict
    """The verdict."""

    place: Place
    """Where the event stands."""

    event: Event
    """The event: a write, or an answer."""

    reason: str
    """The reason, in words."""

    other_places: tuple[Place, ...] = ()
    """Where other events stand that have to do with it: the request to which a write belongs."""

    observed: Json = None
    """What was observed."""

    computed: Json = None
    """What was computed."""

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        return {
            "verdict": self.verdict.value,
            **self.place._asdict(),
            "other_places": [place._asdict() for place in self.other_places],
            "seq": self.event.seq,
            "kind": self.event.kind,
            "connection": self.event.connection,
            "request_no": self.event.request_no,
            "reason": self.reason,
            "observed": self.observed,
            "computed": self.computed,
        }


@define
class PartitionReport:
    """What was found out about a share partition."""

    key: Key
    """The share partition."""

    topic: str
    """The name of its topic; its id if that is not known."""

    observed: Counts
    """What there is to check."""

    explained: Counts
    """What of it is explained."""

    events: int = 0
    """The events."""

    not_checked: int = 0
    """The events that were not checked: the state was not known, or nothing was found out."""

    moves: int = 0
    """The steps that were moved to another place."""

    late_us: tuple[int, ...] = ()
    """How long after its deadline each lock has expired, at the most. [µs]"""

    findings: list[Finding] = Factory(list)
    """The places that are not explained, in order."""

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict on any of its places."""
        found = {finding.verdict for finding in self.findings}
        return next((each for each in _GRAVEST_FIRST if each in found), Verdict.EXPLAINED)

    def line(self, finding: Finding) -> str:
        """Return one of its findings in a line: the place, the share partition, and the reason."""
        group_id, _, partition = self.key
        place = f"{finding.place.file}:{finding.place.line}: {group_id}, {self.topic}-{partition}"
        return f"{place}: {finding.event.kind}: {finding.verdict.value}: {finding.reason}"

    def to_json(self) -> Json:
        """Return it as a JSON object."""
        group_id, topic_id, partition = self.key
        return {
            "log_verify": REPORT_VERSION,
            "group_id": group_id,
            "topic_id": topic_id,
            "topic": self.topic,
            "partition": partition,
            "verdict": self.verdict.value,
            "events": self.events,
            "not_checked": self.not_checked,
            "observed": {name: getattr(self.observed, name) for name in _OBSERVED},
            "explained": {each.name: getattr(self.explained, each.name) for each in fields(Counts)},
            "moves": self.moves,
            "expiry_delay_ms": delays_ms(self.late_us),
            "findings": [finding.to_json() for finding in self.findings],
        }


@frozen(eq=False)
class PartitionCheck:
    """The check of a share partition: what was found out, and its events in the order that was found."""

    report: PartitionReport
    """What was found out."""

    _arrived: list[Event]
    _found: FoundOrder | None

    def events(self) -> Iterator[Event]:
        """
        Yield the events in causal order: see ``ordered_events``.

        Complexity:
            As one pass of the check.
        """
        reason = self.report.findings[0].reason if self.report.findings else ""
        yield from ordered_events(
            self.report.key, self._arrived, Stopped(self.report.verdict.value, reason, is_for_good=True), self._found
        )


_GRAVEST_FIRST: Final = (
    Verdict.CONTRADICTION,
    Verdict.BOUND_REACHED,
    Verdict.KAFKA_DEFECT,
    Verdict.NOT_CHECKED,
)
_OBSERVED: Final = ("fetches_with_records", "empty_fetches", "codes", "writes")


def delays_ms(late_us: Iterable[int]) -> dict[str, float]:
    """Return the distribution of delays: least, median, 99 % and most; nothing without any. [ms]"""
    ordered = sorted(each / 1000 for each in late_us)
    if not ordered:
        return {}
    cuts = quantiles(ordered, n=100) if len(ordered) > 1 else ordered * 99
    return {"min": ordered[0], "median": cuts[49], "p99": min(cuts[98], ordered[-1]), "max": ordered[-1]}


def verify(
    path: Path | str, *, watch: Callable[[HistoryReader], Iterable[Event]] = iter, budget: MakeBudget = Budget.of
) -> Iterator[PartitionReport]:
    """Check a history in order of arrival, and yield what was found out about each share partition: see ``check``."""
    return (checked.report for checked in check(path, watch=watch, budget=budget))


def check(
    path: Path | str, *, watch: Callable[[HistoryReader], Iterable[Event]] = iter, budget: MakeBudget = Budget.of
) -> Iterator[PartitionCheck]:
    """
    Check a history in order of arrival, and yield what was found out about each share partition, and its order.

    Args:
        path: The history.
        watch: A function that yields the events of the opened history, and may look at how far reading is.
        budget: A function that says what the check of a share partition may cost, by the number of its events.

    Raises:
        HistoryError: It cannot be read, an event is malformed, or it is in causal order already.

    Complexity:
        Memory for the events of the largest share partition, or for those of ``HELD`` if they are more.
    """
    events = PartitionEvents(path, watch, held=HELD)
    if events.header.order is Order.CAUSAL:
        message = "its events are in causal order: there is nothing to look for"
        raise HistoryError(message, str(path), None, "order")
    for key, own in events:
        yield check_partition(key, own, str(path), events.header, budget(len(own)))


def check_partition(
    key: Key, events: list[Located], file: str, header: Header, budget: Budget | None = None
) -> PartitionCheck:
    """
    Check the history of one share partition.

    Args:
        key: The share partition.
        events: Its events in order of arrival, each with its line.
        file: The history.
        header: What the history says of itself.
        budget: What it may cost; as much as is usual if None.
    """
    budget = Budget.of(len(events)) if budget is None else budget
    observed = _observed(event for _, event in events)
    report = PartitionReport(key, header.topic(key[1]), observed, Counts(), len(events))
    arrived = [event for _, event in events]
    reason = hindrance(events, header.lacks)
    if reason is not None:
        report.not_checked = len(events)
        report.findings.append(_not_checked(*events[0], file, reason))
        return PartitionCheck(report, arrived, None)
    repeated = repeated_requests(events)
    if repeated:
        report.findings.append(_repetition(repeated, file))
        again = {event.seq for _, (_, event) in repeated}
        events = [each for each in events if each[1].seq not in again]
    try:
        checked, plan, log = _begin(key, events, budget)
        found = _search(report, checked, plan, log, events, file)
    except MalformedInputError as error:
        report.not_checked = len(events)
        report.findings.append(_not_checked(*events[0], file, str(error)))
        return PartitionCheck(report, arrived, None)
    except (BudgetSpentError, MemoryError) as error:
        report.not_checked = len(events)
        report.findings.append(_nothing_found(*events[0], file, error))
        return PartitionCheck(report, arrived, None)
    report.findings += _wrong_durations(events, file)
    report.findings.sort(key=lambda finding: finding.event.seq)
    report.explained, report.late_us = checked.counts, checked.late_us
    report.observed.writes -= checked.counts.former_writes
    return PartitionCheck(report, arrived, found)


def _begin(key: Key, events: list[Located], budget: Budget) -> tuple[CheckedPartition, Schedule, VisibleLog]:
    log = VisibleLog(event for _, event in events if event.kind == "log")
    plan = in_order(schedule(events), log, budget)
    return CheckedPartition(key, plan, log, budget), plan, log


def _search(  # noqa: PLR0913 - what the search is made of, and where its findings go
    report: PartitionReport,
    checked: CheckedPartition,
    plan: Schedule,
    log: VisibleLog,
    events: list[Located],
    file: str,
) -> FoundOrder:
    search = Search(checked, plan.steps)
    stops: list[Stop] = []
    findings: dict[tuple[int, What], Finding] = {}
    ended: tuple[int, What] | None = None
    doubted: str | None = None
    # Brokers that led one after the other are put together by their clocks, so what does not fit proves nothing.
    is_sure = len({(event.request or {}).get("leader") for _, event in events if event.kind == "initialize"}) <= 1
    while (stop := search.run()) is not None:
        if stop.suspects:
            stops.append(stop)
        else:
            if not findings and stop.bound is None:
                doubted = unanswered_fetch(events, stop.step.event)
                doubted = doubted or _doubt(report.key, events, stop, _explained(checked))
            finding = _finding(stop, plan.writes, file, checked.counts.undecided_fetches, is_sure=is_sure)
            place = stop.step.line, stop.step.what
            findings[place] = finding
            ended = ended if stop.bound is None else place
    if doubted is not None:  # what follows may be due to the same settings
        findings = {
            place: evolve(finding, verdict=Verdict.NOT_CHECKED, reason=doubted) for place, finding in findings.items()
        }
    report.findings += findings.values()
    report.findings += _defects(checked.defects, stops, file)
    report.moves, report.not_checked = search.moves, len(search.passed_over)
    report.findings += _before_the_read(search.steps, file)
    stopped = {
        place: Stopped(finding.verdict.value, finding.reason, is_for_good=place == ended)
        for place, finding in findings.items()
    }
    for stop in stops:
        stopped[stop.step.line, stop.step.what] = Stopped(Verdict.KAFKA_DEFECT.value, _AFTER_DEFECT, is_for_good=False)
    return FoundOrder(plan, log, search.steps, stopped)


def _before_the_read(steps: list[Step], file: str) -> Iterator[Finding]:
    """Yield a finding if members got answers before the state was read: nothing is known of what they did."""
    first = next(
        (step for step in steps if step.what is What.INITIALIZE and "error" not in (step.event.response or {})), None
    )
    before = steps if first is None else steps[: steps.index(first)]
    unread = [step for step in before if _shows_state(step)]
    if first is None and steps:
        reason = "the state of the share partition was never read: the log begins in the middle of its life"
        yield _not_checked(steps[0].line, steps[0].event, file, reason)
    elif first is not None and unread:
        reason = (
            f"the log begins in the middle of its life: {len(unread):,} requests come before the state is read, in"
            f" {first.event.source}"
        )
        yield _not_checked(unread[0].line, unread[0].event, file, reason)


def _shows_state(step: Step) -> bool:
    """Return whether a share partition that has read its state is needed for an answer."""
    response = step.event.response or {}
    return (
        step.what is What.ARRIVAL
        or bool(response.get("acquired"))
        or (step.what is What.ACKNOWLEDGE and "error" not in response)
    )


def _doubt(key: Key, events: list[Located], stop: Stop, explained: int) -> str | None:
    """Return why the settings that are assumed may be what does not fit; None if nothing speaks for that."""
    budget = Budget(LEAST_WORK + WORK_OF_TRIES * len(events))  # for all values together

    def explains(others: list[Located]) -> int:
        checked, plan, _ = _begin(key, others, budget)
        Search(checked, plan.steps).run()
        return _explained(checked)

    try:
        return doubt(events, stop.step.event, explained, explains)
    except BudgetSpentError:
        return None


def _explained(checked: CheckedPartition) -> int:
    return checked.counts.fetches_with_records + checked.counts.codes + checked.counts.writes


WORK_OF_TRIES: Final = 500
"""What trying other settings may cost for each event, over all that are tried; a clean check takes 80 to 200. [work]"""

_AFTER_DEFECT: Final = "what comes after a defect of Kafka does not fit"


def _wrong_durations(events: list[Located], file: str) -> Iterator[Finding]:
    for (line, event), observed_ms, in_force_ms in wrong_durations(events):
        yield Finding(
            verdict=Verdict.CONTRADICTION,
            place=Place.of(event, file, line),
            event=event,
            reason="a fetch was answered with a lock duration that was never set",
            observed={"lock_ms": observed_ms},
            computed={"lock_ms": in_force_ms},
        )


def _nothing_found(line: int, event: Event, file: str, error: BudgetSpentError | MemoryError) -> Finding:
    """Return the finding of a share partition of which nothing was found out, as that costs too much."""
    reason = "there is not enough memory" if isinstance(error, MemoryError) else f"no order was found: {error}"
    verdict = Verdict.BOUND_REACHED
    return Finding(verdict=verdict, place=Place.of(event, file, line), event=event, reason=reason)


def _not_checked(line: int, event: Event, file: str, reason: str) -> Finding:
    return Finding(verdict=Verdict.NOT_CHECKED, place=Place.of(event, file, line), event=event, reason=reason)


def repeated_requests(events: Iterable[Located]) -> list[tuple[Located, Located]]:
    """
    Return the events of requests that are there twice, each after the first one of them.

    A connection numbers its requests. Of one that gives all of them the same number, as some clients do, none is there
    twice unless they overlap: a broker works on one of them after the other.
    """
    firsts: dict[tuple[Any, ...], Located] = {}
    numbers: dict[str, set[int]] = {}
    found = []
    for line, event in events:
        if event.connection is None or event.request_no is None or event.kind not in _REQUESTS:
            continue
        numbers.setdefault(event.connection, set()).add(event.request_no)
        key = event.connection, event.request_no, event.kind, (event.request or {}).get("entry")
        first = firsts.setdefault(key, (line, event))
        if first[1] is not event:
            found.append((first, (line, event)))
    return [
        (first, again)
        for first, again in found
        if len(numbers[again[1].connection or ""]) > 1 or (again[1].at_us or 0) <= (first[1].done_us or 0)
    ]


_REQUESTS: Final = frozenset({"acknowledge", "close", "fetch", "initialize", "write"})
"""The kinds of events of which a request has one for a share partition, or a write one for each entry."""


def _repetition(repeated: list[tuple[Located, Located]], file: str) -> Finding:
    (first_line, first), (line, event) = repeated[0]
    reason = f"request {event.request_no} of the connection {event.connection} is in the log twice"
    if len(repeated) > 1:
        reason += f", and so are {len(repeated) - 1:,} others"
    others = [(first_line, first), *(again for _, again in repeated[1:MOST_NAMED])]
    return Finding(
        verdict=Verdict.CONTRADICTION,
        place=Place.of(event, file, line),
        event=event,
        other_places=tuple(Place.of(each, file, at) for at, each in others),
        reason=reason,
    )


def _observed(events: Iterable[Event]) -> Counts:
    counts = Counts()
    for event in events:
        if event.response is None:
            continue
        if event.kind == "fetch":
            has_records = bool(event.response.get("acquired"))
            counts.fetches_with_records += has_records
            counts.empty_fetches += not has_records
        counts.codes += event.kind == "acknowledge"
        counts.writes += event.kind == "write"
    return counts


def hindrance(events: list[tuple[int, Event]], lacks: frozenset[str]) -> str | None:
    """Return why nothing of a history can be checked; None if it can."""
    for kind in ("log", "write", "initialize"):
        if kind in lacks:
            return f"the history lacks events of the kind {kind}"
    requests = (event.request or {} for _, event in events if event.kind == "unknown")
    unknown = dict.fromkeys(request["reason"] for request in requests if request["what"] in {"segments", "leader"})
    if unknown:
        return "; ".join(unknown)
    for line, event in events:
        said = {"write": event.request, "initialize": event.response}.get(event.kind) or {}
        if (what := unknown_state(said.get("state_batches", ()))) is not None:
            return f"{what}, in line {line}: a release of Kafka that is not known here has written it"
    if not any(event.kind == "log" for _, event in events):
        return "nothing is known of the topic's log: import it with its segments"
    return None


def _finding(stop: Stop, writes: list[tuple[int, Event]], file: str, undecided: int, *, is_sure: bool) -> Finding:
    step, mismatch = stop.step, stop.mismatch
    is_sure = is_sure and stop.is_exhausted and not undecided
    verdict = Verdict.CONTRADICTION if is_sure else Verdict.BOUND_REACHED
    line, event = (step.line, step.event) if mismatch.write < 0 else writes[mismatch.write]
    others = [*([] if line == step.line else [step]), *stop.undecided]
    reason = _REASONS[mismatch.what]
    if stop.bound is not None:
        reason += f"; {stop.bound}"
    if not stop.is_exhausted and stop.tried:
        reason += f"; {stop.tried:,} orders were tried, the furthest explains {stop.further:,} steps more"
        others += [stop.furthest] if stop.further else []
    if undecided:  # what they have done may be what does not fit
        reason += f"; fetches without records before it that are undecided: {undecided}"
    return Finding(
        verdict=verdict,
        place=Place.of(event, file, line),
        event=event,
        other_places=tuple(Place.of(each.event, file, each.line) for each in others),
        reason=reason,
        observed=mismatch.observed,
        computed=mismatch.computed,
    )


_REASONS: Final = {
    "bound": "the check ends here for good",
    "code": "an acknowledgement was answered with another code",
    "fetch": "a fetch has acquired something else",
    "write": "a write says something else",
}


def _defects(defects: Iterable[Defect], stops: list[Stop], file: str) -> Iterator[Finding]:
    """Yield a finding for each defect; writes at the same SPSO where it shows again and again have one together."""
    for _, same in groupby(defects, key=lambda each: (each.name, each.offset, each.step.what is What.FETCH and each)):
        first, *others = same
        last = (others or [first])[-1]
        stop = next((stop for stop in stops if stop.suspects[-1] is last), None)
        yield _defect(first, [each.step for each in others], stop, file)


def _defect(defect: Defect, again: list[Step], stop: Stop | None, file: str) -> Finding:
    reason = f"{defect.name}: {REASONS[defect.name]}"
    if stop is not None:
        reason += "; what comes after it does not fit, and is not checked until the state is read again"
    step, others = defect.step, again if stop is None else [*again, stop.step]
    return Finding(
        verdict=Verdict.KAFKA_DEFECT,
        place=Place.of(step.event, file, step.line),
        other_places=tuple(Place.of(each.event, file, each.line) for each in others),
        event=step.event,
        reason=reason,
        observed={"error": error} if (error := (step.event.response or {}).get("error")) else None,
    )
