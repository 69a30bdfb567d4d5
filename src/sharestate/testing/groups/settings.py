"""The settings of a share group that its clients notice, and those that its test tries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen, validators

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"


@frozen(kw_only=True)
class GroupSettings:
    """
    The settings of a share group that its clients notice.

    Raises:
        ValueError: A field is out of range.

    Source:
        GroupConfig (Kafka 4.3.1).
    """

    delivery_count_limit: int = field(default=5, validator=validators.ge(1))
    """The most deliveries of a record (``group.share.delivery.count.limit``). [deliveries]"""

    lock_duration_ms: int = field(default=30_000, validator=validators.ge(1))
    """How long a member owns what it acquires (``share.record.lock.duration.ms``). [ms]"""

    max_record_locks: int = field(default=2_000, validator=validators.ge(1))
    """The most records in flight (``share.partition.max.record.locks``). [records]"""

    isolation_level: str = field(default=READ_COMMITTED, validator=validators.in_((READ_COMMITTED, READ_UNCOMMITTED)))
    """The group's ``share.isolation.level``: read_committed or read_uncommitted."""

    renew_acknowledge_enable: bool = True
    """Whether members may renew their locks (``share.renew.acknowledge.enable``, KIP-1222)."""


SMALL_SETTINGS: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "delivery_count_limit": (2, 3, 5),
        "lock_duration_ms": (1_000,),
        "max_record_locks": (200, 4, 2_000),
        "isolation_level": (READ_COMMITTED, READ_UNCOMMITTED),
        "renew_acknowledge_enable": (True, True, False),
    }
)
"""The settings from which those are picked that are not declared: limits are reached after a few events. 5 and 2,000
are Kafka's defaults."""
