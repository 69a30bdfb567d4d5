"""The brokers that clients are tested with; each is started once, and its tests come one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.clients.java_clients import close_idle
from tests.clients.scenes import Scene
from tests.clients.targets import OURS, RELEASES, Target, started


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have one process for all tests of a broker, which so is started once; other tests stay with their files."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if item.nodeid.startswith("tests/clients/"):
            given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            item.add_marker(pytest.mark.xdist_group(str(given.get("target", item.path.name))))


@pytest.fixture(scope="session", params=[*OURS, *RELEASES])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker that runs."""
    with started(request.param, tmp_path_factory.mktemp("broker")) as target:
        yield target


@pytest.fixture(scope="session", autouse=True)
def jvms() -> Iterator[None]:
    """JVMs that are lent to one test after the other."""
    yield
    close_idle()


@pytest.fixture
def scene(target: Target, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Topics and groups that are called after the test."""
    name = f"{request.path.stem}-{request.node.name}"  # two modules have tests of the same name
    scene = Scene(target, re.sub(r"[^a-zA-Z0-9.-]+", "-", name))
    yield scene
    scene.close()
