"""What a new leader reads, after anything that may happen to the writes of the old one."""

from random import Random
from typing import Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, KIP_932, Amendment, KipWritePolicy, Profile
from sharestate.testing.write_histories import failure, random_steps, shrunk

HISTORIES: Final = 20_000


def following(policy: KipWritePolicy) -> Profile:
    """Return the KIP's profile with another write policy."""
    return evolve(KIP_932, write_policy=policy)


def first_failure(profile: Profile, *, overtakes: bool = True) -> str | None:
    """Return what goes wrong first, and the fewest steps to it for ``History.run``; None if nothing does."""
    for seed in range(HISTORIES):
        steps = random_steps(Random(seed))  # noqa: S311 - a replayable history
        if failure(profile, steps, overtakes=overtakes) is not None:
            steps = shrunk(profile, steps, overtakes=overtakes)
            return "\n".join([f"{failure(profile, steps, overtakes=overtakes)}, seed {seed}:", *map(repr, steps)])
    return None


@pytest.mark.parametrize("bound", [None, 3])
def test_durable_records_are_neither_lost_nor_delivered_again(bound: int | None) -> None:
    """
    Writes fail, are late, overtake each other and lose their answers, leaders crash: what is persisted is true.

    And every record is done in the end.
    """
    assert first_failure(following(KipWritePolicy(bound=bound))) is None


@pytest.mark.parametrize("amendment", Amendment)
def test_no_amendment_can_be_left_out(amendment: Amendment) -> None:
    """Without any one of them some history loses a record, brings one back, or forgets a delivery."""
    policy = KipWritePolicy(amendments=frozenset(Amendment) - {amendment})

    assert first_failure(following(policy)) is not None


def test_brokers_writes_are_true_as_long_as_none_overtakes_another() -> None:
    """They carry a start offset each, so an earlier one that comes late would move the persisted one back."""
    assert first_failure(KAFKA_4_3.healed, overtakes=False) is None
    assert first_failure(KAFKA_4_3.healed) is not None
