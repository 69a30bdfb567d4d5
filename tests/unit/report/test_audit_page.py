"""The page of an audit: its numbers are those of the JSON form, and it fits into windows and is worked by keyboard."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

from sharestate import report
from sharestate.audit import (
    Audit,
    AuditSettings,
    DuplicateCause,
    Duplicates,
    GuaranteeVerdict,
    LogPlace,
    SharePartitionName,
    audit,
)
from sharestate.cli.commands import sharestate
from sharestate.report import audit_page
from tests.support.audited_clients import RandomClients, log_of
from tests.support.browser import Browser, Page
from tests.support.hand_made_operations import ACCEPT, RELEASE, SETTINGS, Written
from tests.support.report_pages import Text, lightness

EVIL = "<script>document.title='ran'</script>"

WITHOUT_LOCKS = AuditSettings(
    record_lock_duration_ms=30_000, delivery_count_limit=5, isolation_level="read_committed"
)  # so that it cannot be told of record_locks


def written() -> Written:
    """
    Return what p, c1, c2 and c3 wrote down, p on another clock.

    c2 gets 2 while c1 owns it, and c1 gets 20, which nobody has produced. 6 comes again 9 ms after it was released,
    3-5 when their lock has expired, and 7, whose acknowledgement has no answer.
    """
    log = Written(p={"clock": "two"}).produce(0, 0, 9)
    log.fetch("c1", 10, (0, 6, 1)).fetch("c3", 10, (7, 7, 1))
    log.acknowledge("c1", 50, 6, 6, RELEASE).fetch("c2", 60, (6, 6, 2))
    log.acknowledge("c1", 100, 0, 1).fetch("c2", 110, (2, 2, 2))
    log.acknowledge("c3", 150, 7, 7, ACCEPT, None)
    log.fetch("c2", 31_000, (3, 5, 2)).fetch("c2", 32_500, (7, 7, None))
    return log.fetch("c1", 33_000, (20, 20, 1))


@pytest.fixture(scope="module")
def judged() -> Audit:
    """What is found out about it."""
    return written().audited(WITHOUT_LOCKS)


@pytest.fixture(scope="module")
def page(judged: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of that."""
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    path.write_text(audit_page(judged, title="c1.jsonl"), encoding="utf-8")
    return path


def rows(page: Path, section: str, columns: int) -> list[list[str]]:
    """Return the rows of the tables of a section."""
    cells = Text(page.read_text(encoding="utf-8")).cells.get(section, [])
    return [cells[place : place + columns] for place in range(0, len(cells), columns)]


def test_its_numbers_are_those_of_the_json_form(page: Path, judged: Audit) -> None:
    """Of verdicts, of what cannot be told, of ambiguous lives, and of what came again."""
    said: Any = judged.to_json()
    counted = ("guarantee", "verdict", "checked", "counted", "broken")
    verdicts = [
        [*(str(each[name]) for name in counted), str(sum(each["cannot_tell"].values()))] for each in said["verdicts"]
    ]
    unknown = [
        [each["guarantee"], str(count), each["counted"], reason]
        for each in said["verdicts"]
        for reason, count in each["cannot_tell"].items()
    ]
    again = said["duplicates"]
    causes = [
        [each["cause"], str(each["records"]), *(f"{ms / 1000:.3f} s" for ms in each["held_ms"].values())]
        for each in again["causes"]
    ]
    over_time = [[f"{begin_ms // 1000} s", cause, str(records)] for begin_ms, cause, records in again["over_time"]]

    assert [row[:6] for row in rows(page, "verdicts", 7)] == verdicts
    assert rows(page, "cannot-tell", 4) == unknown
    assert rows(page, "ambiguous", 2)[1] == ["ambiguous", str(said["ambiguous"])]
    assert rows(page, "again", 5)[: len(causes)] == causes
    assert rows(page, "again", 1)[5 * len(causes) :] == [[each] for row in over_time for each in row]


def test_it_says_what_was_found(page: Path) -> None:
    """The numbers are counted by hand, and each operation of a finding has its file and line."""
    html = page.read_text(encoding="utf-8")

    assert "Of 14 guarantees: 2 broken, 2 cannot be told, 6 held, 4 without anything to check." in html
    assert rows(page, "verdicts", 7)[0] == [
        *("one_owner", "broken", "9", "records delivered", "1", "0"),
        "A record is acquired by one member at a time.",
    ]
    assert "g, t-0, offset 2: c2 gets it, and c1 has had it for 0.10 s at the most; locks last 30 s" in html
    assert "<li>0.110 s: c2 gets it, delivery 2 (c2.jsonl:3)</li>" in html
    assert "Operations: c2.jsonl:3, c1.jsonl:2, p.jsonl:2" in html
    assert "max_record_locks is not known" in html
    assert rows(page, "ambiguous", 2) == [["clear", "8"], ["ambiguous", "1"]]
    assert rows(page, "again", 5)[0] == ["lock expired", "3", "30.991 s", "30.991 s", "30.991 s"]
    assert "clock one is behind clock two by at least -11.0 ms" in html


def test_what_is_held_has_no_findings() -> None:
    """There is no section of what is broken, nor of what came again, and one clock needs no bounds."""
    log = Written().produce(0, 0, 9).fetch("c1", 10, (0, 9, 1)).acknowledge("c1", 50, 0, 9)
    html = audit_page(log.audited(), title="c1.jsonl")

    assert 'id="broken"' not in html
    assert "No record was delivered again." in html
    assert "All clients have one clock." in html


def test_bugs_of_kafka_that_look_so_are_named() -> None:
    """A record that was accepted comes again after a failover: F3 and C2 do that."""
    log = Written().produce(0, 0, 9).fetch("c1", 10, (0, 9, 1)).acknowledge("c1", 50, 0, 9)
    html = audit_page(log.fault(60, 70).fetch("c2", 100, (0, 9, 2)).audited(), title="c1.jsonl")

    assert "Bugs of Kafka that look so: F3, C2 (docs/kafka-bugs.md)" in html


def test_much_is_counted_and_not_all_of_it_shown(judged: Audit) -> None:
    """Of 101 findings 100, of 23 places and of 30 causes 20, of 900 rows 500, and of 201 share partitions 200."""
    found = next(iter(judged.findings))
    found = evolve(found, places=tuple(LogPlace("c1.jsonl", line) for line in range(23)))
    names = [f"fault: {number}" for number in range(30)]
    causes = tuple(DuplicateCause(name, 30, dict.fromkeys(("least", "median", "most"), 1.0)) for name in names)
    over_time = tuple((part * 1000, name, 1) for part in range(30) for name in names)
    verdict = GuaranteeVerdict(found.guarantee, 500, 101, (found,) * 100, {})
    much = evolve(
        judged,
        verdicts=(verdict,),
        duplicates=Duplicates(causes=causes, width_ms=1000, over_time=over_time),
        share_partitions=tuple(SharePartitionName("g", "t", number) for number in range(201)),
        notes=("too much was done to the same records",),
    )
    html = audit_page(much, title="c1.jsonl")
    more = ["1 finding", "3 operations", "10 causes", "400 rows", "1 share partition"]

    assert html.count('<details class="finding"') == 100
    assert html.count("<svg") == 20
    assert [html.count(f"<p>and {each} more</p>") for each in more] == [1, 100, 1, 1, 1]
    assert "<h3>What limits the judgment</h3><ul><li>too much was done to the same records</li></ul>" in html


def test_nothing_that_a_file_says_becomes_html() -> None:
    """Names that are HTML are shown as they are, and no script may run."""
    log = Written().produce(0, 0, 9, client=EVIL).fetch("c1", 10, (0, 9, 1)).fetch(EVIL, 20, (0, 9, 2))
    html = audit_page(log.audited(), title=EVIL)

    assert "<script" not in html
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in html
    assert html.count("&lt;script&gt;") >= 3


def test_the_command_writes_it(tmp_path: Path) -> None:
    """Beside the JSON form, which says the same, and with the same exit code."""
    lines = [
        {"sharestate_operations": 1, "client": "c1"},
        {
            "op": "produce",
            "begin_ms": 0,
            "end_ms": 1,
            "topic": "t",
            "partition": 0,
            "first_offset": 0,
            "last_offset": 9,
        },
    ]
    (tmp_path / "c1.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "c2.jsonl").write_text(f"{json.dumps({'sharestate_operations': 1, 'client': 'c2'})}\n")
    one = ["audit", str(tmp_path / "c1.jsonl"), "--json", "--html", str(tmp_path / "one.html")]
    two = ["audit", str(tmp_path / "c1.jsonl"), str(tmp_path / "c2.jsonl"), "--html", str(tmp_path / "two.html")]
    result = CliRunner().invoke(sharestate, one)
    CliRunner().invoke(sharestate, two)
    titles = [(tmp_path / name).read_text(encoding="utf-8").split("</h1>")[0] for name in ("one.html", "two.html")]

    assert json.loads(result.output)["operations"] == 1
    assert (titles[0].endswith("<h1>Audit of c1.jsonl"), titles[1].endswith("<h1>Audit of 2 files")) == (True, True)


def test_it_needs_no_extra(monkeypatch: pytest.MonkeyPatch, judged: Audit) -> None:
    """Without Vega the page of an audit is made, and that of share partitions says what it needs."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.delitem(sys.modules, "sharestate.report.page", raising=False)
    monkeypatch.delattr(report, "page", raising=False)

    assert report.audit_page(judged, title="c1.jsonl").startswith("<!DOCTYPE html>")
    with pytest.raises(
        ModuleNotFoundError, match=r"report_page needs the extra 'plots': pip install 'sharestate\[plots]'"
    ):
        _ = report.report_page
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = report.other  # type: ignore[attr-defined]


# ---- in a browser


@pytest.fixture(scope="module")
def random_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of random clients with faults, in which much comes again."""
    lines = RandomClients(3, skew_ms=300).run()
    path = tmp_path_factory.mktemp("random") / "audit.html"
    path.write_text(audit_page(audit(log_of(lines, has_own_clocks=True), SETTINGS), title="random"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("name", ["page", "random_page"])
def test_it_fits_into_windows_light_and_dark(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int, *, is_dark: bool
) -> None:
    """Nothing is wider than the window, no table is cut, and bars stand out by a factor of 3 (WCAG)."""
    shown = browser.open(request.getfixturevalue(name), width=width, is_dark=is_dark)
    shown.run("for (const each of document.querySelectorAll('details')) each.open = true")
    cut = shown.run(
        "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth).length"
    )
    colors = shown.run(
        "['--bar', '--paper'].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    )
    dark, light = sorted(map(lightness, colors))

    assert shown.run("document.documentElement.scrollWidth <= innerWidth")
    assert cut == 0
    assert (lightness(colors[1]) > 0.5) is not is_dark
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_bars_are_as_high_as_what_came_again(browser: Browser, page: Path) -> None:
    """In second 31 three records come again, which is the most, and in seconds 0 and 32 one does."""
    shown = browser.open(page)
    heights = shown.run("[...document.querySelectorAll('rect')].map((each) => each.getBBox().height)")
    widths = shown.run(
        "[...document.querySelectorAll('rect')].map((each) => each.getBBox().width / each.ownerSVGElement.clientWidth)"
    )

    assert heights == pytest.approx([48, 16, 16])
    assert widths == pytest.approx([1 / 33] * 3, abs=1e-4)


def test_it_is_worked_by_keyboard(browser: Browser, page: Path) -> None:
    """Tab comes to the first guarantee that is broken, Enter leads to it, and a finding is folded by Enter."""
    shown: Page = browser.open(page)
    shown.press("Tab")
    focused = shown.run("document.activeElement.textContent")
    shown.press("Enter")
    led = shown.run("location.hash")
    shown.press("Tab")
    is_open = shown.run("document.activeElement.parentElement.open")
    shown.press("Enter")

    assert (focused, led) == ("one_owner", "#broken-one_owner")
    assert (is_open, shown.run("document.activeElement.parentElement.open")) == (True, False)
