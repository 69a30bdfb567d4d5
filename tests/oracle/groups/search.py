"""
Search for differences between the library's share groups and Kafka's own group coordinator.

``python -m tests.oracle.groups.search --help``

The exit status is 0 if all agreed, 1 if not, and 2 if Kafka's could not be built.
"""

from __future__ import annotations

from typing import Final

DRIVER: Final = "org.apache.kafka.coordinator.group.GroupDriver"
