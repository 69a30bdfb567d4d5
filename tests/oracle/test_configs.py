"""Settings against Kafka's own classes, of each release whose rules the library has."""

from __future__ import annotations

import os

import pytest

from tests.oracle.build import OracleUnavailableError, build
from tests.oracle.configs.record import JUDGED, PLACE, RECORDED, files, keys, lines, other_keys, other_verdicts
from tests.oracle.configs.search import properties, read, read_by_java, search

CASES = 2_000


@pytest.fixture(autouse=True, scope="module")
def _oracle() -> None:
    """What runs Kafka's classes, of the latest release: without it there are none of the others."""
    try:
        build(sources="configs")
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("release", RECORDED)
def test_the_recorded_table_is_kafkas(release: str) -> None:
    """Made anew from the release's jars, it is what ``tests/data`` has."""
    assert lines(keys(release)) == (PLACE / f"keys-{release}.json").read_text()


@pytest.mark.oracle
@pytest.mark.parametrize("release", JUDGED)
def test_what_is_recorded_of_other_groups_is_kafkas(release: str) -> None:
    """Made anew from the release's jars, the table and the verdicts are what ``tests/data`` has."""
    assert lines(other_keys(release)) == (PLACE / f"other-keys-{release}.json").read_text()
    assert lines(other_verdicts(release)) == (PLACE / f"other-verdicts-{release}.json").read_text()


@pytest.mark.oracle
@pytest.mark.parametrize("release", RECORDED)
def test_a_short_search_finds_no_difference(release: str) -> None:
    """Random settings are refused in Kafka's words, or taken with the same values; each way of both is among them."""
    tally, found = search(release, range(CASES))

    assert found == []
    assert tally.keys() >= {"taken", "ConfigException", "IllegalArgumentException", "InvalidConfigurationException"}
    assert ("NumberFormatException" in tally) == (not release.startswith("4.2"))


@pytest.mark.oracle
def test_files_of_properties_are_read_as_java_reads_them() -> None:
    """Files that are not recorded, too; the recorded ones are read as they were."""
    data = [properties(seed) for seed in range(10**6, 10**6 + CASES)]

    assert [read(each) for each in data] == list(read_by_java(data))
    assert lines(files()) == (PLACE / "properties.json").read_text()
