"""The table of settings against Kafka's own classes, as ``tests/data/configs`` has recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import ConfigType, InvalidConfigurationError, MalformedInputError, config_keys

RECORDED = Path(__file__).parents[2] / "data" / "configs"
RELEASES = ("4.2.1", "4.2.2", "4.3.1", "4.4.0")


def kafkas(release: str) -> list[dict[str, Any]]:
    """Return the rows of Kafka's table."""
    rows: list[dict[str, Any]] = json.loads((RECORDED / f"keys-{release}.json").read_text())
    return rows


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_is_kafkas(release: str) -> None:
    """Class, name, type, default, valid values, and whether it is internal or dynamic: in Kafka's order."""
    ours = [
        {
            "class": key.owner,
            "name": key.name,
            "type": key.type.value,
            "default": list(key.default) if isinstance(key.default, tuple) else key.default,
            "valid": None if key.valid is None else str(key.valid),
            "internal": key.is_internal,
            "dynamic": key.is_dynamic,
        }
        for key in config_keys(release).values()
    ]

    assert ours == [{name: row[name] for name in ours[0]} for row in kafkas(release)]


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_a_groups_setting_has_the_brokers_of_the_same_name(release: str) -> None:
    """Kafka's table of synonyms names the broker's setting ``group.`` and the group's name, where there is one."""
    keys = config_keys(release)

    for row in kafkas(release):
        if row["class"] == "GroupConfig":
            synonym = f"group.{row['name']}"
            assert row["synonym"] == (synonym if synonym in keys else None)


@pytest.mark.parametrize("release", RELEASES)
def test_every_default_is_a_value_that_the_setting_takes(release: str) -> None:
    """Written as brokers have it, each default is read as itself."""
    for key in config_keys(release).values():
        default = key.default
        written = ",".join(default) if isinstance(default, tuple) else str(default)
        assert key.read(written) == default


def test_each_setting_has_a_scope() -> None:
    """A group's stand in GroupConfig, a topic's in LogConfig, and all others are a broker's."""
    keys = config_keys("4.4")

    assert keys["share.isolation.level"].scope == "group"
    assert keys["errors.deadletterqueue.group.enable"].scope == "topic"
    assert keys["errors.deadletterqueue.topic.name.prefix"].scope == "broker"
    assert keys["share.coordinator.threads"].scope == "broker"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("group.share.max.size", "+0007", 7),
        ("group.share.max.size", " \u0667\t", 7),
        ("share.coordinator.append.linger.ms", "-0", 0),
        ("share.renew.acknowledge.enable", " False\n", False),
        ("group.share.assignors", " simple ,a.B,simple", ("simple", "a.B")),
        ("errors.deadletterqueue.topic.name", " dlq.a ", "dlq.a"),
    ],
)
def test_a_text_is_read_as_java_reads_it(name: str, text: str, value: object) -> None:
    """Spaces, signs, zeros in front and digits of other scripts make no difference, nor do letters of either case."""
    assert config_keys("4.4")[name].read(text) == value


@pytest.mark.parametrize("text", ["", "1_0", "1.0", "0x1", "2147483648", "-2147483649", "\u20031", "9" * 10**6])
def test_what_is_no_number_is_named(text: str) -> None:
    """A long text is refused at once, and not shown as a whole."""
    with pytest.raises(InvalidConfigurationError, match=r"Invalid value .*: Not a number of type INT$") as refused:
        config_keys("4.4")["group.share.max.size"].read(text)

    assert refused.value.key == "group.share.max.size"
    assert len(str(refused.value)) < 200


def test_a_short_has_16_bits() -> None:
    """32,767 is the largest."""
    key = config_keys("4.4")["share.coordinator.state.topic.min.isr"]

    assert key.type is ConfigType.SHORT
    assert key.read("32767") == 32_767
    with pytest.raises(InvalidConfigurationError, match=r"Invalid value 32768 .* Not a number of type SHORT"):
        key.read("32768")


@pytest.mark.parametrize("release", ["4.1", "5.0.0", "", "latest", "4"])
def test_another_release_is_refused(release: str) -> None:
    """The error says which there are."""
    with pytest.raises(MalformedInputError, match=r"expected a release of 4\.2, 4\.3, 4\.4, got") as refused:
        config_keys(release)

    assert refused.value.field == "release"
