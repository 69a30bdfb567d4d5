"""
The stable names of the library, as ``python -m tests.support.api_snapshot`` records them in ``tests/data/api.json``.

Record them again where a change is meant, and say in a news fragment what users do.
"""

from __future__ import annotations

import inspect
import json
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from attrs import fields, has

RECORDED: Final = Path(__file__).parents[1] / "data" / "api.json"


def api_of(packages: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each exported name of packages is: its signature, members of an enumeration, members of a class."""
    return {name: _names(import_module(name)) for name in packages}


def _names(package: Any) -> dict[str, Any]:  # noqa: ANN401 - a package, or a module in its place
    return {name: _described(getattr(package, name)) for name in sorted(package.__all__)}


def _described(value: Any) -> Any:  # noqa: ANN401 - whatever is exported
    if inspect.isclass(value):
        if issubclass(value, Enum):
            return {member.name: repr(member.value) for member in value}
        return {"": _signature(value), **{name: _described_member(value, name) for name in _members(value)}}
    return _signature(value) if callable(value) else type(value).__name__


def _members(owner: type) -> list[str]:
    """Return the public members of a class that are the library's: those of its own and of bases in it."""
    bases = [base for base in owner.__mro__ if base.__module__.startswith("sharestate")]
    kept = [field.name for field in fields(owner)] if has(owner) else []  # without slots, the class does not know them
    return sorted({name for name in (*kept, *(each for base in bases for each in vars(base))) if name[0] != "_"})


def _described_member(owner: type, name: str) -> str:
    value = inspect.getattr_static(owner, name, None)
    if isinstance(value, classmethod | staticmethod):
        return f"{type(value).__name__} {_signature(value.__func__)}"
    return _signature(value) if inspect.isfunction(value) else "attribute"


def _signature(value: Any) -> str:  # noqa: ANN401 - a function or a class
    """Return the parameters with their kinds, and which may be left out; what a default is may change."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # of classes that are made in C
        return "(...)"
    parameters = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else ...)
        for each in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty)).replace("Ellipsis", "...")


def main() -> None:
    """Record the stable names."""
    stable = list(json.loads(RECORDED.read_text()))
    RECORDED.write_text(json.dumps(api_of(stable), indent=1) + "\n")


if __name__ == "__main__":
    main()
