"""Random requests to share sessions, in numbered sequences: the same number gives the same requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.sessions import SESSIONS_4_4
from sharestate.conversation import BadRequestError, SessionConversation

Json = Any

TOPICS: Final = ("AAECAwQFBgcICQoLDA0ODw", "-_-_-_-_-_-_-_-_-_-_-A", "IoNTqcc65nJltKVVhKBPPQ", "AAAAAAAAAAAAAAAAAAAAAA")
GROUPS: Final = ("g1", "gr\u00fcppe", "\U0001d11e", "\uffee")
MEMBERS: Final = ("m0", "m1", "m2", "")
CONNECTIONS: Final = ("c0", "c1", "c2")
ERRORS: Final = ("NONE", "NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_SERVER_ERROR")
EPOCHS: Final = (-(2**31), -2, -1, 0, 1, 2, 7, 2**31 - 2, 2**31 - 1)

LENGTH: Final = 60
"""The requests of a sequence after the one that opens the sessions. [requests]"""

_OPS: Final = {
    "fetch": 34,
    "respond": 16,
    "acknowledge": 8,
    "release": 4,
    "disconnect": 4,
    "size": 3,
    "throttle": 2,
    "jump": 2,
    "disable": 1,
    "state": 1,
}

_ANSWERS: Final = frozenset({"respond", "size", "throttle"})
"""What answers a fetch, so one has to be there."""


class Sequence:
    """A sequence of requests that mostly fit the sessions, as far as the library knows them; some are more orderly."""

    def __init__(self, number: int) -> None:
        """Make the sequence with this number."""
        self._random = Random(number)  # noqa: S311 - a replayable sequence
        self._wild = self._random.choice((0.0, 0.1, 0.4))
        self._groups = GROUPS[: self._random.choice((1, 2, 4))]
        self._members = MEMBERS[: self._random.choice((1, 2, 4))]
        self._sessions = SessionConversation(SESSIONS_4_4)
        self._state: Json = None
        self._contexts: list[tuple[Json, Json]] = []
        """The fetches so far, each with its request."""

    def requests(self) -> list[Json]:
        """Return the requests."""
        opening = {"op": "open", "max_sessions": self._random.choice((1, 2, 3, 100))}
        requests = [opening]
        self._note(opening)
        for drawn in self._random.choices([*_OPS], [*_OPS.values()], k=LENGTH):
            op = "fetch" if drawn in _ANSWERS and not self._contexts else drawn
            request = {"op": op, **self._MAKERS[op](self)}
            try:
                self._note(request)
            except BadRequestError:  # a session that jumped back expects a fetch that is over, with other partitions
                continue
            requests.append(request)
        return [*requests, {"op": "state"}]

    def _note(self, request: Json) -> None:
        answer = self._sessions.answer(request, 1)
        self._state = answer["state"]
        if request["op"] == "fetch" and "context" in answer["result"]:
            self._contexts.append((request, answer["result"]))

    def _is_wild(self) -> bool:
        return self._random.random() < self._wild

    def _member(self) -> Json:
        return {"group": self._random.choice(self._groups), "member": self._random.choice(self._members)}

    def _session(self, member: Json) -> Json:
        """Return the session of a member, or None."""
        sessions = self._state["sessions"]
        return next((each for each in sessions if {"group": each["group"], "member": each["member"]} == member), None)

    def _epoch(self, member: Json) -> int:
        if self._is_wild():
            return self._random.choice(EPOCHS)
        session = self._session(member)
        if session is None:
            return self._random.choice((0, 0, 0, 1, -1))
        return self._random.choices((session["epoch"], 0, -1, session["epoch"] + 1), (20, 2, 1, 1))[0]

    def _partition(self) -> Json:
        number = self._random.randrange(len(TOPICS) - (not self._is_wild()))
        topic = None if self._random.random() < 0.15 else f"t{number}"
        partition = self._random.choice((-1, 2**31 - 1)) if self._random.random() < self._wild / 10 else None
        return [TOPICS[number], self._random.randrange(3) if partition is None else partition, topic]

    def _partitions(self, most: int) -> list[Json]:
        """Return partitions that differ, unless the sequence is wild."""
        drawn = [self._partition() for _ in range(self._random.randint(0, most))]
        return drawn if self._is_wild() else list({tuple(each[:2]): each for each in drawn}.values())

    def _fetch(self) -> Json:
        member = self._member()
        request = {**member, "epoch": self._epoch(member), "partitions": self._partitions(4)}
        request["connection"] = self._random.choice(CONNECTIONS)
        if self._random.random() < 0.2:
            request["forget"] = self._partitions(2)
        if self._random.random() < 0.1:
            request["acks"] = True
        return request

    def _respond(self) -> Json:
        number = self._random.choice((len(self._contexts) - 1, self._random.randrange(len(self._contexts))))
        request, fetch = self._contexts[number]
        return {
            "context": number,
            "group": request["group"],
            "member": request["member"],
            "data": self._data(fetch["fetch"] + fetch["unknown"]),
        }

    def _data(self, fetched: list[Json]) -> list[Json]:
        chosen = [each for each in fetched if self._random.random() < 0.8]
        self._random.shuffle(chosen)
        return [[*each, self._random.random() < 0.4, self._random.choice(ERRORS)] for each in chosen]

    def _release(self) -> Json:
        return self._member()

    def _acknowledge(self) -> Json:
        member = self._member()
        return {**member, "epoch": self._epoch(member)}

    def _jump(self) -> Json:
        return {**self._member(), "epoch": self._random.choice(EPOCHS)}

    def _disconnect(self) -> Json:
        return {"connection": self._random.choice(CONNECTIONS)}

    def _throttle(self) -> Json:
        return {"context": self._respond()["context"], "ms": 100}

    def _nothing(self) -> Json:
        return {}

    _MAKERS: Final[Mapping[str, Callable[[Sequence], Json]]] = MappingProxyType(
        {
            "fetch": _fetch,
            "respond": _respond,
            "acknowledge": _acknowledge,
            "release": _release,
            "disconnect": _disconnect,
            "size": _respond,
            "throttle": _throttle,
            "jump": _jump,
            "disable": _nothing,
            "state": _nothing,
        }
    )
