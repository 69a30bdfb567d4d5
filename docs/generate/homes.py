"""Which module is the home of which section: the first lines of the modules' docstrings say it."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import sharestate

PACKAGE: Final = Path(sharestate.__file__).parent
FOLDERS: Final = ("partition", "values")
"""Where the rules of the leader's state machine are."""

_NUMBER: Final = r"\d+(?:\.\d+)?"
_CLAIM: Final = re.compile(rf"Spec ({_NUMBER}(?:(?:, | and | to ){_NUMBER})*): (.+)")


class Module(NamedTuple):
    """A module of the package, and how its docstring begins."""

    path: str
    """Its file within the package: ``partition/acquire.py``."""

    first_line: str
    """The first line of its docstring."""


def modules() -> list[Module]:
    """Return the modules in which rules live, in the order of their paths."""
    return [_read(file) for folder in FOLDERS for file in sorted((PACKAGE / folder).glob("[!_]*.py"))]


def _read(file: Path) -> Module:
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    return Module(file.relative_to(PACKAGE).as_posix(), docstring.partition("\n")[0])


def claims(module: Module, sections: Iterable[str]) -> tuple[str, ...]:
    """
    Return the sections that *module* names as its own.

    >>> claims(Module("gaps.py", "Spec 1, 1.1 to 2 and 4.4: gaps."), ["1", "1.1", "1.2", "2", "4", "4.4"])
    ('1', '1.1', '1.2', '2', '4.4')

    Raises:
        ValueError: Its first line begins with "Spec" and cannot be read, or names what is none of *sections*.
    """
    if not module.first_line.startswith("Spec "):
        return ()
    found = _CLAIM.fullmatch(module.first_line)
    if found is None:
        message = f'{module.path} should begin as in "Spec 7.8, 7.9 and 20.1: ...": {module.first_line}'
        raise ValueError(message)
    order = list(sections)
    unknown = set(re.findall(_NUMBER, found[1])) - set(order)
    if unknown:
        message = f"{module.path} names sections that are not in the list: {sorted(unknown)}"
        raise ValueError(message)
    return tuple(_named(found[1], order))


def _named(text: str, order: list[str]) -> Iterator[str]:
    for part in re.split(", | and ", text):
        first, _, last = part.partition(" to ")
        yield from order[order.index(first) : order.index(last or first) + 1]


def homes(found: Iterable[Module], sections: Iterable[str]) -> Mapping[str, list[Module]]:
    """Return for each section the modules that name it: one if all is well."""
    result: dict[str, list[Module]] = {section: [] for section in sections}
    for module in found:
        for section in claims(module, result):
            result[section].append(module)
    return result


def what(module: Module) -> str:
    """
    Return what *module* says of itself, without the sections.

    >>> what(Module("gaps.py", "Spec 4.4: what was never persisted."))
    'What was never persisted.'
    """
    found = _CLAIM.fullmatch(module.first_line)
    text = module.first_line if found is None else found[2]
    return text[:1].upper() + text[1:]
