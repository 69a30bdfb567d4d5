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
from tests.support.report_pages import WIDE, drawn, settle

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
        " ...views.records.origin()]"
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


def test_another_share_partition_is_chosen_in_the_table_or_the_list(page: Page) -> None:
    """A link of the table and the list of names show the same."""
    shown = "[...document.querySelectorAll('.partition')].findIndex((section) => !section.hidden)"
    page.run("document.querySelector('a[href=\"#partition=1\"]').click()")
    page.run("new Promise((done) => setTimeout(done))")
    settle(page)
    by_link = page.run(shown)
    page.run("document.getElementById('partition').focus()")
    page.press("ArrowUp")
    page.run("new Promise((done) => setTimeout(done))")
    settle(page)

    assert (by_link, page.run(shown)) == (1, 0)


def test_labels_are_where_there_is_room(page: Page) -> None:
    """What ends as soon as it has begun has none, and so labels do not lie upon each other."""
    shown = page.run("views.records.data('labels').map((row) => [row.middle, row.label.trim()])")

    assert sorted(shown) == [[2.5, "Acknowledged ×1"], [2.5, "Acquired ×1"], [7.5, "Acquired ×1"], [15, "Acquired ×1"]]


def test_points_at_the_same_time_are_not_added_up(page: Page) -> None:
    """The lag is 10 at first, 20 from the second batch on, and 5 when 0-4 are accepted and 10-19 are rejected."""
    tops = page.run("views.lag.scale('y').domain()[1]")

    assert tops == 20
    assert page.run("Math.max(...views.lag.data('lag').map((row) => row.lag))") == 20


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("is_dark", [False, True])
def test_it_fits_into_windows_light_and_dark(browser: Browser, report: Path, width: int, *, is_dark: bool) -> None:
    """Only tables are wider than the window, and text stands out from what is behind it by a factor of 4.5 (WCAG)."""
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

    assert (fits, legends) == (True, True)
    assert (lightness(colors[-1]) > 0.5) is not is_dark
    for color in colors[:-1]:
        dark, light = sorted([lightness(color), lightness(colors[-1])])
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


@pytest.mark.parametrize("is_dark", [False, True])
def test_states_can_be_told_apart_without_color(browser: Browser, report: Path, *, is_dark: bool) -> None:
    """Each state, from the lightest on, is clearly darker than the one before."""
    page = browser.open(report, width=WIDE, is_dark=is_dark)
    states = page.run("getComputedStyle(document.documentElement).getPropertyValue('--states').trim().split(' ')")
    shades = [lightness(color) for color in states]

    assert shades == sorted(shades, reverse=True)
    assert all((light + 0.05) / (dark + 0.05) > 1.25 for light, dark in pairwise(shades))


def lightness(color: str) -> float:
    """
    Return the relative luminance of a color such as ``#14171a``.

    Source:
        WCAG 2.2, "relative luminance".
    """
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
