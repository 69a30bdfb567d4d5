"""The page of a report: what matters first in words and tables, then the pictures; one file, which loads nothing."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from shlex import quote
from string import Template
from typing import Final
from urllib.parse import urlencode

import vl_convert

from sharestate.explain import ListedRecords, Overview, Survey
from sharestate.explain.outcomes import OUTCOMES, ends_in_words
from sharestate.explain.totals import LISTS
from sharestate.explain.words import counted, duration, instant
from sharestate.json_lines import printable
from sharestate.report.charts import ENDS, HELD, OUTCOME_NAMES, STATES, charts
from sharestate.report.elements import Link, list_of, read_part, table_of, text_of
from sharestate.report.timeline import KEPT, PartitionTimeline, ReportedPartition
from sharestate.values.effects import Cause
from sharestate.values.profiles import LATEST, Profile
from sharestate.values.records import RecordState

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src 'unsafe-eval'"
"""Nothing is loaded, and no script runs but those whose hashes follow; Vega makes functions of expressions."""

_LISTED: Final = 10
"""The most rows of a table of what stands at the end: what one looks through; the rest is counted."""

_LEAST_KEPT: Final = 1000
"""The least number of spans that are kept of a share partition, however many of them there are. [spans]"""


def report_page(partitions: Iterable[ReportedPartition], *, title: str, command: str = "history explain") -> str:
    """
    Return a report of *partitions* as one page of HTML, which needs neither network nor other files.

    Those that are stalled come first. Equal arguments give equal pages, with equal releases of what the page contains.

    Args:
        partitions: The share partitions; at least one.
        title: What they are of: the name of a file.
        command: The command of ``sharestate`` that explains records of that file.
    """
    shown = sorted(partitions, key=lambda each: not each.overview.is_stalled)
    library, script = _library(), read_part("page.js")
    events = sum(each.overview.events for each in shown)
    return Template(read_part("page.html")).substitute(
        policy=f"{_POLICY} {_hashes(library, script)}",
        title=text_of(f"Share partitions of {title}"),
        subtitle=text_of(f"{len(shown):,} share {'partition' if len(shown) == 1 else 'partitions'}, {events:,} events"),
        style=read_part("page.css"),
        index=_index(shown) if len(shown) > 1 else "",
        sections="\n".join(_section(place, each) for place, each in enumerate(shown)),
        options="".join(f'<option value="{place}">{text_of(each.name)}</option>' for place, each in enumerate(shown)),
        data=_data(shown, f"sharestate {command} {_argument(title)}"),
        library=library,
        script=script,
    )


def report_history(
    survey: Survey,
    keys: Sequence[tuple[str, str, int]] | None = None,
    *,
    profile: Profile = LATEST,
    command: str = "history explain",
) -> str:
    """
    Return a report of a history in a file as one page of HTML.

    Of share partitions with very much history, the last part is shown: the page keeps ``KEPT`` spans in all.

    Args:
        survey: The history.
        keys: The share partitions; all if None.
        profile: The rules to follow where the history names none.
        command: The command of ``sharestate`` that explains records of the history.

    Raises:
        UnreadableFileError: The file cannot be read.
        HistoryOrderError: An event is missing.

    >>> from pathlib import Path
    >>> page = report_history(Survey(Path("history.jsonl")))  # doctest: +SKIP
    """
    chosen = survey.keys if keys is None else keys
    kept = max(KEPT // max(len(chosen), 1), _LEAST_KEPT)
    lives = survey.lives(chosen, partial(PartitionTimeline, profile=profile, kept=kept))
    names = Counter((group_id, survey.header.topic(topic_id), number) for group_id, topic_id, number in lives)
    shown = []
    for key, life in lives.items():
        name = survey.header.topic(key[1])
        is_clear = names[key[0], name, key[2]] == 1  # a topic may have been deleted and made again
        shown.append(life.reported()._replace(topic=name if is_clear else key[1]))
    return report_page(shown, title=survey.source.name, command=command)


@cache  # it takes a second, and is the same for all pages
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as a script that does not end its element."""
    bundle: str = vl_convert.javascript_bundle("globalThis.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r", "\\r").replace("</script", "<\\/script")


def _hashes(*scripts: str) -> str:
    """Return what allows *scripts*, and no other one, to run."""
    return " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)


# ---- what the script is given


def _data(shown: Sequence[ReportedPartition], command: str) -> str:
    """Return what the script draws; numbers in the thousands are compressed, and nothing in it can end the element."""
    document = {
        "partitions": [
            {
                "name": each.name,
                "address": _address(each),
                "topic_id": each.overview.key[1],
                "arguments": " ".join(f"--{name} {_argument(part)}" for name, part in _address(each).items()),
                **each.timeline,
            }
            for each in shown
        ],
        "command": command,
        "causes": [cause.value for cause in Cause],
        "outcomes": [ENDS.get(cause, HELD) for cause in Cause],
        "outcome_names": OUTCOME_NAMES,
        "states": dict(zip(map(int, RecordState), STATES, strict=True)),
        "charts": {"timed": charts(is_timed=True), "untimed": charts(is_timed=False)},
    }
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    return json.dumps(b64encode(packed).decode())


def _address(each: ReportedPartition) -> dict[str, str]:
    """Return what names a share partition in the address of the page, and as the options of commands."""
    group_id, _, partition = each.overview.key
    return {"group": group_id, "topic": each.topic, "partition": str(partition)}


def _argument(part: object) -> str:
    """Return *part* as a word of a shell."""
    return quote(printable(str(part)))


# ---- how share partitions stand


def _index(shown: Sequence[ReportedPartition]) -> str:
    rows = [
        (
            Link(each.name, urlencode(_address(each))),
            each.overview.start_offset,
            each.overview.end_offset,
            each.overview.lag,
            each.overview.happened.redelivered.records,
            each.overview.happened.listed_in_all("archived"),
            "stalled" if each.overview.is_stalled else "",
            " ".join(finding.text for finding in each.overview.start_findings),
        )
        for each in shown
    ]
    heads = (
        "share partition",
        "SPSO",
        "SPEO",
        "lag",
        "delivered more than once",
        "given up or gone",
        "",
        "at the SPSO",
    )
    return f"<h2>All share partitions</h2>{table_of(heads, rows)}"


def _section(place: int, each: ReportedPartition) -> str:
    overview = each.overview
    badge, mark = ('<p class="badge">stalled</p>', " stalled") if overview.is_stalled else ("", "")
    findings = list_of([finding.text for finding in overview.start_findings])
    beyond = list_of([finding.text for finding in overview.new_findings])
    facts = "".join(f"<p>{text_of(line)}</p>" for line in overview.facts())
    return (
        f'<section class="partition" id="partition-{place}"><h2>{text_of(each.name[0].upper() + each.name[1:])}</h2>'
        f"{badge}{_happened(overview)}"
        f'<div class="standing{mark}"><h3>At the SPSO</h3>{findings}'
        f"{f'<h3>Next new record, {overview.new_offset}</h3>{beyond}' if beyond else ''}"
        f"{facts}</div>{''.join(_titled(*table) for table in _tables(each))}</section>"
    )


def _happened(overview: Overview) -> str:
    rows = [(each.records, each.what, _counted(each.how), _counted(each.by)) for each in overview.happened_lines()]
    heads = ("records", "what happened to them", "how deliveries ended", "clients")
    return f"<h3>{overview.happened_title}</h3>{table_of(heads, rows)}" if rows else ""


def _counted(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts)


def _titled(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], more: str) -> str:
    """Return a table with its title, and what it lacks; nothing without rows."""
    if not rows:
        return ""
    more = f"<p>and {more} more</p>" if more else ""
    return f"<h3>{title}</h3>{table_of(heads, rows[:_LISTED])}{more}"


Tables = Iterator[tuple[str, tuple[str, ...], Sequence[Sequence[object]], str]]


def _tables(each: ReportedPartition) -> Tables:
    overview = each.overview
    name = overview.members.place
    happened = overview.happened.lists()
    for list_ in ("redelivered", "archived"):
        listed = happened[list_]
        rows = [_listed(each, records) for records in listed]
        left = overview.happened.listed_in_all(list_) - sum(records.records for records in listed[:_LISTED])
        more = counted(left, "record") if left else ""
        yield LISTS[list_], ("records", "deliveries", "how they ended", "outcome"), rows, more
    held = [
        (
            _record(each, records.first_offset, records.last_offset),
            name(records.member_id),
            _since(overview, records.since_us),
            records.delivery_count,
            _at(records.locked_until_us),
        )
        for records in overview.held
    ]
    yield "Held longest", ("records", "member", "for", "delivery count", "locked until"), held, _left(held)
    near = [
        (_record(each, near.first_offset, near.last_offset), near.state.name.title(), near.delivery_count, near.limit)
        for near in overview.near_limit
    ]
    heads = ("records", "state", "delivery count", "limit")
    yield "Near the delivery count limit", heads, near, _left(near)
    expiries = [(name(member_id), records) for member_id, records in overview.expiries]
    yield "Lost to expired locks", ("member", "records"), expiries, _left(expiries)


def _left(rows: Sequence[object]) -> str:
    """Return how many rows a table of the first ones lacks; empty for none."""
    return f"{len(rows) - _LISTED:,}" if len(rows) > _LISTED else ""


def _listed(each: ReportedPartition, records: ListedRecords) -> tuple[object, ...]:
    name, lived = each.overview.members.name, records.lived
    outcome = "" if lived.outcome is None else OUTCOMES[lived.outcome]
    held = f"held by {name(lived.member_id)}" if lived.is_held else ""
    return (
        _record(each, records.first_offset, records.last_offset),
        lived.all_deliveries,
        ends_in_words(lived, name),
        outcome or held,
    )


def _record(each: ReportedPartition, first: int, last: int) -> Link:
    """Return a range of records that leads to the life of the first one."""
    address = urlencode({**_address(each), "offset": str(first)})
    return Link(str(first) if first == last else f"{first}-{last}", address)


def _since(overview: Overview, us: int | None) -> str:
    return "" if us is None or overview.at_us is None else duration(max(0, overview.at_us - us))


def _at(us: int | None) -> str:
    return "" if us is None else instant(us)
