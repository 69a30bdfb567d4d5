"""Which brokers lead share partitions, as far as the requests of a cluster say, and whose log is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define

from sharestate.broker_log.imported_events import ImportedEvents, Key
from sharestate.broker_log.lines import LoggedRequest

_PERSISTER: Final = re.compile(r"Persister-client-(\d{1,10})")
"""The client id with which a leader reads and writes state; the number is its node id (PersisterStateManager)."""

_LAST_NODE: Final = 2**31 - 1
"""The highest node id; clients name themselves as they like."""

_MOST_BROKERS: Final = 10_000
"""How many addresses of brokers are remembered, the first ones. [addresses]"""

_MOST_SILENT: Final = 3
"""How many times of missing logs are named for a share partition, the first ones. [times]"""

_ANSWERED_US: Final = 1_000_000
"""How much later than the write of an acknowledgement its answer may be, or seem to be: five stalls of 200 ms. [µs]"""

_LATE_US: Final = 50_000
"""How much later than an answer the write may seem to arrive that it has waited for: both lines are 25 ms late. [µs]"""


@define
class _Life:
    """A time in which a broker leads a share partition."""

    node_id: int | None
    """The broker."""

    epoch: int
    """The leader's epoch."""

    begin_us: int
    """When it has read the state. [µs since 1970]"""

    coordinator: str = ""
    """The connection to the share coordinator."""

    is_heard: bool = False
    """Whether a member has got an answer from it."""

    waits: LoggedRequest | None = None
    """A request that has acknowledged, and of which no write was seen yet."""


class Leaders:
    """
    The leaders of share partitions.

    Args:
        events: Where events go.
    """

    def __init__(self, events: ImportedEvents) -> None:
        """Start without any."""
        self._events = events
        self._lives: dict[Key, _Life] = {}
        self._of_partition: dict[tuple[str, int], int] = {}
        self._nodes: dict[str, int] = {}
        self._votes: dict[str, Counter[int]] = {}
        self._logged: set[str] = set()
        self._cluster: set[int] = set()
        self._silent: dict[Key, list[tuple[int, int, int]]] = {}
        self._unwritten: dict[Key, str] = {}
        self._unlogged: dict[Key, str] = {}
        self._last_us = 0

    def saw(self, logged: LoggedRequest) -> None:
        """Note that the log of a broker is there."""
        self._last_us = max(self._last_us, logged.taken_us)
        if len(self._logged) < _MOST_BROKERS:
            self._logged.add(logged.broker)

    def know(self, brokers: Iterable[Mapping[str, Any]]) -> None:
        """Note the brokers of the cluster with their node ids and addresses, as an answer to METADATA has them."""
        for broker in brokers:
            if len(self._nodes) < _MOST_BROKERS:
                self._nodes[f"{broker['host']}:{broker['port']}"] = broker["nodeId"]
                self._cluster.add(broker["nodeId"])

    # ---- who leads

    def node_of(self, broker: str) -> int | None:
        """Return the node id of the broker with an address; None if it is not known."""
        if broker in self._nodes:
            return self._nodes[broker]
        votes = self._votes.get(broker)
        return None if votes is None else votes.most_common(1)[0][0]

    def leader_of(self, topic_id: str, partition: int) -> int | None:
        """Return the node id of the broker that leads a partition, or led it last; None if it is not known."""
        return self._of_partition.get((topic_id, partition))

    def may_lead(self, broker: str, key: Key, at_us: int) -> bool:
        """Return whether it may be that a broker leads a share partition, or did at a time. [µs since 1970]"""
        life = self._lives.get(key)
        node_id = self.node_of(broker)
        return life is None or at_us < life.begin_us or None in {node_id, life.node_id} or node_id == life.node_id

    def is_former(self, key: Key, logged: LoggedRequest) -> bool:
        """Return whether a broker has answered a member that does not lead a share partition any more."""
        return not self.may_lead(logged.broker, key, logged.taken_us)

    # ---- requests

    def read(self, key: Key, logged: LoggedRequest, epoch: int) -> int | None:
        """Note that the state of a share partition was read, and return the node id of the broker that has."""
        node_id = _persister(logged)
        self._begin(key, _Life(node_id, epoch, logged.at_us, logged.connection))
        return node_id

    def is_fenced(self, key: Key, epoch: int) -> bool:
        """Return whether a write is that of a former leader, which goes on for a while to let locks expire."""
        life = self._lives.get(key)
        return life is not None and epoch < life.epoch

    def wrote(self, key: Key, logged: LoggedRequest, epoch: int) -> None:
        """Note that the state of a share partition was written."""
        node_id, life = _persister(logged), self._lives.get(key)
        if life is None:
            self._begin(key, _Life(node_id, epoch, logged.at_us, logged.connection, is_heard=True))
        elif epoch > life.epoch:
            self._begin(key, _Life(node_id, epoch, logged.at_us, logged.connection))
            since = f"broker {node_id} leads from {_instant(logged.at_us)} on or earlier"
            self._unwritten.setdefault(key, f"{since}, and no log has its read of the state")
        else:
            if life.coordinator != logged.connection and life.waits and life.waits.done_us + _LATE_US < logged.at_us:
                at = self._place(life.waits)
                self._unlogged.setdefault(
                    key,
                    f"the share coordinator moved or stopped, and no log has what it wrote"
                    f" for the acknowledgement in {at}",
                )
            life.waits, life.coordinator = None, logged.connection

    def _begin(self, key: Key, life: _Life) -> None:
        self._end(key, life.begin_us)
        self._lives[key] = life
        if life.node_id is not None:
            self._of_partition[key[1:]] = life.node_id

    def _end(self, key: Key, end_us: int) -> None:
        """Note that a life is over: if no member has got an answer the log of its broker may be missing."""
        life = self._lives.get(key)
        if life is None or life.is_heard or life.node_id is None:
            return
        silent = self._silent.setdefault(key, [])
        if silent and (silent[-1][0], silent[-1][2]) == (life.node_id, life.begin_us):
            silent[-1] = life.node_id, silent[-1][1], end_us
        elif len(silent) < _MOST_SILENT:
            silent.append((life.node_id, life.begin_us, end_us))

    def acknowledged(self, key: Key, logged: LoggedRequest, *, is_done: bool) -> None:
        """Note an acknowledgement of a member, and whether it has succeeded: then it has a write, or renews locks."""
        life = self._lives.get(key)
        if life is None or not is_done or logged.request.get("isRenewAck"):
            return
        if life.waits is not None and life.waits.done_us + _ANSWERED_US < logged.taken_us:
            at = self._place(life.waits)
            self._unwritten.setdefault(key, f"no log has the write of what was acknowledged in {at}")
        life.waits = life.waits or logged

    def fetched(self, key: Key, logged: LoggedRequest, acquired: Sequence[Any], *, is_done: bool) -> None:
        """Note a fetch of a member, what it has acquired, and whether it has succeeded."""
        life = self._lives.get(key)
        if life is None or not is_done:
            return
        if acquired and life.node_id is not None and len(self._votes) < _MOST_BROKERS:
            self._votes.setdefault(logged.broker, Counter())[life.node_id] += 1
        life.is_heard = life.is_heard or self.may_lead(logged.broker, key, logged.taken_us)

    def _place(self, logged: LoggedRequest) -> str:
        return f"{self._events.name(logged.file)}:{logged.line}"

    # ---- at the end

    def end(self) -> None:
        """Add what is not known because logs of brokers are missing."""
        present = {node for node in map(self.node_of, self._logged) if node is not None}
        missing = sorted(self._cluster - present)
        for key in tuple(self._lives):
            self._end(key, self._last_us)
        for key in self._events:
            reasons = [
                f"broker {node_id} led from {_instant(begin_us)} to {_instant(end_us)}, and its log is missing"
                for node_id, begin_us, end_us in self._silent.get(key, ())
                if present and node_id not in present
            ]
            if key in self._unlogged:
                reasons.append(self._unlogged[key])
            if missing:
                reasons += self._missing_state(key, missing)
            if reasons:
                self.unknown(key, "; ".join(reasons))

    def _missing_state(self, key: Key, missing: list[int]) -> list[str]:
        """Return what shows that the log of the share coordinator is missing."""
        whose = f"the log of its share coordinator is missing: there are none of brokers {', '.join(map(str, missing))}"
        if key not in self._lives:
            return [f"no log has its state; {whose}"]
        return [f"{self._unwritten[key]}; {whose}"] if key in self._unwritten else []

    def unknown(self, key: Key, reason: str) -> None:
        """Add that it is not known what a leader has done."""
        self._events.add(key, "unknown", None, request={"what": "leader", "reason": reason}, inferred=True)


def _persister(logged: LoggedRequest) -> int | None:
    match = _PERSISTER.fullmatch(logged.client_id)
    return None if match is None or int(match[1]) > _LAST_NODE else int(match[1])


def _instant(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
