"""The configs of other kinds of groups against Kafka's own classes, as ``tests/data/configs`` has recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate.broker.server.other_group_configs import (
    check_other_group_configs,
    of_brokers,
    other_broker_keys,
    other_group_keys,
    read_brokers_values,
    read_other_group_configs,
)
from sharestate.errors import InvalidConfigurationError
from sharestate.values.config_keys import ConfigKey

RECORDED = Path(__file__).parents[3] / "data" / "configs"
RELEASES = ("4.2.1", "4.3.1", "4.4.0")


def kafkas(release: str, owner: str) -> dict[str, dict[str, Any]]:
    """Return the rows of one class, by name."""
    rows = json.loads((RECORDED / f"other-keys-{release}.json").read_text())
    return {row["name"]: row for row in rows if row["class"] == owner}


def row(key: ConfigKey) -> dict[str, Any]:
    """Return our row, in the columns that Kafka's has."""
    return {
        "class": key.owner,
        "name": key.name,
        "type": key.type.value,
        "default": list(key.default) if isinstance(key.default, tuple) else key.default,
        "valid": None if key.valid is None else str(key.valid),
        "internal": key.is_internal,
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_is_kafkas(release: str) -> None:
    """Class, name, type, default, valid values and whether it is internal, in Kafka's order."""
    theirs = kafkas(release, "GroupConfig")
    ours = {key.name: row(key) for key in other_group_keys(release[:3]).values()}
    if (assignor := ours.get("streams.assignor.name")) is not None:
        assert (assignor["default"], theirs["streams.assignor.name"]["default"]) == ("sticky", None)
        assignor["default"] = None

    assert list(ours) == list(theirs)
    assert all(each.items() <= theirs[name].items() for name, each in ours.items())


@pytest.mark.parametrize("release", RELEASES)
def test_the_brokers_settings_are_kafkas(release: str) -> None:
    """The defaults and the bounds; the defaults are those that Kafka's table of synonyms names, from 4.3 on."""
    theirs = kafkas(release, "GroupCoordinatorConfig")
    ours = other_broker_keys(release[:3])

    assert all(row(key).items() <= theirs[name].items() for name, key in ours.items())
    for name, each in kafkas(release, "GroupConfig").items():
        if each["synonym"] is not None:
            assert of_brokers(other_group_keys(release[:3])[name]).name == each["synonym"]


@pytest.mark.parametrize("release", RELEASES)
def test_values_are_judged_as_a_controller_judges_them(release: str) -> None:
    """Each recorded one is taken, or refused in Kafka's words, with the config's name."""
    line = release[:3]
    cases = json.loads((RECORDED / f"other-verdicts-{release}.json").read_text())
    known = [case for case in cases if not case["refusal"].startswith("Unknown group config name")]
    found, named = [], []
    for case in known:
        try:
            brokers = read_brokers_values(case["broker"], line)
            check_other_group_configs(read_other_group_configs(case["group"], line), brokers, line)
        except InvalidConfigurationError as error:
            found.append(str(error))
            named.append(error.key is not None and error.key in str(error))
        else:
            found.append("")

    assert found == [case["refusal"] for case in known]
    assert all(named)
