"""The page about the line protocol of share groups has each operation, field, default and limit of the code."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from sharestate.conversation.groups.conversation import (
    MAX_ALL_PARTITIONS,
    MAX_LOG,
    MAX_SERVED_GROUPS,
    MAX_SERVED_TOPICS,
)
from sharestate.conversation.groups.grammar import MAX_SERVED_PARTITIONS, OPERATIONS, read_request
from sharestate.errors import MalformedInputError
from tests.support.protocol_pages import fields, operations, sections

SECTIONS: Final = sections("groups-protocol.md")
PAGE: Final = operations(SECTIONS)
"""The text about each operation."""

EVERY: Final = fields(SECTIONS["Every request"])


def test_every_operation_is_on_the_page() -> None:
    """The page has each operation that is understood, and no other."""
    assert PAGE.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_fields_of_an_operation_are_on_the_page(operation: str) -> None:
    """Its table has all of its fields, beside those of every request."""
    with pytest.raises(MalformedInputError, match="unknown field") as refusal:
        read_request({"op": operation, "unknown": 0})

    allowed = set(re.findall(r"\w+", str(refusal.value).partition("expected one of ")[2])) - {"comment"}
    assert EVERY.keys() | fields(PAGE[operation]).keys() == allowed


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_default_is_what_a_missing_field_stands_for(operation: str) -> None:
    """A field may be written out with its default, and nothing changes."""
    request = {"op": operation}
    defaults = {name: default for name, default in {**EVERY, **fields(PAGE[operation])}.items() if name != "op"}

    explicit = {name: json.loads(default.strip("`")) for name, default in defaults.items()}

    assert read_request({**request, **explicit}) == read_request(request)


def test_the_limits_are_those_of_the_code() -> None:
    """Groups, topics, partitions and records."""
    limits = [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", SECTIONS["Limits"])]

    assert limits == [MAX_SERVED_GROUPS, MAX_SERVED_TOPICS, MAX_SERVED_PARTITIONS, MAX_ALL_PARTITIONS, MAX_LOG]
