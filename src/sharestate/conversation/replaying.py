"""Replaying a trace: its requests are sent to a conversation, and each response is compared with the recorded one."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

from attrs import frozen

from sharestate.conversation.diff import Difference, differences
from sharestate.conversation.errors import BadRequestError
from sharestate.conversation.levels import Level
from sharestate.conversation.serving import Conversation, bad_request_json
from sharestate.conversation.traces import Step, Trace, open_trace
from sharestate.json_lines import Json
from sharestate.values.profiles import Profile

NOT_SENT: Final = frozenset({"external", "internal"})
"""Operations that tell of something beside the conversation."""

NO_CALLS: Final = NOT_SENT | {"advance", "configure", "open", "timers"}
"""Operations that call no public method: a trace of nothing else shows nothing."""


class Verdict(Enum):
    """How a replay ended."""

    PASSED = "passed"
    """Every response agreed."""

    FAILED = "failed"
    """One did not; the replay stopped there."""

    SKIPPED = "skipped"
    """The trace cannot be replayed."""

    KNOWN = "known"
    """One did not agree, and that is known to be so."""


@frozen
class Deviation:
    """The first response that does not agree."""

    line: int
    """The line's number in the file."""

    request: Json
    """The request."""

    differences: tuple[Difference, ...]
    """Where the responses differ."""


@frozen(kw_only=True)
class Outcome:
    """How the replay of one trace ended."""

    file: str
    """The file, as it was given."""

    name: str
    """The test that was recorded."""

    verdict: Verdict
    """How it ended."""

    deviation: Deviation | None = None
    """What did not agree, if it failed."""

    reason: str | None = None
    """Why, where the verdict alone does not say it."""

    row: str | None = None
    """The row of the list of divergences that accounts for a known difference."""


def replay(path: Path, profile: Profile, level: Level) -> Outcome:
    """
    Replay the trace at *path* under *profile*, comparing at *level*.

    Raises:
        UnreadableFileError: It is no trace, or not of a known version.
    """
    with open_trace(path) as trace:
        if obstacles := trace.header.obstacles:
            return _outcome(trace, Verdict.SKIPPED, reason=", ".join(obstacles))
        return _replayed(trace, Conversation(profile), level)


def _outcome(
    trace: Trace, verdict: Verdict, *, deviation: Deviation | None = None, reason: str | None = None
) -> Outcome:
    return Outcome(file=trace.file, name=trace.header.name, verdict=verdict, deviation=deviation, reason=reason)


def _replayed(trace: Trace, conversation: Conversation, level: Level) -> Outcome:
    has_calls = False
    for step in trace.steps:
        has_calls |= step.op not in NO_CALLS
        deviation = None if step.op in NOT_SENT else _deviation(step, conversation, level)
        if deviation is not None and (has_calls or any(later.op not in NO_CALLS for later in trace.steps)):
            return _outcome(trace, Verdict.FAILED, deviation=deviation)
    if not has_calls:
        return _outcome(trace, Verdict.SKIPPED, reason="no public call")
    return _outcome(trace, Verdict.PASSED)


def _deviation(step: Step, conversation: Conversation, level: Level) -> Deviation | None:
    try:
        got = conversation.answer(step.request, step.line)
    except BadRequestError as error:
        got = bad_request_json(error)
    found = differences(level.view(step.response), level.view(got))
    return Deviation(step.line, step.request, found) if found else None
