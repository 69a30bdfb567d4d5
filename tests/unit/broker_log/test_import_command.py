"""The command that imports request logs: what it takes, and what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.history import Event, open_history
from tests.support import broker_logs
from tests.support.broker_logs import RUN, lines

SEGMENTS = ("--segments", str(RUN / "segments"))
NAMES = {"dG-AwD_-Q9e_B3d-a1VaTg": "s1", "6_UGRzRhTHKhR9UaPcC76Q": "s2"}


def run(*arguments: str | Path) -> Result:
    """Run ``log import`` with *arguments*."""
    return CliRunner().invoke(sharestate, ["log", "import", *map(str, arguments)])


def without_place(event: Event) -> Event:
    """Return an event without its place in the request log."""
    return event._replace(source_file=None, source_line=None)


def facts(path: Path) -> list[Event]:
    """Return the events of a history without their places."""
    return list(map(without_place, open_history(path)))


@pytest.fixture(scope="module")
def whole() -> list[Event]:
    """The events of the run as it is."""
    return [without_place(event) for event in broker_logs.imported(has_properties=False)]


def as_cri(line: str) -> str:
    """Return a line as a container's runtime writes it that keeps 500 bytes of a line at once."""
    text = line.rstrip("\n")
    pieces = [text[begin : begin + 500] for begin in range(0, len(text), 500)]
    tags = ["P"] * (len(pieces) - 1) + ["F"]
    return "".join(f"{line[:26]}Z stdout {tag} {piece}\n" for tag, piece in zip(tags, pieces, strict=True))


def as_layout(line: str) -> str:
    """Return a line as Log4j's EcsLayout writes it."""
    stamp, _, message = line.rstrip("\n").partition(" ")
    return f"{json.dumps({'@timestamp': f'{stamp}Z', 'message': message})}\n"


def as_export(line: str) -> str:
    """Return a line as an export of Elasticsearch has it."""
    return f"{json.dumps({'_index': 'logs', '_source': {'text': line}})}\n"


@pytest.mark.parametrize(
    ("wrapped", "options"),
    [
        (as_cri, ()),
        (as_layout, ()),
        (as_export, ("--field", "_source.text")),
        (lambda line: f"<134>Nov 22 06:35:00 broker-1 kafka[7]: {line}", ()),
        (lambda line: re.sub(r"^\S{10}T04(\S+)", r"2026-11-22T06\1", line), ("--utc-offset", "+02:00")),
        (lambda line: re.sub(r"^\S{10}T04(\S+)", r"2026-11-22T06\1+0200", line), ()),
    ],
    ids=["CRI", "layout", "export", "syslog", "--utc-offset", "offset"],
)
def test_a_log_is_the_same_however_it_was_collected(
    tmp_path: Path, wrapped: object, options: tuple[str, ...], whole: list[Event]
) -> None:
    """The history is that of the lines as the broker has written them."""
    path, target = tmp_path / "request.log", tmp_path / "history.jsonl"
    assert callable(wrapped)
    path.write_text("".join(map(wrapped, lines())))

    made = run(path, *SEGMENTS, *options, "-o", target)

    assert made.exit_code == 0, made.output
    assert facts(target) == whole


def test_what_is_assumed_of_times_is_said(tmp_path: Path) -> None:
    """Without an offset in stamps and without the option, times are taken for UTC."""
    log, target = RUN / "request.log.gz", tmp_path / "history.jsonl"
    said = "Times do not say their offset from UTC, and are taken for UTC"

    assert said in run(log, "-o", target).output
    assert said not in run(log, "--utc-offset", "Z", "-o", target).output
    refused = run(log, "--utc-offset", "CET", "-o", target)
    assert refused.exit_code == 2
    assert "expected an offset from UTC such as +02:00, got CET" in refused.output


def test_a_clock_that_was_put_back_is_said(tmp_path: Path) -> None:
    """Requests that are out of order by an hour are not only counted."""
    path = tmp_path / "request.log"
    path.write_text("".join(line.replace("T04", "T05", 1) if n < 1500 else line for n, line in enumerate(lines())))

    made = run(path, "-o", tmp_path / "history.jsonl")

    assert re.search(r"requests more than ten seconds out of order: was the broker's clock put back\?", made.output)
    assert "the clock was put back by about an hour, as summer time does: times after it" in made.output


@pytest.mark.parametrize("lenient", [(), ("--lenient",)])
def test_what_has_no_request_is_no_request_log(tmp_path: Path, lenient: tuple[str, ...]) -> None:
    """The exit code is 2, and there is no history."""
    target = tmp_path / "history.jsonl"

    made = run(RUN / "server.properties", *lenient, "-o", target)

    assert made.exit_code == 2
    assert "server.properties: " in made.output
    assert "lines without 'Completed request:'" in made.output
    assert "is this a request log" in made.output
    assert not target.exists()


# ---- names of topics


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_names_that_requests_say_are_in_the_header(tmp_path: Path, suffix: str, whole: list[Event]) -> None:
    """Without segments that name their topics, those of METADATA and CREATE_TOPICS are there once all is read."""
    target = tmp_path / f"history{suffix}"

    assert run(RUN / "request.log.gz", *SEGMENTS, "-o", target).exit_code == 0

    history = open_history(target)
    assert history.header.topics == NAMES
    assert list(map(without_place, history)) == whole
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_names_of_other_topics_are_not(tmp_path: Path) -> None:
    """A cluster has many topics, of which a group consumes some."""
    target = tmp_path / "history.jsonl"

    assert run(RUN / "request.log.gz", "--group", "seq-b", "-o", target).exit_code == 0

    with open_history(target) as history:
        assert history.header.topics == {each: NAMES[each] for each in {event.topic_id for event in history}}


def test_redacted_histories_name_no_topics(tmp_path: Path) -> None:
    """Names of topics are names."""
    target = tmp_path / "history.jsonl"

    assert run(RUN / "request.log.gz", "--redact", "-o", target).exit_code == 0

    with open_history(target) as history:
        assert history.header.topics == {}
