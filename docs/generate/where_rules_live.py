"""The page that says which code carries which rule, and where each quirk is asked for."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from generate.citations import headings
from generate.markdown import NOTICE, table
from generate.meanings import meanings
from generate.places import PACKAGE, Place, places
from sharestate import Quirk

RULES: Final = """\
The code of each of [the rules](rules.md), found by the citations that stand at the code itself: at the end of a
docstring's first line, as in "(rule 7.4)", or at the beginning of a comment, as in `# rule 8.1, step 3`. A change of a
rule is a change of these places. Rules that cut across several parts list all of them, as rule 20.4 does: it lists
what calls for a change of the delivery complete count, and `partition/state.py`, which alone makes it."""

QUIRKS: Final = """\
## Quirks

The code that asks whether the profile shows a bug of Kafka ([rule 24.1](rules.md#rule-24-1))."""

MODULES: Final = """\
## Modules

What the modules of the state machine are for, the code of Kafka that they model, and the rules that they carry. The
errors that members get for a persister's error codes are in [`errors.py`](../src/sharestate/errors.py)."""


def page() -> str:
    """Return the page."""
    parts = [
        NOTICE,
        "# Where rules live",
        RULES,
        table(["rule", "about", "code"], _rule_rows()),
        QUIRKS,
        table(["bug", "`Quirk`", "what it does", "asked for in"], _quirk_rows()),
        MODULES,
        table(["module", "what it is for", "in Kafka", "rules"], _module_rows()),
    ]
    return "\n\n".join(parts) + "\n"


def _rule_rows() -> Iterator[list[str]]:
    found = places()
    for number, heading in headings().items():
        yield [_rule(number), heading, _links(found[number])]


def _rule(number: str) -> str:
    return f"[{number}](rules.md#rule-{number.replace('.', '-')})"


def _links(found: list[Place]) -> str:
    files: dict[str, list[str]] = {}
    for place in found:
        files.setdefault(place.path, []).append(place.name)
    return "; ".join(
        f"{_link(path)} {', '.join(f'`{name}`' for name in names if name)}" for path, names in files.items()
    )


def _link(path: str) -> str:
    return f"[`{path}`](../src/sharestate/{path})"


def _quirk_rows() -> Iterator[list[str]]:
    described = meanings(Quirk)
    for quirk in Quirk:
        yield [quirk.value, f"`{quirk.name}`", described[quirk.name], _links(asking(quirk.name))]


def asking(quirk: str) -> list[Place]:
    """Return the functions of the state machine that name a quirk."""
    return _by_quirk().get(quirk, [])


@cache
def _by_quirk() -> Mapping[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for file in sorted(PACKAGE.glob("partition/*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                for quirk in {*_quirks(function)}:
                    found.setdefault(quirk, []).append(Place(path, function.name))
    return found


def _quirks(function: ast.FunctionDef) -> Iterator[str]:
    """Go through the names of the quirks that a function names."""
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id="Quirk"), attr=quirk):
                yield quirk
            case _:
                pass


def _module_rows() -> Iterator[list[str]]:
    carried: dict[str, list[str]] = {}
    for number, found in places().items():
        for path in dict.fromkeys(place.path for place in found):
            carried.setdefault(path, []).append(_rule(number))
    for file in sorted(PACKAGE.glob("partition/[!_]*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
        purpose, source = docstring.partition("\n\n")[0], docstring.partition("\nSource:\n")[2]
        yield [_link(path), *(" ".join(text.split()) for text in (purpose, source)), ", ".join(carried.get(path, []))]
