"""Asking a cluster what was recorded of brokers of Kafka, and comparing its answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final

from sharestate.conformance.brokers.cluster import NO_ANSWER, ClusterUnderTest
from sharestate.conformance.brokers.script_run import NotSupportedError, ScriptRun
from sharestate.conformance.running import LIMIT_S
from sharestate.conformance.vectors import Vector, Vectors
from sharestate.conformance.verdicts import Conformance, ConformanceVerdict, VectorOutcome
from sharestate.conversation.compare import Level
from sharestate.persister.kafka.security import Security

PREFIX: Final = "sharestate-conform"
"""What the names of all topics and groups of a run begin with."""


DIFFERS_BEFORE: Final = "the broker differs before it comes to what shows the rule"


def conform_cluster(  # noqa: PLR0913 - all but three have defaults
    bootstrap_servers: str,
    index: Vectors,
    release: str,
    *,
    security: Security | None = None,
    limit_s: float = LIMIT_S,
    sleep: Callable[[float], None] = time.sleep,
    watch: Callable[[int], None] = lambda _count: None,
) -> Conformance:
    """
    Carry out the scripts of *release* at a cluster, and return what became of each rule.

    Each script has a topic of one partition and a group of its own, which are deleted afterwards. Their names begin
    with ``sharestate-conform``, and that of a topic for dead letters with ``dlq.sharestate-conform``. What the cluster
    does not take, such as settings of groups, is not supported, and so are rules that no client can see. Where a script
    differs before it comes to what shows its rules, these are not judged. A script that
    waits until locks expire is repeated with longer ones if it fails, as a busy machine may have been too late.

    Args:
        bootstrap_servers: ``host:port`` of a broker, or several with commas.
        index: The scripts.
        release: A release of Kafka, one of the index.
        security: TLS and login; by default neither.
        limit_s: How long it is asked. [s]
        sleep: Lets time pass until locks expire; ``TestBroker.advance`` for a broker whose clock stands.
        watch: Called with how many scripts have been carried out.

    Raises:
        ValueError: The index has no such release.
        MalformedInputError: *bootstrap_servers* has no address, or one that is none.
        OSError: No broker can be reached at first.
        ExternalError: It refuses the login, or has no such API as Metadata.
        ResponseFormatError: What it says at first is no answer: it may be no broker.
    """
    if release not in index.releases:
        message = f"there are scripts of {', '.join(index.releases)}, and not of {release}"
        raise ValueError(message)
    cluster, run = ClusterUnderTest(bootstrap_servers, security), uuid.uuid4().hex[:8]
    outcomes: list[VectorOutcome] = []
    end_s, limit = time.monotonic() + limit_s, None
    try:
        cluster.check()
        for count, script in enumerate(index.of(release)):
            watch(count)
            if limit is None and time.monotonic() > end_s:
                limit = f"{limit_s:g} s have passed"
            if limit is not None:
                outcomes.append(VectorOutcome(vector=script, verdict=ConformanceVerdict.UNJUDGED))
                continue
            begin = partial(ScriptRun, cluster, bootstrap_servers, sleep=sleep, security=security)
            outcomes.append(_carried_out(script, begin, f"{PREFIX}-{run}-{script.name}"))
    finally:
        cluster.close()
    return Conformance(release=release, level=Level.FULL, index=index, outcomes=tuple(outcomes), limit=limit)


def _carried_out(script: Vector, begin: Callable[..., ScriptRun], name: str) -> VectorOutcome:
    """Return what became of *script*: of one that waits for locks and fails, what became of it with longer ones."""
    outcome = _ended(script, begin(name=name))
    waits = any(request["op"].startswith("wait") for request, _ in script.exchanges)
    if waits and outcome.verdict is ConformanceVerdict.FAILED:
        return _ended(script, begin(name=f"{name}-again", is_patient=True))
    return outcome


def _ended(script: Vector, run: ScriptRun) -> VectorOutcome:
    """Return what became of *script*; what it has made is deleted."""
    try:
        return _judged(script, run)
    finally:
        run.end()


def _judged(script: Vector, run: ScriptRun) -> VectorOutcome:
    for place, (request, expected) in enumerate(script.exchanges):
        try:
            got = run.answer(request)
        except NotSupportedError as error:
            return VectorOutcome(vector=script, verdict=ConformanceVerdict.UNSUPPORTED, place=place, reason=str(error))
        except NO_ANSWER as error:
            got = {"failed": str(error) or type(error).__name__}
        found = Level.FULL.differences(expected, got)
        if found and place < script.shows:
            return VectorOutcome(vector=script, verdict=ConformanceVerdict.UNJUDGED, place=place, reason=DIFFERS_BEFORE)
        if found:
            return VectorOutcome(
                vector=script,
                verdict=ConformanceVerdict.FAILED,
                place=place,
                differences=tuple(map(str, found)),
                got=got,
            )
    return VectorOutcome(vector=script, verdict=ConformanceVerdict.PASSED)
