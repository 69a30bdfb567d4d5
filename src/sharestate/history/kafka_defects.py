"""
Defects of Kafka that the library does not copy, imitated so that what comes after them can be checked.

Source:
    docs/kafka-bugs.md: B7 and B8 (Kafka 4.2.1, 4.2.2, 4.3.1 and 4.4.0).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from sharestate.values.fetched_records import FetchedRecords

REASONS: Final = MappingProxyType(
    {
        "B7": "the advance throws when the SPSO lies past a split batch; it stays where it is",
        "B8": "acquire throws when an aborted log batch begins before the first batch in flight; the member is answered"
        " with an error, and its records stay locked",
    }
)
"""What each of them is."""


def does_acquire_throw(fetched: FetchedRecords, first_cached: int) -> bool:
    """Return whether acquire throws (B8) on an aborted log batch that begins before *first_cached*."""
    producers = {transaction.producer_id for transaction in fetched.aborted_transactions}
    return any(
        batch.first_offset < first_cached and batch.is_transactional and batch.producer_id in producers
        for batch in fetched.batches
    )
