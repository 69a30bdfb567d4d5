"""Asking a peer what was recorded of Kafka, and comparing its answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sharestate.conformance.vectors import Vector, Vectors
from sharestate.conformance.verdicts import Conformance, ConformanceVerdict, VectorOutcome
from sharestate.conversation.compare import Level
from sharestate.json_lines import Json, write_json
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from sharestate.testing.search.judging import read_response

LIMIT_S: Final = 600.0
"""How long a peer is asked. [s]"""

MOST_DEATHS: Final = 10
"""In how many vectors a peer may end, or give no answer, before it is asked nothing more. [vectors]"""


def conform(  # noqa: PLR0913 - the last three have defaults
    command: Sequence[str],
    index: Vectors,
    release: str,
    *,
    level: Level = Level.OBSERVABLE,
    limit_s: float = LIMIT_S,
    watch: Callable[[int], None] = lambda _count: None,
) -> Conformance:
    """
    Ask a peer the vectors of *release*, and return what became of each rule.

    Each vector begins with ``open``, so that one that fails says nothing of the next. What the peer does not know it
    answers with ``bad_request``, or the result ``unsupported``.

    Args:
        command: The peer: a program that answers requests of the line protocol, one line each.
        index: The vectors.
        release: A release of Kafka, one of the index.
        level: What is compared; ``Level.ANSWERS`` for a peer that shows no state.
        limit_s: How long it is asked. [s]
        watch: Called with how many vectors have been asked.

    Raises:
        ValueError: The index has no such release.
        FileNotFoundError: There is no such program.
        PeerDiedError: The command has ended before it had answered anything.
    """
    if release not in index.releases:
        message = f"there are vectors of {', '.join(index.releases)}, and not of {release}"
        raise ValueError(message)
    outcomes: list[VectorOutcome] = []
    end_s, deaths, limit = time.monotonic() + limit_s, 0, None
    with CommandPeer(command) as peer:
        for count, vector in enumerate(index.of(release)):
            watch(count)
            if limit is None and time.monotonic() > end_s:
                limit = f"{limit_s:g} s have passed"
            if limit is not None:
                outcomes.append(VectorOutcome(vector=vector, verdict=ConformanceVerdict.UNJUDGED))
                continue
            outcome, has_died = _asked(vector, peer, level)
            outcomes.append(outcome)
            deaths += has_died
            if deaths == MOST_DEATHS:
                limit = f"the peer has ended, or given no answer, in {deaths} vectors"
    return Conformance(release=release, level=level, index=index, outcomes=tuple(outcomes), limit=limit)


def _asked(vector: Vector, peer: CommandPeer, level: Level) -> tuple[VectorOutcome, bool]:
    """Return what became of *vector*, and whether the peer has ended meanwhile."""
    peer.ask([write_json(request) for request, _ in vector.exchanges])
    answers = [read_response(peer.response()) for _ in vector.exchanges]
    outcome = next(_ends(vector, answers, level), None)
    passed = VectorOutcome(vector=vector, verdict=ConformanceVerdict.PASSED)
    return outcome or passed, any(map(_is_death, answers))


def _ends(vector: Vector, answers: Sequence[Json], level: Level) -> Iterator[VectorOutcome]:
    """Yield where *vector* comes to an end: at what is not supported, or differs."""
    for place, ((_, expected), got) in enumerate(zip(vector.exchanges, answers, strict=True)):
        found = level.differences(expected, got)
        if found and _is_unsupported(got):
            yield VectorOutcome(vector=vector, verdict=ConformanceVerdict.UNSUPPORTED, place=place)
        elif found:
            yield VectorOutcome(
                vector=vector, verdict=ConformanceVerdict.FAILED, place=place, differences=tuple(map(str, found))
            )


def _is_unsupported(response: Json) -> bool:
    match response:
        case {"bad_request": _} | {"result": {"unsupported": _}}:
            return True
        case _:
            return False


def _is_death(response: Json) -> bool:
    match response:
        case {"result": {"raised": {"exception": PeerDiedError.__name__}}}:
            return True
        case _:
            return False
