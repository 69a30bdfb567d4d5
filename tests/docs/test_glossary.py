"""The words that the glossary refuses are found where they stand, and nowhere else."""

from __future__ import annotations

from generate.glossary import PAGE, SOURCE, Exemption, Word, exemptions, findings, judge, words

EXPIRE = Word("expire", "lapsed", is_for_names=False)
OUT = Word("expire", "ran out", is_for_names=False)
LOOKS = Word("visible state", "looks", is_for_names=True)

TABLES = """\
| term | meaning | words not used for it |
|---|---|---|
| expire | The deadline has passed. | `lapsed`, `ran out` (over) |
| SPSO | A start offset. | |
| visible state | What callers see. | in names `looks` |

## Places

| file below `src/sharestate` | word | why |
|---|---|---|
| `a/b.py` | `lapsed` | The name of a field on the wire. |
"""


def found(source: str, *refused: Word) -> list[tuple[int, str]]:
    """Return the line and the place of each refused word in *source*."""
    return [(finding.line, finding.where) for finding in findings("place.py", source, refused)]


def test_the_third_column_is_what_is_refused() -> None:
    """Code spans are refused, after "in names" in names only; words in parentheses are not."""
    assert words(TABLES) == [EXPIRE, OUT, LOOKS]


def test_the_second_table_lists_exemptions() -> None:
    """Each row is a file, a word and a reason."""
    assert exemptions(TABLES) == [Exemption("a/b.py", "lapsed", "The name of a field on the wire.")]


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

    assert found(source, EXPIRE, OUT) == [(2, "docstring"), (4, "docstring")]


def test_literals_and_other_words_of_docstrings_are_passed_over() -> None:
    """Code in double backticks is judged where it is defined; a part of a longer word is another word."""
    assert found('"""``lapsed`` and collapsed, or ``HasLapsed``."""', EXPIRE) == []


def test_a_word_for_names_may_stand_in_docstrings() -> None:
    """Words after "in names" are ordinary English elsewhere."""
    assert found('def looks(): """Whoever looks."""', LOOKS) == [(1, "looks")]


def test_an_exemption_covers_one_word_of_one_file() -> None:
    """The same word is still refused in another file."""
    both = [finding for path in ("a.py", "b.py") for finding in findings(path, "lapsed = 1", [EXPIRE])]

    assert judge(both, [Exemption("a.py", "lapsed", "why")]) == ["src/sharestate/b.py:1: lapsed: 'lapsed' for 'expire'"]


def test_an_exemption_that_covers_nothing_is_refused() -> None:
    """Exemptions do not outlive what they were for."""
    assert judge([], [Exemption("a.py", "lapsed", "why")]) == ["docs/glossary.md: a.py needs no exemption for 'lapsed'"]


def test_the_page_refuses_words_once_and_exempts_files_that_exist() -> None:
    """No word is refused in favor of two terms, and each exemption has a reason."""
    page = PAGE.read_text()
    texts = [word.text for word in words(page)]

    assert len(texts) == len(set(texts)) > 0
    for row in exemptions(page):
        assert (SOURCE / row.path).is_file(), row
        assert row.reason, row
