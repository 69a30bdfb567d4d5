"""The page of a report: what matters first in words and tables, then the pictures; one file, which loads nothing."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from shlex import quote
from string import Template
from typing import Final, NamedTuple

import vl_convert

from sharestate.explain import HeldRecords, NearLimit, Overview, Survey
from sharestate.explain.sentences import duration, instant
from sharestate.json_lines import printable
from sharestate.report.charts import HELD, OUTCOME_NAMES, OUTCOMES, STATES, charts
from sharestate.report.timeline import KEPT, PartitionTimeline, ReportedPartition
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import RecordState

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src 'unsafe-eval'"
"""Nothing is loaded, and no script runs but those whose hashes follow; Vega makes functions of expressions."""

_LISTED: Final = 10
"""The most rows of a table of what stands at the end."""

_LEAST_KEPT: Final = 1000
"""The least number of spans that are kept of a share partition. [spans]"""

_LONG: Final = 60
"""The length from which on the text of a cell goes on in a new line. [characters]"""

_FILES: Final = files("sharestate.report") / "page"


def report_page(partitions: Iterable[ReportedPartition], *, title: str) -> str:
    """
    Return a report of *partitions* as one page of HTML, which needs neither network nor other files.

    Those that are stalled come first. Equal arguments give equal pages, with equal releases of what the page contains.

    Args:
        partitions: The share partitions; at least one.
        title: What they are of, such as the name of a file.
    """
    shown = sorted(partitions, key=lambda each: not each.overview.is_stalled)
    library, script = _library(), _read("page.js")
    events = sum(each.overview.events for each in shown)
    return Template(_read("page.html")).substitute(
        policy=f"{_POLICY} {_hashes(library, script)}",
        title=_text(f"Share partitions of {title}"),
        subtitle=_text(f"{len(shown):,} share {'partition' if len(shown) == 1 else 'partitions'}, {events:,} events"),
        style=_read("page.css"),
        index=_index(shown) if len(shown) > 1 else "",
        sections="\n".join(_section(place, each) for place, each in enumerate(shown)),
        options="".join(f'<option value="{place}">{_text(each.name)}</option>' for place, each in enumerate(shown)),
        data=_data(shown),
        library=library,
        script=script,
    )


def report_history(
    survey: Survey, keys: Sequence[tuple[str, str, int]] | None = None, *, profile: Profile = LATEST
) -> str:
    """
    Return a report of a history in a file as one page of HTML.

    Of share partitions with very much history, the last part is shown: the page keeps ``KEPT`` spans in all.

    Args:
        survey: The history.
        keys: The share partitions; all if None.
        profile: The rules to follow where the history names none.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryOrderError: An event is missing.

    >>> from pathlib import Path
    >>> page = report_history(Survey(Path("history.jsonl")))  # doctest: +SKIP
    """
    chosen = survey.keys if keys is None else keys
    kept = max(KEPT // max(len(chosen), 1), _LEAST_KEPT)
    lives = survey.lives(chosen, partial(PartitionTimeline, profile=profile, kept=kept))
    shown = [life.reported()._replace(topic=survey.header.topic(key[1])) for key, life in lives.items()]
    return report_page(shown, title=survey.source.name)


def _read(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as a script that does not end its element."""
    bundle: str = vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r", "\\r").replace("</script", "<\\/script")


def _hashes(*scripts: str) -> str:
    """Return what allows *scripts*, and no other one, to run."""
    return " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)


def _text(text: str) -> str:
    """Return *text*, which may come from anywhere, for HTML."""
    return escape(printable(text))


# ---- what the script is given


def _data(shown: Sequence[ReportedPartition]) -> str:
    """Return what the script draws; numbers in the thousands are compressed, and nothing in it can end the element."""
    document = {
        "partitions": [
            {
                "name": each.name,
                "arguments": "--group {} --topic {} --partition {}".format(*map(_argument, each.overview.key)),
                **each.timeline,
            }
            for each in shown
        ],
        "causes": [cause.value for cause in Cause],
        "outcomes": [OUTCOMES.get(cause, HELD) for cause in Cause],
        "outcome_names": OUTCOME_NAMES,
        "states": dict(zip(map(int, RecordState), STATES, strict=True)),
        "charts": {"timed": charts(is_timed=True), "untimed": charts(is_timed=False)},
    }
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    return json.dumps(b64encode(packed).decode())


def _argument(part: object) -> str:
    """Return *part* as a word of a shell."""
    return quote(printable(str(part)))


# ---- how share partitions stand


def _index(shown: Sequence[ReportedPartition]) -> str:
    rows = [
        (
            _Link(place, each.name),
            each.overview.start_offset,
            each.overview.end_offset,
            each.overview.lag,
            "stalled" if each.overview.is_stalled else "",
            " ".join(finding.text for finding in each.overview.start_findings),
        )
        for place, each in enumerate(shown)
    ]
    heads = ("share partition", "SPSO", "SPEO", "lag", "", "at the SPSO")
    return f"<h2>All share partitions</h2>{_table(heads, rows)}"


class _Link(NamedTuple):
    """What leads to the pictures of a share partition."""

    place: int
    text: str


def _section(place: int, each: ReportedPartition) -> str:
    overview = each.overview
    badge, mark = ('<p class="badge">stalled</p>', " stalled") if overview.is_stalled else ("", "")
    findings = "".join(f"<li>{_text(finding.text)}</li>" for finding in overview.start_findings)
    beyond = "".join(f"<li>{_text(finding.text)}</li>" for finding in overview.new_findings)
    facts = "".join(f"<p>{_text(line)}</p>" for line in overview.facts())
    tables = "".join(
        f"<h3>{title}</h3>{_table(heads, rows[:_LISTED])}{_more(len(rows) - _LISTED)}"
        for title, heads, rows in _tables(overview)
        if rows
    )
    return (
        f'<section class="partition" id="partition-{place}"><h2>{_text(each.name[0].upper() + each.name[1:])}</h2>'
        f'<div class="standing{mark}">{badge}<h3>At the SPSO</h3><ul>{findings}</ul>'
        f"{f'<h3>Next new record, {overview.new_offset}</h3><ul>{beyond}</ul>' if beyond else ''}"
        f"{facts}</div>{tables}</section>"
    )


Tables = Iterator[tuple[str, tuple[str, ...], Sequence[Sequence[object]]]]


def _tables(overview: Overview) -> Tables:
    held = [
        (_range(each), each.member_id, _since(overview, each.since_us), each.delivery_count, _at(each.locked_until_us))
        for each in overview.held
    ]
    yield "Held longest", ("records", "member", "for", "delivery count", "locked until"), held
    near = [(_range(each), each.state.name.title(), each.delivery_count, each.limit) for each in overview.near_limit]
    yield "Near the delivery count limit", ("records", "state", "delivery count", "limit"), near
    yield "Lost to expired locks", ("member", "records"), overview.expiries


def _range(records: HeldRecords | NearLimit) -> str:
    first, last = records.first_offset, records.last_offset
    return str(first) if first == last else f"{first}-{last}"


def _since(overview: Overview, us: int | None) -> str:
    return "" if us is None or overview.at_us is None else duration(max(0, overview.at_us - us))


def _at(us: int | None) -> str:
    return "" if us is None else instant(us)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _more(count: int) -> str:
    return f"<p>and {count:,} more</p>" if count > 0 else ""


def _cell(value: object) -> str:
    if isinstance(value, _Link):
        return f'<td class="link"><a href="#partition={value.place}">{_text(value.text)}</a></td>'
    if isinstance(value, int):
        return f'<td class="number">{value}</td>'
    text = "" if value is None else _text(str(value))
    return f'<td class="text">{text}</td>' if len(text) > _LONG else f"<td>{text}</td>"
