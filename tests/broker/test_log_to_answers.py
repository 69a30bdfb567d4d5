"""The page that goes from a broker's log to answers, followed from its first command on, on a live broker."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate.broker_log import read_group_configs
from tests.broker.conftest import running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.loads import Group, Load, Run, Topic
from tests.broker.random_load import carry_out, prepare
from tests.support.recipes import PageCommand, commands, run

pytestmark = pytest.mark.broker

PAGE: Final = "log-to-answers.md"
LOAD: Final = Load(
    topics=(Topic("k1"),),
    groups=(Group("kb", ("k1",), raw=2, config={"share.delivery.count.limit": "3"}),),
    seconds=2,
)


def test_the_page_is_followed_while_a_broker_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is switched on after a group was configured and at work, and off again; all of it is explained."""
    home, place = tmp_path / "broker", tmp_path / "copied"
    home.mkdir()
    place.mkdir()
    monkeypatch.chdir(place)
    with running("4.4.0", home, {"num.io.threads": "4"}, "warn") as broker:
        load = Run(broker, LOAD)
        prepare(load)
        carry_out(load)
        assert not broker.request_log.read_text()
        configure_by_hand(broker, commands(PAGE, "1. Note the settings of groups, and switch on the log"))
        carry_out(load)  # members that have left come again, so the leader reads its state
        configure_by_hand(broker, commands(PAGE, "3. Switch it off"))
        size = broker.request_log.stat().st_size
        carry_out(load)
        assert broker.request_log.stat().st_size == size
        copy(broker, place)
        imported, verified, *others = (step.text for step in commands(PAGE, "5. Import, verify, ask"))
        asking = imported.replace("--group-config groups.txt", f"--bootstrap {broker.address}")
        assert asking != imported
        assert run(asking.replace("arrival", "asked")).exit_code == 0

    assert load.failures == []
    (described,) = read_group_configs([Path("groups.txt")]).items()
    assert (described[0], described[1]["delivery_count_limit"]) == ("kb", 3)
    for command in (imported, verified, *others, verified.replace("arrival", "asked").replace("history", "other")):
        result = run(command)
        assert result.exit_code == 0, result.output
    for history in ("arrival.jsonl", "asked.jsonl"):
        (report,) = map(json.loads, run(f"sharestate log verify {history} --json").stdout.splitlines())
        assert report["verdict"] == "explained"
        assert report["explained"]["fetches_with_records"] == fetches_with_records(place / "kafka-request.log") > 0


def configure_by_hand(broker: KafkaBroker, steps: list[PageCommand]) -> None:
    """Run what the page has for ``kafka-configs.sh``, which prints what the page says."""
    for step in steps:
        program, *words = shlex.split(step.text.replace("broker1:9092", broker.address))
        assert program == "kafka-configs.sh"
        file = words.pop() if words[-2] == ">" else None
        printed = broker.tool("kafka.admin.ConfigCommand", *words[: -1 if file else None])
        if file:
            Path(file).write_text(printed)
        assert step.output == ("" if file else printed)


def copy(broker: KafkaBroker, place: Path) -> None:
    """Copy what the page says, while the broker runs."""
    shutil.copy(broker.request_log, place / "kafka-request.log")
    shutil.copytree(broker.log_dir / "k1-0", place / "data" / "k1-0")
    shutil.copy(broker.properties, place / "server.properties")


def fetches_with_records(log: Path) -> int:
    """Return how many fetches have acquired something, by the lines alone."""
    requests: list[Any] = [json.loads(line.partition("Completed request:")[2]) for line in log.read_text().splitlines()]
    return sum(
        bool(partition["acquiredRecords"])
        for request in requests
        if request["requestHeader"]["requestApiKeyName"] == "SHARE_FETCH"
        for topic in request["response"]["responses"]
        for partition in topic["partitions"]
    )
