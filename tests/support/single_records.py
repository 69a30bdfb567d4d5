"""What the model of single records says of a server; planted rules ask it too, in processes that begin soon."""

from __future__ import annotations

from collections.abc import Iterable

from sharestate import KAFKA_4_4
from sharestate.testing import ORDINARY, InProcessServer, Mix, mix_for, observe, seeded
from sharestate.testing.protocol.record_oracle import RecordOracle
from sharestate.testing.search import by_record


def all_judged(seeds: Iterable[int], server: InProcessServer, mix: Mix = ORDINARY) -> None:
    """Judge *server* by the rules of Kafka 4.4 without its bugs."""
    profile = KAFKA_4_4.healed
    for seed in seeds:
        observe(seeded(seed, mix_for(profile, mix)), server, [RecordOracle(profile)])
        observe(by_record(seed, mix), server, [RecordOracle(profile)])
