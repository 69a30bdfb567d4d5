"""The ids that a broker draws, by names that are the same on every broker."""

from __future__ import annotations

import base64
import re
import uuid
from itertools import chain
from typing import Final

from sharestate.values.records import NO_PRODUCER_ID

_NOWHERE: Final = uuid.UUID(int=2**127 + 932)
"""What ids are made of that no broker has drawn."""

_NOBODYS: Final = 2**40
"""From here on ids of producers are none that a broker has drawn."""

_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
"""A UUID as Kafka prints it."""


class Names:
    """
    What the ids of one broker are called in a script: ``t0#2`` for the topic ``t0`` that was made second, ``pid-1``.

    A name follows from what the script does, never from the id, so the same script has the same names on any broker.
    """

    def __init__(self) -> None:
        """Begin without an id."""
        self._topics: dict[str, uuid.UUID] = {}
        self._nowhere: dict[str, uuid.UUID] = {}
        self._made: dict[str, int] = {}
        self._producers: list[int] = []

    def made(self, topic: str, topic_id: uuid.UUID) -> None:
        """Name the id of a topic that was made."""
        self._made[topic] = self._made.get(topic, 0) + 1
        self._topics[f"{topic}#{self._made[topic]}"] = topic_id

    def topic_id(self, name: str) -> uuid.UUID:
        """Return the id of a name; of one that no topic had yet, one that no broker draws."""
        return (
            self._topics[name] if name in self._topics else self._nowhere.setdefault(name, uuid.uuid5(_NOWHERE, name))
        )

    def of_topic_id(self, topic_id: uuid.UUID) -> str:
        """Return the name of an id; ``some id`` for one of which nothing is known."""
        known = chain(self._topics.items(), self._nowhere.items())
        return next((name for name, each in known if each == topic_id), "some id")

    def producer_id(self, name: str) -> int:
        """Return the producer id of a name; ``none`` is -1, and that of a name that nobody has is one of nobody's."""
        if name == "none":
            return NO_PRODUCER_ID
        number = int(name.removeprefix("pid-"))
        return self._producers[number - 1] if number <= len(self._producers) else _NOBODYS + number

    def of_producer_id(self, producer_id: int) -> str:
        """Return the name of a producer id, which gets one when it is first seen."""
        if producer_id < 0:
            return "none"
        if producer_id > _NOBODYS:
            return f"pid-{producer_id - _NOBODYS}"
        if producer_id not in self._producers:
            self._producers.append(producer_id)
        return f"pid-{self._producers.index(producer_id) + 1}"

    def in_text(self, text: str) -> str:
        """Return a message of the broker with names in place of the ids of topics."""
        return _UUID.sub(self._name_in_text, text)

    def _name_in_text(self, found: re.Match[str]) -> str:
        topic_id = uuid.UUID(bytes=base64.urlsafe_b64decode(f"{found[0]}=="))
        name = self.of_topic_id(topic_id)
        return found[0] if name == "some id" else name
