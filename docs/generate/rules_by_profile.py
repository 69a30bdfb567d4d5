"""The page that says which rule holds under which profile, made from the profiles themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import fields

from generate.kafka_bugs import anchor
from generate.markdown import NOTICE, table
from sharestate import PROFILES, BrokerWritePolicy, KipWritePolicy, Quirk, ShareConfig

INTRODUCTION: Final = """\
Every rule in which the [profiles](profiles.md) differ, and what each profile has. All other [rules](rules.md) hold
under all of them."""

SWITCHES: Final = {
    "has_dead_letter_queue": "a group may have a dead-letter queue ([rule 21](rules.md#rule-21))",
    "expires_per_call": "all expired locks are handled at once, with one write ([rule 10](rules.md#rule-10))",
    "advances_after_failed_expiry": (
        "the SPSO may advance when the write of an expired lock has failed ([rule 10](rules.md#rule-10))"
    ),
}
"""The fields of a profile that are true or false."""

OTHERWISE: Final = {
    "advances_after_failed_expiry": "once no lock and no pending write is left ([why](profiles.md#the-kips-own-text))"
}
"""What holds where a field is false and that is not all there is to say."""

WRITES: Final = {BrokerWritePolicy: "a broker's", KipWritePolicy: "the KIP's"}


def page() -> str:
    """Return the page."""
    return "\n\n".join([NOTICE, "# Rules by profile", INTRODUCTION, table(["", *PROFILES], _rows())]) + "\n"


def _rows() -> Iterator[list[str]]:
    profiles = PROFILES.values()
    for name, what in SWITCHES.items():
        yield [what, *(_yes(getattr(profile, name), OTHERWISE.get(name, "")) for profile in profiles)]
    yield ["content of the writes ([rule 15](rules.md#rule-15))", *(WRITES[type(p.write_policy)] for p in profiles)]
    for field in fields(ShareConfig):
        what = f"`{field.name}` may change while a share partition runs ([rule 1](rules.md#rule-1))"
        yield [what, *(_yes(field.name in profile.configurable) for profile in profiles)]
    for quirk in Quirk:
        what = f"bug [{quirk}](kafka-bugs.md#{anchor(quirk)}) ([rule 24.1](rules.md#rule-24-1))"
        yield [what, *(_yes(profile.has(quirk)) for profile in profiles)]


def _yes(value: bool, otherwise: str = "") -> str:  # noqa: FBT001 - a cell of the table
    return "yes" if value else otherwise
