"""The settings of groups, and which of them nothing says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sharestate.broker_log import RequestLogError, read_all_properties, read_group_configs, read_properties
from sharestate.history import Event
from tests.support.logged_requests import GivenRequests

ALL = (
    "auto_offset_reset",
    "delivery_count_limit",
    "dlq_topic",
    "isolation",
    "max_record_locks",
    "record_lock_duration_ms",
    "renew_acknowledge_enable",
)

# Printed by ConfigCommand of Kafka 4.3.1.
DESCRIBED = """\
Dynamic configs for group ka are:
  share.auto.offset.reset=earliest sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.auto.offset.reset=earliest, \
DEFAULT_CONFIG:share.auto.offset.reset=latest}
  share.record.lock.duration.ms=1000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:share.record.lock.duration.ms=1000}
Dynamic configs for group two words are:
"""


def configs(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the settings in a history, without those that follow from the broker's release."""
    return [
        event.request or {} for event in events if event.kind == "config" and "profile" not in (event.request or {})
    ]


def described(path: Path, text: str = DESCRIBED) -> Path:
    """Write what kafka-configs.sh prints to a file."""
    path.write_text(text)
    return path


def test_what_nothing_says_is_assumed() -> None:
    """Without any word of a group, all of its settings are Kafka's defaults, and said to be assumed."""
    log = GivenRequests()
    log.fetch()

    assert configs(log.imported()) == [
        {
            "auto_offset_reset": "latest",
            "delivery_count_limit": 5,
            "dlq_topic": "",
            "isolation": "read_uncommitted",
            "max_record_locks": 2000,
            "record_lock_duration_ms": 30_000,
            "renew_acknowledge_enable": True,
            "assumed": ALL,
        }
    ]


def test_properties_do_not_say_what_a_group_was_given(tmp_path: Path) -> None:
    """A broker's defaults hold for groups without a setting of their own: whether they have one is assumed still."""
    path = tmp_path / "server.properties"
    path.write_text("group.share.partition.max.record.locks=200\n")
    log = GivenRequests()
    log.fetch()

    (first,) = configs(log.imported(broker=read_properties(path)))

    assert first["max_record_locks"] == 200
    assert first["assumed"] == ALL


def test_an_altered_setting_is_not_assumed_any_more() -> None:
    """Altered before the share partition comes up, or later: the setting is known from then on."""
    log = GivenRequests()
    log.alter("g", share_isolation_level="read_committed")
    log.fetch()
    log.alter("g", share_delivery_count_limit="5")
    log.alter("g", share_isolation_level=None)

    first, second, third = configs(log.imported())

    assert first["isolation"] == "read_committed"
    assert first["assumed"] == tuple(name for name in ALL if name != "isolation")
    assert second == {"assumed": tuple(name for name in ALL if name not in {"delivery_count_limit", "isolation"})}
    assert third == {"isolation": "read_uncommitted"}


def test_an_alteration_counts_once_however_often_it_is_logged() -> None:
    """A broker logs it, and so does the controller that it is forwarded to; by turns they change nothing back."""
    log = GivenRequests()
    log.fetch()
    log.alter("g", share_record_lock_duration_ms="1000")
    log.alter("g", share_record_lock_duration_ms="60000")
    log.alter("g", is_forwarded=True, share_record_lock_duration_ms="1000")
    log.alter("g", is_forwarded=True, share_record_lock_duration_ms="60000")

    assert [each["record_lock_duration_ms"] for each in configs(log.imported())] == [30_000, 1000, 60_000]


def test_a_forwarded_alteration_counts_if_no_other_line_has_it() -> None:
    """The broker that has forwarded it may be one whose log is missing."""
    log = GivenRequests()
    log.alter("g", is_forwarded=True, share_record_lock_duration_ms="1000")
    log.alter("g", is_forwarded=True, share_record_lock_duration_ms="2000")
    log.alter("g", is_forwarded=True, share_record_lock_duration_ms="1000")
    log.fetch()

    assert configs(log.imported())[0]["record_lock_duration_ms"] == 1000


def test_described_groups_have_nothing_assumed(tmp_path: Path) -> None:
    """A group with some settings has no others; one without any has the broker's defaults."""
    groups = read_group_configs([described(tmp_path / "groups.txt")])
    properties = tmp_path / "server.properties"
    properties.write_text("")

    assert groups == {
        "ka": {"auto_offset_reset": "earliest", "record_lock_duration_ms": 1000},
        "two words": {},
    }
    log = GivenRequests()
    log.fetch()
    (known,) = configs(log.imported(groups={"g": groups["ka"]}, broker=read_properties(properties)))
    (without_properties,) = configs(log.imported(groups={"g": groups["ka"]}))
    (other,) = configs(log.imported(groups=groups, broker=read_properties(properties)))
    assert known["auto_offset_reset"] == "earliest"
    assert known["assumed"] == ()
    assert without_properties["assumed"] == ("delivery_count_limit", "max_record_locks")
    assert other["assumed"] == ALL


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "groups.txt: no group: expected what kafka-configs.sh"),
        (
            "  share.isolation.level=x sensitive=false synonyms={}\n",
            "groups.txt:1: a setting before the name of a group",
        ),
        (DESCRIBED + "Error while executing config command\n", "groups.txt:5: expected what kafka-configs.sh"),
        (
            DESCRIBED.replace("=1000 ", "=soon "),
            "groups.txt:3: share.record.lock.duration.ms: Invalid value soon for",
        ),
        (DESCRIBED.replace("=1000 ", "=-1 "), "groups.txt:3: share.record.lock.duration.ms: Invalid value -1 for"),
        (
            DESCRIBED.replace("=earliest s", "=first s"),
            "groups.txt:2: share.auto.offset.reset: Invalid value first",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    """What kafka-configs.sh does not print has file and line, and the setting that it is about."""
    path = described(tmp_path / "groups.txt", text)

    with pytest.raises(RequestLogError) as caught:
        read_group_configs([path])

    assert str(caught.value).startswith(f"{tmp_path}/{said}")


def test_a_line_of_equals_signs_is_read_once(tmp_path: Path) -> None:
    """Any of them might end the name, and any text the value: trying all of both would take an hour."""
    path = described(tmp_path / "groups.txt", f"Dynamic configs for group ka are:\na{'=' * 2**20}\n")

    with pytest.raises(RequestLogError, match=f"{path}:2: expected what kafka-configs.sh"):
        read_group_configs([path])


def test_files_that_say_different_things_of_a_group_are_refused(tmp_path: Path) -> None:
    """Both cannot be so when the log begins."""
    one = described(tmp_path / "one.txt")
    other = described(tmp_path / "other.txt", DESCRIBED.replace("=1000", "=2000"))

    assert read_group_configs([one, one]) == read_group_configs([one])
    with pytest.raises(RequestLogError, match="another file says something else of group ka"):
        read_group_configs([one, other])


def test_what_brokers_have_differently_is_not_known(tmp_path: Path) -> None:
    """The properties on which all of them agree are taken, defaults included; the others are named with their files."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("group.share.delivery.count.limit=3\ngroup.share.partition.max.record.locks=200\n")
    other.write_text("group.share.delivery.count.limit=3\n")

    agreed, differing = read_all_properties([one, other])

    assert agreed == {"delivery_count_limit": 3, "record_lock_duration_ms": 30_000}
    assert list(map(str, differing)) == [f"group.share.partition.max.record.locks is 200 in {one}, and 2000 in {other}"]


def test_what_a_group_has_now_is_better_than_a_default_and_stays_assumed() -> None:
    """A cluster is asked once for each group of which not all is known; what was altered meanwhile is known."""
    asked: list[str] = []

    def ask(group_id: str) -> dict[str, Any]:
        asked.append(group_id)
        return {"isolation": "read_committed", "delivery_count_limit": 3}

    log = GivenRequests()
    log.alter("g", share_delivery_count_limit="4")
    log.fetch()
    log.alter("g", share_isolation_level="read_uncommitted")

    first, second = configs(log.imported(ask_settings=ask))

    assert (first["isolation"], first["delivery_count_limit"]) == ("read_committed", 4)
    assert first["assumed"] == tuple(name for name in ALL if name != "delivery_count_limit")
    assert second["isolation"] == "read_uncommitted"
    assert asked == ["g"]
