"""The vectors that `sharestate conform` asks: the recordings of Kafka's own class, with the rules that each shows."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import sharestate
from generate.citations import headings
from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from sharestate.conversation import Level, ReplayVerdict, replay
from sharestate.conversation.replay import NOT_SENT, read_known_differences
from sharestate.conversation.traces import open_trace

DATA: Final = Path(__file__).parents[2] / "tests/data"
FILE: Final = Path(sharestate.__file__).parent / "conformance/vectors.jsonl.gz"

RELEASES: Final = {"4.2.2": ("4.2.2",), "4.3.1": ("4.2.2", "4.3.1", "4.4.0"), "4.4.0": ("4.4.0",)}
"""
The releases that answer so what was recorded of each: both others answer what 4.3.1 was asked as 4.3.1 does.

4.2.2 answers some of it otherwise, where settings change while a share partition is in use (rule 1), and has
recordings of its own.
"""

HEALED: Final = {"4.2.2": KAFKA_4_2.healed, "4.3.1": KAFKA_4_3.healed, "4.4.0": KAFKA_4_4.healed}

UNASKED: Final = {
    "21.6": "a conversation does not show what the dead-letter queue writes",
    "24": "it introduces its parts",
    "24.2": "its rows are accidents of Kafka, which decide nothing",
    "24.4": "it is about this library",
}
"""Why a rule has no vector."""

FOLDERS: Final = (
    ("vectors", "4.3.1"),
    ("kafka-tests", "4.3.1"),
    ("vectors-4.2", "4.2.2"),
    ("vectors-4.4", "4.4.0"),
    ("kafka-tests-4.4", "4.4.0"),
)

RULES: Final = (
    (r"ex-(\d+(?:\.\d+)?)-\w+", ()),  # the rule is in the name
    (r"v22-01", ("8.1", "12")),
    (r"v22-02", ("10",)),
    (r"v22-0[56]", ("10", "11")),
    (r"v22-07", ("9",)),
    (r"v22-08", ("8.1",)),
    (r"v22-09", ("11",)),
    (r"v22-10", ("13",)),
    (r"v22-12", ("4.2",)),
    (r"v22-15", ("1.2", "20.3")),
    (r"v22-16", ("16",)),
    (r"v22-17", ("7.2",)),
    (r"v22-18", ("7.8",)),
    (r"v22-20", ("8.1",)),
    (r"v22-08", ("1.1",)),
    (r"v22-09|test\w*OngoingTransition", ("1.3",)),
    (r"testLsoMovementForArchiving|testLsoMovementWithPending", ("1.4", "14")),
    (r"v22-09|test\w*(Rollback|WriteStateRPCFailure|WriteShareGroupStateFailure)", ("1.5",)),
    (r"testAcquisitionLock(For|On|Timeout)(?!.*Dlq)", ("1.6",)),
    (r"testAcquireBatchPriorToStartOffset|testAcquireWithEmptyFetchRecords", ("7.1",)),
    (r"testMaybeInitializeAndAcquireWithMultipleBatches$", ("7.7",)),
    (r"ex-8\.3-[bcfh]|v22-01", ("15",)),
    (r"testAcknowledge\w*Rollback", ("24.3",)),
    (r"(change-|ex-19\.)B1$", ("7.2",)),
    (r"(change-|ex-19\.)B3$|change-RELEASE-NOOP", ("9",)),
    (r"change-B6", ("7.5",)),
    (r"change-B9a|ex-19\.B9-a", ("12",)),
    (r"change-B13", ("7.6",)),
    (r"change-MERGE", ("7.6", "18")),
    (r"change-THROTTLE", ("20.3",)),
    (r"testMaybeInitialize(?!.*Archiving)", ("4",)),
    (r"testMaybeInitialize(Fenced|SharePartitionAgain)", ("3",)),
    (r"testMaybeInitializeWith(Empty\w+Data|Error\w+|Invalid\w+)Response|\w+ReadException", ("4.1",)),
    (r"testMaybeInitialize(Default|FetchOffset)", ("4.2",)),
    (r"testMaybeInitializeStateBatches", ("4.3", "4.4")),
    (r"testNextFetchOffset", ("5",)),
    (r"testCanAcquire|test\w*FetchLock", ("6",)),
    (r"testAcquire(?!.*(RecordLimitMode|Halves))|testMaybeInitializeAndAcquire", ("7",)),
    (r"testAcquire\w*(MaxInFlight|MaxFetch)|testDynamicPartitionMaxRecordLocks", ("7.2",)),
    (r"testAcquire\w*BatchesAreRemoved|testAcquire\w*BatchesRemoved", ("7.3",)),
    (r"testAcquire\w*BatchSize", ("7.9",)),
    (r"test\w*Gap\w*(InBetween|Matches|Beginning|FetchedFromGap|AcquiringGaps)", ("4.4",)),
    (r"testTerminal\w*Aborted", ("7.10",)),
    (r"testAcknowledge(?!.*Dlq)", ("8",)),
    (r"testReleaseAcquiredRecords(?!.*Dlq)|testReleaseBatch", ("9",)),
    (r"testAcquisitionLock(?!.*Dlq)", ("10",)),
    (r"test\w*(Rollback|WriteStateRPCFailure|WriteShareGroupStateFailure|OngoingTransition)", ("11",)),
    (r"testMaybeUpdateCachedState|testCacheUpdate", ("12",)),
    (r"testLsoMovement", ("13",)),
    (r"testMaxDeliveryCount|testDynamicDeliveryCount|testRecordArchived", ("1.2",)),
    (r"testDynamic", ("1",)),
    (r"test\w*RecordLimitMode", ("20.1",)),
    (r"test\w*Renew", ("20.2",)),
    (r"test\w*(Throttling|LastAttempt)", ("20.3",)),
    (r"testDeliveryCompleteCount|testTerminalRecords", ("20.4",)),
    (r"dlq-(?!.*initialize)|test\w*Dlq(?!Enqueue)", ("21",)),
    (r"dlq-initialize|testMaybeInitialize\w*Archiving", ("21.4",)),
    (r"dlq-(reject|release|session|timeout-at|timeout-below|types|gap)", ("21.1",)),
    (r"dlq-(write-fails|timeout-write)", ("21.2",)),
    (r"dlq-(second|enqueue)", ("21.3",)),
    (r"dlq-off", ("21.5",)),
)
"""What a recording is about, by its name: a pattern that is at its beginning, and rules. Made by hand."""


def write() -> None:
    """Write the file of vectors, equal for equal recordings."""
    FILE.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines()).encode(), 9, mtime=0))


def lines() -> Iterator[str]:
    """Yield the lines of the file: what it is, then its vectors."""
    header = {
        "vectors": 1,
        "license": "Apache-2.0",
        "releases": list(RELEASES["4.3.1"]),
        "rules": [[number, text] for number, text in headings().items()],
        "unasked": [[number, why] for number, why in UNASKED.items()],
    }
    yield json.dumps(header)
    seen = set()
    for folder, release in FOLDERS:
        for file in sorted((DATA / folder).rglob("*.jsonl")):
            vector = _vector(file, release)
            exchanges = json.dumps(vector["exchanges"])
            if exchanges not in seen:
                yield json.dumps(vector, separators=(",", ":"))
            seen.add(exchanges)


def _vector(file: Path, release: str) -> dict[str, Any]:
    known = read_known_differences(DATA / "known-differences.json").by_name(KAFKA_4_4, Level.OBSERVABLE)
    with open_trace(file) as trace:
        name = trace.header.name
        steps = [step for step in trace.steps if step.op not in NOT_SENT]
    row = known.get(name)
    accident = row.reason if row is not None and row.row != "fire_lock" else None
    return {
        "name": name if release == "4.3.1" else f"{name} ({release})",
        "source": f"SharePartition of Kafka {release}"
        + (f", {_whose(release)} {name}" if name.startswith("test") else ""),
        "releases": [each for each in RELEASES[release] if each == release or not _has_own(name, each)],
        "rules": [] if accident else _rules(file, name, release),
        "accident": accident,
        "exchanges": [[step.request, step.response] for step in steps],
    }


def _whose(release: str) -> str:
    """Return whose test was recorded of *release*."""
    return "the test of 4.3.1" if release == "4.2.2" else "its test"


def _has_own(name: str, release: str) -> bool:
    """Return whether *release* has answered otherwise what 4.3.1 was asked, and was recorded."""
    return release == "4.2.2" and (DATA / "vectors-4.2" / f"{name}.jsonl").exists()


def _rules(file: Path, name: str, release: str) -> list[str]:
    """Return the rules of a recording: rule 24.1 alone if it shows a bug, which those who have healed it do not."""
    row = replay(file, HEALED[release], Level.OBSERVABLE)
    if row.verdict is ReplayVerdict.FAILED and not _needs_early_locks(file):
        return ["24.1"]
    return list(rules_by_name(name))


def _needs_early_locks(file: Path) -> bool:
    """Return whether a lock is expired before its deadline, for which the library has no operation."""
    return '"op":"fire_lock"' in file.read_text()


def rules_by_name(name: str) -> tuple[str, ...]:
    """
    Return what the table says of a recording's name.

    >>> rules_by_name("ex-7.3-b")
    ('7.3',)
    """
    found = [
        number for pattern, rules in RULES if (match := re.match(pattern, name)) for number in (rules or (match[1],))
    ]
    return tuple(sorted(dict.fromkeys(found), key=list(headings()).index))
