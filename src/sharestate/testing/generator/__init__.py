"""Random sequences of requests: see `sharestate.testing.generator.operations`."""

from sharestate.testing.generator.mix import ORDINARY, STEPS, WILD, Mix
from sharestate.testing.generator.model import Request, Response, Steps
from sharestate.testing.generator.operations import converse, operations, seeded

__all__ = ["ORDINARY", "STEPS", "WILD", "Mix", "Request", "Response", "Steps", "converse", "operations", "seeded"]
