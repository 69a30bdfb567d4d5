"""
In front of a real server: members of share groups that send each request by hand (extra ``kafka``).

`RawMember` finds its coordinator and its leaders, and does what its caller says: any acknowledgement type, renewals,
sessions that are closed, connections that are cut. It knows of a server its address only, so that it may be Kafka,
another broker or a managed service.

``machine`` has `RealServerMachine`, the `ShareGroupMachine` for any such server (extras ``consumer``, ``kafka``,
``segments`` and ``testing``). See "In front of a real server" in ``docs/testing.md``.
"""

try:
    from sharestate.testing.servers.connections import RawConnection
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "kio":
        raise
    message = "sharestate.testing.servers needs the extra 'kafka': pip install 'sharestate[kafka]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.persister.kafka.security import Security
from sharestate.testing.servers.raw_members import RawMember
from sharestate.testing.servers.share_sessions import (
    ACCEPT,
    BATCH_OPTIMIZED,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Acknowledgements,
    Fetched,
    FetchLimits,
    Partition,
    RawShareSession,
)
from sharestate.testing.servers.versions import NegotiatedConnection

__all__ = [
    "ACCEPT",
    "BATCH_OPTIMIZED",
    "GAP",
    "RECORD_LIMIT",
    "REJECT",
    "RELEASE",
    "RENEW",
    "Acknowledgement",
    "Acknowledgements",
    "FetchLimits",
    "Fetched",
    "NegotiatedConnection",
    "Partition",
    "RawConnection",
    "RawMember",
    "RawShareSession",
    "Security",
]
