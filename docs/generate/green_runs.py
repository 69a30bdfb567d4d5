"""The page on what a run that finds nothing is worth, from ``tests/data/green-runs.json``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generate.data import read_rows
from generate.markdown import NOTICE, table


class Judge(NamedTuple):
    """
    What searches at a door.

    Attributes:
        name: Its name, with a link to its section.
        unit: What it counts its runs in.
        bugs: Where its bugs are planted.
        longer: How it searches for longer.
    """

    name: str
    unit: str
    bugs: str
    longer: str


THOROUGH: Final = "`TestCase.settings = THOROUGH`, or `--hypothesis-profile=sharestate-thorough`"
NOTHING_DRAWN: Final = "not at all: nothing is drawn"
MORE_SEEDS: Final = "more seeds"

JUDGES: Final[Mapping[str, Judge]] = MappingProxyType(
    {
        "groups": Judge(
            "[`ShareGroupMachine`](testing.md#from-the-clients-side)",
            "runs",
            "[a share group](planted-bugs.md)",
            THOROUGH,
        ),
        "nodes": Judge("the same", "runs", "[a node](planted-bugs.md#nodes)", THOROUGH),
        "partitions": Judge(
            "[`SharePartitionMachine`](testing.md#from-the-persisters-side)",
            "runs",
            "[a leader](planted-bugs.md#share-partitions)",
            THOROUGH,
        ),
        "persisters": Judge(
            "[`PersisterMachine`](testing.md#persisters)",
            "runs",
            "[a persister](planted-bugs.md#persisters)",
            THOROUGH,
        ),
        "contract": Judge(
            "[`PersisterContract`](persister.md#a-persister-of-your-own)", "run", "a persister", NOTHING_DRAWN
        ),
        "queues": Judge(
            "[`DeadLetterQueueContract`](dead-letters.md#a-queue-of-your-own)",
            "run",
            "a dead-letter queue",
            NOTHING_DRAWN,
        ),
        "failovers": Judge(
            "[`FailoverRun`](testing.md#leaders-that-fail-over)",
            "runs",
            "the library: [Kafka's bugs](kafka-bugs.md) after which it stalls",
            MORE_SEEDS,
        ),
        "comparison": Judge(
            "[`compare`](testing.md#beside-the-library)",
            "sequences",
            "[a mock broker](planted-bugs.md#mock-brokers), by its answers alone",
            "`seeds=THOROUGH_SEEDS`; `sharestate compare --ops 2000000`",
        ),
        "invariants": Judge(
            "[`observe`](testing.md#over-the-line-protocol) by `invariants_of`",
            "sequences",
            "the library: rules of other releases",
            MORE_SEEDS,
        ),
        "model": Judge(
            "[`observe`](testing.md#by-an-independent-model) by `RecordOracle`", "sequences", "the same", MORE_SEEDS
        ),
    }
)
"""By the names in the file, in the order of the page."""

INTRODUCTION: Final = """\
A search is green when none of its random runs has shown anything. What that is worth was measured, with bugs that are
planted one at a time and with implementations that are correct: `python -m tests.planted.green_runs` measures it
again."""

FINDS: Final = """\
## What it finds

Each bug is searched for three times, with other seeds; once by contracts, which draw nothing. A search has as many runs
as a test has by default; of `FailoverRun` and `observe`, which have no default, as many as there are in the table.
Seconds are CPU time of Python {python} until the bug is found, and for `compare` until its conversation is short; to
make a program short takes another second, most often."""

CAUTION: Final = """\
The bugs come from those who write the kit, and it was made better until it found them. So a row says where a door is
not blind; of bugs that nobody has thought of it finds fewer. How much depends on the judge, the last two rows show,
which judge the same sequences: `make oracle-mutants` checks that each of these rules is found
beside [Kafka's own class](oracle.md)."""

RUNS: Final = """\
## What so many runs say

A bug that shows in one of *n* random runs is missed by *N* of them with the probability (1 - 1/*n*)^*N*. When *N* runs
are green, a bug that shows in one of *N*/3 runs, or in more, is unlikely: 95 times of 100 it would have been found."""

ALARMS: Final = """\
## What it says of what is correct

In each of these nothing should be found; the name of a profile stands for the library. Longer searches of the library
are `make adversary`, `make failover` and `make stalls`; and {compared} million requests were [compared with Kafka's own
class](how-we-know.md#what-was-compared)."""

BLIND: Final = """\
## What it cannot find

What a machine has not come to was not tested: `reached` [says so](testing.md#longer-searches). Nobody finds

- **from the clients' side** what no client sees. What is stored wrongly is seen when another leader reads it, and
  without `fail_over` it is not; eight bugs of [a node](planted-bugs.md#nodes), in the order of a session's partitions
  and in target assignments, no member ever notices. What [Kafka leaves
  open](invariants.md#what-kafka-leaves-open) is not judged: in which order members get records, and how many at a time.
  There is one partition unless `share_partitions` says otherwise, with few members and few records; where time is
  real, nothing is found that is shorter than `clock_tolerance_ms`.
- **from the persister's side** what lies around a leader: sessions, waiting fetches, connections, threads, memory. What
  the adapter does in the place of the leader, as to send its writes, is tested with it, and not the way in which the
  application does it.
- **in persisters** what a crash leaves: they are closed before they are opened again. Nor what two processes do at
  once, nor a log that is longer than a run. A contract tests its clauses, each with a few requests of its own.
- **when leaders fail over** what one leader does wrong by itself, without losing, repeating or stalling anything.
- **beside the library** what both do wrong. After something that is known to differ a sequence is not judged any more,
  and with `Level.ANSWERS` a state is as good as its answers.
- **by invariants** whatever contradicts neither itself nor what came before, such as another release's rule."""

LONGER: Final = """\
## How to search for longer

Ten times as many runs find bugs that are ten times as rare. Other settings of your implementation, and members and
events that it has not had yet, find more than that."""

SURE: Final = 0.95
"""The probability of the rule of three."""


def page() -> str:
    """Return the page."""
    rows = read_rows("green-runs.json", "green_runs")
    compared = sum(row["operations"] for row in read_rows("comparisons.json", "comparisons"))
    missed = {row["door"]: Counter(row["missed"]) for row in rows}
    parts = [
        NOTICE,
        "# What a green run means",
        INTRODUCTION,
        FINDS.format(python=", ".join(sorted({row["python"] for row in rows}))),
        table(["by", "planted in", "a search", "bugs", "found", "within 1 s", "within 20 s", "longest"], _found(rows)),
        _missed(missed),
        CAUTION,
        RUNS,
        table(["green runs", "unlikely is a bug that shows in"], _rare(rows)),
        ALARMS.format(compared=compared // 1_000_000),
        table(["by", "runs", "what is correct", "false alarms", "CPU time"], _alarms(rows)),
        BLIND,
        LONGER,
        table(["by", "longer"], ([judge.name, judge.longer] for judge in JUDGES.values() if judge.name != "the same")),
    ]
    return "\n\n".join(parts) + "\n"


def _found(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        judge, searches = JUDGES[row["door"]], row["searches"]
        counts = [searches - len(row["missed"]), row["within_1_s"], row["within_20_s"]]
        yield [
            judge.name,
            judge.bugs,
            f"{row['runs']:,} {judge.unit}",
            str(row["bugs"]),
            *(f"{count} of {searches}" for count in counts),
            f"{row['longest_s']:.1f} s",
        ]


def _missed(missed: Mapping[str, Counter[str]]) -> str:
    """Return what was not found by every search."""
    lines = [
        f"- {JUDGES[door].name} in {JUDGES[door].bugs}: " + ", ".join(f"*{bug}* by {n}" for bug, n in bugs.items())
        for door, bugs in missed.items()
        if bugs
    ]
    return "\n".join(["Not found, by how many of the searches for it:", "", *lines])


def _rare(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield for each number of runs how rare a bug is that they would have missed with a probability of 5 %."""
    for runs in sorted({row["runs"] for row in rows} - {1} | {20_000}):
        yield [f"{runs:,}", f"one of {math.floor(1 / (1 - (1 - SURE) ** (1 / runs))):,} runs, or in more"]


def _alarms(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        judge, correct = JUDGES[row["door"]], row["correct"]
        yield [
            judge.name,
            f"{row['runs'] * len(correct):,} {judge.unit}",
            ", ".join(correct),
            str(row["false_alarms"]),
            f"{row['correct_s']:.1f} s",
        ]
