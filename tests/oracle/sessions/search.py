"""
Search for differences between the library's share sessions and Kafka's own.

``python -m tests.oracle.sessions.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

from typing import Any, Final

from sharestate.broker.sessions import SESSIONS_4_2, SESSIONS_4_3, SESSIONS_4_4
from sharestate.conversation import SessionConversation
from tests.oracle.coordinator.search import Subject, command_of, full_view
from tests.oracle.sessions.sequences import Sequence


def _requests(number: int) -> list[Any]:
    return Sequence(number).requests()


SESSIONS: Final = Subject(
    name="sessions",
    sources="session",
    driver="kafka.server.share.SessionDriver",
    recorded="SharePartitionManager, ShareSessionCache",
    converse=SessionConversation,
    requests=_requests,
    view=full_view,
    profiles={"4.2": SESSIONS_4_2, "4.3": SESSIONS_4_3, "4.4": SESSIONS_4_4},
)
"""The share sessions of a broker."""


if __name__ == "__main__":
    command_of(SESSIONS)()
