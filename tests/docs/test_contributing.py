"""CONTRIBUTING says of the package what the linter holds."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_layers_are_those_of_the_linter() -> None:
    """From the top down, those beside each other included."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")

    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    listed = re.search(r"Imports go down only: (.*?)\. ", text)

    assert listed is not None
    assert [f"`{layer}`" for layer in layers if layer != "__main__"] == listed[1].split(" > ")
