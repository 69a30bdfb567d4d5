"""
A share partition bound to a persister and to its caller's clock.

``AsyncLeader`` stays in its module: only who uses it has to load asyncio.
"""

from sharestate.leader.leader import FENCING, Leader, PollResult, monotonic_ms

__all__ = ["FENCING", "Leader", "PollResult", "monotonic_ms"]
