"""
A share partition bound to a persister and to its caller's clock.

``AsyncLeader`` stays in its module: only who uses it has to load asyncio.
"""

from sharestate.leader.answers import Failed, Loaded, Refused, Written
from sharestate.leader.leader import Leader, PollResult, monotonic_ms
from sharestate.leader.observed import Observation, Observer
from sharestate.partition.lifecycle import FENCING

__all__ = [
    "FENCING",
    "Failed",
    "Leader",
    "Loaded",
    "Observation",
    "Observer",
    "PollResult",
    "Refused",
    "Written",
    "monotonic_ms",
]
