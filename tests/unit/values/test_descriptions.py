"""What ``help()`` and a notebook's ``?`` show: a description of every field, and defaults by their names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import attrs
import pytest

import sharestate
from sharestate import coordinator, dead_letters, kip932, persister, plots, testing

PUBLIC = {
    f"{module.__name__}.{name}": found
    for module in (sharestate, persister, kip932, testing, plots)
    for name in module.__all__
    if inspect.isclass(found := getattr(module, name))
}


def own_fields(class_: type) -> set[str]:
    """Return the fields that *class_* adds to those of its bases; none, if it is no value class."""
    if "__attrs_attrs__" in vars(class_):
        return {field.name for field in attrs.fields(class_) if not field.inherited}
    return set(getattr(class_, "_fields", ()))


def described(class_: type) -> set[str]:
    """Return the fields that the docstring of *class_* describes."""
    _, _, section = inspect.cleandoc(class_.__doc__ or "").partition("\nAttributes:\n")
    return set(re.findall(r"^    (\w+): \S", section.partition("\n\n")[0], re.MULTILINE))


VALUE_CLASSES = {name: class_ for name, class_ in PUBLIC.items() if own_fields(class_)}


def test_there_are_value_classes() -> None:
    """The test below looks at attrs classes, named tuples and errors."""
    assert {
        "sharestate.ShareConfig",
        "sharestate.RecordBatch",
        "sharestate.InvalidRecordStateError",
        "sharestate.persister.PartitionAllData",
    } <= VALUE_CLASSES.keys()


@pytest.mark.parametrize("class_", VALUE_CLASSES.values(), ids=VALUE_CLASSES)
def test_the_docstring_of_a_class_describes_its_fields(class_: type) -> None:
    """No interpreter sees docstrings below fields, so the class has a section with a line for each."""
    inherited = {name for base in class_.__mro__[1:] for name in described(base)}

    assert own_fields(class_) <= described(class_) <= own_fields(class_) | inherited


CALLABLES = {
    f"{module.__name__}.{name}": found
    for module in (sharestate, coordinator, dead_letters, persister)
    for name in module.__all__
    if callable(found := getattr(module, name))
}


@pytest.mark.parametrize("found", CALLABLES.values(), ids=CALLABLES)
def test_the_defaults_of_a_signature_have_names(found: Callable[..., object]) -> None:
    """No function without a name, and no profile with all of its fields: a hook is None, a profile its constant."""
    try:
        signature = str(inspect.signature(found))
    except ValueError:  # an enumeration or a protocol
        return

    assert re.search(r"<lambda>|Profile\(", signature) is None


LENIENT = (
    sharestate.AcknowledgementBatch,
    sharestate.RecordBatch,
    sharestate.AbortedTransaction,
    sharestate.StateBatch,
)


@pytest.mark.parametrize("class_", LENIENT)
def test_a_class_that_checks_nothing_says_so(class_: type) -> None:
    """Those that are made in bulk are made of anything, and their docstring says where they are checked."""
    assert class_(*["nonsense"] * len(own_fields(class_)))
    assert "Any values make one: they are checked when it is used, " in inspect.cleandoc(class_.__doc__ or "")
