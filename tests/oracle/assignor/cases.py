"""Random requests to the assignor, in numbered sequences: the same number gives the same requests."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from random import Random
from typing import Any, Final

from sharestate.conversation import AssignorConversation

Json = Any

LENGTH: Final = 20
"""The requests of a sequence. [requests]"""

SAME_HASH: Final = ("Aa", "BB", "C#")
"""Texts of one hash, so that ids that are made of them go into the same bin, too."""


class Sequence:
    """The members and topics of one group, and what the assignor is asked as they change."""

    def __init__(self, number: int) -> None:
        """Make the sequence with this number."""
        self._random = Random(number)  # noqa: S311 - a replayable sequence
        self._is_wild = self._random.random() < 0.5
        self._most = self._random.choice((3, 8, 8, 20, 20, 60, 200))
        self._order = self._random.choice(("hash", "hash", "given"))
        self._has_one_subscription = self._random.random() < 0.5
        self._ids = self._random.choice(("short", "uuid", "same hash"))
        largest = self._random.choice((1, 4, 4, 16, 64, 200))
        self._topics = {
            urlsafe_b64encode(self._random.randbytes(16)).decode().rstrip("="): self._random.randint(0, largest)
            for _ in range(self._random.randint(1, 5))
        }
        self._initialized: dict[str, list[int]] | None = None
        self._members: list[Json] = []
        self._made = 0

    def requests(self) -> list[Json]:
        """Return the requests."""
        assignor = AssignorConversation()
        requests = []
        for number in range(LENGTH):
            self._change(few=number > 0)
            request = {
                "op": "assign",
                "order": self._order,
                "topics": dict(self._topics),
                "members": [dict(member) for member in self._members],
                **({} if self._initialized is None else {"initialized": self._initialized}),
                **({"type": self._random.choice(("homogeneous", "heterogeneous"))} if self._chance(0.05) else {}),
            }
            requests.append(request)
            self._take(assignor.answer(request, 1)["result"])
        return requests

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _change(self, *, few: bool) -> None:
        """Let members join and leave, and topics and subscriptions change."""
        for _ in range(self._random.randint(0, 3 if few else self._most)):
            if len(self._members) < self._most and (not self._members or self._chance(0.6)):
                self._join()
            elif self._members:
                self._members.pop(self._random.randrange(len(self._members)))
        if self._chance(0.2):
            self._subscribe()
        if self._chance(0.1):
            self._grow()
        if self._chance(0.1):
            self._initialize()
        if self._is_wild:
            self._falsify()

    def _join(self) -> None:
        self._made += 1
        member_id = f"m{self._made}"
        if self._ids == "uuid":
            text = self._random.randbytes(16).hex()
            member_id = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        elif self._ids == "same hash":
            member_id = "".join(self._random.choices(SAME_HASH, k=6))
        if all(member["id"] != member_id for member in self._members):
            self._members.append({"id": member_id, "topics": self._subscription(), "target": {}})

    def _subscription(self) -> list[str]:
        if self._has_one_subscription and self._members:
            return list(self._members[0]["topics"])
        topics = list(self._topics)
        return self._random.sample(topics, self._random.randint(0 if self._chance(0.2) else 1, len(topics)))

    def _subscribe(self) -> None:
        if not self._members:
            return
        topics = list(self._topics)
        chosen = self._random.sample(topics, self._random.randint(1, len(topics)))
        if self._is_wild and self._chance(0.05):
            chosen.append("AAECAwQFBgcICQoLDA0ODw")  # which the metadata may not have
        for member in self._members if self._has_one_subscription else [self._random.choice(self._members)]:
            member["topics"] = chosen

    def _grow(self) -> None:
        topic = self._random.choice(list(self._topics))
        self._topics[topic] += self._random.randint(1, 5)

    def _initialize(self) -> None:
        if self._chance(0.3):
            self._initialized = None
            return
        before = self._initialized or {}
        self._initialized = {}
        for topic, count in self._topics.items():
            chosen = {number for number in range(count) if self._chance(0.8)}
            self._initialized[topic] = sorted(chosen if self._is_wild else chosen | set(before.get(topic, ())))

    def _falsify(self) -> None:
        """Give a member a target that no assignor has made."""
        for member in self._members:
            if self._chance(0.2):
                member["target"] = {
                    topic: self._random.sample(range(count + 2), self._random.randint(0, min(count + 2, 30)))
                    for topic, count in self._topics.items()
                    if self._chance(0.6)
                }

    def _take(self, result: Json) -> None:
        """Let every member have the target that was made, if one was."""
        for member in self._members:
            if "members" in result:
                member["target"] = result["members"].get(member["id"], {})
