"""What a sequence knows of its surroundings: the log, the members, the clock, the persister. Responses teach it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from attrs import Factory, define

from sharestate.testing.stored import StoredState

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.log import Log
    from sharestate.testing.mix import Mix

T = TypeVar("T")

Request: TypeAlias = dict[str, Any]
"""A request of the line protocol, ready for ``json.dumps``."""

Response: TypeAlias = dict[str, Any]
"""A response of the line protocol, as ``json.loads`` gives it."""

Steps: TypeAlias = Generator[Request, Response, T]
"""Requests to be answered one by one, and what became of it all."""

REMEMBERED = 12
"""How many ranges that are no longer held are remembered, for acknowledgements that come too late."""


class Holding(NamedTuple):
    """A range that a member has acquired and that is its own until *deadline_ms*."""

    member: str
    """Who acquired it."""

    first_offset: int
    """The first offset of the range."""

    last_offset: int
    """The last offset of the range, included."""

    deadline_ms: int
    """When the acquisition lock lapses, unless it is renewed. [ms]"""


@define
class World:
    """The surroundings of one share partition, as far as its peer's responses tell."""

    choices: Choices
    """Where all choices come from."""

    mix: Mix
    """What the sequence is made of."""

    log: Log
    """The partition's log."""

    members: tuple[str, ...]
    """The members of the group."""

    stored: StoredState = Factory(StoredState)
    """What the share coordinator has."""

    committed: bool = False
    """Whether the group reads committed records only."""

    leader_epoch: int = 0
    """The leader epoch of the share partition that is open."""

    opened_with: dict[str, int] = Factory(dict)
    """The config it was opened with."""

    lock_duration_ms: int = 30_000
    """The duration of new acquisition locks. [ms]"""

    now_ms: int = 0
    """The share partition's clock. [ms]"""

    is_active: bool = False
    """Whether its initialisation has succeeded."""

    is_read_held: bool = False
    """Whether the persister still owes the answer to the read."""

    held_writes: dict[int, dict[str, Any]] = Factory(dict)
    """The writes that the persister has not answered yet, by number."""

    holdings: list[Holding] = Factory(list)
    """What members have acquired and not acknowledged."""

    let_go: list[Holding] = Factory(list)
    """What they held until a short while ago."""

    def ask(self, op: str, **fields: Any) -> Steps[Response]:  # noqa: ANN401 - the fields of a request are JSON
        """Send one request, learn from its response, and return it."""
        request: Request = {"op": op, **fields}
        if self.mix.key:
            request["key"] = self.mix.key
        if self.mix.quiet:
            request["quiet"] = True
        response = yield request
        self._observe(request, response)
        return response

    def lapse(self) -> None:
        """Forget the holdings whose locks have lapsed by now."""
        self.let_go_of([holding for holding in self.holdings if holding.deadline_ms < self.now_ms])

    def let_go_of(self, holdings: list[Holding]) -> None:
        """Move *holdings* to those that were held a short while ago."""
        gone = set(holdings)
        if gone:
            self.holdings = [holding for holding in self.holdings if holding not in gone]
            self.let_go = [*self.let_go, *holdings][-REMEMBERED:]

    def hold(self, member: str, ranges: list[tuple[int, int]]) -> None:
        """Take note that *member* holds *ranges* as of now."""
        deadline = self.now_ms + self.lock_duration_ms
        self.holdings += [Holding(member, first, last, deadline) for first, last in ranges]

    def reset(self) -> None:
        """Forget everything that a new leader does not have."""
        self.let_go_of(self.holdings)
        self.now_ms = 0
        self.is_active = self.is_read_held = False
        self.held_writes = {}

    def _observe(self, request: Request, response: Response) -> None:
        for event in response.get("events") or ():
            self._observe_event(event)
        if request["op"] == "complete":
            self._observe_completion(request)
        elif request["op"] == "initialize":
            result = response.get("result")
            self.is_active = isinstance(result, dict) and result.get("status") == "ok"

    def _observe_event(self, event: list[Any]) -> None:
        match event:
            case ["write", write, "hold"]:
                self.held_writes[write["write"]] = write
            case ["write", write, "ok"]:
                self.stored.write(write)
            case ["read", "hold"]:
                self.is_read_held = True
            case ["future", _, status] if self.is_read_held:
                self.is_active = status == "ok"

    def _observe_completion(self, request: Request) -> None:
        if request["write"] == "read":
            self.is_read_held = False
            return
        write = self.held_writes.pop(request["write"], None)
        if write is not None and request["answer"] == "ok":
            self.stored.write(write)
