"""Random requests to share groups, in numbered sequences: the same number gives the same requests."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.groups import GROUPS_4_4
from sharestate.conversation import BadRequestError, GroupConversation

Json = Any

LENGTH: Final = 80
"""The requests of a sequence between the one that opens it and the one that shows the state. [requests]"""

GROUPS: Final = ("g1", "gr\u00fcppe", "g3")
NAMES: Final = ("t0", "t1", "t2", "t3", "t4")
RACKS: Final = (None, "r1", "\u00fc")
SAME_HASH: Final = ("AaAa", "BBBB", "AaBB", "BBAa")
"""Ids that go into the same bin of Java's hash maps."""

MILLISECONDS: Final = (1, 100, 999, 1000, 5000, 30_000, 31_000, 44_999, 45_000, 46_000, 60_000)
"""Around the assignment interval, the time after which an initialization is repeated, and the session timeout. [ms]"""

EPOCHS: Final = (-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1)
OFFSETS: Final = (-1, 0, 5, 2**63 - 1)

SETTINGS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "group.share.assignment.interval.ms": (0, 0, 1000, 5000),
        "group.share.max.size": (1, 2, 3, 200, 200, 200),
        "group.share.session.timeout.ms": (45_000, 60_000),
        "group.share.heartbeat.interval.ms": (5000, 7000),
        "group.share.initialize.retry.interval.ms": (1, 10_000, 30_000),
    }
)

_OPS: Final = {
    "heartbeat": 46,
    "initialized": 13,
    "advance": 8,
    "metadata": 7,
    "alter": 5,
    "uninitialized": 4,
    "delete_offsets": 4,
    "deleted_offsets": 4,
    "describe": 3,
    "delete_state": 2,
    "delete_group": 2,
    "reload": 1,
}


class Sequence:
    """A sequence of requests that mostly fit the groups, as far as their answers show them; some are more orderly."""

    def __init__(self, number: int, answer: Callable[[Json], Json] | None = None) -> None:
        """Make the sequence with this number; *answer* is asked each request, else the latest library."""
        self._random = Random(number)  # noqa: S311 - a replayable sequence
        self._answer = answer or partial(GroupConversation(GROUPS_4_4).answer, number=1)
        self._wild = self._random.choice((0.0, 0.05, 0.2))
        self._groups = GROUPS[: self._random.choice((1, 1, 2, 3))]
        self._members = self._random_members()
        self._joining = self._random.choice((0.3, 0.6))
        self._times = MILLISECONDS[: self._random.choice((5, 5, 7, len(MILLISECONDS)))]
        self._largest = self._random.choice((1, 3, 3, 6, 40))
        self._topics: dict[str, list[Json]] = {}
        """By name, the id and the number of partitions of each topic that is there."""
        self._asked: list[tuple[str, Json]] = []
        """What the persister has been asked to initialize, by group, and has not answered."""
        self._deleting: list[tuple[str, Json]] = []
        """The same of what it has been asked to delete."""
        self._known: list[list[str]] = []
        """Id and name of every topic there ever was."""
        self._shown: Json = {"groups": {}}

    def requests(self) -> list[Json]:
        """Return the requests."""
        topics = {name: self._new_topic(name) for name in NAMES if self._chance(0.6)}
        settings = {name: self._random.choice(of) for name, of in SETTINGS.items() if self._chance(0.5)}
        requests = [{"op": "open", "config": settings, "topics": topics}]
        self._note(requests[0])
        for op in self._random.choices([*_OPS], [*_OPS.values()], k=LENGTH):
            request = {"op": op, **self._MAKERS[op](self)}
            try:
                self._note(request)
            except BadRequestError:  # what no client can send, such as a number below 0
                continue
            requests.append(request)
        return [*requests, {"op": "state"}]

    def _note(self, request: Json) -> None:
        answer = self._answer(request)
        self._shown = answer["state"]
        result = answer["result"]
        if isinstance(result, dict) and result.get("initialize"):
            found = {topic: [each[0] for each in partitions] for topic, partitions in result["initialize"].items()}
            self._asked.append((request["group"], found))
        if isinstance(result, dict) and result.get("delete"):
            names = {topic: name for topic, name in self._known if topic in result["delete"]}
            self._deleting.append((request["group"], names))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _is_wild(self) -> bool:
        return self._chance(self._wild)

    def _random_members(self) -> list[str]:
        count = self._random.choice((2, 3, 4, 8, 20))
        if self._chance(0.3):
            return [*SAME_HASH[:count]]
        return [self._random.randbytes(8).hex() if self._chance(0.5) else f"m{number}" for number in range(count)]

    # ---- topics

    def _new_topic(self, name: str) -> list[Json]:
        topic = urlsafe_b64encode(self._random.randbytes(16)).decode().rstrip("=")
        self._known.append([topic, name])
        self._topics[name] = [topic, self._random.randint(1, self._largest)]
        return [*self._topics[name]]

    def _metadata(self) -> Json:
        """Return a change of topics: one is made, grows, or is deleted; it may be made again under its name later."""
        absent = [name for name in NAMES if name not in self._topics]
        if not self._topics or (absent and self._chance(0.5)):
            name = self._random.choice(absent)
            return {"topics": {name: self._new_topic(name)}}
        name = self._random.choice([*self._topics])
        if self._chance(0.5):
            self._topics[name][1] += self._random.randint(0, self._largest)
            return {"topics": {name: [*self._topics[name]]}}
        del self._topics[name]
        return {"delete": [name], **({"cleanup": False} if self._chance(0.2) else {})}

    def _names(self) -> list[str]:
        """Return names of topics, some of which may not be there."""
        there = [*self._topics]
        names = NAMES if self._is_wild() or not there else there
        return self._random.sample(names, self._random.randint(1, min(3, len(names))))

    # ---- members

    def _group(self) -> str:
        return self._random.choice(self._groups)

    def _members_of(self, group: str) -> Json:
        return self._shown["groups"].get(group, {}).get("members", {})

    def _heartbeat(self) -> Json:
        group = self._group()
        present = self._members_of(group)
        member = self._random.choice([*present] if present and not self._chance(self._joining) else self._members)
        epoch = self._epoch(present.get(member))
        request = {"group": group, "member": member, "epoch": epoch}
        if (epoch == 0 and not self._is_wild()) or self._chance(0.12):
            request["topics"] = self._names()
        if self._is_wild():
            request["topics"] = self._random.choice(([], ["t0", "t0"], ["none"]))
        if self._chance(0.1):
            request["rack"] = self._random.choice(RACKS)
        return request

    def _epoch(self, member: Json) -> int:
        if self._is_wild():
            return self._random.choice(EPOCHS)
        if member is None:
            return self._random.choices((0, 1, -1), (18, 1, 1))[0]
        epochs = (member["epoch"], member["previous_epoch"], -1, 0, member["epoch"] + 1, member["epoch"] - 1)
        return int(self._random.choices(epochs, (40, 4, 8, 2, 1, 1))[0])

    def _advance(self) -> Json:
        return {"ms": self._random.choice(self._times)}

    # ---- the persister's answers

    def _answered(self) -> Json:
        """Return what the persister may say of an initialization: all of a request, some of it, or something else."""
        if self._is_wild() or not self._asked:
            return {"group": self._group(), "topics": self._any_partitions()}
        place = self._random.choice((-1, self._random.randrange(len(self._asked))))
        group, topics = self._asked[place] if self._chance(0.1) else self._asked.pop(place)
        if self._chance(0.2):
            topics = {topic: [each for each in partitions if self._chance(0.6)] for topic, partitions in topics.items()}
        return {"group": group, "topics": {topic: partitions for topic, partitions in topics.items() if partitions}}

    def _any_partitions(self) -> Json:
        topics = self._random.sample(self._known, min(len(self._known), self._random.randint(0, 2)))
        return {topic: [self._random.randrange(self._largest + 1)] for topic, _ in topics}

    def _deleted_offsets(self) -> Json:
        if self._is_wild() or not self._deleting:
            topics = self._random.sample(self._known, min(len(self._known), self._random.randint(0, 2)))
            return {"group": self._group(), "topics": dict(topics)}
        group, topics = self._deleting.pop(self._random.randrange(len(self._deleting)))
        return {"group": group, "topics": {topic: name for topic, name in topics.items() if self._chance(0.9)}}

    # ---- administration

    def _empty_group(self) -> str:
        """Return a group without members, if one is there, for nothing can be done to others."""
        empty = [group for group, shown in self._shown["groups"].items() if not shown["members"]]
        return self._random.choice(empty) if empty and self._chance(0.8) else self._group()

    def _alter(self) -> Json:
        topics = {name: self._new_offsets(name) for name in self._names()}
        return {"group": self._empty_group(), "topics": topics}

    def _new_offsets(self, name: str) -> list[list[int]]:
        count = self._topics.get(name, ["", 1])[1]
        numbers = [number for number in range(min(count, 6)) if self._chance(0.6)]
        if self._is_wild():
            numbers.append(self._random.choice((-1, count, count + 1)))
        return [[number, self._random.choice(OFFSETS)] for number in numbers]

    def _delete_offsets(self) -> Json:
        return {"group": self._empty_group(), "topics": self._names()}

    def _of_empty_group(self) -> Json:
        return {"group": self._empty_group()}

    def _describe(self) -> Json:
        return {"group": self._group()}

    def _nothing(self) -> Json:
        return {}

    _MAKERS: Final[Mapping[str, Callable[[Sequence], Json]]] = MappingProxyType(
        {
            "heartbeat": _heartbeat,
            "initialized": _answered,
            "uninitialized": _answered,
            "advance": _advance,
            "metadata": _metadata,
            "alter": _alter,
            "delete_offsets": _delete_offsets,
            "deleted_offsets": _deleted_offsets,
            "delete_state": _of_empty_group,
            "delete_group": _of_empty_group,
            "describe": _describe,
            "reload": _nothing,
        }
    )
