"""
A kit for testing share partitions, this library's and others: random sequences of requests, and what must hold.

Sequences speak the conversation protocol, so anything that answers it can be tested. The strategies for Hypothesis are
in `sharestate.testing.strategies` (extra ``testing``).

`PersisterContract` is a test class that any persister's tests inherit.
"""

from sharestate.testing.exchange import Cell, Exchange, exchanges, records, trace
from sharestate.testing.invariants import ALWAYS, BROKER, HEALED, judge
from sharestate.testing.mix import ORDINARY, STEPS, WILD, Mix
from sharestate.testing.operations import converse, operations, seeded
from sharestate.testing.peer import Peer, observe, rules_of
from sharestate.testing.persister_contract import PersisterContract, broken_clauses
from sharestate.testing.sightings import ORDINARY_SIGHTINGS, REFUSED, seen
from sharestate.testing.world import Request, Response, Steps

__all__ = [
    "ALWAYS",
    "BROKER",
    "HEALED",
    "ORDINARY",
    "ORDINARY_SIGHTINGS",
    "REFUSED",
    "STEPS",
    "WILD",
    "Cell",
    "Exchange",
    "Mix",
    "Peer",
    "PersisterContract",
    "Request",
    "Response",
    "Steps",
    "broken_clauses",
    "converse",
    "exchanges",
    "judge",
    "observe",
    "operations",
    "records",
    "rules_of",
    "seeded",
    "seen",
    "trace",
]
