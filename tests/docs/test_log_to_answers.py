"""The page that goes from a broker's log to answers: its commands, on logs of brokers, and what they cannot know."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from doctest import ELLIPSIS, OutputChecker
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate.history import Event, open_history
from tests.support.broker_answers import Answers, Key, answers_of
from tests.support.protocol_pages import rows, sections
from tests.support.recipes import PageCommand, commands, lay_out, logs_of, run

PAGE: Final = "log-to-answers.md"
ANSWERS: Final = "why.md"
ASKED: Final = ("What happened to all records", "Redelivered, given up or stuck records", "One record")
ONE: Final = "k440-settings"
THREE: Final = "k440-three"
STAMP: Final = "%Y-%m-%dT%H:%M:%S.%f"


def followed(steps: Iterable[PageCommand]) -> str:
    """Run commands of the page, each of which prints what the page says, and return all that is printed."""
    printed = []
    for step in steps:
        result = run(step.text)
        assert result.exit_code == 0, result.output
        assert is_printed(step.output, result.output), (step.text, result.output)
        printed.append(result.output)
    return "".join(printed)


def is_printed(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; three dots stand for anything."""
    return OutputChecker().check_output(shown, f"{printed.rstrip()}\n", ELLIPSIS)


def key_of(answers: Answers, group: str, deliveries: int) -> Key:
    """Return the share partition of a *group* with so many *deliveries*: requests have no names of topics."""
    (key,) = (key for key, count in answers.acquired.items() if key[0] == group and count == deliveries)
    return key


def verdicts() -> list[Any]:
    """Return what the check finds of the history in order of arrival that is here."""
    return [json.loads(line) for line in run("sharestate log verify arrival.jsonl --json").stdout.splitlines()]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one broker; its request log was switched on after its groups were configured."""
    place = tmp_path_factory.mktemp("one")
    lay_out(ONE, place)
    return place


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of three brokers."""
    place = tmp_path_factory.mktemp("three")
    lay_out(THREE, place)
    return place


@pytest.fixture(scope="module")
def plainly_imported(three: Path) -> list[Event]:
    """The events that the import of the three brokers' own files makes."""
    plain, *_ = commands(PAGE, "Several brokers")
    with contextlib.chdir(three):
        assert run(plain.text).exit_code == 0
        return facts()


# ---- one broker


def test_one_broker_is_asked_why(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows, and the page of answers shows those; the lines say the same."""
    monkeypatch.chdir(one)
    printed = followed(commands(PAGE, "5. Import, verify, ask"))
    answers = answers_of(ONE)

    assert f"{sum(answers.acquired.values()):,}" in printed  # what the replay has acquired
    for report in verdicts():
        key = report["group_id"], report["topic_id"], report["partition"]
        assert (report["verdict"], report["explained"]["fetches_with_records"]) == ("explained", answers.fetches[key])

    happened = followed(step for heading in ASKED for step in commands(ANSWERS, heading))
    key = key_of(answers, "kb", 308)
    delivered, persisted = answers.delivered[key], answers.persisted[key]
    states = Counter(state for state, _ in persisted.values())
    again = [count for count in delivered.values() if count > 1]
    assert f"  {len(delivered)} records delivered, {answers.acquired[key]} deliveries in all" in happened
    assert f"  {len(again)} records delivered more than once, up to {max(again)} times" in happened
    assert f"  {states[2]} records accepted" in happened
    assert f"  Given up or gone, not accepted: {states[4]} records" in happened
    assert (delivered[20], persisted[20]) == (3, (4, 3))


def test_the_readme_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands print what it shows of another run."""
    lay_out("k431-seq", tmp_path)
    monkeypatch.chdir(tmp_path)

    followed(commands("../README.md", "Ask a broker why"))


# ---- several brokers, and whoever collects what they log


def test_three_brokers_are_one_import(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows; what is explained is all that the brokers' lines have."""
    monkeypatch.chdir(three)
    followed(commands(PAGE, "Several brokers"))
    answers = answers_of(THREE)
    found = {(each["group_id"], each["topic_id"], each["partition"]): each for each in verdicts()}

    assert {key: each["observed"]["fetches_with_records"] for key, each in found.items()} == dict(answers.fetches)
    assert Counter(each["verdict"] for each in found.values()) == {"explained": 5, "not_checked": 1}


def lines(place: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each broker."""
    for log in logs_of(place):
        yield log.parent.name, log.read_text().splitlines()


def as_kubectl(place: Path) -> None:
    """Write what ``kubectl logs`` prints of three pods, with each of its options once."""
    before: list[Callable[[str], str]] = [
        lambda _: "",
        lambda line: f"{line[:26]}123Z ",
        lambda line: f"[pod/kafka-2/kafka] {line[:26]}123Z ",
    ]
    for number, (_, logged) in enumerate(lines(place)):
        (place / f"kafka-{number}.log").write_text("".join(f"{before[number](line)}{line}\n" for line in logged))


def as_container_files(place: Path) -> None:
    """Write the files of a node as containerd does, but with pieces of 500 bytes; half of each is rotated."""
    for number, (_, logged) in enumerate(lines(place)):
        pod = place / "pods" / f"prod_kafka-{number}_0b7c" / "kafka"
        pod.mkdir(parents=True)
        half = len(logged) // 2
        with gzip.open(pod / "0.log.20261123-094300.gz", "wt") as rotated:
            rotated.writelines(map(as_pieces, logged[:half]))
        (pod / "0.log").write_text("".join(map(as_pieces, logged[half:])))


def as_pieces(line: str) -> str:
    """Return a line in pieces, of which the last one is marked as F."""
    pieces = [line[begin : begin + 500] for begin in range(0, len(line), 500)]
    tags = ["P"] * (len(pieces) - 1) + ["F"]
    return "".join(f"{line[:26]}123Z stdout {tag} {piece}\n" for tag, piece in zip(tags, pieces, strict=True))


def as_loki(place: Path) -> None:
    """Write what ``logcli --output=jsonl`` prints of all brokers, in order of time."""
    logged = sorted((line, name) for name, each in lines(place) for line in each)
    documents = ({"labels": {"pod": name}, "line": line, "timestamp": f"{line[:26]}Z"} for line, name in logged)
    (place / "loki.jsonl").write_text("".join(f"{json.dumps(document)}\n" for document in documents))


def as_elastic(place: Path) -> None:
    """Write an export of an index with all brokers, in order of time."""
    logged = sorted(line for _, each in lines(place) for line in each)
    documents = ({"_index": "logs", "_source": {"message": line, "agent": {"type": "filebeat"}}} for line in logged)
    (place / "elastic.json").write_text("".join(f"{json.dumps(document)}\n" for document in documents))


COLLECTED: Final = {
    "`kubectl logs`": as_kubectl,
    "files of a node (CRI)": as_container_files,
    "Loki": as_loki,
    "Elasticsearch, OpenSearch": as_elastic,
}


def test_each_collector_of_the_table_is_tried() -> None:
    """The table has no other rows."""
    assert collectors().keys() == COLLECTED.keys()


def collectors() -> dict[str, str]:
    """Return what the table says for the import, by what has the lines."""
    table = list(rows(sections(PAGE)["Kubernetes and log collectors"], columns=4))[1:]
    return {source: given.strip("`") for source, _, given, _ in table}


@pytest.mark.parametrize("source", COLLECTED)
def test_whoever_has_collected_them_the_events_are_the_same(
    three: Path, plainly_imported: list[Event], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the table says for the import takes the place of the brokers' files."""
    monkeypatch.chdir(three)
    COLLECTED[source](three)
    plain, *_ = commands(PAGE, "Several brokers")
    given = "broker?/kafka-request.log*"

    made = run(plain.text.replace(given, collectors()[source]))

    assert made.exit_code == 0, made.output
    assert given in plain.text
    assert facts() == plainly_imported


def facts() -> list[Event]:
    """Return the events of the history that is here, without places in a log; reasons name such places, too."""
    events = (event._replace(source_file=None, source_line=None) for event in open_history(Path("arrival.jsonl")))
    return [event._replace(request=None) if event.kind == "unknown" else event for event in events]


# ---- what it cannot know


def asked(place: Path, options: str = "") -> str:
    """Return what the import of all that is in a place prints, and the check of it."""
    names = {
        "": sorted(str(log.relative_to(place)) for log in logs_of(place)),
        "--segments": sorted(str(each.relative_to(place)) for each in place.rglob("data")),
        "--config": sorted(str(each.relative_to(place)) for each in place.rglob("server.properties")),
        "--group-config": sorted(str(each.relative_to(place)) for each in place.glob("groups.txt")),
    }
    given = " ".join(f"{option} {name}" for option, each in names.items() for name in each)
    imported = run(f"sharestate log import {given} -o arrival.jsonl")
    checked = run(f"sharestate log verify arrival.jsonl {options}")
    return imported.output + checked.output


def edited(log: Path, edit: Callable[[int, str], str]) -> None:
    """Rewrite each line of a log, with its number."""
    each = log.read_text().splitlines(keepends=True)
    log.write_text("".join(edit(number, line) for number, line in enumerate(each, 1)))


def later(seconds: int) -> Callable[[int, str], str]:
    """Return what sets the clock of a log."""

    def set_clock(_: int, line: str) -> str:
        at = datetime.strptime(f"{line[:26]}+0000", f"{STAMP}%z") + timedelta(seconds=seconds)
        return f"{at.strftime(STAMP)}{line[26:]}"

    return set_clock


def without_groups(place: Path) -> None:
    """Forget how groups were configured."""
    (place / "groups.txt").unlink()


def without_segments(place: Path) -> None:
    """Forget to copy segments."""
    (place / "data").rename(place / "nothing")


def without_second_log(place: Path) -> None:
    """Forget a broker's log."""
    (place / "broker2" / "kafka-request.log").unlink()


def begun_late(place: Path) -> None:
    """Switch the log on when members are at work."""
    edited(place / "kafka-request.log", lambda number, line: line if number > 400 else "")


def cut(place: Path) -> None:
    """Cut a line as a collector does."""
    edited(place / "kafka-request.log", lambda number, line: f"{line[:300]}\n" if number == 600 else line)


def put_back(place: Path) -> None:
    """Put the clock back in the middle."""
    edited(place / "kafka-request.log", lambda number, line: line.replace("T09", "T08", 1) if number > 450 else line)


def set_wrong(place: Path) -> None:
    """Set the clock of a broker wrong by two seconds."""
    edited(place / "broker2" / "kafka-request.log", later(2))


def nothing(_: Path) -> None:
    """Leave all as it is."""


Change = Callable[[Path], None]

SAID: Final[dict[str, tuple[str, Change, str]]] = {
    "what was before the log": (ONE, begun_late, ""),
    "settings that no request and no file says": (ONE, without_groups, ""),
    "what a topic's log had, without `--segments`": (ONE, without_segments, ""),
    "or without a directory of that partition": ("k431-del", nothing, ""),
    "or as retention or DeleteRecords has deleted it": ("k440-retention", nothing, ""),
    "or as compaction has removed it": ("k431-compact", nothing, ""),
    "or as the topic was deleted, or made again under its name": ("k431-topics", nothing, ""),
    "what a leader did whose log is missing": ("k431-three", without_second_log, ""),
    "what a share coordinator has, whose log is missing": ("k431-three", without_second_log, ""),
    "or which stopped before it had logged its last requests": (THREE, nothing, ""),
    "what a fetch has acquired that was answered with an error": ("k431-topics", nothing, ""),
    "which of two brokers' events came first, if their clocks disagree by 50 ms or more": (
        "k431-three",
        set_wrong,
        "--seconds 0.1",
    ),
    "what an hour is, where the clock was put back or forward": (ONE, put_back, "--seconds 0.1"),
    "what was in lines that somebody has cut, split or dropped": (ONE, cut, ""),
    "which zone times are of": (ONE, nothing, ""),
    "which order is right, if too many requests came at once": (ONE, nothing, "--seconds 0.001"),
}
"""The rows of the table with a message: a run, what is done to its files, and options of the check."""

WITHOUT_MESSAGE: Final = {
    "whether an empty answer had to be empty",
    (
        "in which order locks expire that an acknowledgement has split and was refused for: "
        "a broker's timer puts them in another order than the library"
    ),
    "when a connection was lost, or a dead-letter queue has answered",
}


def unknowns() -> dict[str, str]:
    """Return the second column of the table by its first one."""
    return {what: said for what, said, _ in rows(sections(PAGE)["What it cannot know"], columns=3) if what != "what"}


def test_each_row_of_the_table_is_tried() -> None:
    """But for those of which there is no message."""
    assert unknowns().keys() == SAID.keys() | WITHOUT_MESSAGE


@pytest.fixture(scope="module")
def printed_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Change, str], str]:
    """Return what is printed of a run whose files are changed; several rows have the same."""

    @cache
    def printed(source: str, change: Change, options: str) -> str:
        place = tmp_path_factory.mktemp(source)
        lay_out(source, place)
        change(place)
        with contextlib.chdir(place):
            return asked(place, options)

    return printed


@pytest.mark.parametrize("what", SAID)
def test_what_cannot_be_known_is_said(what: str, printed_of: Callable[[str, Change, str], str]) -> None:
    """The import or the check prints each message of the row."""
    messages = [each for each in re.findall(r"`([^`]+)`", unknowns()[what]) if " " in each]

    printed = printed_of(*SAID[what])

    assert messages
    for message in messages:
        assert re.search(".*".join(map(re.escape, message.split("..."))), printed), (message, printed)


# ---- exit codes


def exits(*texts: str) -> list[int]:
    """Return how each command ends."""
    return [run(text).exit_code for text in texts]


def test_exit_codes_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 where nothing contradicts, 1 where something does, 2 where something cannot be read or was given up."""
    lay_out(ONE, tmp_path)
    monkeypatch.chdir(tmp_path)
    imported, verified, *_ = (step.text for step in commands(PAGE, "5. Import, verify, ask"))

    assert exits(imported, verified) == [0, 0]
    assert exits(
        "sharestate log explain arrival.jsonl",
        "sharestate log report arrival.jsonl -o report.html",
        "sharestate history replay arrival.jsonl rows",
        "sharestate log verify arrival.jsonl --seconds 0.001",
        "sharestate log import server.properties -o other.jsonl",
        "sharestate log explain history.jsonl --offset 20",  # of which of six share partitions?
    ) == [2, 2, 2, 2, 2, 2]

    not_known = imported.replace("--group-config groups.txt ", "")
    assert not_known != imported
    assert exits(not_known, "sharestate log verify arrival.jsonl") == [0, 0]  # not checked

    log = Path("kafka-request.log").read_text().splitlines(keepends=True)
    dropped = next(number for number, line in enumerate(log, 1) if "WRITE_SHARE_GROUP_STATE" in line)
    edited(Path("kafka-request.log"), lambda number, line: "" if number == dropped else line)
    assert exits(imported, "sharestate log verify arrival.jsonl") == [0, 1]


def test_a_command_that_fails_leaves_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is cut off is named; with --lenient the rest is imported."""
    lay_out(ONE, tmp_path)
    monkeypatch.chdir(tmp_path)
    cut(tmp_path)

    refused = run("sharestate log import kafka-request.log -o arrival.jsonl")
    assert (refused.exit_code, "kafka-request.log:600: the line is cut off" in refused.output) == (2, True)
    assert not Path("arrival.jsonl").exists()

    taken = run("sharestate log import kafka-request.log --lenient -o arrival.jsonl")
    assert (taken.exit_code, "1 broken lines skipped" in taken.output) == (0, True)
