"""The page of Kafka's bugs, present and fixed, made from ``tests/data/kafka-bugs.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from generate.citations import linked
from generate.data import DATA, SOURCE, read_rows
from generate.markdown import NOTICE, WIDEST, table

INTRODUCTION: Final = """\
The defects of Kafka's share-partition leader and share coordinator that this project knows, by id. Rules and code refer
to these ids: B ids come from reading Kafka's class and running it, F ids from searching with this library, C ids are of
the share coordinator. Where a conversation can show a bug, the shortest one is linked, as recorded on the real class.
Replay one of the leader with `sharestate replay FILE`, or send its requests to Kafka with the command that
`python -m tests.oracle.build` prints. For bugs that are present no report was found in Kafka's issue tracker, but where
the bug's section names one. The gravest have [a report each, with a JUnit test](kafka-bug-reports.md)."""

PRESENT: Final = """\
## By release

*Recorded*: that release's class answers the conversation as it is linked, which the tests hold. *Seen*: on its class or
on a broker, and not held by a conversation. *Read*: in the code only. An empty field: fixed, or not there yet; the
bug's own section says which."""

RELEASES: Final = ("4.2.1", "4.2.2", "4.3.1", "4.4.0")

FIXED: Final = """\
## Fixed before Kafka 4.3.1

Found in the trunk of October 2025 and fixed since. No profile has them; the tests plant several again, to see that the
search for differences notices them."""

ARGUMENTS: Final = ("member", "fetch_offset", "batches", "offset", "ms", "write", "answer", "answers", "config", "mode")
"""The fields of a request that are shown, in this order."""


def page() -> str:
    """Return the page."""
    rows = read_rows("kafka-bugs.json", "kafka_bugs")
    parts = [
        NOTICE,
        "# Kafka's bugs",
        INTRODUCTION,
        PRESENT,
        table(
            ["id", "what happens", *RELEASES, "profiles"],
            (
                [_link(row), row["title"], *(row["in"].get(name, "") for name in RELEASES), linked(row["profiles"])]
                for row in rows
            ),
        ),
        *(part for row in rows for part in _bug(row)),
        FIXED,
        table(["id", "in short", "what happened", "fixed in", "conversation"], _fixed()),
    ]
    return "\n\n".join(parts) + "\n"


def anchor(bug: str) -> str:
    """
    Return the anchor of a bug.

    >>> anchor("B1'"), anchor("B9b")
    ('bug-b1-prime', 'bug-b9b')
    """
    return f"bug-{bug.lower()}".replace("'", "-prime")


def _link(row: Mapping[str, Any]) -> str:
    return f"[{row['id']}](#{anchor(row['id'])})"


def _conversation(path: str) -> str:
    return f"[{path}]({SOURCE}/{path})"


def _fixed() -> Iterator[list[str]]:
    for row in read_rows("kafka-bugs.json", "kafka_bugs", "fixed"):
        conversation = _conversation(row["conversation"]) if "conversation" in row else ""
        yield [row["id"], row["title"], row["what"], row["fixed"], conversation]


def _releases(row: Mapping[str, Any]) -> str:
    known = ", ".join(f"{release} ({how})" for release, how in row["in"].items())
    return f"{known}. {row.get('releases', '')}".rstrip()


def _bug(row: Mapping[str, Any]) -> Iterator[str]:
    yield f"({anchor(row['id'])})=\n### {row['id']}: {row['title']}"
    yield ("Found here. " if row["found"] else "") + row["what"]
    facts = [
        f"- Where: {row['where']}",
        f"- Expected: {row['expected']}",
        f"- Releases: {_releases(row)}",
        f"- Profiles: {linked(row['profiles'])}",
    ]
    if "conversation" in row:
        facts.append(f"- Conversation: {_conversation(row['conversation'])}")
    yield "\n".join(facts)
    if row["found"]:
        yield "\n".join(["```text", *_exchanges(DATA / row["conversation"]), "```"])
    if "broker" in row:
        yield row["broker"]["about"]
        yield "\n".join(f"- {seen}" for seen in row["broker"]["seen"])


def _exchanges(conversation: Path) -> Iterator[str]:
    """Go through a conversation: each request, its result and writes, and SPSO, SPEO and delivery complete count."""
    for line in conversation.read_text().splitlines()[1:]:
        exchange = json.loads(line)
        request, response = exchange["request"], exchange["response"]
        arguments = [f"{name} {_short(request[name])}" for name in ARGUMENTS if name in request]
        yield from _lines(" ".join([request["op"], *arguments]))
        yield from _lines(f"  -> {_outcome(response)}")


def _lines(text: str) -> list[str]:
    """Break what is wider than the pages show."""
    return wrap(text.replace("],[", "], ["), WIDEST, subsequent_indent="    ", break_long_words=False)


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
