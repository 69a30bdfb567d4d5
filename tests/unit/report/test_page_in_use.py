"""Reports in use: pointed at, clicked, searched and worked by keyboard in a browser, in windows of all kinds."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sharestate import AcknowledgementBatch, AcquiredRecords
from sharestate.explain import Survey
from sharestate.history import AppendedBatch, Event, Header, create_history
from sharestate.report import report_history
from tests.support.browser import Browser, Page
from tests.support.recorded_histories import KEY, LACKS
from tests.support.report_pages import WIDE, drawn, lightness, settle

NOON_S = 1_800_000_000
NARROW = 400
"""The width of a telephone. [CSS pixels]"""


def lived() -> list[Event]:
    """Return a history: m1 acquires 0-9 after 10 s, and accepts 0-4 after 20 s; m2 acquires 10-19 and rejects them."""
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}
    said: list[tuple[int, str, str | None, dict[str, Any], dict[str, Any] | None]] = [
        (0, "initialize", None, {"leader_epoch": 1}, read),
        (0, "log", None, {"batches": (AppendedBatch(0, 9),)}, None),
        (10, "fetch", "m1", {"fetch_offset": 0}, {"acquired": (AcquiredRecords(0, 9, 1),)}),
        (10, "log", None, {"batches": (AppendedBatch(10, 19),)}, None),
        (20, "acknowledge", "m1", {"batches": (AcknowledgementBatch(0, 4, (1,)),)}, {}),
        (25, "fetch", "m2", {"fetch_offset": 10}, {"acquired": (AcquiredRecords(10, 19, 1),)}),
        (30, "acknowledge", "m2", {"batches": (AcknowledgementBatch(10, 19, (3,)),)}, {}),
    ]
    return [
        Event.of(KEY, seq, kind, at_us=(NOON_S + at_s) * 10**6, member_id=member, request=request, response=response)
        for seq, (at_s, kind, member, request, response) in enumerate(said)
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two share partitions that have lived the same."""
    folder = tmp_path_factory.mktemp("report")
    other = [event._replace(partition=1) for event in lived()]
    with create_history(folder / "history.jsonl", Header(lacks=LACKS | {"write"})) as file:
        file.write([*lived(), *other])
    page = folder / "report.html"
    page.write_text(report_history(Survey(folder / "history.jsonl")), encoding="utf-8")
    return page


@pytest.fixture
def page(browser: Browser, report: Path) -> Page:
    """The report in a wide window, with the whole time shown."""
    return drawn(browser, report, "from=all")


def cells(page: Page, table: str) -> list[str]:
    """Return the texts of the cells of a table."""
    found: list[str] = page.run(
        f"[...document.querySelectorAll({json.dumps(table + ' td')})].map((cell) => cell.textContent)"
    )
    return found


def place(page: Page, at_s: float, offset: float) -> tuple[float, float]:
    """Return where the picture of records has a time and an offset."""
    box = page.box("#chart-records canvas")
    across, down, left, top = page.run(
        f"[views.records.scale('x')({(NOON_S + at_s) * 1000}), views.records.scale('y')({offset}),"
        " ...originOf(views.records)]"
    )
    return box.left + left + across, box.top + top + down


def test_pointing_at_a_record_tells_its_life(page: Page) -> None:
    """The record under the pointer is the one whose life is told, up to the end; beside the blocks nothing is."""
    page.point(*place(page, 15, 3.5))
    told = page.run("document.getElementById('tip').textContent").splitlines()
    page.point(*place(page, 5, 15))

    assert told[0] == "Record 3"
    assert [line.partition("Z ")[2].split(":")[0] for line in told[1:]] == ["acquired", "accepted", "confirmed"]
    assert page.run("document.getElementById('tip')") is None


def test_selecting_a_record_keeps_its_life(page: Page) -> None:
    """A click on a block does what a search for the offset does."""
    page.click(*place(page, 27, 12.5))
    settle(page)

    assert page.text("#life h3") == "Record 12"
    assert cells(page, "#life")[2::6] == ["acquired", "rejected", "confirmed"]
    assert page.run("document.getElementById('offset').value") == "12"


def test_all_of_it_works_by_keyboard(page: Page) -> None:
    """The tab key leads to each control in turn, which shows that it has the focus; enter and space work it."""
    page.run("document.querySelector('[data-move]').focus()")
    before = page.text("#shown")
    seen = []
    for _ in range(5):
        focused = "document.activeElement"
        seen.append(page.run(f"[{focused}.textContent, getComputedStyle({focused}).outlineWidth]"))
        page.press("Tab")
    page.press("3", "Enter")
    settle(page)
    found = page.text("#life h3")
    page.press("Tab", "Tab", " ")
    settle(page)
    is_relative = page.run("document.getElementById('relative').checked")
    page.press("Tab", "Enter")
    settle(page)

    assert [name for name, _ in seen] == ["Earlier", "Later", "Zoom in", "Zoom out", "All"]
    assert {width for _, width in seen} == {"3px"}
    assert (found, is_relative) == ("Record 3", True)
    assert page.run("document.activeElement.tagName + document.activeElement.parentElement.open") == "SUMMARYtrue"
    assert page.text("#changes").count("acquired") == 3
    assert page.text("#shown") == before


def test_the_shown_time_is_chosen_by_buttons_and_by_dragging(page: Page) -> None:
    """Zooming halves it around its middle; dragging over the picture of the whole time chooses any."""
    whole = page.run("shown")
    page.run("document.querySelector('[data-move=in]').focus()")
    page.press("Enter")
    settle(page)
    half = page.run("shown")
    box = page.box("#chart-whole canvas")
    page.drag(box.at(0.5, 0.3), box.at(0.75, 0.3))
    page.run("new Promise((done) => setTimeout(done, 300))")
    settle(page)
    dragged = page.run("shown")

    assert whole == [NOON_S * 1000, (NOON_S + 30) * 1000]
    assert half == [(NOON_S + 7.5) * 1000, (NOON_S + 22.5) * 1000]
    assert 0.2 < (dragged[1] - dragged[0]) / 30_000 < 0.3
    assert page.text("#shown").startswith("Shown: 2027-01-15T08:00:")


SHOWN = "[...document.querySelectorAll('.partition')].findIndex((section) => !section.hidden)"
"""The number of the share partition that is shown."""


def address(page: Page) -> dict[str, str]:
    """Return what the address of a page names."""
    named: dict[str, str] = page.run("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    return named


def follow(page: Page, link: str) -> None:
    """Click on a link with a text, and wait until the page shows where it leads."""
    page.run(f"[...document.querySelectorAll('a')].find((each) => each.textContent === {json.dumps(link)}).click()")
    page.run("new Promise((done) => setTimeout(done))")
    settle(page)


def test_another_share_partition_is_chosen_in_the_table_or_the_list(page: Page) -> None:
    """A link of the table and the list of names show the same, and the address names it."""
    follow(page, f"partition 1 of topic {KEY[1]}, group g")
    by_link, named = page.run(SHOWN), address(page)
    page.run("document.getElementById('partition').focus()")
    page.press("ArrowUp")
    page.run("new Promise((done) => setTimeout(done))")
    settle(page)

    assert (by_link, page.run(SHOWN)) == (1, 0)
    assert named == {"group": "g", "topic": KEY[1], "partition": "1"}
    assert address(page) == named | {"partition": "0"}


def test_offsets_lead_to_the_lives_of_records(page: Page) -> None:
    """Those of the lists are links: 10-19 were rejected."""
    follow(page, "10-19")

    assert page.text("#life h3") == "Record 10"
    assert address(page) == {"group": "g", "topic": KEY[1], "partition": "0", "offset": "10"}


def test_the_address_names_what_is_shown(page: Page) -> None:
    """A click on a block, a search, and a chosen time are in it, so that it leads there again."""
    page.click(*place(page, 27, 12.5))
    settle(page)
    clicked = address(page)
    page.run("document.getElementById('offset').value = '3'")
    page.run("document.getElementById('controls').requestSubmit()")
    page.run("document.querySelector('[data-move=in]').click()")
    settle(page)
    whole = {"group": "g", "topic": KEY[1], "partition": "0", "from": "all"}
    times = {
        "from": str((NOON_S + 7.5) * 1000).removesuffix(".0"),
        "to": str((NOON_S + 22.5) * 1000).removesuffix(".0"),
    }

    assert clicked == whole | {"offset": "12"}
    assert address(page) == whole | {"offset": "3"} | times


def test_an_address_names_group_topic_and_partition(browser: Browser, report: Path) -> None:
    """What it names is shown; if the page does not have that, it says so."""
    named = drawn(browser, report, f"group=g&topic={KEY[1]}&partition=1&offset=42")
    assert (named.run(SHOWN), named.text("#life h3")) == (1, "Record 42")
    assert named.run("document.getElementById('elsewhere').hidden")

    unknown = drawn(browser, report, "group=g&topic=other&partition=1")
    assert "is not on this page" in unknown.text("#elsewhere")


def test_labels_are_where_there_is_room(page: Page) -> None:
    """What ends as soon as it has begun has none, and so labels do not lie upon each other."""
    shown = page.run("views.records.data('labels').map((row) => [row.middle, row.label.trim()])")

    assert sorted(shown) == [[2.5, "Acknowledged ×1"], [2.5, "Acquired ×1"], [7.5, "Acquired ×1"], [15, "Acquired ×1"]]


def test_points_at_the_same_time_are_not_added_up(page: Page) -> None:
    """The lag is 10 at first, 20 from the second batch on, and 5 when 0-4 are accepted and 10-19 are rejected."""
    tops = page.run("views.lag.scale('y').domain()[1]")

    assert tops == 20
    assert page.run("Math.max(...views.lag.data('lag').map((row) => row.lag))") == 20


@pytest.mark.parametrize("width", [NARROW, 500, WIDE])
@pytest.mark.parametrize("is_dark", [False, True])
def test_it_fits_into_windows_light_and_dark(browser: Browser, report: Path, width: int, *, is_dark: bool) -> None:
    """Nothing is wider than the window, no table is cut, and text stands out by a factor of 4.5 (WCAG)."""
    page = drawn(browser, report, "offset=3&from=all", width=width, is_dark=is_dark)
    fits = page.run("document.documentElement.scrollWidth <= innerWidth")
    legends = page.run(
        "Object.values(views).every((view) => view.container().querySelector('canvas').getBoundingClientRect().right"
        " <= innerWidth)"
    )
    colors = page.run(
        "['--ink', '--soft', '--bad', '--paper'].map((name) =>"
        " getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    )

    cut = page.run(
        "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth).length"
    )

    assert (fits, legends, cut) == (True, True, 0)
    assert (lightness(colors[-1]) > 0.5) is not is_dark
    for color in colors[:-1]:
        dark, light = sorted([lightness(color), lightness(colors[-1])])
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


def reported(folder: Path, events: list[Event]) -> Path:
    """Return the report of a history whose writes are not logged."""
    with create_history(folder / "history.jsonl", Header(lacks=frozenset({"write"}))) as file:
        file.write(events)
    page = folder / "report.html"
    page.write_text(report_history(Survey(folder / "history.jsonl")), encoding="utf-8")
    return page


def test_what_is_not_known_is_hatched(browser: Browser, tmp_path: Path) -> None:
    """From a verdict on, nothing is drawn of records, members and lag but the reason."""
    verdict = {"verdict": "search_bound_reached", "reason": "1,000 orders were tried", "lost": "until_read"}
    lost = Event.of(KEY, 7, "verdict", at_us=(NOON_S + 40) * 10**6, request=verdict)
    later = Event.of(KEY, 8, "config", at_us=(NOON_S + 50) * 10**6, request={})
    page = drawn(browser, reported(tmp_path, [*lived(), lost, later]), "from=all&offset=7")
    scale = "views.records.scale('x')"
    ends = f"[{scale}({(NOON_S + 40) * 1000}), {scale}({(NOON_S + 50) * 1000})]"
    left, right = page.run(ends)
    box = page.box("#chart-records canvas")
    hatched = page.box("#chart-records .unknown")

    assert hatched.left - box.left - page.run("originOf(views.records)[0]") == pytest.approx(left, abs=1)
    assert hatched.width == pytest.approx(right - left, abs=1)
    assert page.text("#unknown") == (
        "Not known from 2027-01-15T08:00:40.000Z to 2027-01-15T08:00:50.000Z: "
        "search bound reached: 1,000 orders were tried."
    )
    assert page.run("views.records.data('ranges').every((row) => row.end <= 1800000040000)")
    known = "views.lag.data('lag').filter((row) => row.lag !== null).map((row) => row.at)"
    assert page.run(f"Math.max(...{known})") == (NOON_S + 40) * 1000
    assert page.run("document.querySelectorAll('#chart-members .unknown, #chart-lag .unknown').length") == 2
    assert cells(page, "#life")[2::6] == ["acquired", "not known from here on"]


def test_without_anything_in_flight_offsets_are_shown_from_the_spso_on(browser: Browser, tmp_path: Path) -> None:
    """Of a healthy group the records would be a line in the picture otherwise; the address may say so or not."""
    accepted = {"batches": (AcknowledgementBatch(5, 9, (1,)),)}
    done = Event.of(KEY, 7, "acknowledge", at_us=(NOON_S + 31) * 10**6, member_id="m1", request=accepted, response={})
    report = reported(tmp_path, [*lived(), done])
    checked = "document.getElementById('relative').checked"

    assert drawn(browser, report).run(checked)
    assert not drawn(browser, report, "relative=0").run(checked)


@pytest.mark.parametrize("is_dark", [False, True])
def test_states_can_be_told_apart_without_color(browser: Browser, report: Path, *, is_dark: bool) -> None:
    """Each state, from the lightest on, is clearly darker than the one before."""
    page = browser.open(report, width=WIDE, is_dark=is_dark)
    states = page.run("getComputedStyle(document.documentElement).getPropertyValue('--states').trim().split(' ')")
    shades = [lightness(color) for color in states]

    assert shades == sorted(shades, reverse=True)
    assert all((light + 0.05) / (dark + 0.05) > 1.25 for light, dark in pairwise(shades))
