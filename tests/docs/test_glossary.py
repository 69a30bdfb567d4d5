"""The words that the glossary refuses are found where they stand, and nowhere else."""

from __future__ import annotations

from generate.glossary import (
    EVERYWHERE,
    IN_CODE,
    IN_NAMES,
    IN_PROSE,
    PAGE,
    ROOT,
    Exemption,
    Word,
    exemptions,
    findings,
    judge,
    prose,
    text_findings,
    words,
)

EXPIRE = Word("expire", "lapsed", EVERYWHERE)
OUT = Word("expire", "ran out", EVERYWHERE)
TOLD = Word("record", "told", IN_CODE)
LOOKS = Word("visible state", "looks", IN_NAMES)
ANEW = Word("again", "anew", IN_PROSE)

TABLES = """\
| term | meaning | words not used for it |
|---|---|---|
| expire | The deadline has passed. | `lapsed`, `ran out` (over) |
| SPSO | A start offset. | |
| record | Note it. | in code `told` |
| visible state | What callers see. | in names `looks` |

## Plain English

| write | as in | instead of |
|---|---|---|
| again | It starts again. | `anew` |

## Places

| file | word | why |
|---|---|---|
| `src/sharestate/a/b.py` | `lapsed` | The name of a field on the wire. |
"""


def found(source: str, *refused: Word) -> list[tuple[int, str]]:
    """Return the line and the place of each refused word in *source*."""
    return [(finding.line, finding.where) for finding in findings("place.py", source, refused)]


def test_the_third_column_is_what_is_refused() -> None:
    """Code spans are refused, after "in names" in names only; words in parentheses are not; plain English in prose."""
    assert words(TABLES) == [EXPIRE, OUT, TOLD, LOOKS, ANEW]


def test_the_last_table_lists_exemptions() -> None:
    """Each row is a file, a word and a reason."""
    assert exemptions(TABLES) == [Exemption("src/sharestate/a/b.py", "lapsed", "The name of a field on the wire.")]


def test_a_word_is_found_in_every_kind_of_name() -> None:
    """In functions, classes, arguments, variables, attributes and import aliases, in any part of the name."""
    source = """\
import os as lapsed_os
class HasLapsed: pass
def is_lapsed(lapsed_ms): pass
LAPSED = 1
for lapsed in (): pass
self.was_lapsed = 1
"""

    assert sorted(found(source, EXPIRE)) == [
        (1, "lapsed_os"),
        (2, "HasLapsed"),
        (3, "is_lapsed"),
        (3, "lapsed_ms"),
        (4, "LAPSED"),
        (5, "lapsed"),
        (6, "was_lapsed"),
    ]


def test_a_use_of_a_name_is_not_found_again() -> None:
    """A name is reported where it is defined, not at each use."""
    assert found("print(lapsed, thing.lapsed)", EXPIRE) == []


def test_a_word_is_found_in_the_name_of_a_file_and_of_its_folder() -> None:
    """The path is made of names too."""
    paths = [finding.where for finding in findings("lapsed/has_lapsed.py", "", [EXPIRE])]

    assert paths == ["lapsed", "has_lapsed"]


def test_a_word_is_found_in_docstrings() -> None:
    """In those of functions and those below attributes, across line breaks and whatever the case."""
    source = '''\
def f():
    """Lapsed locks."""
x = 1
"""A lock that ran
out."""
'''

    assert sorted(found(source, EXPIRE, OUT)) == [(2, "docstring"), (4, "docstring")]


def test_a_word_is_found_in_messages_and_help() -> None:
    """In every text that is no docstring, in parts of f-strings too; a word for code is ordinary English there."""
    source = """\
raise ValueError("the lock lapsed")
print(f"{lock} was told that it lapsed anew")
"""

    assert found(source, EXPIRE, TOLD, ANEW) == [(1, "text"), (2, "text"), (2, "text")]


def test_a_word_is_found_on_a_page() -> None:
    """On its line and whatever the case, but in no block and no span of code."""
    page = """\
# Locks

```python
lapsed
```

`lapsed` is a name. Lapsed
locks start anew.
"""
    places = [(finding.line, finding.word) for finding in text_findings("page.md", prose(page), [EXPIRE, ANEW, TOLD])]

    assert places == [(7, EXPIRE), (8, ANEW)]


def test_none_is_no_word() -> None:
    """A sentence about Python's None is no sentence of plain English."""
    assert list(text_findings("page.md", "if it is None", [Word("is not one", "it is none", IN_PROSE)])) == []


def test_literals_and_other_words_of_docstrings_are_skipped() -> None:
    """Code in double backticks is judged where it is defined; a part of a longer word is another word."""
    assert found('"""``lapsed`` and collapsed, or ``HasLapsed``."""', EXPIRE) == []


def test_a_word_for_names_may_stand_in_docstrings() -> None:
    """Words after "in names" are ordinary English elsewhere."""
    assert found('def looks(): """It looks."""', LOOKS) == [(1, "looks")]


def test_an_exemption_covers_one_word_of_one_file() -> None:
    """The same word is still refused in another file."""
    both = [finding for path in ("a.py", "b.py") for finding in findings(path, "lapsed = 1", [EXPIRE])]

    assert judge(both, [Exemption("a.py", "lapsed", "why")]) == ["b.py:1: lapsed: 'lapsed' for 'expire'"]


def test_an_exemption_that_covers_nothing_is_refused() -> None:
    """Exemptions do not outlive what they were for."""
    assert judge([], [Exemption("a.py", "lapsed", "why")]) == ["docs/glossary.md: a.py needs no exemption for 'lapsed'"]


def test_the_page_refuses_words_once_and_exempts_files_that_exist() -> None:
    """No word is refused in favor of two terms, and each exemption has a reason."""
    page = PAGE.read_text()
    texts = [word.text for word in words(page)]

    assert len(texts) == len(set(texts)) > 0
    for row in exemptions(page):
        assert (ROOT / row.path).is_file(), row
        assert row.reason, row
