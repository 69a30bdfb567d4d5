"""The generated pages by their names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from generate import how_we_know, state_machines, where_rules_live

DOCS: Final = Path(__file__).parents[1]

PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "how-we-know.md": how_we_know.page,
        "state-machines.md": state_machines.page,
        "where-rules-live.md": where_rules_live.page,
    }
)
"""What makes each page, by its file in ``docs``."""
