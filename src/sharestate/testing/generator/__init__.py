"""Random sequences of requests: see `sharestate.testing.generator.operations`."""

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
