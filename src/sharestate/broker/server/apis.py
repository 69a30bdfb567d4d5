"""The APIs that the server has: by its key, what answers each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sharestate.broker.server.calls import Handler

# fmt: off
HANDLERS: Final[Mapping[int, Handler]] = MappingProxyType({
})
# fmt: on
"""What answers each API."""
