"""Random sequences of requests: see `sharestate.testing.generator.operations`."""

from sharestate.testing.generator.mix import ORDINARY, STEPS, WILD, Mix, mix_for
from sharestate.testing.generator.model import Request, Response, Steps
from sharestate.testing.generator.operations import converse, operations, seeded

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
