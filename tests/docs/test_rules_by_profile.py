"""The table of rules by profile leaves nothing out."""

from attrs import fields

from generate.rules_by_profile import SWITCHES
from sharestate import Profile


def test_every_field_of_a_profile_has_its_rows() -> None:
    """A rule in which releases differ is a field of the profile, and each field is in the table."""
    with_rows_of_their_own = {"name", "quirks", "configurable", "write_policy"}

    assert {field.name for field in fields(Profile)} - with_rows_of_their_own == SWITCHES.keys()
