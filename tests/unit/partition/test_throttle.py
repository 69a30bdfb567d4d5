"""Records that keep failing: ever smaller deliveries, and the last one alone."""

import pytest

from sharestate import Cause
from sharestate.partition.throttling import threshold
from tests.support.scenes import Scene


@pytest.mark.parametrize(("limit", "count"), [(2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (10, 5)])
def test_throttling_begins_half_way_to_the_limit(limit: int, count: int) -> None:
    """Records are throttled from the count max(2, ceil(limit / 2)) on (rule 20.3)."""
    assert threshold(limit) == count


def test_below_the_threshold_all_is_delivered() -> None:
    """A batch that was delivered twice of five times is delivered whole, and what comes after it too."""
    scene = Scene().load(0, "[0-9 st0 dc2]")

    assert scene.acquire("m1", 0, "[0-9][10-14]") == ((0, 9, 3), (10, 14, 1))


def test_at_the_threshold_half_a_batch_is_delivered() -> None:
    """From the threshold on half of the batch is delivered, and nothing else with it (change-THROTTLE)."""
    scene = Scene().load(0, "[0-9 st0 dc3]")

    assert scene.acquire("m1", 0, "[0-9][10-14]") == ((0, 4, 4),)


def test_a_record_is_delivered_alone_the_last_time() -> None:
    """On their last delivery records come one by one (rule 20.3)."""
    scene = Scene().load(0, "[0-9 st0 dc3]")
    scene.acquire("m1", 0, "[0-9]")
    scene.wait(10_001)

    assert scene.acquire("m1", 0, "[0-9][10-14]") == ((0, 0, 5),)
    assert scene.acquire("m1", 1, "[0-9][10-14]") == ((1, 1, 5),)


def test_three_deliveries_lead_to_the_threshold() -> None:
    """The fourth delivery of five is the first that is throttled (rule 20.3)."""
    scene = Scene().load()
    for count in (1, 2, 3):
        assert scene.acquire("m1", 0, "[0-9]") == ((0, 9, count),)
        scene.wait(10_001)

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 4, 4),)


@pytest.mark.parametrize(("count", "size"), [(4, 16), (5, 8), (6, 4), (7, 2), (8, 1), (9, 1)])
def test_each_delivery_halves_a_batch_again(count: int, size: int) -> None:
    """With a limit of ten a batch is halved at each delivery after the fifth (rule 20.3)."""
    scene = Scene(limit=10).load(0, f"[0-15 st0 dc{count}]")

    assert scene.acquire("m1", 0, "[0-15]") == ((0, size - 1, count + 1),)


def test_the_size_that_is_halved_is_the_batchs() -> None:
    """Records that are done count for the size of their batch (rule 18, row 28)."""
    scene = Scene(limit=6).load()
    for _ in range(3):
        scene.acquire("m1", 0, "[0-9]")
        scene.acknowledge("m1", "0-9:release")
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-4:accept")
    assert scene.batches[0] == "[0-9] split: 0-4 ACKNOWLEDGED/4/-, 5-9 AVAILABLE/3/-"

    assert scene.acquire("m1", 5, "[0-9]") == ((5, 9, 4),)


def test_other_records_before_a_throttled_batch_go_alone() -> None:
    """A batch that is throttled waits if something was acquired before it, and so does what comes after."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0 dc3][10-14 st0]")

    assert scene.acquire("m1", 0, "[0-4][5-9][10-14]") == ((0, 4, 2),)
    assert scene.acquire("m1", 5, "[5-9][10-14]") == ((5, 6, 4),)


def test_a_record_on_its_last_delivery_ends_a_delivery() -> None:
    """Records before one that is on its last delivery are delivered without it (rule 20.3, step 1)."""
    scene = Scene().load(0, "[0-9 st0 dc3]")
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "3-4:release")
    scene.wait(10_001)
    scene.acquire("m1", 0, "[0-9]")
    assert scene.batches[0] == "[0-9] split: 0 ACQUIRED/5/m1, 1-4 AVAILABLE/4/-, 5-9 AVAILABLE/3/-"
    for offset in (1, 2, 3, 4):
        scene.acquire("m1", offset, "[0-9]")

    assert scene.acquire("m2", 5, "[0-9]") == ((5, 9, 4),)


def test_a_record_on_its_last_delivery_does_not_come_with_others() -> None:
    """A delivery ends before a record whose last delivery it would be (rule 20.3, step 1)."""
    scene = Scene().load(0, "[0-9 st0]")
    for _ in range(3):
        scene.acquire("m1", 2, "[2-9]")
        scene.release("m1")
    assert scene.batches[0] == "[0-9] split: 0-1 AVAILABLE/1/-, 2-6 AVAILABLE/4/-, 7-9 AVAILABLE/3/-"

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 1, 2),)


def test_healthy_records_do_not_count_as_throttled() -> None:
    """One throttled record throttles its batch; those before it come with it, what comes after does not (rule 20.3)."""
    scene = Scene(limit=6).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-9:release")
    for _ in range(2):
        scene.acquire("m1", 2, "[2-9]")
        scene.acknowledge("m1", "2-9:release")
    assert scene.batches[0] == "[0-9] split: 0-1 AVAILABLE/1/-, 2-9 AVAILABLE/3/-"

    assert scene.acquire("m1", 0, "[0-9][10-14]") == ((0, 1, 2), (2, 4, 4))


def test_a_cap_that_was_passed_already_caps_nothing() -> None:
    """A cap below what was taken before the first throttled record is never met: all is taken (rule 20.3, step 6)."""
    scene = Scene(limit=6).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-9:release")
    for _ in range(2):
        scene.acquire("m1", 6, "[6-9]")
        scene.acknowledge("m1", "6-9:release")
    assert scene.batches[0] == "[0-9] split: 0-5 AVAILABLE/1/-, 6-9 AVAILABLE/3/-"

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 5, 2), (6, 9, 4))


def test_a_limit_of_two_leaves_no_record_alone() -> None:
    """With a limit of two a record that was delivered once is delivered with the others."""
    scene = Scene(limit=2).load(0, "[0-9 st0]")

    assert scene.acquire("m1", 0, "[0-9][10-14]") == ((0, 9, 2), (10, 14, 1))


def test_a_limit_of_two_halves_what_is_past_it() -> None:
    """What was read at the limit is halved, and archived when its lock expires (v22-15-init-at-limit)."""
    scene = Scene(limit=2).load(0, "[0-4 st0 dc2]")

    assert scene.acquire("m1", 0, "[0-4]") == ((0, 1, 3),)
    assert scene.batches == ["[0-4] split: 0-1 ACQUIRED/3/m1, 2-4 AVAILABLE/2/-"]
    assert scene.wait(10_001) == ("W(0; 0 st4 dc3; cc 1)", "W(1; 1 st4 dc3; cc 1)")
    assert scene.offsets == (2, 4)
    assert scene.partition.next_fetch_offset() == 2


def test_a_limit_of_three_sets_the_last_delivery_apart() -> None:
    """Three deliveries are the fewest of which the last one is apart."""
    scene = Scene(limit=3).load(0, "[0-4 st0 dc2]")

    assert scene.acquire("m1", 0, "[0-4]") == ((0, 0, 3),)


def test_a_record_past_the_limit_comes_with_half_its_batch() -> None:
    """A record that was read past the limit is throttled, though not on its last delivery (rule 1.2)."""
    scene = Scene().load(0, "[0-9 st0 dc5]")

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 0, 6),)


def test_a_strict_limit_may_be_below_the_cap() -> None:
    """In record_limit mode the smaller of the two ends the delivery (rule 20.3, step 5)."""
    scene = Scene().load(0, "[0-9 st0 dc3]")

    assert scene.acquire("m1", 0, "[0-9]", most=3, strict=True) == ((0, 2, 4),)


def test_only_what_was_fetched_is_judged() -> None:
    """Throttled records of a batch outside the fetch do not throttle it (rule 20.3)."""
    scene = Scene(limit=6).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "0-9:release")
    for _ in range(2):
        scene.acquire("m1", 0, "[0-4]")
        scene.acknowledge("m1", "0-4:release")
    assert scene.batches[0] == "[0-9] split: 0-4 AVAILABLE/3/-, 5-9 AVAILABLE/1/-"

    assert scene.acquire("m1", 5, "[5-9][10-14]") == ((5, 9, 2), (10, 14, 1))


def test_records_behind_the_fetch_do_not_throttle() -> None:
    """Throttled records of a batch behind the end of the fetch do not throttle what was fetched (rule 20.3)."""
    scene = Scene(limit=6).load(0, "[0-4 st0]")
    scene.acquire("m1", 5, "[5-14]")
    scene.acknowledge("m1", "5-14:release")
    for _ in range(2):
        scene.acquire("m1", 10, "[10-14]")
        scene.acknowledge("m1", "10-14:release")
    assert scene.batches[1] == "[5-14] split: 5-9 AVAILABLE/1/-, 10-14 AVAILABLE/3/-"

    assert scene.acquire("m1", 0, "[0-4][5-9]") == ((0, 4, 2), (5, 9, 2))


def test_records_that_are_held_do_not_throttle() -> None:
    """Of a batch that is held nothing is throttled, and what comes after it is delivered."""
    scene = Scene().load(0, "[0-3 st0 dc3]")
    scene.acquire("m1", 0, "[0-3]")
    scene.acquire("m1", 2, "[0-3]")
    assert scene.batches == ["[0-3] split: 0-3 ACQUIRED/4/m1"]

    assert scene.acquire("m2", 0, "[0-3][4-9]") == ((4, 9, 1),)


@pytest.mark.parametrize(("most", "throttled"), [(5, [(5, 9)]), (6, [(5, 9), (10, 14)])])
def test_batches_behind_a_throttled_one_are_throttled_if_more_is_wanted(
    most: int, throttled: list[tuple[int, int]]
) -> None:
    """What is left of the throttled batch is recorded as such, and so are later batches if the limit is not reached."""
    scene = Scene(record_transitions=True).load(0, "[0-9 st0 dc3][10-14 st0 dc1]")

    assert scene.acquire("m1", 0, "[0-9][10-14]", most=most) == ((0, 4, 4),)

    transitions = scene.effects[-1].transitions
    assert [each[:2] for each in transitions if each.cause is Cause.THROTTLED] == throttled


def test_as_many_healthy_records_as_a_piece_has_do_not_end_an_acquisition() -> None:
    """The piece is that of the whole batch, and is passed before it is known (rule 20.3)."""
    scene = Scene(limit=10).load(0, "[0-5 st0 dc4]")
    scene.acquire("m1", 3, "[3-5]")
    scene.release("m1")
    assert scene.partition.acquisition_outlook(3).piece == 3

    assert scene.acquire("m1", 0, "[0-5]") == ((0, 2, 5), (3, 5, 6))
