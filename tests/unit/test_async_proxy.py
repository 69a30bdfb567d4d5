"""The proxy of `examples/async_proxy.py`: fetches wait for several leaders, and what clients send is judged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from examples.async_proxy import Proxy
from sharestate import SqlitePersister, ThreadedPersister

LONG_MS: Final = 20_000
"""A wait that no test waits for. [ms]"""

Ask = Callable[..., Awaitable[dict[str, Any]]]


def with_proxy(directory: Path, work: Callable[[Ask], Awaitable[None]]) -> None:
    """Run *work* with a function that has a proxy answer a member's request."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            persister = stack.enter_context(ThreadedPersister(SqlitePersister, directory / "state.db"))
            proxy = Proxy(directory, stack)
            await proxy.lead(persister)
            await work(lambda member, **request: proxy.answer(member, json.dumps(request).encode()))

    asyncio.run(asyncio.wait_for(run(), LONG_MS / 2000))


def test_a_fetch_waits_for_a_record_to_be_appended(tmp_path: Path) -> None:
    """To whatever partition it is appended, the fetch that waits has it."""

    async def work(ask: Ask) -> None:
        for partition in (2, 0):
            fetch = asyncio.ensure_future(ask("m1", fetch=10, max_wait_ms=LONG_MS))
            await asyncio.sleep(0.01)
            assert not fetch.done()
            await ask("m2", append="a", partition=partition)
            assert await fetch == {
                "records": [{"partition": partition, "offset": 0, "value": "a", "delivery_count": 1}]
            }

    with_proxy(tmp_path, work)


def test_a_fetch_waits_for_a_record_to_be_released(tmp_path: Path) -> None:
    """Once the release is on the disk the record goes to whoever waits."""

    async def work(ask: Ask) -> None:
        await ask("m1", append="a", partition=1)
        assert (await ask("m1", fetch=10, max_wait_ms=0))["records"]
        fetch = asyncio.ensure_future(ask("m2", fetch=10, max_wait_ms=LONG_MS))
        await asyncio.sleep(0.01)
        assert await ask("m1", acknowledge="RELEASE", partition=1, first=0, last=0) == {}
        assert (await fetch)["records"][0]["delivery_count"] == 2

    with_proxy(tmp_path, work)


def test_a_fetch_that_finds_nothing_ends(tmp_path: Path) -> None:
    """After as long as it wants to wait."""

    async def work(ask: Ask) -> None:
        assert await ask("m1", fetch=10, max_wait_ms=1) == {"records": []}

    with_proxy(tmp_path, work)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"append": "a", "partition": 3}, "KeyError: 3"),
        ({"append": 7, "partition": 0}, "no such request"),
        ({"acknowledge": "MAYBE", "partition": 0, "first": 0, "last": 0}, "KeyError: 'MAYBE'"),
        (
            {"acknowledge": "ACCEPT", "partition": 0, "first": 0, "last": 0},
            "InvalidRecordStateError: Batch record not found. The request batch offsets are not found in the cache.",
        ),
    ],
)
def test_what_makes_no_sense_is_answered_with_an_error(request_: dict[str, object], error: str, tmp_path: Path) -> None:
    """The connection goes on."""

    async def work(ask: Ask) -> None:
        assert await ask("m1", **request_) == {"error": error}

    with_proxy(tmp_path, work)


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    """It was never answered, and the next record takes its place."""
    (tmp_path / "0.log").write_text('"a"\n"b')

    async def work(ask: Ask) -> None:
        assert await ask("m1", append="c", partition=0) == {"offset": 1}

    with_proxy(tmp_path, work)
    assert (tmp_path / "0.log").read_text() == '"a"\n"c"\n'
