"""The numbered sections that docstrings and tests cite, as in "spec 7.8", by their headings."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "1": "Data model",
        "1.1": "Record states",
        "1.2": "`try_update(new, op, maxdc, member)`: immediate change",
        "1.3": "`begin(new, op, maxdc, member)`: change that must be persisted",
        "1.4": "`archive()`: unconditional",
        "1.5": "`complete(commit)`",
        "1.6": "Locks (acquisition-lock timers)",
        "1.7": "Explosion of a whole-form batch",
        "2": "Reading guide: what calls what",
        "3": "Partition state machine",
        "4": "Initialisation",
        "4.1": "Request and response checks",
        "4.2": "Start offset",
        "4.3": "State batches (in the given order)",
        "4.4": "Gap window",
        "5": "`nextFetchOffset()`",
        "6": "Capacity, `canAcquireRecords`, fetch lock",
        "7": "`acquire(member, batch_size, max_records, fetch_offset, log_batches, aborted, isolation)`",
        "7.1": "Early outs",
        "7.2": "Capacity",
        "7.3": "Stale (compacted-away) batches",
        "7.4": "Base alignment and overlap set",
        "7.5": "No overlap",
        "7.6": "Overlap loop",
        "7.7": "Tail",
        "7.8": "Acquire new over [f, l] with limit m",
        "7.9": "Splitting by `batch_size`",
        "7.10": "Aborted-transaction filter",
        "7.11": "More acquire examples",
        "8": "`acknowledge(member, [(first, last, types[]) ...])`",
        "8.1": "Order of checks",
        "8.2": "Malformed input reaching `SharePartition` directly",
        "8.3": "Examples",
        "9": "`releaseAcquiredRecords(member)`: session close, member leave",
        "10": "Lock timeout for a lock (member, f, l)",
        "11": "Transition protocol (acknowledge, session release)",
        "12": "Cache advance",
        "13": "Log start offset moved: `updateCacheAndOffsets(L)`",
        "14": "Archive-range [a, e) of records in state s, over a list of batches",
        "15": "What goes into each WriteShareGroupState",
        "16": "Fencing, manager and wake-ups",
        "20.1": "Acquire mode (KIP-1206)",
        "20.2": "RENEW (type 4, KIP-1222)",
        "20.3": "Throttled delivery (KAFKA-17541)",
        "20.4": "Delivery complete count (KIP-1226)",
        "24.1": "Quirks: a rule of the profile",
        "24.3": "Two kinds of refusal",
        "24.5": "Locks and time",
    }
)
"""The sections that hold rules of the leader's state machine, in their order."""
