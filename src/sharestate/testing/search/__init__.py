"""
A search for differences: an implementation beside the library, over random sequences of requests.

`compare` is all that a test needs; the peer is a callable, a command (`CommandPeer`), or an `OwnLogPeer`, which has a
log of its own. What is known to differ is a `Divergence`.
"""

from sharestate.conversation.compare import Level
from sharestate.testing.generator.plain import by_record, plain
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from sharestate.testing.search.comparing import DifferenceError, Peer, compare
from sharestate.testing.search.divergences import Divergence, Scene
from sharestate.testing.search.finding import Finding
from sharestate.testing.search.own_log import OwnLogPeer

__all__ = [
    "CommandPeer",
    "DifferenceError",
    "Divergence",
    "Finding",
    "Level",
    "OwnLogPeer",
    "Peer",
    "PeerDiedError",
    "Scene",
    "by_record",
    "compare",
    "plain",
]
