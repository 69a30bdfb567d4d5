"""The page that says what was compared with Kafka, what differs and why, and which bugs of Kafka came to light."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from generate.markdown import NOTICE, table

DATA: Final = Path(__file__).parents[2] / "tests/data"
SOURCE: Final = "../tests/data"

HELD_AGAINST: Final = """\
Whether this library does what a broker does is decided by Kafka, never by this library's own output, and not by
anybody's reading of the code. It is held against

- **recordings**: {tests} tests of Kafka's own `SharePartitionTest`, recorded call by call on the real class, and
  {vectors} conversations that the real class has answered. `make test` replays all of them;
- **Kafka's own class**, out of the published jar: `make oracle` sends it random sequences, and compares every response
  ([how it goes](oracle.md));
- **the KIP's tables**, letter for letter: `sharestate kip`, and [what the KIP's slips are](kip932.md);
- **itself, by law**: after every step of random sequences [every invariant](where-rules-live.md) holds, a snapshot
  restores to what cannot be told apart, and what is told of the records adds up to what they are;
- **what a new leader would read**: 20,000 random lives of a share partition whose writes fail, are late, overtake each
  other and lose their answers, folded as a share coordinator folds them. Nothing is lost and nothing comes back, and
  without any one of the amendments of `KIP_932` something is."""

COMPARED: Final = """\
## What was compared

Runs of `make oracle` that were kept. Every request's response was compared: result, events, and all of the state that
can be observed. *Known* is how often a known divergence was met; nothing is judged after that until the next `open`."""

DIFFERS: Final = """\
## What differs, and why

Kafka's bugs that are quirks of a profile are copied by the profiles of its releases, and healed in the others
([profiles and quirks](profiles.md)); B17, F1 and what makes F3 possible are in all of them so far. Crashes and leaks
are copied by none. Each is a row of data with what sets it off and how it shows: a difference that no row accounts for
fails the search."""

BUGS: Final = """\
## Bugs of Kafka

Present in Kafka 4.3.1, each with the shortest conversation that shows it. *Found here* came to light by searching with
this library; the others were known to the written account of Kafka's rules that the library was built from. The
conversations are recorded on the real class: `sharestate replay tests/data/vectors/found`, or send their requests to it
with the command that `python -m tests.oracle.build` prints."""

ARGUMENTS: Final = ("member", "fetch_offset", "batches", "offset", "ms", "write", "answer", "answers", "config", "mode")
"""What of a request is told, in this order."""


def page() -> str:
    """Return the page."""
    tests, vectors = (len(list(DATA.glob(pattern))) for pattern in ("kafka-tests/*.jsonl", "vectors/*/*.jsonl"))
    parts = [
        NOTICE,
        "# How we know",
        HELD_AGAINST.format(tests=tests, vectors=vectors),
        COMPARED,
        table(["date", "Kafka", "profile", "sequences", "requests", "known", "differences"], _comparisons()),
        DIFFERS,
        table(["row", "Kafka", "the library", "is set off by", "shown by"], _divergences()),
        BUGS,
        *(part for row in _read("kafka-bugs.json", "kafka_bugs") for part in _bug(row)),
    ]
    return "\n\n".join(parts) + "\n"


def _read(name: str, kind: str) -> list[dict[str, Any]]:
    held = json.loads((DATA / name).read_text())
    if held.get(kind) != 1:
        message = f"{name}: not version 1 of {kind}"
        raise ValueError(message)
    rows: list[dict[str, Any]] = held["rows"]
    return rows


def _comparisons() -> Iterator[list[str]]:
    for row in _read("comparisons.json", "comparisons"):
        yield [
            row["date"],
            row["kafka"],
            f"`{row['profile']}`",
            f"{row['sequences']:,}",
            f"{row['operations']:,}",
            f"{row['known']:,}",
            f"{row['differences']}",
        ]


def _divergences() -> Iterator[list[str]]:
    for row in _read("divergences.json", "divergences"):
        vectors = ", ".join(f"`{name}`" for name in row["vectors"])
        yield [row["id"], row["kafka"], row["library"], row["trigger"], vectors]


def _bug(row: Mapping[str, Any]) -> Iterator[str]:
    conversation = row["conversation"]
    yield f"### {row['id']}: {row['title']}"
    yield ("Found here. " if row["found"] else "") + row["what"]
    facts = [
        f"- Where: {row['where']}",
        f"- Expected: {row['expected']}",
        f"- Conversation: [{conversation}]({SOURCE}/{conversation})",
    ]
    yield "\n".join(facts)
    if row["found"]:
        yield "\n".join(["```text", *_told(DATA / conversation), "```"])
    if "broker" in row:
        yield row["broker"]["about"]
        yield "\n".join(f"- {seen}" for seen in row["broker"]["seen"])


def _told(conversation: Path) -> Iterator[str]:
    """Tell a conversation: each request, its result and writes, and SPSO, SPEO and delivery complete count after it."""
    for line in conversation.read_text().splitlines()[1:]:
        exchange = json.loads(line)
        request, response = exchange["request"], exchange["response"]
        arguments = [f"{name} {_short(request[name])}" for name in ARGUMENTS if name in request]
        yield " ".join([request["op"], *arguments])
        yield f"  -> {_outcome(response)}"


def _outcome(response: Mapping[str, Any]) -> str:
    state = response["state"]
    writes = [
        f"write {event[1]['write']}: start {event[1]['start_offset']}, {_short(event[1]['state_batches'])}"
        for event in response["events"]
        if event[0] == "write"
    ]
    now = f"start {state['start_offset']}, end {state['end_offset']}, complete {state['delivery_complete_count']}"
    result = [] if response["result"] is None else [_short(response["result"])]
    return "; ".join([*result, *writes, now])


def _short(value: object) -> str:
    return json.dumps(value, separators=(",", ":")).replace('"', "")
