"""The header of a history: the version of its format, where it comes from, and the order of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import field, frozen

from sharestate.history.columns import KINDS
from sharestate.json_checks import Check, Field, an_object, integer, list_of, nullable, one_of, record, text, version
from sharestate.json_lines import Json

HISTORY_VERSION: Final = 2
"""The version of the format that is written, and the only one that is read."""

MARK: Final = "sharestate_history"
"""The field of a header that carries the version of the format."""


class Order(Enum):
    """The order of the events of each share partition in a history."""

    ARRIVAL = "arrival"
    """As they seem to have come: brokers log times that are not exact, so nothing can be computed from this order."""

    CAUSAL = "causal"
    """As they took effect, one after the other: this is what replays read."""


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


def _named_topics(topics: Mapping[str, str]) -> dict[str, str]:
    return dict(topics)


@frozen(kw_only=True)
class Header:
    """The first line of a history."""

    source: str = ""
    """Where the history comes from."""

    order: Order = Order.CAUSAL
    """The order of the events of each share partition."""

    created_ms: int | None = None
    """When it was made; None if not known. [ms since 1970]"""

    lacks: frozenset[str] = field(default=frozenset(), converter=_names)
    """The kinds that the source does not log. A replay takes what they would say for done: see ``Replay``."""

    topics: Mapping[str, str] = field(factory=dict, converter=_named_topics)
    """The names of topics by their ids, as far as the source says them."""

    def topic(self, topic_id: str) -> str:
        """Return the name of a topic, or its id if the name is not known."""
        return self.topics.get(topic_id, topic_id)

    def topic_id(self, topic: str) -> str:
        """Return the id of the topic that is named *topic*; *topic* itself if none is."""
        return next((topic_id for topic_id, name in self.topics.items() if name == topic), topic)

    def to_json(self) -> Json:
        """Return the header as it stands in a file."""
        return {
            MARK: HISTORY_VERSION,
            "source": self.source,
            "order": self.order.value,
            "created_ms": self.created_ms,
            "lacks": sorted(self.lacks),
            "topics": dict(self.topics),
        }


def _topics(value: Json, path: str) -> dict[str, str]:
    """Check the names of topics by their ids."""
    return {topic_id: text(name, f"{path}.{topic_id}") for topic_id, name in an_object(value, path).items()}


def _header(**fields: Any) -> Header:  # noqa: ANN401 - the fields of the table
    fields.pop(MARK)
    return Header(**fields)


read_header: Final[Check[Header]] = record(
    {
        MARK: Field(version(HISTORY_VERSION)),
        "source": Field(text, ""),
        "order": Field(one_of({order.value: order for order in Order})),
        "created_ms": Field(nullable(integer()), None),
        "lacks": Field(list_of(one_of({name: name for name in KINDS})), ()),
        "topics": Field(_topics, {}),
    },
    _header,
)
"""The check for the header of a file."""
