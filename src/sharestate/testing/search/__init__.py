"""
Anything that answers the line protocol, beside the library: for authors in any language who follow a profile of it.

`compare` sends random sequences to both and compares every answer, which is all that a test needs; `DifferenceError`
has the shortest conversation. The peer is a callable, a command (`CommandPeer`), or an `OwnLogPeer`, which has a log
of its own. What is known to differ is a `Divergence`. `search` takes several processes and can be taken up again, as
``sharestate compare`` does.

It begins in ``comparing``, a search in ``running``. See "Beside the library" in ``docs/testing.md``.
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
