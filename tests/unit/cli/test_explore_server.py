"""The pages of an exploration's states: what they say, and what they say of addresses that are none."""

from __future__ import annotations

import re
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final

import pytest

from sharestate import KAFKA_4_4
from sharestate.cli.explore_server import MOST_EVENTS, _Handler, response
from sharestate.partition import commit, share_partition, snapshots
from sharestate.testing.explore import Bounds, Exploration, explore
from tests.support.explorations import BUGS, configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from sharestate.partition.state import PartitionState
    from sharestate.values.snapshot import Snapshot

STALLS: Final = explore(BUGS["B15"].configuration, BUGS["B15"].profile)
SMALL: Final = configuration((0, 0), (1, 1), failures=1, delivery_count_limit=1, max_record_locks=1)


def page(exploration: Exploration, address: str) -> str:
    """Return the page at an address, which is there."""
    status, text = response(exploration, address)
    assert status is HTTPStatus.OK
    return text


def followed(exploration: Exploration, *events: str) -> str:
    """Return the page to which the links with these texts lead, from the beginning."""
    text = page(exploration, "/")
    for event in events:
        links = dict(re.findall(r'<a href="(/[0-9.]+)">([^<]*)</a>', section(text, "next")))
        text = page(exploration, next(address for address, name in links.items() if name == event))
    return text


def section(text: str, name: str) -> str:
    """Return a section of a page."""
    return text.split(f'<section id="{name}"')[1].split("</section>", maxsplit=1)[0]


def cells(text: str) -> list[list[str]]:
    """Return the rows of the tables in a part of a page."""
    rows = re.findall("<tr>(.*?)</tr>", text)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?</td>", row)] for row in rows]


def test_says_where_the_counterexample_is() -> None:
    """Every page leads to the counterexample, whose page says what does not hold and the way there."""
    assert STALLS.counterexample is not None
    address = re.findall(
        'standing stalled">The exploration has found what does not hold: <a href="(.*?)"', page(STALLS, "/")
    )[0]
    found = page(STALLS, address)
    assert STALLS.counterexample.text in section(found, "broken")
    way = [row[0] for row in cells(section(found, "way")) if row]
    assert way == ["beginning", *(str(step.event) for step in STALLS.counterexample.steps[1:])]


def test_says_what_has_changed_and_why() -> None:
    """A page says what the last event has changed, by which rule, and what was said to the leader."""
    changed = section(followed(STALLS, "fetch m1 1 500", "acknowledge m1 0 0 1"), "changed")
    rows = cells(changed)
    assert ["writes under way", "none", "0 (SPSO 0; 0 ACKNOWLEDGED x1)"] in rows
    assert ["records 0", "ACQUIRED x1, m1, lock 0", "ACKNOWLEDGED x1, lock 0, write 0"] in rows
    assert ["0", "accepted", "rule 8", "ACKNOWLEDGED", "1", ""] in rows
    assert "&quot;op&quot;:&quot;acknowledge&quot;" in changed


def test_says_what_there_is() -> None:
    """A page says what the state has: who holds what, until when, and what is stored."""
    exploration = explore(configuration((0, 1), failovers=1), KAFKA_4_4.healed, bounds=Bounds(states=1))
    rows = cells(section(followed(exploration, "fetch m1 1 500"), "state"))
    assert ["0-1", "ACQUIRED", "1", "m1", "0", ""] in rows
    assert ["0", "0-1", "in 3,600,000 ms"] in rows
    assert ["m1", "0-1"] in rows
    assert ["stored", "SPSO 0; no records"] in rows
    assert ["may still go wrong", "failovers 1"] in rows
    assert "has found nothing that does not hold, but has not looked at all." in page(exploration, "/")
    assert "the exploration has not met it" in followed(exploration, "fetch m1 1 500", "deadline")


def test_everything_can_be_walked_to() -> None:
    """Each link of each page in reach leads to a page, and loads nothing from elsewhere."""
    seen, to_do = {"/"}, ["/"]
    while to_do and len(seen) < 40:
        text = page(STALLS, to_do.pop(0))
        assert "src=" not in text
        links = set(re.findall('href="(.*?)"', text))
        assert all(link.startswith("/") for link in links)
        to_do += sorted(links - seen)
        seen |= links
    assert len(seen) >= 40


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/999", HTTPStatus.NOT_FOUND),
        ("/0.0.999", HTTPStatus.NOT_FOUND),
        ("/x", HTTPStatus.BAD_REQUEST),
        ("/0.", HTTPStatus.BAD_REQUEST),
        ("/0?<script>", HTTPStatus.BAD_REQUEST),
        ("/²", HTTPStatus.BAD_REQUEST),
        ("/0\n", HTTPStatus.BAD_REQUEST),
        ("http://127.0.0.1/0", HTTPStatus.BAD_REQUEST),
        (f"/{'.'.join(['0'] * (MOST_EVENTS + 1))}", HTTPStatus.BAD_REQUEST),
        ("/123456", HTTPStatus.BAD_REQUEST),
        ("", HTTPStatus.BAD_REQUEST),
    ],
)
def test_other_addresses(address: str, status: HTTPStatus) -> None:
    """An address that is none, or of no state, gets a page that says so, and leads back; nothing of it is HTML."""
    got, text = response(STALLS, address)
    assert got is status
    assert 'href="/"' in text
    assert "<script" not in text


def test_longest_address() -> None:
    """An address may have as many events as are allowed."""
    exploration = explore(SMALL, KAFKA_4_4.healed, bounds=Bounds(states=1))
    status, text = response(exploration, f"/{'.'.join(['0'] * MOST_EVENTS)}")
    assert status is HTTPStatus.NOT_FOUND
    assert "nothing happens that has the number 0" in text


def test_leads_back_to_the_last_state_that_there_is() -> None:
    """The page of a state that is not there leads to that before the event that is not possible."""
    assert 'href="/0"' in response(STALLS, "/0.999.0")[1]


def test_shows_what_was_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that raises something has a page, which says what, and from which nothing leads on."""

    def planted(*_arguments: object) -> None:
        message = "<b>no</b>"
        raise ValueError(message)

    monkeypatch.setattr(commit, "write_failed", planted)
    exploration = explore(SMALL, KAFKA_4_4.healed)
    assert exploration.counterexample is not None
    before = followed(exploration, "fetch m1 1 500", "acknowledge m1 0 0 1")
    assert "nothing is raised" in section(before, "next")
    address = "/" + ".".join(map(str, exploration.counterexample.positions))
    text = page(exploration, address)
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in section(text, "broken")
    assert "<b>" not in text
    assert "no state, as it was not reached" in text
    assert response(exploration, f"{address}.0")[0] is HTTPStatus.NOT_FOUND


def test_state_that_the_leader_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a state that the leader does not take back says so, and beyond it there are no states."""
    take_snapshot = snapshots.take_snapshot

    def planted(state: PartitionState) -> Snapshot:
        snapshot = take_snapshot(state)
        if snapshot.batches:
            object.__setattr__(snapshot, "lifecycle", "GONE")
        return snapshot

    monkeypatch.setattr(share_partition, "take_snapshot", planted)
    exploration = explore(SMALL, KAFKA_4_4.healed)
    assert "SnapshotError" in section(page(exploration, "/0"), "broken")
    assert response(exploration, "/0.0")[0] is HTTPStatus.NOT_FOUND


class _Connection:
    """A connection whose other end has sent something."""

    def __init__(self, sent: bytes) -> None:
        self.sent, self.got = BytesIO(sent), b""
        self.settimeout: Callable[[float], None] = lambda _: None

    def makefile(self, *_arguments: object) -> BytesIO:
        """Return what was sent."""
        return self.sent

    def sendall(self, data: bytes) -> None:
        """Note an answer."""
        self.got += data


@pytest.mark.parametrize(
    ("line", "status"),
    [(b"GET / HTTP/1.1", b"200"), (b"GET /x HTTP/1.1", b"400"), (b"POST / HTTP/1.1", b"501"), (b"\0\xff", b"400")],
)
def test_answers_requests(line: bytes, status: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """A request is answered with a status, and says nothing in the terminal."""
    connection = _Connection(line + b"\r\n\r\n")
    _Handler(STALLS, connection, ("127.0.0.1", 1), None)
    assert capfd.readouterr() == ("", "")
    assert status in connection.got
