"""The command ``diagnose``: what it prints, and how it ends."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient

from sharestate.cli.commands import sharestate
from sharestate.diagnose import diagnose, read_facts
from sharestate.state_topic.cluster import Cluster
from tests.support.hand_made_stories import Story
from tests.support.mock_brokers import TOPIC, Brokers
from tests.support.watched_cluster import WatchedCluster, snapshot, update

DATA: Final = Path(__file__).parents[2] / "data"
BAD, GOOD = DATA / "diagnose/bad.jsonl.gz", DATA / "diagnose/good.jsonl.gz"


def run(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["diagnose", *map(str, arguments)])


def test_findings_end_it_with_1() -> None:
    """The table, what shows it, and what to do."""
    result = run(BAD)

    assert result.exit_code == 1
    assert "2 findings in 1 share partition, 45 events." in result.stdout
    assert "warning: acquisition locks are shorter than processing takes (lock-too-short)" in result.stdout
    assert "What to do: Set share.record.lock.duration.ms of the group to 2000" in result.stdout


def test_nothing_found_ends_it_with_0() -> None:
    """What was done is said, and nothing else."""
    result = run(GOOD)

    first, second = result.stdout.splitlines()

    assert (result.exit_code, first) == (0, "Nothing found in 1 share partition, 38 events.")
    assert second.startswith("group billing: 200 records delivered, 200 deliveries; half were done within ")
    assert second.endswith("; 1 member; lag 0 at the end")


def test_what_is_not_checked_ends_it_with_2(tmp_path: Path) -> None:
    """Nothing was found, but not everything could be."""
    story = Story(log=10)
    story.happens("fetch", "m1", {"max_records": 10}, {"acquired": ()})
    result = run(story.save(tmp_path / "history.jsonl"))

    assert result.exit_code == 2
    assert "Not checked in group g, orders-0, because 1 time something was observed" in result.stdout


def test_json_is_one_document() -> None:
    """It is that of the library."""
    assert json.loads(run(BAD, "--json").stdout) == diagnose(read_facts(BAD)).to_json()


@pytest.mark.parametrize("options", [("--group", "billing"), ("--topic", "payments"), ("--partition", "0")])
def test_options_choose_share_partitions(options: tuple[str, str]) -> None:
    """By group, by the topic's name, by partition."""
    assert json.loads(run(BAD, "--json", *options).stdout)["share_partitions"] == 1


@pytest.mark.parametrize("options", [("--group", "bills"), ("--topic", "orders"), ("--partition", "1")])
def test_options_that_choose_nothing_are_refused(options: tuple[str, str]) -> None:
    """Nothing found would be no answer."""
    result = run(BAD, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such share partition is in" in result.stderr


@pytest.mark.parametrize("options", [("--group", "bills"), ("--topic", "orders"), ("--partition", "1000")])
def test_options_that_choose_nothing_of_the_state_topic_are_refused(options: tuple[str, str]) -> None:
    """A group whose name is mistyped is not a healthy one."""
    result = run("--state", DATA / "segments", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such share partition is in the state topic" in result.stderr


def test_an_empty_state_topic_is_no_healthy_one(tmp_path: Path) -> None:
    """Nothing was judged, so nothing found would be no answer."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    assert run("--state", empty).exit_code == 2


def test_a_comparison_says_what_differs() -> None:
    """It ends with 1 if something does, with 0 if nothing does."""
    result, same = run(BAD, "--against", GOOD), run(BAD, "--against", BAD)

    assert (result.exit_code, same.exit_code) == (1, 0)
    assert "group billing: the setting record_lock_duration_ms is 1000, where it was 3000" in result.stdout
    assert same.stdout == "Nothing has changed by a half or more.\n"
    assert json.loads(run(BAD, "--against", GOOD, "--json").stdout)["groups"] == ["billing"]


def test_histories_without_a_common_group_are_not_comparable(tmp_path: Path) -> None:
    """That ends it with 2."""
    other = Story(log=10)
    other.work("m1")
    result = run(BAD, "--against", other.save(tmp_path / "other.jsonl"))

    assert result.exit_code == 2
    assert "Not comparable: they have no group in common." in result.stdout


def test_the_page_has_what_the_command_prints(tmp_path: Path) -> None:
    """A page without a script."""
    page = tmp_path / "page.html"
    run(BAD, "--html", page)
    text = page.read_text()

    assert "acquisition locks are shorter than processing takes" in text
    assert "60 deliveries of 240 (25 %) have expired" in text
    assert "<script" not in text


def test_what_was_computed_is_printed_and_on_the_page(tmp_path: Path) -> None:
    """And in the document: what was computed, or why nothing was."""
    page = tmp_path / "page.html"
    said = "nothing, because the simulated load is not like the history: duplicates: "
    result = run(BAD, "--advise", "--html", page)
    document = json.loads(run(BAD, "--advise", "--json").stdout)

    assert f"  Computed: {said}" in result.stdout
    assert f"<h3>Computed</h3><ul><li>{said}" in page.read_text()
    assert document["findings"][0]["computed"][0].startswith(said)
    assert "computed" not in document["findings"][1]


def test_the_state_topic_is_judged(tmp_path: Path) -> None:
    """Of segments of a broker, with what they do not say; on the page, too, where that is a list of its own."""
    page = tmp_path / "page.html"
    result = run("--state", DATA / "segments", "--html", page)

    assert "records of the topic</p>" in page.read_text()
    assert "<li>The state topic does not say:<ul><li>who holds records" in page.read_text()

    assert "The state topic does not say:" in result.stdout
    assert result.exit_code in {1, 2}


def test_how_long_an_spso_stands_is_said(tmp_path: Path) -> None:
    """Up to the last record of the topic: it came at 1 s, and the last change is of 12 s."""
    cluster = WatchedCluster()
    cluster.write(snapshot(5))
    for offset in range(6, 17):
        cluster.write(update(5, (offset, offset, 2, 1), complete=offset - 5))
    lines = [
        {
            "key": base64.b64encode(each.key).decode(),
            "value": base64.b64encode(each.value or b"").decode(),
            "statePartition": 0,
            "offset": each.offset,
            "timestamp": 1000 + (each.timestamp_ms or 0),
        }
        for each in cluster.records({0: range(12)})
    ]
    topic = tmp_path / "state.jsonl"
    topic.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = run("--state", topic)

    assert (
        "The SPSO stands at 5 for 11 s, through 11 changes of the state; 11 records behind it are done."
        in result.stdout
    )


def test_a_cluster_is_asked_for_the_settings_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are near the limit that the group has; an option says otherwise."""
    brokers = Brokers()
    watched = WatchedCluster()
    watched.write(snapshot(0, (0, 3, 0, 2)))
    for key, value in watched.logs[0]:
        brokers.write(TOPIC, 0, key, value)
    said = {"share.delivery.count.limit": "3", "share.partition.max.record.locks": "200"}
    monkeypatch.setattr(Cluster, "group_configs", lambda *_, **__: {"g": said})
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe({"orders": UUID(bytes=bytes(range(16)))}))
    asked = json.loads(run("--bootstrap", brokers.address, "--json").stdout)
    told = json.loads(run("--bootstrap", brokers.address, "--json", "--delivery-limit", "9").stdout)

    assert [each["facts"] for each in asked["findings"]] == [{"records": 4, "offset": 0, "limit": 3}]
    assert (told["findings"], any("Assumed" in note for note in asked["notes"])) == ([], False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'HISTORY'."),
        ((BAD, "--state", DATA / "segments"), "Give either a history, or --bootstrap or --state."),
        (("--state", DATA / "segments", "--against", BAD), "--against compares two histories"),
        ((DATA / "README.md",), "expected a name that ends with"),
        (("--state", DATA / "segments", "--profile", "kafka-4.3"), "--profile is for a history; what the state topic"),
        (("--state", DATA / "segments", "--advise"), "--advise is for a history"),
        ((BAD, "--against", GOOD, "--advise"), "goes without --html and --advise"),
        ((BAD, "--delivery-limit", "3"), "--delivery-limit is for the state topic"),
        ((BAD, "--max-record-locks", "3"), "--max-record-locks is for the state topic"),
        ((BAD, "--command-config", BAD), "--command-config is for the state topic"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str | Path, ...], message: str) -> None:
    """With exit code 2."""
    result = run(*arguments)

    assert result.exit_code == 2
    assert message in result.output
