"""The control port of a broker: lines of JSON, for tests in other languages."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from sharestate.broker import StandingClock, TestBroker
from sharestate.broker.server.control import MAX_CONNECTIONS, MAX_FAULTS, MAX_LINE_BYTES, ControlPort
from tests.support.wire_members import GROUP, TOPIC, WireMember, filled

NOT_LEADER_OR_FOLLOWER = 6


class Control:
    """A connection to a control port."""

    def __init__(self, port: int) -> None:
        """Connect."""
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._file = self._socket.makefile("rwb")

    def ask(self, **command: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a command, and return its answer."""
        self.send(json.dumps(command).encode() + b"\n")
        return json.loads(self._file.readline())

    def ok(self, **command: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a command that has to succeed, and return what it says."""
        answer = self.ask(**command)
        assert list(answer) == ["ok"], answer
        return answer["ok"]

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._file.write(data)
        self._file.flush()

    def is_closed(self) -> bool:
        """Return whether the other side hangs up."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker whose time stands at 0."""
    with TestBroker(clock=StandingClock(now_ms=0)) as broker:
        yield broker


@pytest.fixture
def port(broker: TestBroker) -> Iterator[int]:
    """The control port of the broker."""
    control = ControlPort(broker)
    loop = broker.run(lambda _: asyncio.get_running_loop())
    asyncio.run_coroutine_threadsafe(control.start(), loop).result()
    yield control.port
    asyncio.run_coroutine_threadsafe(control.stop(), loop).result()


@pytest.fixture
def control(port: int) -> Iterator[Control]:
    """A connection to it."""
    connection = Control(port)
    yield connection
    connection.close()


def test_time_is_advanced(broker: TestBroker, control: Control) -> None:
    """The answer is the time that it is then; locks have expired."""
    with WireMember(broker, filled(broker, 1)) as member:
        assert member.fetch() == [(0, 0, 1)]
        assert control.ok(advance_ms=30_001) == 30_001
        assert control.ok(now={}) == 30_001
        assert member.fetch() == [(0, 0, 2)]


def test_insight_is_lines_of_text(broker: TestBroker, control: Control) -> None:
    """What share partitions hold, the life of a record, and what is not done."""
    with WireMember(broker, filled(broker, 1)) as member:
        member.fetch()

        assert control.ok(share_partitions=None) == [line for held in broker.share_partitions() for line in held.lines]
        assert control.ok(share_partitions="nobody") == []
        assert control.ok(explain={"topic": TOPIC, "partition": 0, "offset": 0}) == broker.explain(TOPIC, 0, 0).lines()
        assert control.ok(not_done={}) == broker.not_done()


def test_faults_come_and_go_by_their_numbers(broker: TestBroker, control: Control) -> None:
    """The answer to removing one is how often it has happened."""
    with WireMember(broker, filled(broker, 1)) as member:
        number = control.ok(fault={"on": "ShareFetch", "fail": NOT_LEADER_OR_FOLLOWER, "group_id": GROUP})
        member.begin_fetch()
        assert member.end_fetch().error_code == NOT_LEADER_OR_FOLLOWER
        assert control.ok(remove_fault=number) == 1
    assert "error" in control.ask(remove_fault=number)
    with WireMember(broker, filled(broker, 0)) as member:
        assert member.fetch() == [(0, 0, 1)]


@pytest.mark.parametrize("action", [{"delay_ms": 5}, {"drop": True}, {"disconnect": True}, {"reorder": 2}])
def test_each_action_can_be_said(control: Control, action: dict[str, Any]) -> None:
    """By its name, with its number."""
    assert control.ok(fault={"on": "ShareFetch", **action}) == 0


def test_administration_is_that_of_the_broker(broker: TestBroker, control: Control) -> None:
    """Connections are closed, a partition has another leader, the node starts again."""
    topic_id = filled(broker, 1)
    with WireMember(broker, topic_id) as member:
        member.fetch()
        assert control.ok(close_connections="nobody") == 0
        assert control.ok(close_connections=None) == 1
        assert member.is_closed()
    assert control.ok(fail_over={"topic": TOPIC, "partition": 0}) is None
    assert broker.run(lambda node: node.leader_epoch(TOPIC, 0)) == 1
    assert control.ok(restart={}) is None


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"advance_ms": 1, "now": {}},
        {"advance": 1},
        {"advance_ms": -1},
        {"advance_ms": 10**15},
        {"advance_ms": "1"},
        {"now": 0},
        {"explain": {"topic": "t"}},
        {"explain": {"topic": "nothing", "partition": 0, "offset": 0}},
        {"fail_over": {"topic": "nothing", "partition": 0}},
        {"fault": {"on": "ShareFetch"}},
        {"fault": {"on": "ShareFetch", "fail": 6, "delay_ms": 5}},
        {"fault": {"on": "Nothing", "fail": 6}},
        {"fault": {"on": "ShareFetch", "fial": 6}},
    ],
    ids=lambda command: json.dumps(command)[:40],
)
def test_a_wrong_command_is_refused_and_changes_nothing(control: Control, command: dict[str, Any]) -> None:
    """The answer says what is wrong, and the connection goes on."""
    answer = control.ask(**command)

    assert list(answer) == ["error"]
    assert control.ok(now={}) == 0


@pytest.mark.parametrize(
    "line",
    [b"GET / HTTP/1.1\r\n", b"[]\n", b"null\n", b"\xff\n", b"{" * 2_000 + b"\n", b"1" * (MAX_LINE_BYTES + 1)],
    ids=["http", "list", "null", "not-utf-8", "deep", "long"],
)
def test_what_is_no_command_closes_the_connection(control: Control, port: int, line: bytes) -> None:
    """As from a browser that is made to talk to it; others are served."""
    control.send(line)
    assert control.is_closed()
    other = Control(port)
    assert other.ok(now={}) == 0
    other.close()


def test_there_are_so_many_connections_at_most(port: int) -> None:
    """One more is closed at once; when one has ended there is room again."""
    connections = [Control(port) for _ in range(MAX_CONNECTIONS)]
    for connection in connections:
        connection.ok(now={})
    more = Control(port)
    assert more.is_closed()
    for connection in (more, *connections):
        connection.close()


def test_there_are_so_many_faults_at_most(control: Control) -> None:
    """One more is refused."""
    for number in range(MAX_FAULTS):
        assert control.ok(fault={"on": "ShareFetch", "drop": True}) == number
    assert "error" in control.ask(fault={"on": "ShareFetch", "drop": True})
