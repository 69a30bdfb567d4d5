"""
The line protocol: one JSON object per line, a request and then its response.

The same requests are sent to sharestate and to Kafka's own class, and the responses are compared. There is one protocol
for share partitions, one for share coordinators, one for share sessions, one for group coordinators, and one for the
assignor of share groups.

The last two are loaded on their first use: they take the whole group coordinator, which the others do not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from sharestate.conversation.compare import Level
from sharestate.conversation.coordinator import CoordinatorConversation
from sharestate.conversation.replay import ReplayVerdict, TraceOutcome, replay
from sharestate.conversation.served_partition import SERVED_SPLIT_LIMIT
from sharestate.conversation.server import BadRequestError, Conversation, LineServer, serve
from sharestate.conversation.sessions import SessionConversation
from sharestate.conversation.traces import Trace, TraceHeader, TraceStep, open_trace, write_trace
from sharestate.errors import UnreadableFileError
from sharestate.json_lines import bounded_lines

__all__ = [
    "SERVED_SPLIT_LIMIT",
    "AssignorConversation",
    "BadRequestError",
    "Conversation",
    "CoordinatorConversation",
    "GroupConversation",
    "Level",
    "LineServer",
    "ReplayVerdict",
    "SessionConversation",
    "Trace",
    "TraceHeader",
    "TraceOutcome",
    "TraceStep",
    "UnreadableFileError",
    "bounded_lines",
    "open_trace",
    "replay",
    "serve",
    "write_trace",
]

_MODULES: Final = {"AssignorConversation": "assignor", "GroupConversation": "groups"}
"""Where the names are that take the group coordinator."""

if TYPE_CHECKING:
    from sharestate.conversation.assignor import AssignorConversation
    from sharestate.conversation.groups import GroupConversation
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load one of them on its first use."""
        if name not in _MODULES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]
