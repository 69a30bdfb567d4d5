"""
Random sequences of requests in the line protocol: what ``search`` and ``protocol`` send.

`seeded` returns the sequence of a seed: a generator that yields requests and is sent the response to each, by which it
goes on; `converse` sends one to a server. A `Mix` says what it is made of: `ORDINARY` requests of a broker, or `WILD`
ones.

What a broker asks is in ``ordinary``, the log and what else is around a share partition in ``surroundings``. See "Over
the line protocol" in ``docs/testing.md``.
"""

from sharestate.testing.generator.mix import ORDINARY, STEPS, WILD, Mix, mix_for
from sharestate.testing.generator.operations import converse, operations, seeded
from sharestate.testing.generator.surroundings import Request, Response, Steps

__all__ = [
    "ORDINARY",
    "STEPS",
    "WILD",
    "Mix",
    "Request",
    "Response",
    "Steps",
    "converse",
    "mix_for",
    "operations",
    "seeded",
]
