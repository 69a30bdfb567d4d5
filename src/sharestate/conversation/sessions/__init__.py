"""The line protocol of share sessions: the session cache of a broker, and the fetches that belong to it."""

from sharestate.conversation.sessions.conversation import SessionConversation

__all__ = ["SessionConversation"]
