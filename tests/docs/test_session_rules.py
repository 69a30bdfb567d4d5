"""The rules of share sessions: each has a heading and code, and the tables of the page are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import sharestate
from sharestate.broker.sessions import REQUEST_CHECKS, REQUESTS, TOPIC_CHECKS, SessionQuirk
from sharestate.broker.sessions.epoch_checks import REFUSALS
from tests.docs.test_state_machines import arrows, groups
from tests.support.protocol_pages import sections

PAGE: Final = Path(__file__).parents[2] / "docs" / "sessions.md"
SECTIONS: Final = sections("sessions.md")
CITATION: Final = re.compile(r"(?:\(|# )sessions (\d+)")


def rule(number: int) -> str:
    """Return the text of a rule."""
    return next(body for heading, body in SECTIONS.items() if heading.startswith(f"{number} "))


def table(text: str) -> list[list[str]]:
    """Return the rows of the tables in *text*."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_each_heading_has_the_anchor_of_its_number() -> None:
    """A link to sessions-4 leads to rule 4; numbers ascend."""
    anchors = re.findall(r"^\(sessions-(\d+)\)=\n### (\d+) ", PAGE.read_text(), re.MULTILINE)

    assert anchors == [(str(number), str(number)) for number in range(1, 11)]


def test_each_rule_has_code() -> None:
    """Every number that code cites is a heading, and every heading is cited."""
    files = (Path(sharestate.__file__).parent / "broker/sessions").glob("*.py")
    cited = {int(number) for file in files for number in CITATION.findall(file.read_text())}

    assert cited == set(range(1, 11))


def test_the_tables_are_those_of_the_code() -> None:
    """In the order of the checks."""
    whole = [row[2] for row in table(rule(2))]
    by_epoch = [re.findall(r"[A-Z]+_[A-Z_]+", row[2]) for row in table(rule(3))]
    topics = re.findall(r"[A-Z]+_[A-Z_]+", rule(5).strip().partition("\n\n")[0])

    assert whole == [error.error_code.name for error, _ in REQUEST_CHECKS]
    assert by_epoch == [[REFUSALS[check][0].code.name for check in row.checks] for row in REQUESTS.values()]
    assert topics == [code.name for code, _ in TOPIC_CHECKS]


def test_every_quirk_is_on_the_page() -> None:
    """With its name in the list of bugs, in order."""
    documented = [(row[0], row[1].strip("`")) for row in table(rule(10))]

    assert documented == [(quirk.value, quirk.name) for quirk in SessionQuirk]


def test_every_request_that_is_taken_is_drawn() -> None:
    """With the states between which it leads: a request of epoch 0 opens a session, whether there is one or not."""
    assert sorted(arrows("share-session.svg")) == sorted(
        [
            ("no session", "session", "ShareFetch, epoch 0"),
            ("session", "session", "ShareFetch, epoch 0"),
            ("session", "session", "ShareFetch, expected epoch"),
            ("session", "session", "ShareAcknowledge, expected epoch"),
            ("session", "no session", "ShareFetch, epoch -1"),
            ("session", "no session", "ShareAcknowledge, epoch -1"),
            ("session", "no session", "the connection ends"),
            ("session", "no session", "share groups are switched off"),
        ]
    )
    assert "begin: no session" in dict(groups("share-session.svg"))
