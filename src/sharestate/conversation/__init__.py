"""
The line protocol: one JSON object per line, a request and then its response.

The same requests are sent to sharestate and to Kafka's own class, and the responses are compared. There is one protocol
for share partitions, one for share coordinators, one for share sessions, one for group coordinators, and one for the
assignor of share groups.
"""

from sharestate.conversation.assignor import AssignorConversation
from sharestate.conversation.compare import Level
from sharestate.conversation.coordinator import CoordinatorConversation
from sharestate.conversation.groups import GroupConversation
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
