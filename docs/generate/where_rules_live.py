"""The page that says which module is the home of which section, and where each bug of Kafka is asked for."""

from collections.abc import Iterator

from generate.homes import PACKAGE, Module, claims, homes, modules, what
from generate.markdown import NOTICE, table
from generate.meanings import meanings
from generate.sections import SECTIONS
from sharestate import Quirk

SECTIONS_TEXT = """\
The behaviour of the leader is written down in numbered sections. Docstrings and tests cite them, as in "spec 7.8", and
each section has exactly one home: the module whose docstring begins with its number. A rule is changed there. The
sections themselves are not part of the project; these are their headings."""

MODULES_TEXT = """\
## Modules

What the modules of the state machine say of themselves."""

QUIRKS_TEXT = """\
## Bugs of Kafka

A profile shows a bug of Kafka or has it healed (section 24.1). These modules ask for it."""


def page() -> str:
    """Return the page."""
    parts = [
        NOTICE,
        "# Where rules live",
        SECTIONS_TEXT,
        table(["section", "heading", "home"], _section_rows()),
        MODULES_TEXT,
        table(["module", "", "sections"], _module_rows()),
        QUIRKS_TEXT,
        table(["bug", "", "asked for in"], _quirk_rows()),
    ]
    return "\n\n".join(parts) + "\n"


def _section_rows() -> Iterator[list[str]]:
    for section, found in homes(modules(), SECTIONS).items():
        yield [section, SECTIONS[section], _links(found)]


def _module_rows() -> Iterator[list[str]]:
    for module in modules():
        own = claims(module, SECTIONS)
        if own or module.path.startswith("partition/"):
            yield [_links([module]), what(module), ", ".join(own)]


def _quirk_rows() -> Iterator[list[str]]:
    said = meanings(Quirk)
    for quirk in Quirk:
        asked = f"profile.has(Quirk.{quirk.name})"
        askers = [module for module in modules() if f"ledger.{asked}" in (PACKAGE / module.path).read_text()]
        yield [quirk.value, said[quirk.name], _links(askers)]


def _links(found: list[Module]) -> str:
    return ", ".join(f"[`{module.path}`](../src/sharestate/{module.path})" for module in found)
