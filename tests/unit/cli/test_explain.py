"""``sharestate history explain``."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from sharestate.history import Event, Header, create_history
from tests.support.broker_logs import RUN
from tests.support.recorded_histories import KEY, LACKS, history_of

STALL = Path(__file__).parents[2] / "data/vectors/found/found-stall-in-a-full-window.jsonl"


def explain(*arguments: str | int | Path) -> Result:
    """Run the command with *arguments*."""
    return CliRunner().invoke(sharestate, ["history", "explain", *map(str, arguments)])


@pytest.fixture
def stalled(tmp_path: Path) -> Path:
    """The history of the share partition that stalls as F1."""
    path = tmp_path / "history.jsonl"
    with create_history(path, Header(source="a recorded conversation", lacks=LACKS)) as file:
        file.write(history_of(STALL))
    return path


def test_a_stall_is_explained(stalled: Path) -> None:
    """The text says what has happened to a record, that it is not deliverable, and names the bug."""
    result = explain(stalled, "--offset", 15)

    assert result.exit_code == 0
    assert result.output.startswith(f"Record 15 of partition 0 of topic {KEY[1]}, group g\n")
    assert re.search(r"^Deliverable at the last event.*: stalled\.$", result.output, re.MULTILINE)
    assert result.output.count("Stalled by a bug of Kafka (F1): ") == 1


def test_the_same_as_json(stalled: Path) -> None:
    """A versioned document with the facts beside the sentences."""
    result = explain(stalled, "--offset", 3, "--json", "--group", "g", "--topic", KEY[1], "--partition", 0)
    document = json.loads(result.output)

    assert (document["explanation"], document["offset"], document["start_offset"]) == (1, 3, 5)
    assert [moment["what"] for moment in document["life"]] == ["acquired", "accepted", "confirmed", "passed"]
    assert document["life"][0]["locked_until_us"] == 10_000_000
    assert document["now"]["deliverable"] == "never"
    assert [finding["reason"] for finding in document["start"]] == ["F1"]


def test_what_happened_comes_first(stalled: Path) -> None:
    """Without an offset the text begins with counts of records."""
    assert explain(stalled).output.splitlines()[2:5] == [
        "What happened to its records:",
        "  5 records delivered, 5 deliveries in all",
        "  5 records accepted: m1 5",
    ]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log in causal order."""
    folder = tmp_path_factory.mktemp("busy")
    run = RUN.parent / "k440-busy"
    for command in (
        ("import", run / "request.log.gz", "--segments", run / "segments", "-o", folder / "arrival.jsonl"),
        ("verify", folder / "arrival.jsonl", "-o", folder / "causal.jsonl"),
    ):
        result = CliRunner().invoke(sharestate, ["log", *map(str, command)])
        assert result.exit_code == 0, result.output
    return folder / "causal.jsonl"


def test_records_that_came_again_are_listed(busy: Path) -> None:
    """They are those that several answers of the log have; the text says how many of them it shows."""
    answers = Counter(
        offset
        for event in map(json.loads, busy.read_text().splitlines()[1:])
        if event["kind"] == "fetch"
        for first, last, _ in (event.get("response") or {}).get("acquired", ())
        for offset in range(first, last + 1)
    )
    again = {offset for offset, count in answers.items() if count > 1}
    documents = [
        json.loads(line) for line in explain(busy, "--redelivered", "--top", 1000, "--json").output.splitlines()
    ]
    listed = {
        offset: each["deliveries"]
        for each in documents
        for offset in range(each["first_offset"], each["last_offset"] + 1)
    }
    lines = explain(busy, "--redelivered", "--top", 2).output.splitlines()

    assert {each["list"] for each in documents} == {"redelivered"}
    assert listed == {offset: answers[offset] for offset in again}
    assert re.fullmatch(rf"  Delivered more than once: {len(again)} records; the first 2 ranges, .*", lines[1])
    assert len(lines) == 5
    assert all(each["ends"][0]["client_id"] for each in documents)


def test_lists_are_about_many_records(busy: Path) -> None:
    """So they do not go with --offset; several of them come one after the other, with a title each."""
    both = explain(busy, "--offset", 1, "--archived")
    titles = [
        line
        for line in explain(busy, "--redelivered", "--archived", "--stuck").output.splitlines()
        if line[2:3].strip()
    ]

    assert (both.exit_code, "--offset is about one record" in both.output) == (2, True)
    assert [title.partition(":")[0].strip() for title in titles[1:]] == [
        *("Delivered more than once", "Given up or gone, not accepted", "Delivered, and not done with")
    ]


def test_the_share_partition_has_to_be_clear(stalled: Path, tmp_path: Path) -> None:
    """With several, the message lists the options to choose one; with none, it says so."""
    several = tmp_path / "several.jsonl"
    with create_history(several, Header(lacks=LACKS)) as file:
        file.write(Event.of((group_id, KEY[1], 0), 0, "config", request={}) for group_id in ("a", "b"))

    unclear = explain(several, "--offset", 0)
    none = explain(stalled, "--offset", 0, "--group", "other")

    assert (unclear.exit_code, none.exit_code) == (2, 2)
    assert f"--group a --topic {KEY[1]} --partition 0; --group b" in unclear.output
    assert f"; there are: --group g --topic {KEY[1]} --partition 0\n" in none.output


def test_a_topic_goes_by_its_name(tmp_path: Path) -> None:
    """If the header names it, the option takes the name, and the name is shown."""
    path = tmp_path / "history.jsonl"
    with create_history(path, Header(topics={KEY[1]: "orders"}, lacks=LACKS)) as file:
        file.write(history_of(STALL))

    shown = explain(path, "--offset", 15, "--topic", "orders")
    document = json.loads(explain(path, "--offset", 15, "--topic", KEY[1], "--json").output)

    assert shown.output.startswith("Record 15 of partition 0 of topic orders, group g\n")
    assert (document["topic_id"], document["topic"]) == (KEY[1], "orders")


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    """The command ends with code 2, and names the file."""
    path = tmp_path / "other.jsonl"
    path.write_text("{}\n")

    result = explain(path, "--offset", 0)

    assert (result.exit_code, str(path) in result.output) == (2, True)
