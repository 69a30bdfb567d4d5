"""The events of a share group's program in JSON: which there are, and what their arguments may be."""

from __future__ import annotations

from typing import Any, Final

from sharestate.json_checks import Check, Field, boolean, integer, list_of, nullable, one_of, record, row, text
from sharestate.testing.groups.settings import READ_COMMITTED, READ_UNCOMMITTED, GroupSettings
from sharestate.testing.program_files import EventChecks, event_of

MOST_RECORDS: Final = 10_000
"""The largest batch that a program may produce. [records]"""

MOST_TURNS: Final = 100
"""The longest delay of a call that overlaps with others. [turns of the event loop]"""

MOST_SHARE_PARTITIONS: Final = 100
"""The highest number of a share partition."""

_offset: Final = integer(0)
_positive: Final = integer(1)
_type: Final = one_of({name: name for name in ("ACCEPT", "RELEASE", "REJECT", "RENEW", "GAP")})
_range: Final = row(_offset, _offset, list_of(_type), make=lambda *items: items)

_settings: Final = record(
    {
        "delivery_count_limit": Field(_positive),
        "lock_duration_ms": Field(_positive),
        "max_record_locks": Field(_positive),
        "isolation_level": Field(one_of({level: level for level in (READ_COMMITTED, READ_UNCOMMITTED)})),
        "renew_acknowledge_enable": Field(boolean),
    },
    GroupSettings,
)

_OVERLAPPING: Final[dict[str, tuple[Check[Any], ...]]] = {
    "member_fetches": (text, _positive),
    "member_acknowledges": (text, list_of(_range)),
    "member_leaves": (text,),
    "time_passes": (_positive,),
}

_ANYWHERE: Final[dict[str, tuple[Check[Any], ...]]] = {
    **_OVERLAPPING,
    "every_member_fetches": (_positive,),
    "member_fetches_all": (text,),
    "member_acknowledges_all": (text, _type),
    "member_renews_later": (text, _positive),
    "producer_sends": (integer(1, MOST_RECORDS), nullable(text)),
    "transaction_ends": (text, one_of({how: how for how in ("abort", "commit")})),
    "leader_fails_over": (),
    "writes_fail": (),
    "writes_succeed": (),
    "records_are_deleted": (_offset,),
}

EVENT_CHECKS: Final[EventChecks] = {
    **_ANYWHERE,
    "group_starts": (_settings, integer(1, MOST_RECORDS)),
    "at_once": (list_of(integer(0, MOST_TURNS)), list_of(event_of(_OVERLAPPING))),
    "elsewhere": (integer(1, MOST_SHARE_PARTITIONS), event_of(_ANYWHERE)),
}
"""The checks of the arguments of each event."""
