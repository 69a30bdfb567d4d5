"""The file of mutants that may survive keeps up with the source."""

from pathlib import Path

import pytest

from tests.mutation.survivors import Survivor, survivors

ENTRIES = survivors()


@pytest.mark.parametrize("entry", ENTRIES, ids=[f"{number} {each.module}" for number, each in enumerate(ENTRIES)])
def test_a_survivor_is_in_the_source(entry: Survivor) -> None:
    """Its line stands in the definition that it names, and the change changes it."""
    assert entry.is_there
    assert entry.change != entry.line


def test_a_survivor_is_listed_once() -> None:
    """One place has one reason."""
    assert len({(entry.module, entry.definition, entry.line, entry.change) for entry in ENTRIES}) == len(ENTRIES)


def test_a_line_that_has_gone_is_noticed() -> None:
    """Neither another definition with the line nor a file that is not there will do."""
    there = ENTRIES[0]

    def moved(**changes: str) -> Survivor:
        fields = ("module", "definition", "line", "change", "kind", "reason")
        return Survivor(**({name: getattr(there, name) for name in fields} | changes))

    assert moved().is_there
    assert not moved(line=there.line + " ").is_there
    assert not moved(definition="Nobody").is_there
    assert not moved(module="partition/nothing.py").is_there


def test_changes_of_a_line_may_have_one_reason(tmp_path: Path) -> None:
    """Each is an entry of its own."""
    file = tmp_path / "survivors.toml"
    entry = 'module = "a.py"\ndefinition = "f"\nline = "x"\nkind = "equivalent"\nreason = "a reason for both"\n'
    file.write_text(f'[[survivor]]\n{entry}changes = ["y", "z"]\n[[survivor]]\n{entry}change = "w"\n')

    assert [each.change for each in survivors(file)] == ["y", "z", "w"]
    assert {each.reason for each in survivors(file)} == {"a reason for both"}


def test_a_reason_is_needed(tmp_path: Path) -> None:
    """An entry without one, or of another kind, is refused."""
    file = tmp_path / "survivors.toml"
    entry = 'module = "a.py"\ndefinition = "f"\nline = "x"\nchange = "y"\n'
    file.write_text(f'[[survivor]]\n{entry}kind = "equivalent"\nreason = ""\n')
    with pytest.raises(ValueError, match="reason"):
        survivors(file)
    file.write_text(f'[[survivor]]\n{entry}kind = "tolerable"\nreason = "nobody minds"\n')
    with pytest.raises(ValueError, match="kind"):
        survivors(file)
