"""The KIP's write policy while the write of a lapsed lock is unanswered, and below the SPSO."""

from sharestate import KIP_932

from .scenes import Scene


def test_records_of_an_unanswered_expiry_count_as_they_were() -> None:
    """Policy A2: they are filled in as acquired, and those around them by what was confirmed meanwhile."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 5
    scene.acknowledge("m1", "0-1:4", "3-4:4")
    scene.is_holding = True

    assert scene.wait(9_996) == ("W(-1; 0-1 st0 dc0, 2 st0 dc1; cc 0)",)
    assert scene.release("m1") == ("W(-1; 0-1 st0 dc1, 2 st0 dc0, 3-4 st0 dc1; cc 0)",)
    scene.succeed(1)
    assert scene.acquire("m2", 0, "[0-4]") == ((0, 4, 2),)
    assert scene.acknowledge("m2", "4:1") == ("W(-1; 4 st2 dc2; cc 1)",)
    scene.succeed(2)
    assert scene.acknowledge("m2", "0-3:1") == ("W(5; ; cc 5)",)


def test_what_lies_below_the_spso_is_not_written() -> None:
    """The SPSO says it all: what its member gives back there is archived at once, without a write."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m2", 5, "[5-9]")
    scene.partition.advance_log_start(5)

    assert scene.release("m1") == ()
    assert scene.batches == ["[0-4] ARCHIVED/1/-", "[5-9] ACQUIRED/1/m2"]
    assert scene.partition.lock_count() == 1
