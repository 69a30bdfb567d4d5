"""
A search for differences: an implementation beside the library, over random sequences of requests.

`compare` is all that a test needs; the peer is a callable, a command (`CommandPeer`), or an `OwnLogPeer`, which has a
log of its own. What is known to differ is a `Divergence`. `search` takes several processes and can be taken up again.
"""

from sharestate.conversation.compare import Level
from sharestate.testing.generator.plain import by_record, plain
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from sharestate.testing.search.comparing import DifferenceError, Peer, compare
from sharestate.testing.search.divergences import Divergence, RequestScene
from sharestate.testing.search.finding import FoundDifference
from sharestate.testing.search.kafka import KAFKA_DIVERGENCES
from sharestate.testing.search.known import read_divergences
from sharestate.testing.search.own_log import OwnLogPeer
from sharestate.testing.search.running import Plan, SearchProgress, StateError, search
from sharestate.testing.search.tally import SearchTally
from sharestate.testing.search.worker import SEQUENCES, Task

__all__ = [
    "KAFKA_DIVERGENCES",
    "SEQUENCES",
    "CommandPeer",
    "DifferenceError",
    "Divergence",
    "FoundDifference",
    "Level",
    "OwnLogPeer",
    "Peer",
    "PeerDiedError",
    "Plan",
    "RequestScene",
    "SearchProgress",
    "SearchTally",
    "StateError",
    "Task",
    "by_record",
    "compare",
    "plain",
    "read_divergences",
    "search",
]
