"""Whose rules a release of Kafka has."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sharestate.values.profiles import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, LATEST, Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILES_BY_LINE: Final[Mapping[str, Profile]] = MappingProxyType(
    {"4.2": KAFKA_4_2, "4.3": KAFKA_4_3, "4.4": KAFKA_4_4}
)
"""The profiles by the first two numbers of a release."""


def profile_of(kafka: str) -> Profile:
    """
    Return the profile that follows the release *kafka*; the latest one for a release that nobody knows yet.

    >>> profile_of("4.3.1").name, profile_of("5.0.0") is LATEST
    ('kafka-4.3', True)
    """
    return PROFILES_BY_LINE.get(".".join(kafka.split(".")[:2]), LATEST)
