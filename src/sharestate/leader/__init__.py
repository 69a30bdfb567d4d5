"""A share partition bound to a persister and to its caller's clock: by polling, or with asyncio."""

from sharestate.leader.async_leader import AsyncLeader
from sharestate.leader.leader import FENCING, Leader, Polled

__all__ = ["FENCING", "AsyncLeader", "Leader", "Polled"]
