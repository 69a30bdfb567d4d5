"""``sharestate broker``."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer, ShareConsumer

from sharestate.cli.commands import sharestate
from sharestate.history import open_history

PATIENCE_S = 30


@contextmanager
def serving(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command until the end of the context."""
    command = [sys.executable, "-m", "sharestate", "broker", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """Send a signal, and return the exit code and what was printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def command(*arguments: str | Path) -> Result:
    """Run the command in this process, which it leaves at once as something is wrong."""
    return CliRunner().invoke(sharestate, ["broker", *map(str, arguments)])


def test_a_consumer_in_another_process_gets_its_records(tmp_path: Path) -> None:
    """The first line is the address; a control port moves the clock; events are lines; history and state are files."""
    history, state = tmp_path / "history.jsonl", tmp_path / "state.sqlite"
    options = ["--quick", "--standing-clock", "--control-port", "0", "--set", "share.auto.offset.reset=earliest"]
    log, segments = tmp_path / "request.log", tmp_path / "data"
    logs = ("--request-log", log, "--segments", segments)
    with serving(*options, *logs, "--history", history, "--state", state) as process:
        address = line_of(process)
        word, control = line_of(process).split()
        assert (address.split(":")[0], word) == ("127.0.0.1", "control")
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        producer.produce("orders", b"1")
        assert producer.flush(PATIENCE_S) == 0
        consumer = ShareConsumer({"bootstrap.servers": address, "group.id": "g", "log_level": 0})
        consumer.subscribe(["orders"])
        give_up_s = time.monotonic() + PATIENCE_S
        while not consumer.poll(timeout=0.2):
            assert time.monotonic() < give_up_s
        assert asked(control, {"advance_ms": 30_001}) > 0
        code, out, err = ended(process, signal.SIGTERM)
        consumer.close()

    assert (code, err) == (0, "")
    said = [line.split(" ", 1)[1] for line in out.splitlines()]
    assert said[0] == "g orders-0: a leader has read the state"
    assert said[1].endswith(" acquired 0 (delivery 1)")
    assert said[2] == "g orders-0: an acquisition lock has expired"
    with open_history(history) as reader:
        assert {event.kind for event in reader} >= {"fetch", "expire", "write"}
    arrival = tmp_path / "arrival.jsonl"
    imported = CliRunner().invoke(
        sharestate, ["log", "import", str(log), "--segments", str(segments), "-o", str(arrival)]
    )
    assert imported.exit_code == 0
    assert (segments / "orders-0" / f"{0:020}.log").stat().st_size > 61
    assert state.read_bytes().startswith(b"SQLite format 3\0")

    before = state.read_bytes()
    again = command("--state", state)  # records and groups are gone, and other topics would get these ids
    assert again.exit_code == 2
    assert "state.sqlite has the state of an earlier broker" in again.stderr
    assert state.read_bytes() == before


def asked(address: str, request: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return what a control port answers."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection, connection.makefile("rw") as file:
        file.write(f"{json.dumps(request)}\n")
        file.flush()
        return json.loads(file.readline())["ok"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number: int) -> None:
    """Ctrl-C and SIGTERM close the socket; nothing is printed of it."""
    with serving() as process:
        host, port = line_of(process).split(":")
        assert ended(process, number) == (0, "", "")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), 1)


def test_an_open_connection_to_the_control_port_ends_with_it() -> None:
    """Nothing is said of what served it."""
    with serving("--control-port", "0") as process:
        line_of(process)
        host, port = line_of(process).split()[1].split(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
            connection.sendall(b'{"now": {}}\n')
            assert connection.recv(1) == b"{"

            assert ended(process, signal.SIGTERM) == (0, "", "")


def test_a_port_that_is_taken_is_an_error() -> None:
    """The exit code is 2, and the error says so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command("--port", str(taken.getsockname()[1]))

    assert result.exit_code == 2
    assert "cannot begin" in result.stderr
    assert "in use" in result.stderr


def test_settings_come_from_a_file_and_from_options(tmp_path: Path) -> None:
    """An option has the last word; what is not about share groups is left out."""
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/nowhere\ngroup.share.delivery.count.limit=3\nnum.partitions=4\n")
    refused = command("--config", file, "--set", "group.share.delivery.count.limit=1")

    assert refused.exit_code == 2
    assert "group.share.delivery.count.limit" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "nonsense"], "'nonsense' is not of the form KEY=VALUE."),
        (["--set", "=1"], "'=1' is not of the form KEY=VALUE."),
        (["--set", "group.share.nothing=1"], "group.share.nothing"),
        (["--profile", "kafka-3.9"], "kafka-3.9"),
        (["--history", "history.txt"], "history.txt"),
        (["--port", "65536"], "65536"),
    ],
)
def test_what_cannot_be_is_refused_before_it_listens(arguments: list[str], said: str) -> None:
    """The exit code is 2, and the error names what is wrong."""
    result = command(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_file_without_state_is_as_good_as_none(tmp_path: Path) -> None:
    """A broker for which nobody came has left nothing that the next one would mistake."""
    for _ in range(2):
        with serving("--state", tmp_path / "state.sqlite") as process:
            assert line_of(process).startswith("127.0.0.1:")
            assert ended(process, signal.SIGTERM) == (0, "", "")


def test_it_ends_when_nobody_reads_its_lines() -> None:
    """As in `sharestate broker | head -1`: the first event after that ends it."""
    with serving("--quick", "--set", "share.auto.offset.reset=earliest") as process:
        address = line_of(process)
        assert process.stdout is not None
        process.stdout.close()
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        producer.produce("orders", b"1")
        assert producer.flush(PATIENCE_S) == 0
        consumer = ShareConsumer({"bootstrap.servers": address, "group.id": "g", "log_level": 0})
        consumer.subscribe(["orders"])
        give_up_s = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            assert time.monotonic() < give_up_s
            consumer.poll(timeout=0.1)
        consumer.close()

        assert process.returncode in {0, 141}
