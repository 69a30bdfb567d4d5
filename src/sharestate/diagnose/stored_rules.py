"""The rules on what the state topic has stored: what can be proved without members, times and causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.diagnose.delivery_rules import first_few
from sharestate.diagnose.diagnosis import Diagnosis, by_severity
from sharestate.diagnose.rule import (
    DiagnosisFinding,
    DiagnosisPlace,
    DiagnosisRule,
    Evidence,
    NotChecked,
    Severity,
    share,
)
from sharestate.explain.sentences import UNSAID, Unsaid
from sharestate.explain.words import duration
from sharestate.state_topic import RebuiltPartition
from sharestate.state_topic.rebuild import is_count_below_stored, is_count_beyond_log
from sharestate.values.config import ShareConfig
from sharestate.values.records import RecordState, SharePartitionKey, is_near_limit
from sharestate.values.requests import UNINITIALIZED_COUNT

_STUCK_AFTER: Final = 10
"""After how many changes an SPSO that has not moved is stuck, as ``state rebuild`` has it. [records]"""


class StoredFacts(NamedTuple):
    """
    A share partition as the state topic has it.

    Attributes:
        rebuilt: The share partition.
        log_end_offset: The offset after the last record of the log; None if it is not known.
        delivery_count_limit: The group's. [deliveries]
        max_record_locks: The group's. [records]
        last_ms: Until when durations count; None if it is not known. [ms since 1970]
    """

    rebuilt: RebuiltPartition
    log_end_offset: int | None
    delivery_count_limit: int
    max_record_locks: int
    last_ms: int | None = None

    def count(self, *states: RecordState, least: int = 0) -> int:
        """Return how many records are in one of *states*, and were delivered so often at least. [records]"""
        return sum(
            each.last_offset - each.first_offset + 1
            for each in self.rebuilt.state.state_batches
            if each.delivery_state in states and each.delivery_count >= least
        )


def _unknown_state(facts: StoredFacts) -> Evidence | None:
    what = facts.rebuilt.unknown_state
    return None if what is None else {"what": what}


def _lag_unknown(facts: StoredFacts) -> Evidence | None:
    state = facts.rebuilt.state
    if state.start_offset >= 0 and state.delivery_complete_count != -1:
        return None
    if state.start_offset < 0:
        return {"why": "no leader has written an SPSO yet: no member has fetched, or nothing was acknowledged"}
    return {"why": "no delivery complete count is stored: a release before 4.3 wrote the state, or offsets were reset"}


def _wrong_lag(facts: StoredFacts) -> Evidence | None:
    state, end = facts.rebuilt.state, facts.log_end_offset
    count = state.delivery_complete_count
    if count < UNINITIALIZED_COUNT:
        return {"count": count, "why": "it is below zero (F2)"}
    if is_count_below_stored(state):
        return {"count": count, "why": f"{facts.rebuilt.terminal_count:,} records are stored as done (F2, B23)"}
    if end is not None and is_count_beyond_log(state, end):
        return {"count": count, "why": f"with it the lag is {facts.rebuilt.lag(end)}, below zero"}
    return None


def _stuck(facts: StoredFacts) -> Evidence | None:
    rebuilt = facts.rebuilt
    if not rebuilt.is_stuck(_STUCK_AFTER):
        return None
    since, last = rebuilt.start_timestamp_ms, facts.last_ms
    at_least = " or longer" if rebuilt.is_since_before else ""
    lasted = f"{duration(max(0, last - since) * 1000)}{at_least}" if since is not None and last is not None else None
    offset, changes = rebuilt.state.start_offset, rebuilt.change_count
    return {"offset": offset, "changes": changes, "terminal": rebuilt.terminal_count, "lasted": lasted}


def _near_limit(facts: StoredFacts) -> Evidence | None:
    limit = facts.delivery_count_limit
    near = (
        each.first_offset
        for each in facts.rebuilt.state.state_batches
        if is_near_limit(each.delivery_state, each.delivery_count, limit)
    )
    offset = next(near, None)
    if offset is None:
        return None
    return {"records": facts.rebuilt.count_near_limit(limit), "offset": offset, "limit": limit}


def _given_up(facts: StoredFacts) -> Evidence | None:
    limit = facts.delivery_count_limit
    records = facts.count(RecordState.ARCHIVED, RecordState.ARCHIVING, least=limit)
    if not records:
        return None
    archived = facts.count(RecordState.ARCHIVED, RecordState.ARCHIVING)
    return {"records": records, "archived": archived, "limit": limit}


def _full(facts: StoredFacts) -> Evidence | None:
    in_flight, terminal = facts.rebuilt.in_flight_count, facts.rebuilt.terminal_count
    if in_flight < facts.max_record_locks:
        return None
    return {
        "in_flight": in_flight,
        "locks": facts.max_record_locks,
        "terminal": terminal,
        "part": share(terminal, in_flight),
        "offset": facts.rebuilt.state.start_offset,
    }


STORED_RULES: Final[tuple[DiagnosisRule[StoredFacts], ...]] = (
    DiagnosisRule(
        name="stored-window-full",
        title="no room: as much is stored as may be in flight",
        severity=Severity.CRITICAL,
        when="from the SPSO to the last record of which something is stored there are as many offsets as may be in"
        " flight",
        source="[`share.partition.max.record.locks`](configuration.md), [rule 6](rules.md#rule-6)",
        evidence="{in_flight:offset} from the SPSO, {offset}, on are in flight, where"
        " share.partition.max.record.locks is"
        " {locks}; {terminal} of them ({part}) are done.",
        advice="Look at record {offset} with state explain --offset {offset}; whether it is one of Kafka's stalls"
        " (F1, F4"
        " to F8) a broker's request log says.",
        judge=_full,
    ),
    DiagnosisRule(
        name="stored-unknown-state",
        title="a later release of Kafka has stored this",
        severity=Severity.WARNING,
        when="a delivery state is stored that no release has that is known here",
        source="[rule 24.2](rules.md#rule-24-2)",
        evidence="There is an {what}: these records count as not done, which may be wrong.",
        advice="Look for a release of sharestate that knows the release of the brokers; leaders of a release that does"
        " not know the state cannot take over.",
        judge=_unknown_state,
    ),
    DiagnosisRule(
        name="stored-stuck",
        title="one record holds the SPSO back",
        severity=Severity.WARNING,
        when="10 records of the topic have left the SPSO where it is, though records behind it are done",
        source="[rule 12](rules.md#rule-12), [the state topic](state-topic.md)",
        evidence="The SPSO stands at {offset}[ for {lasted}], through {changes:change} of the state;"
        " {terminal:record} behind it are done.",
        advice="Look at record {offset} with state explain --offset {offset}: it fails, is held, or is not in the log.",
        judge=_stuck,
    ),
    DiagnosisRule(
        name="stored-wrong-lag",
        title="Kafka's lag is wrong",
        severity=Severity.WARNING,
        when="the stored delivery complete count cannot be right: it is below -1, or lower than the number of records"
        " that are stored as done, or the lag with it is below zero though the log does not end below the SPSO",
        source="[F2](kafka-bugs.md#bug-f2), [B22](kafka-bugs.md#bug-b22), [B23](kafka-bugs.md#bug-b23), KIP-1226",
        evidence="The stored delivery complete count is {count}: {why}.",
        advice="Do not scale or alert by this lag; it is right again once another leader has read the state and"
        " written.",
        judge=_wrong_lag,
    ),
    DiagnosisRule(
        name="stored-given-up",
        title="records that nobody can process",
        severity=Severity.WARNING,
        when="records are stored as archived with as many deliveries as the limit allows",
        source="[`share.delivery.count.limit`](configuration.md)",
        evidence="{records:record} were archived after {limit:delivery}, of {archived} that are archived and not"
        " passed.",
        advice="Their offsets are in state rebuild --json; a broker's request log says which members failed, and how.",
        judge=_given_up,
    ),
    DiagnosisRule(
        name="stored-near-limit",
        title="records have one delivery left",
        severity=Severity.NOTICE,
        when="records that are not done were delivered, and have one delivery left or none",
        source="[`share.delivery.count.limit`](configuration.md)",
        evidence="{records:record}, from {offset} on, have one delivery left of {limit}, or none.",
        advice="Look at record {offset} before it is given up.",
        judge=_near_limit,
    ),
    DiagnosisRule(
        name="lag-unknown",
        title="the lag is -1",
        severity=Severity.NOTICE,
        when="no SPSO or no delivery complete count is stored",
        source="KIP-1226",
        evidence="Kafka shows a lag of -1: {why}.",
        advice="It is known once a member has fetched and acknowledged; do not scale by -1.",
        judge=_lag_unknown,
    ),
)
"""The rules on what the state topic has."""


_DEFAULTS: Final[Mapping[str, int]] = MappingProxyType(
    {"delivery_count_limit": ShareConfig().delivery_count_limit, "max_record_locks": ShareConfig().max_record_locks}
)
_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {"delivery_count_limit": "share.delivery.count.limit", "max_record_locks": "share.partition.max.record.locks"}
)


def _assumed(partitions: Iterable[RebuiltPartition], configs: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield which settings are assumed, and of which groups."""
    groups = sorted({each.key.group_id for each in partitions})
    for field, name in _LIMITS.items():
        unknown = [f"group {each}" for each in groups if field not in configs.get(each, {})]
        if unknown:
            yield f"Assumed, as it is not known: {name} is {_DEFAULTS[field]:,}, of {first_few(unknown)}."


def diagnose_stored(  # noqa: PLR0913 - what an operator may set, by name
    partitions: Iterable[RebuiltPartition],
    *,
    records: int,
    log_ends: Mapping[SharePartitionKey, int] | None = None,
    topics: Mapping[str, str] | None = None,
    configs: Mapping[str, Mapping[str, int]] | None = None,
    last_ms: int | None = None,
) -> Diagnosis:
    """
    Judge what the state topic has stored of share partitions.

    Args:
        partitions: The share partitions.
        records: How many records of the topic they were rebuilt from. [records]
        log_ends: Where their logs end, as far as that is known; None if no cluster was asked.
        topics: The names of topics by their ids.
        configs: ``delivery_count_limit`` and ``max_record_locks`` of each group, as far as they are known; where they
            are not, Kafka's defaults are assumed, and a note says so.
        last_ms: Until when durations count: now, or the timestamp of the last record of the topic. [ms since 1970]
    """
    findings, not_checked, partitions, configs = [], [], tuple(partitions), configs or {}
    for rebuilt in partitions:
        place = DiagnosisPlace(rebuilt.key.group_id, rebuilt.key.topic_id, rebuilt.key.partition)
        end = None if log_ends is None else log_ends.get(rebuilt.key)
        limit, locks = (configs.get(rebuilt.key.group_id, {}).get(name, default) for name, default in _DEFAULTS.items())
        facts = StoredFacts(rebuilt, end, limit, locks, last_ms)
        for rule in STORED_RULES:
            evidence = rule.judge(facts)
            if evidence is not None:
                findings.append(DiagnosisFinding(rule, place, evidence))
            elif rule.name == "stored-wrong-lag" and end is None:
                not_checked.append(NotChecked(rule, place, "where the log ends is not known; --bootstrap asks"))
    unsaid = [each for each in Unsaid if each is not Unsaid.LOG or log_ends is None]
    notes = (*_assumed(partitions, configs), "The state topic does not say:", *(f"  {UNSAID[each]}" for each in unsaid))
    return Diagnosis(
        (), tuple(by_severity(findings)), tuple(not_checked), notes, topics or {}, len(partitions), records
    )
