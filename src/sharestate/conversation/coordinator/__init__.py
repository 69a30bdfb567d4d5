"""
The line protocol of the share coordinator: its shards, their logs, its records and its combiner.

Between a shard and its log it has what Kafka's coordinator runtime has: open batches, the high watermark, operations
that wait for it, failures and loading. Nothing of it happens by itself.
"""

from sharestate.conversation.coordinator.conversation import CoordinatorConversation

__all__ = ["CoordinatorConversation"]
