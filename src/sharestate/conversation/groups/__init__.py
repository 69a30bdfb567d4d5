"""The line protocol of share groups: a group coordinator, its clock, and the topics of its cluster."""

from sharestate.conversation.groups.conversation import GroupConversation

__all__ = ["GroupConversation"]
