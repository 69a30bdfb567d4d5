"""Settings of brokers and groups, against the verdicts of Kafka's own classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import InvalidConfigurationError, MalformedInputError, config_keys, effective_configs
from tests.support.config_verdicts import difference

RECORDED = Path(__file__).parents[2] / "data" / "configs"

SESSION = "share.session.timeout.ms"


@pytest.mark.parametrize("release", ["4.2.1", "4.3.1", "4.4.0"])
def test_the_verdicts_are_kafkas(release: str) -> None:
    """What Kafka refuses is refused in its words, with the setting; of what it takes, the values are the same."""
    rows: list[dict[str, Any]] = json.loads((RECORDED / f"verdicts-{release}.json").read_text())

    assert len(rows) > 150
    assert [said for row in rows if (said := difference(row["request"], row, release))] == []


@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_without_a_setting_all_are_defaults(release: str) -> None:
    """Each setting of the release has its default, and a group has the broker's."""
    assert effective_configs({}, release=release) == {name: key.default for name, key in config_keys(release).items()}


def test_a_group_has_the_brokers_setting_unless_it_has_its_own() -> None:
    """So brokers resolve them (ShareGroupConfigProvider 4.4.0)."""
    broker = {"group.share.record.lock.duration.ms": "40000", "log.dirs": "data"}
    group = {"share.record.lock.duration.ms": "50000"}

    assert effective_configs(broker)["share.record.lock.duration.ms"] == 40_000
    assert effective_configs({**broker, **group})["share.record.lock.duration.ms"] == 50_000
    assert "log.dirs" not in effective_configs(broker)


def test_a_loaded_group_is_moved_into_the_brokers_bounds() -> None:
    """From 4.3 on (KAFKA-20162); 4.2 has it as it is; one that is made is refused by all."""
    group = {SESSION: "70000"}

    assert effective_configs(group, release="4.2", is_loaded=True)[SESSION] == 70_000
    assert effective_configs(group, release="4.3", is_loaded=True)[SESSION] == 60_000
    assert effective_configs(group, release="4.4", is_loaded=True)[SESSION] == 60_000
    for release in ("4.2", "4.3", "4.4"):
        with pytest.raises(InvalidConfigurationError, match=r"^share\.session\.timeout\.ms must be "):
            effective_configs(group, release=release)


def test_a_number_with_a_space_can_be_made_and_not_loaded() -> None:
    """Kafka 4.3.1's controller takes " 50000", and then its brokers raise NumberFormatException; 4.2.1's load it."""
    group = {SESSION: " 50000"}

    assert effective_configs(group, release="4.2")[SESSION] == 50_000
    for release in ("4.3", "4.4"):
        with pytest.raises(InvalidConfigurationError, match="Not a number of type INT") as refused:
            effective_configs(group, release=release)
        assert refused.value.key == SESSION


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("group.share.delivery.count.limits", "; did you mean group.share.delivery.count.limit?"),
        ("share.sesion.timeout.ms", "; did you mean share.session.timeout.ms?"),
        ("errors.deadletterqueue.topic.names", "; did you mean errors.deadletterqueue.topic.name?"),
        ("share.zzz", ""),
        ("share." + "z" * 10**6, ""),
    ],
)
def test_a_misspelt_name_is_refused(name: str, meant: str) -> None:
    """Kafka would ignore it in a broker's file; the error names it, and the one that is near."""
    with pytest.raises(InvalidConfigurationError, match=r"^no setting of Kafka 4\.2 to 4\.4: ") as refused:
        effective_configs({name: "1"})

    assert refused.value.key == name
    assert str(refused.value).endswith(meant)
    assert len(str(refused.value)) < 250


def test_a_brokers_setting_of_another_release_is_ignored() -> None:
    """As a broker ignores it: one file may serve a cluster that is being upgraded."""
    settings = {"group.share.enable": "true", "group.share.max.delivery.count.limit": "none"}

    assert effective_configs({"group.share.enable": "no?"}, release="4.4") == effective_configs({}, release="4.4")
    assert effective_configs(settings, release="4.2")["group.share.enable"] is True
    with pytest.raises(InvalidConfigurationError, match="Not a number"):
        effective_configs(settings, release="4.3")


def test_a_broker_takes_one_assignor() -> None:
    """Kafka refuses a second one in these words, if it has its class; else it refuses the class."""
    with pytest.raises(InvalidConfigurationError) as refused:
        effective_configs({"group.share.assignors": "simple, org.example.Sticky"})

    assert str(refused.value) == "group.share.assignors must contain exactly one assignor, but found 2"
    assert refused.value.key == "group.share.assignors"


def test_a_groups_setting_of_another_release_is_refused_when_it_is_made() -> None:
    """As a controller refuses it; a broker that finds it ignores it."""
    group = {"share.renew.acknowledge.enable": "false"}

    with pytest.raises(InvalidConfigurationError, match=r"Unknown group config name: share\.renew") as refused:
        effective_configs(group, release="4.2.1")
    assert refused.value.key == "share.renew.acknowledge.enable"
    assert "share.renew.acknowledge.enable" not in effective_configs(group, release="4.2.1", is_loaded=True)


@pytest.mark.parametrize(
    ("settings", "field"),
    [(None, "settings"), ([("a", "b")], "settings"), ({1: "a"}, "settings"), ({"log.dirs": 1}, "settings['log.dirs']")],
)
def test_what_is_no_mapping_of_texts_is_refused(settings: object, field: str) -> None:
    """Brokers have texts; a number would not say how it is written."""
    with pytest.raises(MalformedInputError) as refused:
        effective_configs(settings)  # type: ignore[arg-type]

    assert refused.value.field == field
