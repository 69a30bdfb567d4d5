"""``sharestate monitor``: what it prints once, and that it serves, waits for a cluster, and ends when asked to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient

from sharestate.cli.commands import sharestate
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.state_topic import StateTopic, StateTopicFile
from tests.support.mock_brokers import DUMP, Brokers
from tests.support.scrapes import parsed


def monitor(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["monitor", *map(str, arguments)])


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """A cluster with the state topic of a broker's dump, which has a topic and tells the settings of groups."""
    brokers = Brokers()
    brokers.write_dump()
    topic = StateTopic()
    topic.read([StateTopicFile(DUMP)])
    topic_id = topic.share_partitions()[0].key.topic_id
    brokers.write("orders", 0, b"k", b"v")
    described = brokers.describe({"orders": UUID(bytes=topic_id_bytes(topic_id))})
    monkeypatch.setattr(AdminClient, "describe_topics", described)

    def describe_configs(_: AdminClient, resources: list[Any], **_options: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401 - of any
        futures: dict[Any, Future[Any]] = {resource: Future() for resource in resources}
        for future in futures.values():
            future.set_result({})
        return futures

    monkeypatch.setattr(AdminClient, "describe_configs", describe_configs)
    return brokers


def test_once_is_what_rebuild_says(brokers: Brokers) -> None:
    """Both commands say the same of each share partition, lag included; only one has names that are longer."""
    rebuilt = CliRunner().invoke(sharestate, ["state", "rebuild", "--json", "--bootstrap", brokers.address])
    once = monitor("--bootstrap", brokers.address, "--once", "--json")

    assert (once.exit_code, once.stderr) == (0, "")
    theirs = {(each["group_id"], each["topic_id"]): each for each in map(json.loads, rebuilt.stdout.splitlines())}
    ours = {(each["group"], each["topic_id"]): each for each in map(json.loads, once.stdout.splitlines())}
    assert ours.keys() == theirs.keys()
    for key, each in ours.items():
        expected = theirs[key]
        assert each["lag_records"] == expected["lag"]
        assert each["log_end_offset"] == expected["log_end_offset"]
        assert each["complete_records"] == expected["delivery_complete_count"]
        assert {name: each[name] for name in ("start_offset", "state_epoch", "leader_epoch")} == {
            name: expected[name] for name in ("start_offset", "state_epoch", "leader_epoch")
        }
    assert any(each["topic"] == "orders" for each in ours.values())
    assert any(each["topic"] == f"id:{each['topic_id']}" for each in ours.values())


def test_once_prints_a_table(brokers: Brokers) -> None:
    """With a row for each share partition; reasons have a column where there are any."""
    result = monitor("--bootstrap", brokers.address, "--once")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "Share partitions: 4" in result.stdout
    (heading,) = [line for line in result.stdout.splitlines() if "corrected lag" in line]
    assert "why unknown" in heading
    assert result.stdout.count("no_log_end") > 0


def test_once_goes_on_from_a_checkpoint(brokers: Brokers, tmp_path: Path) -> None:
    """A second time prints the same, and a file that is none is named."""
    arguments = ("--bootstrap", brokers.address, "--once", "--json", "--checkpoint", tmp_path / "c.sqlite")
    assert monitor(*arguments).stdout == monitor(*arguments).stdout
    (tmp_path / "c.sqlite").write_text("no database" * 100)

    refused = monitor(*arguments)

    assert refused.exit_code == 2
    assert "c.sqlite" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Missing option '--bootstrap'"),
        (["--bootstrap", "127.0.0.1:1", "--json"], "--json needs --once"),
        (["--bootstrap", "127.0.0.1:1", "--listen", "9932"], "'9932' is not of the form HOST:PORT"),
        (["--bootstrap", "127.0.0.1:1", "--listen", "127.0.0.1:99999"], "is not of the form HOST:PORT"),
        (["--bootstrap", "127.0.0.1:1", "--once"], "127.0.0.1:1: "),
        (["--bootstrap", "127.0.0.1:1", "--listen", "192.0.2.1:0"], "192.0.2.1:0: "),
    ],
    ids=["no cluster", "JSON for ever", "no host", "no port", "nobody there", "not our address"],
)
def test_what_cannot_be_done_is_said(arguments: list[str], problem: str) -> None:
    """In a line, with exit code 2."""
    result = monitor(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_waits_for_a_cluster_and_ends_when_asked(number: signal.Signals) -> None:
    """A cluster that is not there is no reason to end: it is said, and shown; a signal is, at once and with code 0."""
    command = [sys.executable, "-m", "sharestate", "monitor", "--bootstrap", "127.0.0.1:1", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        assert "127.0.0.1:1: " in process.stderr.readline()
        with urlopen(address) as response:  # noqa: S310 - its own
            scrape = parsed(response.read().decode())
        process.send_signal(number)
        _, rest = process.communicate(timeout=60)

    assert scrape.value("sharestate_up") == 0
    assert scrape.value("sharestate_failed_rounds_total") == 1
    assert (process.returncode, rest) == (0, "")
