"""
Every state that a small share group may come to: for those who change the library, or doubt it.

`explore` looks at each state once, the nearest ones first, and at each step between two: members fetch, acknowledge and
leave, locks expire, writes are answered in any order, fail, or reach the share coordinator without an answer, the log
start moves, batches are compacted away, leaders are replaced. What must hold is in ``properties``; what does not hold
is shown by a shortest conversation of the line protocol. A `Configuration` says how small the group is, and how much
may go wrong.

It begins in ``exploration``; what may happen is in ``events``, what comes of it in ``steps``, and when two states
are the same in ``explored_state``. See "Every state of a small group" in ``docs/testing.md``, and ``docs/explore.md``.
"""

from sharestate.testing.explore.configuration import Configuration
from sharestate.testing.explore.events import Event, ExploredEventKind
from sharestate.testing.explore.exploration import Bound, Bounds, Counterexample, Exploration, explore, go_on
from sharestate.testing.explore.exploration_files import ExplorationFileError, read_exploration, write_exploration
from sharestate.testing.explore.explored_state import ExploredState
from sharestate.testing.explore.properties import NAMES
from sharestate.testing.explore.rules_met import BEYOND, RULES
from sharestate.testing.explore.steps import Step

__all__ = [
    "BEYOND",
    "NAMES",
    "RULES",
    "Bound",
    "Bounds",
    "Configuration",
    "Counterexample",
    "Event",
    "Exploration",
    "ExplorationFileError",
    "ExploredEventKind",
    "ExploredState",
    "Step",
    "explore",
    "go_on",
    "read_exploration",
    "write_exploration",
]
