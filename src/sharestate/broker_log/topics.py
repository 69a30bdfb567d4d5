"""Which topic a name means: a topic is its id, and a name may mean another one after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import define

_NO_ID: Final = "A" * 22
"""The id of no topic, in answers about topics that are not there."""

_MOST_ENDED: Final = 100_000
"""How many topics are remembered that were deleted, the last ones. [topics]"""


class Ended(NamedTuple):
    """
    Why a topic is no more.

    Attributes:
        is_deleted: Whether its deletion was logged; otherwise it was seen that its name means another topic.
        source: The file and the line that say so.
    """

    is_deleted: bool
    source: str


@define
class _Name:
    """What a name means."""

    topic_id: str | None
    """The topic; None if it was deleted."""

    is_guess: bool = False
    """Whether only a directory says so, which may be of a later topic."""


class Topics:
    """
    The topics that requests are about, by their ids and by what names mean at the time.

    Args:
        directories: The names of topics by their ids, as the directories of their partitions say.

    Attributes:
        names: The names of all topics that were ever named, by their ids.
    """

    def __init__(self, directories: Mapping[str, str]) -> None:
        """Take names for what the directories say, until a request says something else."""
        self.names = dict(directories)
        self._ids = {name: _Name(topic_id, is_guess=True) for topic_id, name in directories.items()}
        self._ended: dict[str, Ended] = {}

    def id_of(self, name: str | None, topic_id: str | None = None) -> str | None:
        """Return the topic that a request has by its id, or by what its name means now; None if that is not known."""
        if topic_id and topic_id != _NO_ID:
            return topic_id
        known = self._ids.get(name or "")
        return None if known is None else known.topic_id

    def ended(self, topic_id: str) -> Ended | None:
        """Return why a topic is no more; None if it may still be there."""
        return self._ended.get(topic_id)

    def named(self, name: str | None, topic_id: str | None, source: str) -> str | None:
        """
        Note that a name means a topic from now on, unless that is known to be no more: answers may be out of date.

        Returns:
            The topic of which only a directory said that the name means it, if that was wrong.
        """
        if not name or not topic_id or topic_id == _NO_ID or topic_id in self._ended:
            return None
        self.names[topic_id] = name
        before = self._ids.get(name)
        self._ids[name] = _Name(topic_id)
        if before is None or before.topic_id in {None, topic_id}:
            return None
        if before.is_guess:
            return before.topic_id
        self._end(before.topic_id, Ended(is_deleted=False, source=source))
        return None

    def deleted(self, name: str | None, topic_id: str | None, source: str) -> None:
        """Note that a topic was deleted, which is named, or has an id in the request."""
        topic_id = self.id_of(name, topic_id)
        name = name or self.names.get(topic_id or "")
        if topic_id is not None:
            self._end(topic_id, Ended(is_deleted=True, source=source))
        if name is not None and self.id_of(name) in {None, topic_id}:
            self._ids[name] = _Name(None)

    def _end(self, topic_id: str | None, ended: Ended) -> None:
        if topic_id is None:
            return
        self._ended.setdefault(topic_id, ended)
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
