"""
The conversation protocol: one JSON object per line, a request in and a response out.

It is how sharestate and Kafka's own class are asked the same questions, and how what they answer is compared.
"""

from sharestate.conversation.errors import BadRequestError, UnreadableFileError
from sharestate.conversation.levels import Level
from sharestate.conversation.replaying import Outcome, Verdict, replay
from sharestate.conversation.serving import Conversation, serve
from sharestate.conversation.traces import Header, Step, Trace, open_trace, write_trace
from sharestate.json_lines import bounded_lines

__all__ = [
    "BadRequestError",
    "Conversation",
    "Header",
    "Level",
    "Outcome",
    "Step",
    "Trace",
    "UnreadableFileError",
    "Verdict",
    "bounded_lines",
    "open_trace",
    "replay",
    "serve",
    "write_trace",
]
