"""
The pytest plugin: a broker for a test that asks for one, and what became of its records if the test fails.

It is there wherever the library is installed, and does nothing for a test without its fixtures: what the broker
takes (extra ``broker``) is loaded when a test asks for one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from sharestate.broker.server import TestBroker

_MARKER: Final = (
    "share_broker(profile='kafka-4.4', config={...}, clock='standing', seed=0): the broker of the fixture share_broker "
    "by the name of its profile, its settings by Kafka's names, and a clock that stands until the test moves it"
)

_BROKER: Final = pytest.StashKey["TestBroker"]()

_GROUP: Final = re.compile(r"[^A-Za-z0-9._-]+")
"""What is taken out of the name of a test for that of its group."""

CLOCKS: Final = ("system", "standing")
"""The clocks that a marker can name."""


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker is, to those who list markers and to those who are strict about them."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def share_broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """
    A broker of this test alone, at a port of its own; the marker ``share_broker`` says what is special about it.

    It has ``QUICK_SETTINGS``, but for what the marker says.

    If the test fails, its report has the records that no group is done with, and their lives.
    """
    from sharestate.broker.server import TestBroker  # noqa: PLC0415 - it takes an extra, and a quarter of a second

    with TestBroker(**_arguments(request.node)) as broker:
        request.node.stash[_BROKER] = broker
        yield broker


@pytest.fixture
def share_group(request: pytest.FixtureRequest, share_broker: TestBroker) -> str:
    """The id of a share group of this test alone, which begins with the first record of a log."""
    group_id = _GROUP.sub("-", request.node.name).strip("-") or "group"
    share_broker.configure_group(group_id, {"share.auto.offset.reset": "earliest"})
    return group_id


def _arguments(node: pytest.Item) -> dict[str, Any]:
    """Return what the marker of a test, or of what it is in, says of its broker."""
    from sharestate.broker.server import QUICK_SETTINGS, StandingClock  # noqa: PLC0415 - it takes an extra
    from sharestate.values.profiles import ALL_PROFILES  # noqa: PLC0415 - only for those who ask for a broker

    marker = node.get_closest_marker("share_broker")
    given: Mapping[str, Any] = {} if marker is None else marker.kwargs
    if marker is not None and marker.args:
        message = f"the marker share_broker has keywords only, and not {marker.args[0]!r}"
        raise pytest.UsageError(message)
    unknown = given.keys() - {"profile", "config", "clock", "seed"}
    if unknown:
        message = f"the marker share_broker has no {min(unknown)!r}: it has profile, config, clock and seed"
        raise pytest.UsageError(message)
    arguments = {**given, "config": {**QUICK_SETTINGS, **given.get("config", {})}}
    if isinstance(arguments.get("profile"), str):
        arguments["profile"] = _one_of(ALL_PROFILES, arguments["profile"], "profile")
    clock = _one_of({name: name for name in CLOCKS}, arguments.pop("clock", "system"), "clock")
    return arguments | ({"clock": StandingClock()} if clock == "standing" else {})


def _one_of(known: Mapping[str, Any], name: str, what: str) -> Any:  # noqa: ANN401 - a value of the mapping
    if name not in known:
        message = f"the marker share_broker knows no {what} {name!r}: it is one of {', '.join(known)}"
        raise pytest.UsageError(message)
    return known[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a test that has failed what the groups of its broker are not done with."""
    report = yield
    broker = item.stash.get(_BROKER, None)
    if broker is not None and call.when == "call" and report.failed:
        lines = broker.not_done()
        if lines:
            report.sections.append(("share_broker: records that no group is done with", "\n".join(lines)))
    return report
