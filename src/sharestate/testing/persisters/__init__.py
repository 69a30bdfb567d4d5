"""
What keeps a share partition's state, and where dead letters go: for authors of persisters and of dead-letter queues.

Inherit `PersisterContract` or `DeadLetterQueueContract`, test classes with a test for each clause, and
`PersisterMachine` (extra ``testing``), which sends random requests and compares each answer, and all that is stored,
with an independent model. ``failover_runs`` judges what the next leader finds: nothing is lost, comes back or stalls.

The rules are in ``contract`` and ``model``. See "Persisters" and "Leaders that fail over" in ``docs/testing.md``.
"""

from typing import TYPE_CHECKING

from sharestate.testing.persisters.clauses import broken_clauses, untested_clauses
from sharestate.testing.persisters.contract import PersisterContract
from sharestate.testing.persisters.dead_letter_contract import DeadLetterQueueContract

__all__ = [
    "DeadLetterQueueContract",
    "PersisterContract",
    "PersisterDiffersError",
    "PersisterMachine",
    "broken_clauses",
    "untested_clauses",
]

if TYPE_CHECKING:
    from sharestate.testing.persisters.machine import PersisterDiffersError, PersisterMachine
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Import the machine on first use: the contracts need no Hypothesis."""
        if name in {"PersisterDiffersError", "PersisterMachine"}:
            from sharestate.testing.persisters import machine  # noqa: PLC0415 - on first use

            return getattr(machine, name)
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
