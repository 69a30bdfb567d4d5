"""
Dead-letter queues of share groups (KIP-1191): their settings, what a broker writes to them, and one in memory.

``DeadLetterQueue`` is a ``typing.Protocol``: any class with its method is a dead-letter queue.
"""

from sharestate.dead_letters.in_memory import HeldDeadLetterRequest, InMemoryDeadLetterQueue
from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.dead_letters.records import DeadLetterRecord, SourceRecord, dead_letter_records
from sharestate.dead_letters.settings import DeadLetterSettings, check_topic_name

__all__ = [
    "DeadLetterQueue",
    "DeadLetterRecord",
    "DeadLetterSettings",
    "HeldDeadLetterRequest",
    "InMemoryDeadLetterQueue",
    "SourceRecord",
    "check_topic_name",
    "dead_letter_records",
]
