"""
Conformance: whether an implementation of share partitions answers as Kafka's own class did, rule by rule.

What it is asked are recordings of that class (vectors); it speaks the line protocol. A broker is asked what members of
share groups can see (scripts): `sharestate.conformance.brokers`, with the extras ``kafka`` and ``segments``.
"""

from sharestate.conformance.badge import badge_svg, shields_json
from sharestate.conformance.running import conform
from sharestate.conformance.vectors import Vector, Vectors, read_scripts, read_vectors
from sharestate.conformance.verdicts import (
    Conformance,
    ConformanceVerdict,
    FailedVector,
    RuleConformance,
    VectorOutcome,
)

__all__ = [
    "Conformance",
    "ConformanceVerdict",
    "FailedVector",
    "RuleConformance",
    "Vector",
    "VectorOutcome",
    "Vectors",
    "badge_svg",
    "conform",
    "read_scripts",
    "read_vectors",
    "shields_json",
]
