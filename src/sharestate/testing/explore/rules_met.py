"""
Which of the rules of ``docs/rules.md`` have answered a step, and which rules no step can show, and why.

A rule counts where it has decided what is seen: how records have changed, what was asked and answered, what the leader
has come to. A rule that was only asked does not, such as that of dead letters where nothing was archived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from sharestate.testing.explore.events import ExploredEventKind
from sharestate.testing.explore.explored_state import ExploredState
from sharestate.testing.explore.steps import ExploredGroup, Step
from sharestate.values.effects import Cause
from sharestate.values.records import AcquireMode, RecordState

RULES: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        Cause.READ: "4.3",
        Cause.CACHED: "7.8",
        Cause.ACQUIRED: "7",
        Cause.ACCEPTED: "8",
        Cause.RELEASED: "8",
        Cause.REJECTED: "8",
        Cause.GAP: "8",
        Cause.RENEWED: "20.2",
        Cause.LOCK_EXPIRED: "10",
        Cause.SESSION_CLOSED: "9",
        Cause.ARCHIVED_AT_LIMIT: "1.2",
        Cause.ABORTED: "7.10",
        Cause.COMPACTED_AWAY: "7.3",
        Cause.BELOW_LOG_START: "13",
        Cause.CONFIRMED: "11",
        Cause.ROLLED_BACK: "11",
        Cause.THROTTLED: "20.3",
        Cause.PASSED: "12",
        Cause.DEAD_LETTERED: "21.3",
    }
)
"""The rule by which records change for each cause."""

_PARTS: Final[Mapping[Cause, tuple[str, ...]]] = MappingProxyType(
    {
        Cause.ACQUIRED: ("1.1", "1.2", "1.6"),
        Cause.ACCEPTED: ("1.1", "1.3"),
        Cause.RELEASED: ("1.1", "1.3"),
        Cause.REJECTED: ("1.1", "1.3"),
        Cause.GAP: ("1.1", "1.3"),
        Cause.RENEWED: ("1.6",),
        Cause.LOCK_EXPIRED: ("1.6", "24.5"),
        Cause.SESSION_CLOSED: ("1.1", "1.3"),
        Cause.CONFIRMED: ("1.5",),
        Cause.ROLLED_BACK: ("1.5",),
        Cause.DEAD_LETTERED: ("1.4",),
    }
)
"""The rules that those of causes are made of."""

_BY_CAUSE: Final[Mapping[Cause, tuple[str, ...]]] = MappingProxyType(
    {
        **{cause: (rule, *_PARTS.get(cause, ())) for cause, rule in RULES.items()},
        Cause.BELOW_LOG_START: (),  # by which rule depends on what was asked
    }
)

_BY_KIND: Final[Mapping[ExploredEventKind, tuple[str, ...]]] = MappingProxyType(
    {
        ExploredEventKind.FETCH: ("5", "6"),
        ExploredEventKind.ACKNOWLEDGE: ("8", "8.1"),
        ExploredEventKind.CLOSE: ("9",),
        ExploredEventKind.DEADLINE: ("10", "24.5"),
        ExploredEventKind.DEAD_LETTER: ("21.3",),
        ExploredEventKind.FAIL_OVER: ("3", "4", "4.2"),
    }
)
"""The rules that answer each event of a kind, whatever comes of it."""

_Shows: TypeAlias = Callable[[ExploredGroup, ExploredState, Step], bool]
"""Whether something shows in a step from a state."""


# ---- fetches, all of which are acquisitions here


def _fetched(step: Step) -> tuple[int, int, int]:
    """Return the first and the last offset of what a fetch has brought, and the most records that it may bring."""
    request = step.requests[-1]
    return request["batches"][0][0], request["batches"][-1][1], request["max_records"]


def _exceeds_capacity(around: ExploredGroup, before: ExploredState, step: Step) -> bool:
    first, last, most = _fetched(step)
    return last - first + 1 > most or last - before.leader.start_offset + 1 > around.configuration.max_record_locks


def _overlaps(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    first, last, _most = _fetched(step)
    return any(batch.first_offset <= last and batch.last_offset >= first for batch in before.leader.batches)


def _does_not_overlap(around: ExploredGroup, before: ExploredState, step: Step) -> bool:
    return bool(step.acquired) and not _overlaps(around, before, step)


def _goes_beyond(around: ExploredGroup, before: ExploredState, step: Step) -> bool:
    last = before.leader.batches[-1].last_offset if before.leader.batches else -1
    return bool(step.acquired) and step.acquired[-1].last_offset > last and _overlaps(around, before, step)


def _has_new_batch(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    known = {batch.first_offset for batch in before.leader.batches}
    return any(batch.first_offset not in known for batch in step.after.leader.batches)


def _limits_records(around: ExploredGroup, before: ExploredState, step: Step) -> bool:
    is_strict = around.configuration.mode is AcquireMode.RECORD_LIMIT
    return is_strict and _exceeds_capacity(around, before, step)


_OF_ACQUISITIONS: Final[Mapping[tuple[str, ...], _Shows]] = MappingProxyType(
    {
        ("7", "7.4"): lambda *_: True,
        ("7.2",): _exceeds_capacity,
        ("7.5",): _does_not_overlap,
        ("7.6",): _overlaps,
        ("7.7",): _goes_beyond,
        ("7.8",): _has_new_batch,
        ("20.1",): _limits_records,
    }
)
"""What shows of rules where a member acquires."""


# ---- whatever happens


_GONE: Final = frozenset({Cause.ABORTED, Cause.COMPACTED_AWAY, Cause.BELOW_LOG_START})
"""The causes of transitions of records that the log, or its readers, no longer have."""


def _is_new_leader(step: Step) -> bool:
    return step.event.kind is ExploredEventKind.FAIL_OVER


def _takes_batches_over(_: ExploredGroup, _before: ExploredState, step: Step) -> bool:
    return _is_new_leader(step) and bool(step.after.stored.state_batches)


def _moves_gap_window(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    return step.after.leader.gap_window != (None if _is_new_leader(step) else before.leader.gap_window)


def _splits(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    split = [batch.first_offset for batch in step.after.leader.batches if batch.is_split]
    return bool(split) and any(not batch.is_split and batch.first_offset in split for batch in before.leader.batches)


def _archives(_: ExploredGroup, _before: ExploredState, step: Step) -> bool:
    return step.event.kind is ExploredEventKind.FETCH and any(change.cause in _GONE for change in step.transitions)


def _moves_start(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    """Return whether the leader has learned where the log starts, beyond its SPSO."""
    return step.requests[-1]["op"] == "log_start" and step.after.leader.start_offset > before.leader.start_offset


def _writes(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    return step.after.leader.next_write > (0 if _is_new_leader(step) else before.leader.next_write)


def _counts(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    count = 0 if _is_new_leader(step) else before.leader.delivery_complete_count
    return step.after.leader.delivery_complete_count != count


def _archives_for_queue(around: ExploredGroup, _before: ExploredState, step: Step) -> bool:
    return around.configuration.dead_letter_queue and any(
        change.state is RecordState.ARCHIVING and change.cause not in {Cause.READ, Cause.CONFIRMED}
        for change in step.transitions
    )


def _hands_over(_: ExploredGroup, before: ExploredState, step: Step) -> bool:
    return not _is_new_leader(step) and step.after.leader.next_dead_letter > before.leader.next_dead_letter


def _hands_over_again(_: ExploredGroup, _before: ExploredState, step: Step) -> bool:
    return _is_new_leader(step) and bool(step.after.leader.dead_letters)


_OF_ALL: Final[Mapping[tuple[str, ...], _Shows]] = MappingProxyType(
    {
        ("1.4", "14"): _archives,
        ("1.7",): _splits,
        ("4.3",): _takes_batches_over,
        ("4.4",): _moves_gap_window,
        ("13",): _moves_start,
        ("15",): _writes,
        ("20.4",): _counts,
        ("21", "21.1"): _archives_for_queue,
        ("21.2",): _hands_over,
        ("21.4",): _hands_over_again,
    }
)
"""What shows of rules wherever something is asked of the leader."""

_OF_FETCHES: Final[Mapping[tuple[str, ...], _Shows]] = MappingProxyType({**_OF_ALL, **_OF_ACQUISITIONS})

BEYOND: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("2", "7.11", "8.3", "18", "20", "24", "24.4"), "decide nothing: overviews and examples"),
        "1": "what it lets change, the settings, stays as it is",
        "4.1": "a read is always answered, with what was written",
        "7.1": "members fetch where there is room, and something to acquire",
        "7.9": "fetches ask for batches of 500 records, more than a log has",
        **dict.fromkeys(("8.2", "24.3"), "members acknowledge what they hold, in good form, and are never refused"),
        "16": "it is about the broker around the share partition, where fetches wait",
        "21.5": "the dead-letter queue refuses nothing",
        "21.6": "what the dead-letter queue writes is not looked at",
        "24.1": "it lists the bugs that a profile may have; what they break is what is looked for",
        "24.2": "it lists accidents of Kafka, which no profile has",
    }
)
"""The rules that no exploration meets, whatever its group, and why."""

SHOWN: Final = frozenset(rule for rules in (*_BY_CAUSE.values(), *_BY_KIND.values(), *_OF_FETCHES) for rule in rules)
"""The rules that an exploration may meet."""


def rules_of(around: ExploredGroup, before: ExploredState, step: Step) -> set[str]:
    """
    Return the numbers of the rules that have answered *step* from *before*; none if it has raised something.

    For the step to the state in the beginning, *before* is that state.
    """
    if step.error:
        return set()
    rules = set(_BY_KIND.get(step.event.kind, ()))
    if step.requests:
        for cause in {change.cause for change in step.transitions}:
            rules.update(_BY_CAUSE[cause])
        signs = _OF_FETCHES if step.requests[-1]["op"] == "acquire" else _OF_ALL
        for answering, shows in signs.items():
            if shows(around, before, step):
                rules.update(answering)
    return rules


def in_order(rules: Iterable[str]) -> list[str]:
    """
    Return the numbers of *rules* in their order.

    >>> in_order({"7.10", "7.2", "8"})
    ['7.2', '7.10', '8']
    """
    return sorted(rules, key=lambda rule: [int(part) for part in rule.split(".")])
