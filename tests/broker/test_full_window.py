"""A bug of Kafka's on its own brokers: a gap window that holds all offsets there may be stalls the group (F1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import ACCEPT, PATIENCE_S, configure, member, offsets, produce, take

pytestmark = pytest.mark.broker

GROUP: Final = "stalled"
TOPIC: Final = "windows"
LOCKS: Final = "share.partition.max.record.locks"
QUIET_S: Final = 3
"""How long nothing comes; with room for more locks, it comes at once. [s]"""


def test_a_full_window_stalls_the_group(broker: KafkaBroker, tmp_path: Path) -> None:
    """What is written behind a window of 110 offsets comes only when there are more locks; the request log says why."""
    broker.create_topic(TOPIC, 1)
    configure(broker, GROUP, {LOCKS: "100"})
    produce(broker, TOPIC, 120, batch=60)
    with member(broker, GROUP, TOPIC) as lost, member(broker, GROUP, TOPIC) as living:
        taken = take(lost)
        for message in taken[10:]:
            lost.acknowledge(message, ACCEPT)
        lost.commit_sync(PATIENCE_S)
        behind = take(living)
        for message in behind:
            living.acknowledge(message, ACCEPT)
        living.commit_sync(PATIENCE_S)
        assert (offsets(taken), offsets(behind)) == (set(range(60)), set(range(60, 120)))

        broker.stop()  # the next leader knows nothing of the first ten records
        broker.start()
        gap = take(living)
        for message in gap:
            living.acknowledge(message, ACCEPT)
        (error,) = living.commit_sync(PATIENCE_S).values()
        assert (offsets(gap), error) == (set(range(10)), None)

        produce(broker, TOPIC, 60, batch=60)
        assert list(living.poll(QUIET_S)) == []
        now = explain(broker, tmp_path / "history.jsonl", 120)["now"]
        (stall,) = (each["text"] for each in now["reasons"] if each["reason"] == "F1")
        assert "110 offsets in flight where share.partition.max.record.locks is 100. It ends when" in stall
        assert "raised above 110" in stall
        assert (now["deliverable"], {each["reason"] for each in now["reasons"]}) == ("stalled", {"no room", "F1"})
        configure(broker, GROUP, {LOCKS: "200"})
        assert offsets(take(living)) == set(range(120, 180))


def explain(broker: KafkaBroker, history: Path, offset: int) -> Any:  # noqa: ANN401 - JSON
    """Import the request log of a running broker, and return what is said of a record of the group."""
    ask(
        "import",
        broker.request_log,
        *("--segments", broker.log_dir, "--config", broker.properties, "--group", GROUP, "-o", history),
    )
    ordered = history.with_name("ordered.jsonl")
    ask("verify", history, "-o", ordered)
    return json.loads(ask("explain", ordered, "--offset", offset, "--json"))


def ask(*arguments: str | int | Path) -> str:
    """Return what ``sharestate log`` prints; it succeeds."""
    result = CliRunner().invoke(sharestate, ["log", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout
