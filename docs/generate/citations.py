"""Citations of rules, as in "rule 8.1, step 3" or "rules 7.8 and 24.3", and the headings in ``docs/rules.md``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

RULES: Final = Path(__file__).parents[1] / "rules.md"

_NUMBER: Final = r"\d+(?:\.\d+)?"
_LIST: Final = rf"{_NUMBER}(?:(?:, | and | to ){_NUMBER})*"
_CITATION: Final = re.compile(rf"\b[Rr]ule {_NUMBER}|\b[Rr]ules {_LIST}")
_HEADING: Final = re.compile(rf"^\(rule-([\d-]+)\)=\n#+ ({_NUMBER}) (.+)$", re.MULTILINE)


def headings() -> Mapping[str, str]:
    """Return the headings of the rules by their numbers, in the order of the page."""
    return {number: text for _, number, text in _HEADING.findall(RULES.read_text())}


def cited(text: str) -> list[str]:
    """
    Return the numbers of the rules that *text* cites.

    >>> cited("Rule 7.8: new records (rules 8.1 and 24.3; rule 18, row 5).")
    ['7.8', '8.1', '24.3', '18']
    """
    return [number for citation in _CITATION.findall(text) for number in re.findall(_NUMBER, citation)]


def linked(text: str) -> str:
    """
    Return *text* with links to the rules that it cites.

    >>> linked("copied by no profile (rules 24.2 and 8.1)")
    'copied by no profile ([rules 24.2](rules.md#rule-24-2) and [8.1](rules.md#rule-8-1))'
    """
    return _CITATION.sub(lambda citation: re.sub(rf"(?:[Rr]ules? )?({_NUMBER})", _link, citation[0]), text)


def _link(found: re.Match[str]) -> str:
    return f"[{found[0]}](rules.md#rule-{found[1].replace('.', '-')})"
