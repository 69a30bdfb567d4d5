"""What an outlook says of a record is what the next acquisition does."""

import pytest

from sharestate import GapWindow
from tests.support.scenes import Scene


@pytest.mark.parametrize(("count", "piece"), [(4, None), (5, 8), (6, 4), (7, 2), (8, 1)])
def test_the_piece_is_what_comes(count: int, piece: int | None) -> None:
    """With a limit of ten a batch is halved at each delivery after the fifth (rule 20.3); before that it is whole."""
    scene = Scene(limit=10).load(0, f"[0-15 st0 dc{count}]")

    outlook = scene.partition.acquisition_outlook(0)

    assert (outlook.piece, outlook.threshold, outlook.is_last_delivery) == (piece, 5, False)
    assert scene.acquire("m1", 0, "[0-15]") == ((0, (piece or 16) - 1, count + 1),)


@pytest.mark.parametrize(("limit", "comes_alone"), [(2, False), (3, True), (5, True)])
def test_the_last_delivery_is_of_one_record(limit: int, *, comes_alone: bool) -> None:
    """A limit below three leaves no delivery to set apart (rule 20.3)."""
    scene = Scene(limit=limit).load(0, f"[0-9 st0 dc{limit - 1}]")

    assert scene.partition.acquisition_outlook(3).is_last_delivery is comes_alone
    (taken,) = scene.acquire("m1", 0, "[0-9]")
    assert taken[1] == (0 if comes_alone else 9)


def test_what_comes_after_a_throttled_record_waits() -> None:
    """The fetch that delivers a throttled record ends with it; those before it are not held back (rule 20.3)."""
    scene = Scene().load(0, "[0-4 st0][5-9 st0 dc3][10-14 st0]")

    assert [scene.partition.acquisition_outlook(offset).throttled_by for offset in (4, 5, 10)] == [None, None, (5, 3)]
    assert scene.acquire("m1", 0, "[0-4]") == ((0, 4, 2),)
    assert scene.acquire("m1", 5, "[5-9][10-14]") == ((5, 6, 4),)


def test_a_throttled_record_holds_back_the_one_after_it() -> None:
    """Even alone in its batch, and the next record alone in its own (rule 20.3)."""
    scene = Scene().load(0, "[0-3 st0][4-4 st0 dc3][5-5 st0]")

    assert [scene.partition.acquisition_outlook(offset).throttled_by for offset in (4, 5)] == [None, (4, 3)]
    assert scene.partition.acquisition_outlook(4).piece == 1
    scene.acquire("m1", 0, "[0-3]")
    assert scene.acquire("m1", 4, "[4-4][5-5]") == ((4, 4, 4),)


def test_a_record_that_nobody_has_fetched_has_all_its_deliveries() -> None:
    """It is not in flight, so nothing holds it back."""
    outlook = Scene().load().partition.acquisition_outlook(7)

    assert (outlook.piece, outlook.throttled_by, outlook.is_last_delivery) == (None, None, False)


def test_records_that_members_hold_throttle_nothing() -> None:
    """A throttled record that is acquired is not offered, and what comes after it is."""
    scene = Scene().load(0, "[0-9 st0 dc3]")
    assert scene.acquire("m1", 0, "[0-9]") == ((0, 4, 4),)

    held, free = (scene.partition.acquisition_outlook(offset) for offset in (4, 6))

    assert (held.piece, held.throttled_by) == (None, None)
    assert (free.piece, free.throttled_by) == (5, (5, 3))


def test_the_gap_window_is_there_while_it_is_active() -> None:
    """Something acquired beyond it ends it (rule 4.4)."""
    scene = Scene().load(0, "[5-9 st0]")
    assert scene.partition.acquisition_outlook(2).gap_window == GapWindow(0, 9)

    scene.acquire("m1", 0, "[0-4][5-9][10-14]")

    assert scene.partition.acquisition_outlook(2).gap_window is None


def test_an_outlook_changes_nothing() -> None:
    """Looking for the next fetch offset may clear find_next, which an outlook leaves as it is."""
    scene = Scene().load(0, "[0-9 st0]")
    scene.acquire("m1", 0, "[0-9]")
    before = scene.partition.snapshot()

    scene.partition.acquisition_outlook(5)

    assert before.find_next
    assert scene.partition.snapshot() == before


def test_a_record_is_not_held_back_by_itself() -> None:
    """Nor by those of its batch that come after it (rule 20.3)."""
    scene = Scene().load(0, "[0-9 st0 dc3]")

    assert [scene.partition.acquisition_outlook(offset).throttled_by for offset in (0, 1, 9)] == [None, (0, 3), (0, 3)]


def test_a_record_is_not_held_back_by_itself_in_a_batch_of_others() -> None:
    """Those before it have fewer deliveries (rule 20.3)."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    for _ in range(2):
        scene.acknowledge("m1", "4:release")
        scene.acquire("m1", 4, "[4-9]")
    scene.release("m1")

    assert [scene.partition.acquisition_outlook(offset).throttled_by for offset in (3, 4, 5)] == [None, None, (4, 3)]
