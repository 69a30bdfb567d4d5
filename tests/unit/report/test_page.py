"""Reports: one page, which a browser draws without network, and which runs nothing that a history says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.history import Event, Header, create_history
from tests.support.browser import Browser, Page
from tests.support.recorded_histories import KEY, LACKS, history_of
from tests.support.report_pages import Text, drawn

STALL = Path(__file__).parents[2] / "data/vectors/found/found-stall-in-a-full-window.jsonl"
EVIL = "<script>document.title='ran'</script>"
QUOTED = "\"'><img src=x onerror=\"document.title='ran'\">"


def report(*arguments: str | Path) -> Result:
    """Run the command with *arguments*."""
    return CliRunner().invoke(sharestate, ["history", "report", *map(str, arguments)])


def html(page: Page) -> str:
    """Return a page as it is now."""
    text: str = page.run("document.documentElement.outerHTML")
    return text


@pytest.fixture(scope="module")
def stalled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a share partition that stalls as F1, and of a group and a member with names that are HTML."""
    folder = tmp_path_factory.mktemp("report")
    events = history_of(STALL)
    evil = [
        event._replace(group_id=EVIL, member_id=event.member_id and QUOTED, partition=1, at_us=None)
        for event in history_of(STALL)[:3]
    ]
    with create_history(folder / "history.jsonl", Header(lacks=LACKS)) as file:
        file.write([*evil, *events])
    result = report(folder / "history.jsonl", "-o", folder / "report.html")

    assert (result.exit_code, result.output.startswith(f"{folder / 'report.html'}: 2 share partitions")) == (0, True)
    return folder / "report.html"


def test_what_matters_comes_first(stalled: Path) -> None:
    """Without a script the page says what holds each SPSO; what is stalled comes before the rest, by the bug's name."""
    page = stalled.read_text(encoding="utf-8")
    words = page[: page.index('<script type="application/json"')]

    assert words.index("stalled") < words.index(">What happened to its records<") < words.index(">At the SPSO<")
    assert '<td class="number" data-head="records">5</td><td data-head="what happened to them">accepted</td>' in words
    assert "(F1)" in words
    assert words.index("group g<") < words.index("group &lt;script&gt;")


def test_names_are_escaped_and_nothing_is_loaded(stalled: Path) -> None:
    """The page has its own two scripts and its data, refuses everything else, and names no address."""
    page = stalled.read_text(encoding="utf-8")
    scripts = re.findall(r"<script[^>]*>.*?</script>", page, re.DOTALL)
    rest = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)

    assert (EVIL in page, QUOTED in page, len(scripts)) == (False, False, 3)
    assert "default-src 'none'" in rest
    assert re.findall(r"""<[^>]+ (?:src=|href="(?!#))|url\(|https?://""", rest) == []


def test_equal_histories_give_equal_pages(stalled: Path) -> None:
    """A page has no time of its making."""
    again = stalled.with_name("again.html")

    assert report(stalled.with_name("history.jsonl"), "-o", again).exit_code == 0
    assert again.read_bytes() == stalled.read_bytes()


def test_a_browser_draws_it(browser: Browser, stalled: Path) -> None:
    """The pictures are drawn, and the life of the record in the address is told as Kafka's class has answered."""
    page = html(drawn(browser, stalled, "offset=3"))
    cells = Text(page).cells

    assert 'data-drawn="' in page
    assert page.count("<canvas") == 5
    assert '<section id="lag" hidden' in page  # the history does not say where the log ends
    assert cells["life"][2::6] == ["acquired", "accepted", "confirmed", "passed"]
    assert cells["life"][5::6] == ["m1", "m1", "", ""]
    assert "<code>sharestate history explain history.jsonl --offset 3 --group g --topic AAAAAAAAAAEAAAAAAAAAAQ" in page
    assert cells["life"][3::6] == ["Acquired", "Acknowledged", "Acknowledged", "no longer in flight"]
    assert cells["members"][:3] == ["m1", "5", "5"]
    assert cells["deliveries"] == ["1", "5"]


def test_a_browser_runs_nothing_of_a_name(browser: Browser, stalled: Path) -> None:
    """A group and a member whose names are scripts are shown as these names; without times, in the dark."""
    page = html(drawn(browser, stalled, "partition=1&offset=2&from=all&relative=1", is_dark=True))

    assert "<title>ran</title>" not in page
    assert 'data-drawn="' in page
    assert Text(page).cells["members"][0] == QUOTED
    assert Text(page).cells["life"][2::6] == ["acquired"]
    assert "Shown: event 0 to event 2, 2 events" in page
    assert 'role="alert" hidden' in page


def test_a_page_has_only_so_many_share_partitions(tmp_path: Path) -> None:
    """With more, the command says how to choose, and writes nothing."""
    path, target = tmp_path / "history.jsonl", tmp_path / "report.html"
    with create_history(path, Header(lacks=LACKS)) as file:
        file.write(Event.of(("g", KEY[1], number), 0, "config", request={}) for number in range(201))

    result = report(path, "-o", target)

    assert (result.exit_code, target.exists()) == (2, False)
    assert "choose some with --group, --topic and --partition" in result.output
