"""The page of the invariants, of what a run has to show, and of what is let pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from generate.allowances import KNOWN_BUGS, LEFT_OPEN, Door
from generate.kafka_bugs import anchor
from generate.kafka_bugs import page as kafka_bugs
from generate.markdown import NOTICE, table
from sharestate.testing.protocol.always import ALWAYS, BROKER, HEALED, WITH_QUEUE, WITHOUT_QUEUE
from sharestate.testing.protocol.coordinator_invariants import COORDINATOR_HEALED
from sharestate.testing.protocol.explanations import EXPLANATIONS
from sharestate.testing.protocol.in_process import effects_are_values
from sharestate.testing.protocol.over_time import HEALED_OVER_TIME, OVER_TIME
from sharestate.testing.protocol.sometimes import REFUSALS, SOMETIMES, SOMETIMES_WITH_QUEUE

INTRODUCTION: Final = """\
What must hold, what a run has to show, and what is not judged: the data of [the test kit](testing.md). A broken
invariant is reported with its sentence, what to look at and what Kafka has had of it, as they stand here."""

COORDINATOR_TEXT: Final = """\
Of every release, but for the last two: `a_write_takes_nothing_back` holds from 4.4 on, and is in `COORDINATOR_4_4`;
`an_initialization_takes_nothing_back` holds in no release, and is in `COORDINATOR_HEALED` only. They judge the
exchanges of [the protocol of share coordinators](coordinator-protocol.md), and are in
`sharestate.testing.protocol`."""

GROUPS: Final[tuple[tuple[str, str, tuple[Callable[..., object], ...]], ...]] = (
    ("Under every profile", "", (*ALWAYS, *OVER_TIME)),
    ("Under profiles without quirks", "Kafka's own bugs break these.", (*HEALED, *HEALED_OVER_TIME)),
    ("Of brokers' writes", "", BROKER),
    ("With dead-letter queues", "", WITH_QUEUE),
    ("Without dead-letter queues", "", WITHOUT_QUEUE),
    (
        "Of share coordinators",
        COORDINATOR_TEXT,
        COORDINATOR_HEALED,
    ),
    ("Of commands", "`InProcessServer` judges what every command of the library returns.", (effects_are_values,)),
)
"""The invariants by headings, with what is to be said of them."""

SOMETIMES_TEXT: Final = """\
An implementation that does nothing breaks no invariant. `expect_seen(conversation)` fails if one of these never
happens in a run."""

QUEUE_TEXT: Final = "These need a dead-letter queue; `seen(conversation)` knows them too:"

REFUSED_TEXT: Final = "Refused acknowledgements, by a part of the message; some only wild sequences reach:"

ALLOWANCES_TEXT: Final = """\
Implementations may differ in these, and none of the doors that are named judges them."""

BUGS_TEXT: Final = """\
Every release of Kafka has these bugs. From the clients' side they are allowed where a machine names them in its
`allowances`: an implementation of your own need not have them, and healed profiles do not. The invariants of share
coordinators allow theirs always, but for `COORDINATOR_HEALED`. A peer of `compare` brings its own `divergences`."""


def page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Invariants", INTRODUCTION]
    for heading, text, invariants in GROUPS:
        parts += [f"## {heading}", *([text] if text else []), _invariants(invariants)]
    parts += ["## What a run has to show", SOMETIMES_TEXT, _events(SOMETIMES)]
    parts += [QUEUE_TEXT, _events(SOMETIMES_WITH_QUEUE)]
    parts += [REFUSED_TEXT, "\n".join(f"- {part}" for part in REFUSALS)]
    parts += ["## What Kafka leaves open", ALLOWANCES_TEXT, table(["what may happen", "why", "at"], _left_open())]
    parts += ["## Known bugs that are let pass", BUGS_TEXT, table(["bug", "breaks", "only if", "at"], _known_bugs())]
    return "\n\n".join(parts) + "\n"


def _invariants(invariants: Iterable[Callable[..., object]]) -> str:
    """Return a list: in a table, the names would leave no room for the sentences."""
    return "\n\n".join(map(_invariant, invariants))


def _invariant(invariant: Callable[..., object]) -> str:
    explanation = EXPLANATIONS[invariant.__name__]
    references = ", ".join(map(_reference, explanation.kafka))
    kafka = f" Kafka: {references}." if references else ""
    return f"- `{invariant.__name__}`\n\n  {_sentence(invariant)} *Look at:* {explanation.look_at}.{kafka}"


def _events(events: Iterable[Callable[..., object]]) -> str:
    return "\n".join(f"- `{event.__name__}`: {_sentence(event)}" for event in events)


def _sentence(thing: Callable[..., object]) -> str:
    """Return the first paragraph of a docstring on one line, with code as Markdown has it."""
    text, _, _ = (thing.__doc__ or "").strip().partition("\n\n")
    return " ".join(text.replace("``", "`").split())


def _reference(name: str) -> str:
    if re.fullmatch(r"KAFKA-\d+", name):
        return f"[{name}](https://issues.apache.org/jira/browse/{name})"
    is_present = f"({anchor(name)})=" in kafka_bugs()
    return f"[{name}](kafka-bugs.md#{anchor(name)})" if is_present else name


def _left_open() -> Iterator[list[str]]:
    return ([row.what, row.why, _doors(row.doors)] for row in LEFT_OPEN)


def _known_bugs() -> Iterator[list[str]]:
    return ([_reference(row.bug), f"`{row.breaks}`", row.only, _doors(row.doors)] for row in KNOWN_BUGS)


def _doors(doors: Iterable[Door]) -> str:
    return ", ".join(doors)
