"""RENEW: more time for what a member holds, and nothing else."""

import pytest

from sharestate import InvalidRecordStateError, InvalidRequestError, RecordState
from tests.support.scenes import Scene

DISABLED = "Renewing acquisition locks is not enabled for the group."


def held(*, renew: bool = True) -> Scene:
    """Return a scene in which m1 holds 0-4 and 5-9 since the time 0, and the time is 6000."""
    scene = Scene(renew=renew).load()
    scene.acquire("m1", 0, "[0-4][5-9]", cut=5)
    scene.now_ms = 6_000
    return scene


def test_a_whole_batch_gets_a_full_lock_again() -> None:
    """The lock begins anew; state, count and owner stay, and nothing is written (rule 20.2)."""
    scene = held()

    assert scene.acknowledge("m1", "0-4:renew") == ()
    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 4, 16_000), (5, 9, 10_000)]
    assert scene.partition.lock_count() == 2


def test_a_part_of_a_batch_is_renewed_record_by_record() -> None:
    """A renewal of some records splits their batch (rule 20.2)."""
    scene = held()
    scene.acknowledge("m1", "1-2:renew")

    assert scene.batches == ["[0-4] split: 0-4 ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 0, 10_000), (1, 2, 16_000), (3, 9, 10_000)]
    assert scene.partition.lock_count() == 6


def test_the_old_lock_does_not_expire() -> None:
    """A renewed record is held until its new deadline."""
    scene = held()
    scene.acknowledge("m1", "0-4:renew")

    assert scene.wait(4_001) == ("W(0; 5-9 st0 dc1; cc 0)",)
    assert scene.wait(5_999) == ()
    assert scene.wait(1) == ("W(0; 0-4 st0 dc1; cc 0)",)


def test_a_renewal_uses_the_duration_of_now() -> None:
    """A lock that is renewed lasts as long as the group says now (rule 20.2)."""
    scene = held()
    scene.partition.configure(Scene(lock_ms=1_000).partition.config)
    scene.acknowledge("m1", "0-4:renew")

    assert scene.deadlines == [(0, 4, 7_000), (5, 9, 10_000)]


def test_a_request_may_mix_renewals_with_other_types() -> None:
    """Each offset gets what is said of it; only the others are written (rule 20.2)."""
    scene = held()

    assert scene.acknowledge("m1", "0-4:4,1,4,2,3") == ("W(0; 1 st2 dc1, 3 st0 dc1, 4 st4 dc1; cc 2)",)
    assert scene.deadlines == [(0, 0, 16_000), (2, 2, 16_000), (5, 9, 10_000)]


def test_a_list_of_renewals_splits_the_batch() -> None:
    """With one type for each offset each record is renewed by itself, and nothing is written."""
    scene = held()

    assert scene.acknowledge("m1", "0-4:4,4,4,4,4") == ()
    assert scene.batches[0] == "[0-4] split: 0-4 ACQUIRED/1/m1"
    assert scene.deadlines == [(0, 4, 16_000), (5, 9, 10_000)]


def test_a_renewal_and_an_acceptance_of_one_batch() -> None:
    """A batch may be renewed and then accepted in one request."""
    scene = held()

    assert scene.acknowledge("m1", "0-4:renew", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)


def test_a_renewal_is_not_undone_by_a_refusal() -> None:
    """Locks that were renewed before a refusal stay renewed; changes are withdrawn (rule 24.3)."""
    scene = held()
    with pytest.raises(InvalidRequestError):
        scene.acknowledge("m1", "0-4:renew", "5-9:accept", "10:accept")

    assert scene.batches == ["[0-4] ACQUIRED/1/m1", "[5-9] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 4, 16_000), (5, 9, 10_000)]


def test_records_before_a_refused_one_are_renewed() -> None:
    """In a split batch the records before the first refused one stay renewed (rule 24.3)."""
    scene = held()
    scene.acknowledge("m1", "3:accept")
    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "0-4:renew")

    assert scene.deadlines == [(0, 2, 16_000), (4, 9, 10_000)]


def test_a_refused_mixture_keeps_its_renewals_only() -> None:
    """Of a list of types the renewals before the refused record stand, and nothing else."""
    scene = held()
    scene.acknowledge("m1", "4:accept")
    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "0-4:1,4,2,4,4")

    assert scene.batches[0] == "[0-4] split: 0-3 ACQUIRED/1/m1, 4 ACKNOWLEDGED/1/-"
    assert scene.deadlines == [(0, 0, 10_000), (1, 1, 16_000), (2, 2, 10_000), (3, 3, 16_000), (5, 9, 10_000)]


def test_only_the_owner_renews() -> None:
    """A renewal is judged like any acknowledgement (rule 20.2)."""
    scene = held()

    with pytest.raises(InvalidRecordStateError, match="Member is not the owner of batch record"):
        scene.acknowledge("m2", "0-4:renew")
    with pytest.raises(InvalidRecordStateError, match="Member is not the owner of batch record"):
        scene.acknowledge("m2", "1:renew")
    assert scene.deadlines == [(0, 9, 10_000)]


def test_pending_records_are_not_renewed() -> None:
    """Records whose acknowledgement is being written are no longer the member's."""
    scene = held()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:accept")

    with pytest.raises(InvalidRecordStateError, match="The batch is not in the acquired state"):
        scene.acknowledge("m1", "0-4:renew")


def test_below_the_start_nothing_is_renewed() -> None:
    """Of a batch across the SPSO only the records above are renewed."""
    scene = held()
    scene.partition.advance_log_start(2)
    scene.acknowledge("m1", "0-4:renew")

    assert scene.deadlines == [(0, 1, 10_000), (2, 4, 16_000), (5, 9, 10_000)]


@pytest.mark.parametrize("said", ["0-4:renew", "1-2:renew", "0-4:1,4,1,1,1"])
def test_a_group_may_forbid_renewals(said: str) -> None:
    """With ``share.renew.acknowledge.enable`` off a renewal is refused, and the request with it (PR #21467)."""
    scene = held(renew=False)

    with pytest.raises(InvalidRecordStateError, match=DISABLED):
        scene.acknowledge("m1", said)
    assert {run.state for batch in scene.partition.batches() for run in batch.runs} == {RecordState.ACQUIRED}
    assert scene.deadlines == [(0, 9, 10_000)]


def test_a_forbidden_renewal_names_its_record() -> None:
    """Among other types, the first record that would be renewed is the refused one."""
    scene = Scene(renew=False).load(10)
    scene.acquire("m1", 10, "[10-19]")

    with pytest.raises(InvalidRecordStateError, match=DISABLED) as refused:
        scene.acknowledge("m1", "11-14:accept,release,renew,renew")
    assert (refused.value.first_offset, refused.value.last_offset) == (13, 13)


def test_a_record_that_is_not_held_is_refused_before_a_forbidden_renewal() -> None:
    """The record that comes first in the request decides which of the two is said (rule 8.1)."""
    scene = held(renew=False)
    scene.acknowledge("m1", "1:accept")

    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "1-4:renew")
    with pytest.raises(InvalidRecordStateError, match=DISABLED):
        scene.acknowledge("m1", "0-4:renew")


def test_a_group_that_forbids_renewals_takes_other_types() -> None:
    """The switch is about RENEW alone."""
    assert held(renew=False).acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)


def test_a_renewal_behind_a_refused_record_is_not_made() -> None:
    """The first refusal ends the request: the lock of what comes after it expires when it would have."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acknowledge("m1", "2:accept")
    scene.now_ms = 5_000
    before = scene.deadlines

    with pytest.raises(InvalidRecordStateError, match="The offset is not acquired"):
        scene.acknowledge("m1", "2-3:accept,renew")
    assert scene.deadlines == before


def test_a_list_of_types_may_renew_in_another_batch_only() -> None:
    """What one batch does with its part of the types does not depend on a renewal in another batch."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-2][3-5]", cut=3)
    scene.now_ms = 5

    assert scene.acknowledge("m1", "0-5:accept,release,accept,accept,renew,reject") == (
        "W(0; 0 st2 dc1, 1 st0 dc1, 2 st2 dc1, 3 st2 dc1, 5 st4 dc1; cc 4)",
    )
    assert scene.deadlines == [(4, 4, 10_005)]
    assert scene.offsets == (1, 5)
