"""
Replay of a trace: its requests are sent to a conversation, and each response is compared with the recorded one.

A list of known differences names the traces that have to differ, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from attrs import evolve, frozen

from sharestate.broker.sessions import SESSION_PROFILES
from sharestate.conversation.compare import Difference, Level, assignor_differences, coordinator_view, differences
from sharestate.conversation.coordinator import CoordinatorConversation
from sharestate.conversation.served_partition import SERVED_SPLIT_LIMIT
from sharestate.conversation.server import (
    BadRequestError,
    Conversation,
    ConversationBudget,
    LineServer,
    bad_request_json,
)
from sharestate.conversation.sessions import SessionConversation
from sharestate.conversation.traces import Recorded, Trace, TraceStep, open_trace
from sharestate.coordinator.profiles import ALL_COORDINATORS
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Field, list_of, one_of, record, text, version
from sharestate.json_lines import MAX_LINE, Json, read_json, write_json
from sharestate.values.profiles import Profile

NOT_SENT: Final = frozenset({"external", "internal"})
"""Operations of a trace that are notes of its recorder; they are not sent."""

NO_CALLS: Final = NOT_SENT | {"advance", "configure", "open", "timers"}
"""Operations that call no public method; a trace of these alone compares nothing."""


Compare: TypeAlias = Callable[[Json, Json], tuple[Difference, ...]]
"""What finds the places in which a response differs from the expected one, which comes first."""


class ReplayVerdict(Enum):
    """The result of a replay."""

    PASSED = "passed"
    """Every response agreed."""

    FAILED = "failed"
    """One response differed; the replay stopped there."""

    SKIPPED = "skipped"
    """The trace cannot be replayed."""

    KNOWN = "known"
    """One response differed, as a list of known differences says."""


@frozen
class Deviation:
    """The first response that differs."""

    line: int
    """The line's number in the file."""

    request: Json
    """The request."""

    differences: tuple[Difference, ...]
    """The places in which the responses differ."""


@frozen(kw_only=True)
class TraceOutcome:
    """The result of the replay of one trace."""

    file: str
    """The file, as it was given."""

    name: str
    """The test that was recorded."""

    verdict: ReplayVerdict
    """The result."""

    deviation: Deviation | None = None
    """The first difference, if there was one."""

    reason: str | None = None
    """The reason of the verdict, where it needs one."""

    row: str | None = None
    """The row of the list of divergences that accounts for a known difference."""


def replay(path: Path, profile: Profile, level: Level, *, split_limit: int = SERVED_SPLIT_LIMIT) -> TraceOutcome:
    """
    Replay the trace at *path* under *profile*, comparing at *level*.

    Its header says what was recorded: share partitions, share coordinators, share sessions, share groups or the
    assignor. Batches of share partitions larger than *split_limit* are not split. [records]

    Raises:
        UnreadableFileError: It is not a trace, or not of a known version.
    """
    with open_trace(path) as trace:
        if obstacles := trace.header.obstacles:
            return _outcome(trace, ReplayVerdict.SKIPPED, reason=", ".join(obstacles))
        match trace.header.recorded:
            case Recorded.PARTITION:
                return _replayed(trace, Conversation(profile, split_limit=split_limit), level.differences)
            case Recorded.SESSIONS:
                return _sessions_replayed(trace, profile, level)
            case Recorded.GROUPS:
                return _groups_replayed(trace, profile, level)
            case Recorded.ASSIGNOR:
                return _assignments_replayed(trace)
            case Recorded.COORDINATOR:
                return _coordinator_replayed(trace, profile, level)
            case _:
                assert_never(trace.header.recorded)


def _coordinator_replayed(trace: Trace, profile: Profile, level: Level) -> TraceOutcome:
    coordinator = ALL_COORDINATORS.get(profile.name)
    if coordinator is None:
        return _outcome(trace, ReplayVerdict.SKIPPED, reason=f"no share coordinator has the rules of {profile.name}")
    return _replayed(trace, CoordinatorConversation(coordinator), partial(_coordinator_differences, level))


def _sessions_replayed(trace: Trace, profile: Profile, level: Level) -> TraceOutcome:
    sessions = SESSION_PROFILES.get(profile.name)
    if sessions is None:
        return _outcome(trace, ReplayVerdict.SKIPPED, reason=f"no share sessions have the rules of {profile.name}")
    return _replayed(trace, SessionConversation(sessions), partial(_coordinator_differences, level))


def _groups_replayed(trace: Trace, profile: Profile, level: Level) -> TraceOutcome:
    from sharestate.broker.groups.profiles import ALL_GROUPS  # noqa: PLC0415 - loads what others do not need
    from sharestate.conversation.groups import GroupConversation  # noqa: PLC0415 - as above

    groups = ALL_GROUPS.get(profile.name)
    if groups is None:
        return _outcome(trace, ReplayVerdict.SKIPPED, reason=f"no group coordinator has the rules of {profile.name}")
    return _replayed(trace, GroupConversation(groups), partial(_coordinator_differences, level))


def _assignments_replayed(trace: Trace) -> TraceOutcome:
    from sharestate.conversation.assignor import AssignorConversation  # noqa: PLC0415 - as above

    return _replayed(trace, AssignorConversation(), assignor_differences)


def _coordinator_differences(level: Level, expected: Json, got: Json) -> tuple[Difference, ...]:
    return differences(coordinator_view(expected, level), coordinator_view(got, level))


def _outcome(
    trace: Trace, verdict: ReplayVerdict, *, deviation: Deviation | None = None, reason: str | None = None
) -> TraceOutcome:
    return TraceOutcome(file=trace.file, name=trace.header.name, verdict=verdict, deviation=deviation, reason=reason)


def _replayed(trace: Trace, server: LineServer, compare: Compare) -> TraceOutcome:
    has_calls, budget = False, ConversationBudget(server)
    for step in trace.steps:
        has_calls |= step.op not in NO_CALLS
        deviation = None if step.op in NOT_SENT else _deviation(step, server, budget, compare)
        if deviation is not None and (has_calls or any(later.op not in NO_CALLS for later in trace.steps)):
            return _outcome(trace, ReplayVerdict.FAILED, deviation=deviation)
    if not has_calls:
        return _outcome(trace, ReplayVerdict.SKIPPED, reason="no public call")
    return _outcome(trace, ReplayVerdict.PASSED)


def _deviation(step: TraceStep, server: LineServer, budget: ConversationBudget, compare: Compare) -> Deviation | None:
    try:
        budget.expect_left(step.size, step.line)
        got = server.answer(step.request, step.line)
    except BadRequestError as error:
        got = bad_request_json(error)
    text = write_json(got)
    budget.count(len(text))
    # Those that are written alike do not differ: nearly all are, and it is soon known.
    found = () if text == write_json(step.response) else compare(step.response, got)
    return Deviation(step.line, step.request, found) if found else None


# ---- known differences

KNOWN_DIFFERENCES_VERSION: Final = 2
"""The version of the format that is read."""


@frozen(kw_only=True)
class KnownDifference:
    """A trace that is known to differ."""

    name: str
    """The trace's name, from its header."""

    row: str
    """The row of the list of divergences that accounts for it."""

    reason: str
    """The reason, in one sentence."""


@frozen(kw_only=True)
class KnownDifferences:
    """The traces that are known to differ under some profiles, at one level of comparison."""

    profiles: tuple[str, ...]
    """The profiles' names."""

    level: Level
    """The level at which they differ."""

    rows: tuple[KnownDifference, ...]
    """The traces."""

    def by_name(self, profile: Profile, level: Level) -> Mapping[str, KnownDifference]:
        """
        Return the rows that hold under *profile* at *level*, by the traces' names.

        A difference at one level is one at every level above it too.
        """
        holds = profile.name in self.profiles and level.includes(self.level)
        return {row.name: row for row in self.rows} if holds else {}


def judged(outcome: TraceOutcome, rows: Mapping[str, KnownDifference]) -> TraceOutcome:
    """Return *outcome* as the known *rows* judge it: a trace in them must differ, and one that does is no failure."""
    row = rows.get(outcome.name)
    if row is None or outcome.verdict is ReplayVerdict.SKIPPED:
        return outcome
    if outcome.verdict is ReplayVerdict.FAILED:
        return evolve(outcome, verdict=ReplayVerdict.KNOWN, reason=row.reason, row=row.row)
    return evolve(outcome, verdict=ReplayVerdict.FAILED, reason=f"no longer differs: {row.row}", row=row.row)


_known_differences: Final = record(
    {
        "known_differences": Field(version(KNOWN_DIFFERENCES_VERSION)),
        "profiles": Field(list_of(text)),
        "level": Field(one_of({level.value: level for level in Level})),
        "rows": Field(
            list_of(record({"name": Field(text), "row": Field(text), "reason": Field(text)}, KnownDifference))
        ),
    },
    lambda known_differences, **members: KnownDifferences(**members),  # noqa: ARG005 - the version has been checked
)


def read_known_differences(path: Path) -> KnownDifferences:
    """
    Read the list at *path*.

    Raises:
        UnreadableFileError: It is not such a list, or not of KNOWN_DIFFERENCES_VERSION.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as stream:
            return _known_differences(read_json(stream.read(MAX_LINE + 1)), "")
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(path)) from error
    except MalformedInputError as error:
        raise UnreadableFileError(error.message, str(path), field=error.field or "") from error
