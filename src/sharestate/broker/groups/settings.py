"""What an administrator may set for share groups at a group coordinator, and for one of them."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen, validators

from sharestate.values.checks import number

_MAX_INT32: Final = 2**31 - 1

OFFSETS_COMMIT_TIMEOUT_MS: Final = 5000
"""``offsets.commit.timeout.ms`` of a broker that sets none, below which initializations are not retried. [ms]"""


@frozen(kw_only=True)
class GroupCoordinatorSettings:
    """
    The settings of a group coordinator, as far as they concern share groups.

    Raises:
        MalformedInputError: A field is out of range.

    Source:
        ShareGroupConfig, GroupCoordinatorConfig, GroupConfig (Kafka 4.3.1).
    """

    max_size: int = field(default=200, validator=number(1, 1000))
    """``group.share.max.size``: how many members a group may have. [members]"""

    session_timeout_ms: int = field(default=45_000, validator=number(1, _MAX_INT32))
    """``share.session.timeout.ms`` of a group, or the broker's: after which silence a member is taken out. [ms]"""

    heartbeat_interval_ms: int = field(default=5000, validator=number(1, _MAX_INT32))
    """``share.heartbeat.interval.ms`` of a group, or the broker's: what responses give to members. [ms]"""

    assignment_interval_ms: int | None = field(default=None, validator=validators.optional(number(0, _MAX_INT32)))
    """``share.assignment.interval.ms`` of a group, or the broker's; None for that of the profile. [ms]"""

    initialize_retry_interval_ms: int = field(default=30_000, validator=number(1, _MAX_INT32))
    """``group.share.initialize.retry.interval.ms``: when an unanswered initialization is asked for again. [ms]"""

    offsets_commit_timeout_ms: int = field(default=OFFSETS_COMMIT_TIMEOUT_MS, validator=number(1, _MAX_INT32))
    """``offsets.commit.timeout.ms``, which the interval before is at least. [ms]"""

    @property
    def retry_ms(self) -> int:
        """After which time an unanswered initialization is asked for again. [ms]"""
        return max(self.initialize_retry_interval_ms, self.offsets_commit_timeout_ms)
