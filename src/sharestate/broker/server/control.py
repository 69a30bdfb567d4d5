"""
A port for those who test in another language: lines of JSON that say what a Python test says with methods.

A line is an object with one command; its answer is a line with ``ok``, or with ``error``. What is no such object closes
the connection, so a browser that is made to talk to it gets nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.server.faults import AppliedFault, Delay, Disconnect, Drop, Fail, Fault, Reorder
from sharestate.broker.server.test_broker import TestBroker
from sharestate.errors import ShareStateError
from sharestate.json_checks import Check, Field, an_object, boolean, integer, nullable, record, text
from sharestate.json_lines import Json, read_json, write_json
from sharestate.values.checks import brief_repr, refuse

MAX_LINE_BYTES: Final = 65_536
"""The longest line that is read: commands have a few hundred bytes. [bytes]"""

MAX_CONNECTIONS: Final = 16
"""The most connections at a time: a test has one."""

MAX_FAULTS: Final = 1_000
"""The most faults at a time."""

MAX_ADVANCE_MS: Final = 366 * 86_400_000
"""The most time that passes at once: a year. [ms]"""

_HOST: Final = "127.0.0.1"
"""Where it listens: it is for programs of the same computer, and asks nobody who they are."""


# ---- commands


class ControlCommands:
    """
    What can be asked of a broker at its control port; the name of a method is that of the command.

    Args:
        broker: The broker.
    """

    def __init__(self, broker: TestBroker) -> None:
        """Begin without faults."""
        self._broker = broker
        self._faults: dict[int, AppliedFault] = {}
        self._fault_count = 0

    def advance_ms(self, ms: int) -> Json:
        """Let time pass, and return the time that it is then. [ms]"""
        self._broker.advance(ms=ms)
        return self._broker.now_ms

    def close_connections(self, client_id: str | None) -> Json:
        """Close the connections of a client, or all, and return how many these were."""
        return self._broker.close_connections(client_id)

    def explain(self, arguments: dict[str, Any]) -> Json:
        """Return the life of a record in plain words, line by line."""
        return list(self._broker.explain(**arguments).lines())

    def fail_over(self, arguments: dict[str, Any]) -> Json:
        """Give a partition to its leader again, with the next epoch."""
        self._broker.fail_over(**arguments)
        return None

    def fault(self, fault: Fault) -> Json:
        """Let something go wrong, and return the number by which it can be removed."""
        if len(self._faults) >= MAX_FAULTS:
            refuse(f"expected at most {MAX_FAULTS} faults at a time: remove some", "fault")
        number, self._fault_count = self._fault_count, self._fault_count + 1
        self._faults[number] = self._broker.apply_fault(fault)
        return number

    def not_done(self, _: object) -> Json:
        """Return the records that groups are not done with, line by line."""
        return list(self._broker.not_done())

    def now(self, _: object) -> Json:
        """Return the time. [ms since 1970]"""
        return self._broker.now_ms

    def remove_fault(self, number: int) -> Json:
        """Let a fault happen no more, and return how often it has happened."""
        applied = self._faults.pop(number, None)
        if applied is None:
            refuse(f"expected the number of a fault, got {number}", "remove_fault")
        self._broker.remove_fault(applied)
        return applied.happened

    def restart(self, _: object) -> Json:
        """Start the node again."""
        self._broker.restart()
        return None

    def share_partitions(self, group_id: str | None) -> Json:
        """Return what the share partitions of a group, or of all, hold, line by line."""
        return [line for held in self._broker.share_partitions(group_id) for line in held.lines]


# ---- arguments

_ACTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "fail": Fail,
        "delay_ms": Delay,
        "drop": lambda _: Drop(),
        "disconnect": lambda _: Disconnect(),
        "reorder": Reorder,
    }
)
"""What a fault can do, by the field that says so; the number in it is an error code, milliseconds, or answers."""


def _made_fault(**fields: Any) -> Fault:  # noqa: ANN401 - the fields of the table
    named = [name for name in _ACTIONS if fields[name] is not None]
    actions = {name: fields.pop(name) for name in _ACTIONS}
    if len(named) != 1:
        refuse(f"expected one of {', '.join(_ACTIONS)}, got {' and '.join(named) or 'none'}", "fault")
    (name,) = named
    return Fault(action=_ACTIONS[name](actions[name]), **fields)


_PLACE: Final = {"topic": Field(text), "partition": Field(integer(0))}
_A_FAULT: Final = record(
    {
        "on": Field(text),
        "fail": Field(nullable(integer(-1, 2**15 - 1)), None),
        "delay_ms": Field(nullable(integer(0)), None),
        "drop": Field(nullable(boolean), None),
        "disconnect": Field(nullable(boolean), None),
        "reorder": Field(nullable(integer(2)), None),
        "group_id": Field(nullable(text), None),
        "topic": Field(nullable(text), None),
        "partition": Field(nullable(integer(0)), None),
        "client_id": Field(nullable(text), None),
        "skip": Field(integer(0), 0),
        "times": Field(nullable(integer(0)), None),
    },
    _made_fault,
)


_ARGUMENTS: Final[Mapping[str, Check[Any]]] = MappingProxyType(
    {
        "advance_ms": integer(0, MAX_ADVANCE_MS),
        "close_connections": nullable(text),
        "explain": record({**_PLACE, "offset": Field(integer(0)), "group_id": Field(nullable(text), None)}, dict),
        "fail_over": record(_PLACE, dict),
        "fault": _A_FAULT,
        "not_done": an_object,
        "now": an_object,
        "remove_fault": integer(0),
        "restart": an_object,
        "share_partitions": nullable(text),
    }
)
"""The commands, with what checks the argument of each."""


# ---- the port


class ControlPort:
    """
    The control port of a broker, in the event loop of the broker.

    Args:
        broker: The broker.
        port: The port; 0 for one that is free.
    """

    def __init__(self, broker: TestBroker, port: int = 0) -> None:
        """Make one that does not listen yet."""
        self.port = port
        self._commands = ControlCommands(broker)
        self._listener: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        """
        Listen.

        Raises:
            OSError: The port is not to be had.
        """
        self._listener = await asyncio.start_server(self._serve, _HOST, self.port, limit=MAX_LINE_BYTES)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and its connections."""
        if self._listener is not None:
            self._listener.close()
            for writer in self._connections.values():
                writer.close()
            await asyncio.gather(*self._connections)  # a loop that ends before them complains
            await self._listener.wait_closed()
        self._listener = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._connections[task] = writer
        try:
            while line := await reader.readline():
                writer.write(f"{write_json(self._answer(line))}\n".encode())
                await writer.drain()
        except (ValueError, OSError):  # too long a line, or none of JSON; or nobody is there any more
            pass
        finally:
            del self._connections[task]
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, line: bytes) -> Json:
        """
        Return the answer to a line.

        Raises:
            ValueError: It is no object.
        """
        request = an_object(read_json(line.decode()), "")
        try:
            return {"ok": self._carry_out(request)}
        except ShareStateError as error:
            return {"error": str(error)}

    def _carry_out(self, request: Mapping[str, Json]) -> Json:
        name, *others = request or [""]
        if name not in _ARGUMENTS or others:
            refuse(f"expected one of {', '.join(_ARGUMENTS)}, got {brief_repr(', '.join(request))}", "command")
        answer: Json = getattr(self._commands, name)(_ARGUMENTS[name](request[name], name))
        return answer
