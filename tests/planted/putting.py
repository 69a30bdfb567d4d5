"""
Putting an older rule of Kafka into the library, or leaving one out, to see that a search notices.

The function ``plant`` of each module in ``rules`` switches off one change that Kafka made between October 2025 and
4.3.1, or in the ``RELEASE`` that the module names.
"""

from __future__ import annotations


def put(owner: object, name: str, replacement: object) -> None:
    """
    Put *replacement* in the place of the attribute *name* of *owner*.

    Raises:
        AttributeError: There is no such attribute any more.
    """
    getattr(owner, name)
    setattr(owner, name, replacement)
