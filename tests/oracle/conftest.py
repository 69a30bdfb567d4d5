"""The oracle for tests: skipped where it cannot be built, unless ``SHARESTATE_REQUIRE=oracle`` asks for it."""

from __future__ import annotations

import os

import pytest

from tests.oracle.build import Oracle, OracleUnavailableError, build


@pytest.fixture(scope="session")
def oracle(request: pytest.FixtureRequest) -> Oracle:
    """Kafka's SharePartition, of the release that is the parameter, or of the latest."""
    kafka: tuple[str, ...] = (request.param,) if hasattr(request, "param") else ()
    try:
        return build(*kafka)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))
