"""What the page of the invariants says is let pass: what Kafka leaves open, and bugs of Kafka that are known."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from sharestate.testing.groups import KAFKA_ALLOWANCES
from sharestate.testing.protocol.coordinator_invariants import an_initialization_takes_nothing_back


class Door(StrEnum):
    """Where an implementation is tested."""

    CLIENTS = "clients"
    """`ShareGroupMachine`."""

    PERSISTER = "persister"
    """`SharePartitionMachine`, and the model of single records."""

    COMPARISON = "comparison"
    """`compare`, and the searches with several jobs."""

    INVARIANTS = "invariants"
    """`observe` with `invariants_of`."""


class LeftOpen(NamedTuple):
    """
    Something that implementations may do in more than one way.

    Attributes:
        what: What may happen, in a sentence.
        why: Where Kafka, or the KIP, leaves it open.
        doors: Where it is not judged.
    """

    what: str
    why: str
    doors: tuple[Door, ...]


LEFT_OPEN: Final[tuple[LeftOpen, ...]] = (
    LeftOpen(
        "A fetch brings fewer records than there are, or none.",
        "KIP-932 promises no number; records that keep failing come in ever smaller pieces (KAFKA-17541).",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "A fetch brings more than was asked for, up to the end of a log batch, and exceeds the record locks by that.",
        "group.share.partition.max.record.locks is a soft limit (SharePartition.acquire; rule 7.8).",
        (Door.CLIENTS, Door.INVARIANTS),
    ),
    LeftOpen(
        "Members get records in any order among each other, and redelivered ones before or after new ones.",
        "KIP-932: no order is guaranteed between the batches of one share-partition.",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "A lock expires earlier or later by `clock_tolerance_ms`.",
        "Brokers expire locks with a timer; where time is real nobody knows the millisecond.",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "After a failover the last delivery of a record counts, or it does not.",
        "An acquisition is not persisted: the next leader knows what was last written of the record.",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "An acknowledgement of records below the SPSO is refused, or succeeds and does nothing.",
        "Members do not know the SPSO, which moves as writes succeed.",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "An acknowledgement whose write has failed is stored, or it is not, until the next leader has read the state.",
        "The share coordinator may have stored what it could not answer.",
        (Door.CLIENTS,),
    ),
    LeftOpen(
        "How neighboring records are cut into state batches; in the KIP's writes, which of them are named again.",
        "State batches are combined by offset (PersisterStateBatchCombiner).",
        (Door.PERSISTER, Door.COMPARISON),
    ),
    LeftOpen(
        "The texts of errors, and what an implementation shows of its internals.",
        "Only error codes are part of the protocol.",
        (Door.COMPARISON, Door.PERSISTER),
    ),
    LeftOpen(
        "Nobody is woken by the late answer to the write of an expired lock, although the SPSO moves then.",
        "SharePartition wakes waiting fetches when it issues that write (rule 16).",
        (Door.INVARIANTS,),
    ),
)
"""What Kafka leaves open."""


class KnownBug(NamedTuple):
    """
    A bug of Kafka's releases that ends a test unless it is allowed.

    Attributes:
        bug: Its id on the page of Kafka's bugs.
        breaks: The guarantee or invariant that does not hold because of it.
        only: When it is allowed: what has happened before.
        doors: Where it is.
    """

    bug: str
    breaks: str
    only: str
    doors: tuple[Door, ...]


CLIENTS_NOTICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "F4": "the log start has passed the last available records",
        "F5": "the log start has moved into the gap that is fetched next",
        "F6": "compaction has taken records out of a full window",
        "F7": "the last records of a full window are of an aborted transaction",
        "F8": "of a log batch that begins below the log start a fetch has taken some records there, and not all",
    }
)
"""When each of ``KAFKA_ALLOWANCES`` applies."""

KNOWN_BUGS: Final[tuple[KnownBug, ...]] = (
    *(KnownBug(bug, KAFKA_ALLOWANCES[bug].guarantee, only, (Door.CLIENTS,)) for bug, only in CLIENTS_NOTICE.items()),
    KnownBug(
        "C2", an_initialization_takes_nothing_back.__name__, "it comes after a read or a write", (Door.INVARIANTS,)
    ),
)
"""
The bugs of Kafka's releases that are allowed for.

Those at the clients' side are allowed where a machine names them in its ``allowances``: an implementation of one's own
need not have them, and healed profiles do not. The invariants of share coordinators allow theirs always, but for
``COORDINATOR_HEALED``.
"""
