"""The syntax of ``java.util.Properties``, against what Java has read, and what a broker does not start with."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest

from sharestate.broker_log import RequestLogError, read_server_properties
from sharestate.broker_log.server_properties import MAX_FILE, parse_properties

DATA = Path(__file__).parents[2] / "data"


def written(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_bytes(text.encode("latin-1"))
    return path


def test_files_are_read_as_java_reads_them() -> None:
    """Three hundred small files, escapes, comments, lines that go on and all; what Java refuses is refused."""
    for data, properties in json.loads((DATA / "configs/properties.json").read_text()):
        if properties is None:
            with pytest.raises(RequestLogError, match=r"expected four hexadecimal digits after \\u"):
                list(parse_properties(b64decode(data), "server.properties"))
        else:
            read = {each.name: each.value for each in parse_properties(b64decode(data), "server.properties")}
            assert {name: value for name, value in read.items() if name} == properties


def test_the_last_value_of_a_property_counts(tmp_path: Path) -> None:
    """A property has the line in which it begins; a value may go on in the next one."""
    path = written(tmp_path / "server.properties", "# ours\na: 1\nb = x\\\n   y\n\na 2\n")

    assert read_server_properties(path) == {"a": "2", "b": "xy"}
    assert [each.line for each in parse_properties(path.read_bytes(), "")] == [2, 3, 6]


@pytest.mark.parametrize("path", sorted((DATA / "broker-log").rglob("server.properties")), ids=str)
def test_what_real_brokers_started_with_is_read(path: Path) -> None:
    """The files of all recorded brokers, of 4.3.1 and 4.4.0, are right, with all that is not of share groups."""
    assert read_server_properties(path)["process.roles"] == "broker,controller"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a=1\ngroup.share.max.size=0\n",
            ":2: group.share.max.size: Invalid value 0 for",
        ),
        ("\n\nshare.cordinator.threads=1", ":3: share.cordinator.threads: no setting of Kafka 4.2 to 4.4: "),
        (
            "group.share.min.session.timeout.ms=50000",
            ":1: group.share.min.session.timeout.ms: group.share.session.timeout.ms must be greater than or equal to",
        ),
        ("a=1\nb=\\u00g0", ":2: expected four hexadecimal digits after \\u"),
    ],
)
def test_what_no_broker_starts_with_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The error has file, line and setting: of two that contradict each other, the one that the file has."""
    path = written(tmp_path / "server.properties", text)

    with pytest.raises(RequestLogError) as caught:
        read_server_properties(path)

    assert str(caught.value).startswith(f"{path}{said}")


def test_what_one_release_starts_with_is_taken(tmp_path: Path) -> None:
    """Bounds on the delivery count came with 4.3: 4.2 does not look at them."""
    path = written(tmp_path / "server.properties", "group.share.max.delivery.count.limit=3\n")

    assert read_server_properties(path) == {"group.share.max.delivery.count.limit": "3"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """So is one that is too large for settings, which is not read to its end."""
    missing, large = tmp_path / "missing", tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(MAX_FILE + 1)

    with pytest.raises(RequestLogError, match="cannot be read"):
        read_server_properties(missing)
    with pytest.raises(RequestLogError, match="more than 4194304 bytes are no settings"):
        read_server_properties(large)
