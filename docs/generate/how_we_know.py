"""The page that says what was compared with Kafka, and what differs and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generate.data import DATA, read_rows
from generate.markdown import NOTICE, table
from sharestate.testing.search import KAFKA_DIVERGENCES

INTRODUCTION: Final = """\
Kafka decides whether this library does what a broker does: not the library's own output, and not somebody's reading of
the code. The library is compared with

- **recordings**: {tests} tests of Kafka's own `SharePartitionTest` of 4.3.1 and {of_4_4} of 4.4.0, recorded call
  by call on the real class, and {vectors} conversations with that class. `make test` replays all of them;
- **Kafka's own class** from the published jar: `make oracle` sends it random sequences and compares every response
  ([the oracle](oracle.md));
- **the KIP's tables**, letter for letter: `sharestate kip`, and [the KIP's slips](kip932.md);
- **its own invariants**: after every step of random sequences each of them holds (`partition/invariants.py` for the
  state, `testing/protocol/always.py` for requests and responses), a restored snapshot behaves identically, and the
  recorded transitions add up to the state;
- **every state of small share groups**: by the rules of releases without their bugs nothing is lost, nothing is
  delivered after it was accepted, and nothing stalls, in any of 1.5 million states of two members and three records,
  with a write that fails and another leader ([explore](explore.md#larger-ones)); ten bugs of Kafka are found so, each
  switched on alone;
- **what a crash leaves**: the file of a `SqlitePersister`, cut off at each frame and inside it, torn as a disk may tear
  it, and written by processes that are killed, has what was answered, at most one request more, and no part of one
  (`make crash`);
- **what a new leader would read**: random histories in which writes fail, are late, overtake each other, come twice and
  lose their answers, and leaders fail over, through each persister: in memory, in a log, in a file, and beside brokers.
  By the rules of Kafka 4.4 nothing that was confirmed is lost or comes back, by either write policy. By those of 4.2
  and 4.3 that needs writes in their order, or for `KIP_932` none that comes after its answer; without any one of its
  amendments records are lost (`make failover`)."""

COMPARED: Final = """\
## What was compared

Runs of `make oracle` that were kept. Every response was compared: result, events, and all of the state that can be
observed. *Known* is how often a known divergence was met; nothing is judged after that until the next `open`."""

MUTANTS: Final = """\
## What tests notice

Small changes of the source, *mutants*, each of which has to make a test fail (`make mutation`; what it does stands in
`CONTRIBUTING.md`). Those of a package met the unit tests of that package and few others, so what is killed is a lower
bound. Before tests were written for those that survived, 88 % of those of `history` were killed, and 77 % of those of
`log_check` by three seconds of tests for each. *Equivalent* are those that change nothing that anybody could see;
*harmless* and *left* count as not killed. Each one that is equivalent or harmless stands with its reason in
`tests/mutation/survivors.toml`. *CPU* is what trying one takes on average."""

DIFFERS: Final = """\
## What differs, and why

[Kafka's bugs](kafka-bugs.md) that are quirks of a profile are copied by the profiles of its releases, and healed in the
others. Crashes and leaks are copied by none: these are the differences. Each is a row of data with its trigger and its
symptom; a difference that no row accounts for fails the search."""


def page() -> str:
    """Return the page."""
    tests, of_4_4, vectors = recordings()
    parts = [
        NOTICE,
        "# How we know",
        INTRODUCTION.format(tests=tests, of_4_4=of_4_4, vectors=vectors),
        COMPARED,
        table(["date", "Kafka", "profile", "sequences", "requests", "known", "differences"], _comparisons()),
        MUTANTS,
        table(["date", "package", "mutants", "tried", "equivalent", "killed", "harmless", "left", "CPU"], _mutants()),
        DIFFERS,
        table(["row", "Kafka", "the library", "trigger", "conversation"], _divergences()),
    ]
    return "\n\n".join(parts) + "\n"


def recordings() -> list[int]:
    """Return how many tests of Kafka's were recorded, of 4.3.1 and of 4.4.0, and how many conversations."""
    patterns = ("kafka-tests/*.jsonl", "kafka-tests-4.4/*.jsonl", "vectors*/**/*.jsonl")
    return [len(list(DATA.glob(pattern))) for pattern in patterns]


def _comparisons() -> Iterator[list[str]]:
    for row in read_rows("comparisons.json", "comparisons"):
        yield [
            row["date"],
            row["kafka"],
            f"`{row['profile']}`",
            f"{row['sequences']:,}",
            f"{row['operations']:,}",
            f"{row['known']:,}",
            f"{row['differences']}",
        ]


def _mutants() -> Iterator[list[str]]:
    for row in read_rows("mutants.json", "mutants"):
        counted = row["tried"] - row["equivalent"]
        yield [
            row["date"],
            f"`{row['package']}`",
            f"{row['mutants']:,}",
            f"{row['tried']:,}",
            f"{row['equivalent']:,}",
            f"{row['killed']:,} = {100 * row['killed'] / counted:.0f} %",
            f"{row['harmless']:,}",
            f"{row['left']:,}",
            f"{row['cpu_ms']:,} ms" if "cpu_ms" in row else "",
        ]


def _divergences() -> Iterator[list[str]]:
    rows = {row["id"]: row for row in read_rows("divergences.json", "divergences")}
    for known in KAFKA_DIVERGENCES:
        vectors = ", ".join(f"`{name}`" for name in rows[known.id]["vectors"])
        yield [known.id, known.peer, known.library, known.is_set_off_by.__doc__ or "", vectors]
