"""Request logs as they are found: doubled, cut off, begun in the middle, of a broker that was started again."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.broker_log import LogImport, RequestLog, RequestLogError, TopicLogs, read_properties
from sharestate.cli.commands import sharestate
from sharestate.history import Event, open_history
from tests.support import broker_logs
from tests.support.broker_logs import RUN, lines

GROUP = "seq-b"
OPTIONS = ("--segments", RUN / "segments", "--config", RUN / "server.properties")


def log(*arguments: str | Path) -> Result:
    """Run a command of the group with *arguments*."""
    return CliRunner().invoke(sharestate, ["log", *map(str, arguments)])


def imported(
    *paths: Path, segments: Path = RUN / "segments", on_broken: Callable[[RequestLogError], None] | None = None
) -> list[Event]:
    """Import request logs."""
    properties = read_properties(RUN / "server.properties")
    return list(LogImport(RequestLog(paths, on_broken=on_broken), TopicLogs(segments), broker=properties))


def facts(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """Return events without their place in the request log."""
    return [event._replace(source_file=None, source_line=None) for event in events]


def api_of(line: str) -> str:
    """Return the name of the request of a line."""
    found = re.search('"requestApiKeyName":"([A-Z_]+)"', line)
    assert found is not None
    return found[1]


def written(path: Path, text: Iterable[str]) -> Path:
    """Write lines to *path*, and return it."""
    path.write_text("".join(text))
    return path


@pytest.fixture(scope="module")
def whole() -> list[tuple[Any, ...]]:
    """The events of the run as it is."""
    return facts(broker_logs.imported())


# ---- files


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".parquet"])
def test_all_formats_hold_the_same_history(tmp_path: Path, suffix: str, whole: list[tuple[Any, ...]]) -> None:
    """The command writes compressed JSON Lines and Parquet as well, and they are read back."""
    target = tmp_path / f"history{suffix}"

    assert log("import", RUN / "request.log.gz", *OPTIONS, "-o", target).exit_code == 0

    assert facts(open_history(target)) == whole


def test_a_file_that_is_given_twice_is_noticed(tmp_path: Path, whole: list[tuple[Any, ...]]) -> None:
    """Its requests are taken once: they are counted, and the history is that of one file."""
    copy, target = written(tmp_path / "copy.log", lines()), tmp_path / "history.jsonl"

    made = log("import", copy, RUN / "request.log.gz", *OPTIONS, "-o", target)

    assert "; 2,122 requests that two files have, and are taken once\n" in made.output
    assert facts(open_history(target)) == whole


def test_a_failed_import_leaves_the_history_before_it(tmp_path: Path) -> None:
    """A history has its name once all of it is written."""
    target = tmp_path / "history.jsonl"
    target.write_text("kept\n")
    cut_off = written(tmp_path / "request.log", [*lines()[:300], lines()[300][:200]])

    failed = log("import", cut_off, *OPTIONS, "-o", target)

    assert failed.exit_code == 2
    assert f"{cut_off}:301: the line is cut off" in failed.output
    assert target.read_text() == "kept\n"
    assert {path.name for path in tmp_path.iterdir()} == {"history.jsonl", "request.log"}


def test_a_compressed_file_that_is_cut_off_is_passed_over_if_asked(tmp_path: Path) -> None:
    """What can be read of it is imported, and the files after it."""
    own = lines()
    first = tmp_path / "first.log.gz"
    first.write_bytes(gzip.compress("".join(own[:2500]).encode())[:-2000])
    second = written(tmp_path / "second.log", own[2500:])
    broken: list[RequestLogError] = []

    events = imported(first, second, on_broken=broken.append)

    assert {error.file for error in broken} == {str(first)}
    assert {event.source_file for event in events if event.source_file} == {str(first), str(second)}


def test_many_broken_lines_are_counted_and_few_are_shown(tmp_path: Path, whole: list[tuple[Any, ...]]) -> None:
    """Between whole lines they change nothing."""
    changed = []
    for number, line in enumerate(lines()):
        changed += [line, f"{line[:250]}\n"] if number % 40 == 0 and len(line) > 300 else [line]
    source, target = written(tmp_path / "request.log", changed), tmp_path / "history.jsonl"

    made = log("import", source, "--lenient", *OPTIONS, "-o", target)

    (count,) = re.findall(r"; (\d+) broken lines skipped", made.output)
    assert 10 < int(count) <= len(changed) - len(lines())  # some were of no interest
    assert made.output.count(f"{source}:") == 10
    assert facts(open_history(target)) == whole


# ---- requests


def test_what_a_controller_logs_again_changes_nothing(tmp_path: Path, whole: list[tuple[Any, ...]]) -> None:
    """A forwarded request has two lines, of which the controller's is marked."""
    changed = []
    for line in lines():
        changed.append(line)
        if api_of(line) in {"CREATE_TOPICS", "INCREMENTAL_ALTER_CONFIGS"}:
            changed.append(line.replace('"isForwarded":false', '"isForwarded":true'))

    assert len(changed) > len(lines())
    assert facts(imported(written(tmp_path / "request.log", changed))) == whole


def test_a_request_that_makes_no_sense_leaves_no_events(tmp_path: Path, whole: list[tuple[Any, ...]]) -> None:
    """Nothing of it is in the history, and events are numbered without holes."""
    own = lines()
    at = next(
        i for i, line in enumerate(own) if '"acknowledgementBatches":[{' in line and api_of(line) == "SHARE_FETCH"
    )
    own.insert(at, own[at].replace('"maxBytes"', '"most"'))
    broken: list[RequestLogError] = []

    events = imported(written(tmp_path / "request.log", own), on_broken=broken.append)

    assert [(error.line, error.message) for error in broken] == [(at + 1, "missing")]
    assert facts(events) == whole


def test_a_member_that_comes_back_has_lost_its_connection(tmp_path: Path) -> None:
    """A session that is opened over another connection ends the one before, at the earliest with its last answer."""
    own = [line for line in lines() if GROUP in line or '"groupId"' not in line]
    opened = next(line for line in own if api_of(line) == "SHARE_FETCH" and '"shareSessionEpoch":0' in line)
    again = opened.replace('"connection":"', '"connection":"another-').replace("04:3", "05:3", 1)
    head = own[: own.index(opened) + 1]
    member = json.loads(opened.partition("request:")[2])["request"]["memberId"]

    events = imported(written(tmp_path / "request.log", [*head, again]))

    at = next(at for at, event in enumerate(events) if (event.connection or "").startswith("another-"))
    lost = [event for event in events[:at] if event.kind == "disconnect" and event.member_id == member]
    assert lost
    assert all(event.inferred for event in lost)
    last_us = max(event.done_us or 0 for event in events[:at] if event.member_id == member)
    assert all((event.at_us or 0) >= last_us for event in lost)


def test_a_connection_whose_name_is_used_again_is_another_one(tmp_path: Path) -> None:
    """After the broker was started again, numbers begin anew: the order within each of the two stays."""
    first = lines()[:1500]
    second = [re.sub("^(.{11})0(.)", lambda found: f"{found[1]}1{found[2]}", line) for line in first]

    events = imported(written(tmp_path / "request.log", [*first, *second]))

    requests = [(event.connection, event.request_no, event.at_us) for event in events if event.kind == "fetch"]
    times: dict[tuple[str | None, int | None], set[int | None]] = {}
    for connection, number, at_us in requests:
        times.setdefault((connection, number), set()).add(at_us)
    assert all(len(each) == 1 for each in times.values())
    assert {(connection or "").endswith("#2") for connection, _ in times} == {True, False}


# ---- logs that begin in the middle


def test_a_producer_that_names_no_topic_is_no_error(tmp_path: Path) -> None:
    """As long as nothing has named a topic, what is appended to it is put into the history when something does."""
    own = [line for line in lines() if api_of(line) != "CREATE_TOPICS"]
    named = [line for line in own if api_of(line) == "METADATA"]
    rest = [line for line in own if api_of(line) != "METADATA"]
    rest = [re.sub(r'("responses":\[\{"name":")s\d(","partitionResponses")', r"\1\2", line) for line in rest]
    rest = [line.replace('{"name":"","partition', '{"topicId":"unknown","partition') for line in rest]
    events = imported(written(tmp_path / "request.log", [*rest, *named[-1:]]))

    assert {event.kind for event in events} >= {"fetch", "write"}


def test_topics_are_named_by_their_directories(tmp_path: Path) -> None:
    """A broker notes a topic's id beside its segments, so no line has to name it."""
    ids = {"s1": "dG-AwD_-Q9e_B3d-a1VaTg", "s2": "6_UGRzRhTHKhR9UaPcC76Q"}
    for directory in (RUN / "segments").iterdir():
        copy = tmp_path / "segments" / directory.name
        copy.mkdir(parents=True)
        (copy / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids[directory.name.rpartition('-')[0]]}\n")
        for path in directory.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
    own = [line for line in lines() if api_of(line) not in {"CREATE_TOPICS", "METADATA"}]
    path = written(tmp_path / "request.log", own)

    assert any(event.kind == "log" for event in imported(path, segments=tmp_path / "segments"))
    assert not any(event.kind == "log" for event in imported(path))


def test_what_was_there_before_the_log_is_visible_from_its_beginning(tmp_path: Path) -> None:
    """Records that no line has appended were there before the first fetch."""
    own = lines()
    path = written(tmp_path / "request.log", [line for line in own[:1500] if api_of(line) != "PRODUCE"])

    events = imported(path)

    logs = [event for event in events if event.kind == "log"]
    first_us = min(event.done_us or 0 for event in events if event.kind == "fetch")
    assert len(logs) == len({event.key for event in logs}) > 0
    for event in logs:
        batches = (event.request or {})["batches"]
        assert batches[0].first_offset == 0
        assert all(one.last_offset + 1 == next_.first_offset for one, next_ in pairwise(batches))
        assert (event.at_us or 0) < first_us


# ---- names


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    """The run's log with names of a topic and of a queue that are secret, and its events, which say them."""
    own = [line.replace('"s1"', '"secret-topic"') for line in lines()]
    queue = '{"name":"errors.deadletterqueue.topic.name","value":"secret-queue","configOperation":0}'
    own = [
        line.replace('"configs":[{', f'"configs":[{queue},{{', 1) if "ALTER_CONFIGS" in line else line for line in own
    ]
    path = written(tmp_path_factory.mktemp("secret") / "secret-host.log", own)
    return path, imported(path)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_nothing_leaks_of_what_is_redacted(tmp_path: Path, suffix: str, secret: tuple[Path, list[Event]]) -> None:
    """Neither names of groups, members, topics and files nor addresses are in the history; what it says stays."""
    path, plain = secret
    target = tmp_path / f"history{suffix}"

    assert log("import", "--redact", path, *OPTIONS, "-o", target).exit_code == 0

    assert any((event.request or {}).get("dlq_topic") == "secret-queue" for event in plain)
    with open_history(target) as history:
        events = list(history)
    text = repr(history.header) + repr(events)
    names = {name for event in plain for name in (event.group_id, event.member_id, event.connection) if name}
    names |= {"secret", "127.0.0.1", str(path.parent)}
    assert [name for name in names if name in text] == []
    assert [(event.topic_id, *event[2:8], event.kind) for event in events] == [
        (event.topic_id, *event[2:8], event.kind) for event in plain
    ]


def test_two_imports_hash_differently(tmp_path: Path) -> None:
    """The key of the hashes is new each time and kept nowhere, so that addresses cannot be found by trying."""
    groups = []
    for name in ("one.jsonl", "other.jsonl"):
        log("import", "--redact", RUN / "request.log.gz", "--group", GROUP, "-o", tmp_path / name)
        groups.append({event.group_id for event in open_history(tmp_path / name)})

    assert len(groups[0]) == len(groups[1]) == 1
    assert groups[0] != groups[1]
