"""
Search for differences between the library's share groups and Kafka's own group coordinator.

``python -m tests.oracle.groups.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

from typing import Any, Final

from sharestate.broker.groups import GROUPS_4_2, GROUPS_4_3, GROUPS_4_4
from sharestate.conversation import GroupConversation
from tests.oracle.coordinator.search import Subject, command_of, full_view
from tests.oracle.groups.sequences import Sequence
from tests.planted.group_coordinator import PLANTED

Json = Any


def _view(response: Json) -> Json:
    """
    Return the part of a response that is compared: of an error that was raised, the code.

    A persister may answer for a group that has been deleted meanwhile. It is told nothing; in Kafka that is due to a
    NullPointerException, which is logged.
    """
    match response:
        case {"result": {"raised": {"exception": "NullPointerException"}}}:
            return {**response, "result": None}
        case _:
            return full_view(response)


def _requests(number: int) -> list[Any]:
    return Sequence(number).requests()


GROUPS: Final = Subject(
    name="groups",
    sources="groups",
    driver="org.apache.kafka.coordinator.group.GroupDriver",
    recorded="GroupMetadataManager",
    converse=GroupConversation,
    requests=_requests,
    view=_view,
    planted=PLANTED,
    profiles={"4.2": GROUPS_4_2, "4.3": GROUPS_4_3, "4.4": GROUPS_4_4},
)
"""The share groups of a coordinator."""


if __name__ == "__main__":
    command_of(GROUPS)()
