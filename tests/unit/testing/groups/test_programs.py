"""What is found at the clients' door is shown by a short program, within the time that there is for that."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.testing.groups import GroupSettings, Guarantee, GuaranteeBrokenError
from sharestate.testing.groups.programs import Offsets
from sharestate.testing.programs import Event
from tests.planted.share_groups import BUGS
from tests.support.mock_machine import broken_by, machine_of

SETTINGS = GroupSettings(delivery_count_limit=3, lock_duration_ms=1_000)


def searched(bug: str, events: list[Event], **fields: Any) -> GuaranteeBrokenError:  # noqa: ANN401 - of the machine
    """Return what is found where every run consists of *events*."""

    def _happens_at_random(self: Any, _pick: Any, _count: int) -> None:  # noqa: ANN401 - a machine, a function
        self.group_starts(SETTINGS, 3)
        for event in events:
            self.happens(event=event)

    machine = type("Programmed", (machine_of(BUGS[bug]),), {"_happens_at_random": _happens_at_random, **fields})
    found = broken_by(machine, shrinks=True)
    assert found is not None
    return found


def happens(found: GuaranteeBrokenError) -> list[str]:
    """Return the lines of the program but for the first and the last."""
    return [line for line in found.__notes__[-1].splitlines() if ".happens(" in line]


def test_what_is_not_needed_is_left_out() -> None:
    """Batches and fetches that the bug does not need go, and offsets are those of the log that remains."""
    found = searched(
        "first type for all",
        [
            ("member_fetches", "m2", 1000),
            ("member_acknowledges_all", "m2", "ACCEPT"),
            ("producer_sends", 3, "p1"),
            ("time_passes", 400),
            ("transaction_ends", "p1", "commit"),
            ("producer_sends", 1, None),
            ("member_fetches_all", "m2"),
            ("time_passes", 400),
            ("member_acknowledges", "m2", [(3, 3, ["RELEASE"]), (4, 5, ["ACCEPT", "RELEASE"])]),
            ("records_are_deleted", 4),
        ],
    )

    assert found.guarantee is Guarantee.NOTHING_LOST
    assert happens(found) == [
        "state.happens(event=('producer_sends', 3, None))",
        "state.happens(event=('member_fetches', 'm1', 1000))",
        "state.happens(event=('member_acknowledges', 'm1', [(2, 3, ['ACCEPT', 'RELEASE'])]))",
    ]


def test_times_that_have_to_pass_pass_at_once() -> None:
    """Half a lock and half a lock are one."""
    found = searched(
        "late acknowledgement accepted",
        [
            ("member_fetches", "m1", 1000),
            ("time_passes", 500),
            ("producer_sends", 1, None),
            ("time_passes", 501),
            ("member_acknowledges", "m1", [(0, 0, ["ACCEPT"])]),
        ],
    )

    assert happens(found) == [
        "state.happens(event=('member_fetches', 'm1', 1000))",
        "state.happens(event=('time_passes', 1001))",
        "state.happens(event=('member_acknowledges', 'm1', [(0, 0, ['ACCEPT'])]))",
    ]


def test_there_is_a_limit_to_the_time() -> None:
    """Without any, the program is the one that was found."""
    events: list[Event] = [*[("producer_sends", 1, None)] * 5, ("member_fetches", "m1", 1000)]

    assert happens(searched("locks never expire", events)) == ["state.happens(event=('member_fetches', 'm1', 1000))"]
    assert len(happens(searched("locks never expire", events, shrink_s=0.0))) == len(events)


@pytest.mark.parametrize(
    ("event", "in_the_shorter_log"),
    [
        (("member_acknowledges", "m1", [(4, 5, ["ACCEPT"])]), ("member_acknowledges", "m1", [(3, 4, ["ACCEPT"])])),
        (("records_are_deleted", 5), ("records_are_deleted", 4)),
        (("member_acknowledges", "m1", [(6, 6, ["ACCEPT"])]), ("member_acknowledges", "m1", [(6, 6, ["ACCEPT"])])),
    ],
)
def test_an_offset_is_known_by_what_has_appended_it(event: Event, in_the_shorter_log: Event) -> None:
    """It is another one where a batch before it is left out; one that the log does not have is what it is."""
    whole, fewer = Offsets(), Offsets()
    for step, offsets in enumerate((range(3), range(3, 4), range(4, 6))):
        whole.appended(step, offsets)
    fewer.appended(0, range(3))
    fewer.appended(2, range(3, 5))

    named = whole.named(event)

    assert whole.numbered(named) == event
    assert fewer.numbered(named) == in_the_shorter_log


def test_an_offset_that_nothing_has_appended_is_none() -> None:
    """What refers to a batch that is left out cannot happen."""
    whole = Offsets()
    whole.appended(0, range(3))

    assert Offsets().numbered(whole.named(("member_acknowledges", "m1", [(1, 2, ["ACCEPT"])]))) is None
    assert Offsets().numbered(whole.named(("records_are_deleted", 3))) is None
