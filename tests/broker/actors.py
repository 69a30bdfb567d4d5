"""Members by hand that do random things with what they hold, until the time of a load is over."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Final

from attrs import define, field

from sharestate.testing.servers import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    FetchLimits,
    Partition,
    RawMember,
)
from tests.broker.loads import Group, Run, Work

HEARTBEAT_S: Final = 1.0


def acts(group: Group) -> Work:
    """Let a member of *group* do random things."""

    def act(run: Run, rnd: random.Random) -> None:
        actor = _Actor(run, rnd, group)
        while run.goes_on():
            try:
                actor.step()
            except OSError:
                run.counts["connection lost"] += 1
                actor.start_anew()
            if group.think_s:
                time.sleep(rnd.expovariate(1 / group.think_s))
        actor.end()

    return act


@define
class _Actor:
    """A member by hand that does random things with what it holds."""

    run: Run
    rnd: random.Random
    group: Group
    member: RawMember | None = None
    held: dict[Partition, list[tuple[int, int]]] = field(factory=dict)
    beat_s: float = 0.0

    def step(self) -> None:
        """Do one thing."""
        member = self.member or self._join()
        if time.monotonic() - self.beat_s > HEARTBEAT_S:
            self.beat_s = time.monotonic()
            self.run.counts[f"heartbeat {member.heartbeat()}"] += 1
        draw = self.rnd.random()
        if draw < 0.55 or not member.epoch:
            self._fetch(member)
        elif draw < 0.85:
            self._acknowledge(member)
        elif draw < 0.90:
            self._renew(member)
        elif draw < 0.93:
            self._acknowledge_anything(member)
        elif draw < 0.945:
            self._leave(member)
        elif draw < 0.96:
            self._drop(member)
        elif draw < 0.97:
            self.run.counts["pause"] += 1
            time.sleep(self.rnd.uniform(0.5, 2.5))

    def end(self) -> None:
        """Leave, or drop the connection."""
        if self.member is not None:
            try:
                self.member.leave() if self.rnd.random() < 0.7 else self.member.hang_up()
            except OSError:
                self.run.counts["connection lost"] += 1

    def start_anew(self) -> None:
        """Forget the member, whose connection is lost, or connect it again."""
        self.held.clear()
        give_up_s = time.monotonic() + 60
        while time.monotonic() < give_up_s:
            time.sleep(0.2)
            try:
                if self.member is not None:
                    self.member.reconnect()
            except OSError:
                continue
            return

    def _join(self) -> RawMember:
        member = self.run.member(self.group)
        member.join()
        self.member, self.beat_s = member, time.monotonic()
        return member

    def _fetch(self, member: RawMember) -> None:
        rides = member.epoch and self.rnd.random() < 0.5
        fetched = member.fetch(
            self._some() if rides else None,
            FetchLimits(
                max_records=self.rnd.choice((1, 3, 7, 10, 25, 60, 500)),
                batch_size=self.rnd.choice((1, 5, 10, 50)),
                max_wait_ms=self.rnd.choice((0, 20, 100, 500)),
                min_bytes=self.rnd.choice((0, 1, 1, 1, 2000)),
                max_bytes=self.rnd.choice((300, 3000, 100_000, 2**31 - 1, 2**31 - 1)),
                acquire_mode=self.rnd.choice((0, 0, 1)),
            ),
        )
        self.run.counts[f"fetch {fetched.error}"] += 1
        for partition, (error, acknowledged) in fetched.codes.items():
            if error != "none":
                self.run.counts[f"fetch part {error}"] += 1
            if acknowledged:
                self.run.counts[f"fetch ack {acknowledged}"] += 1
            if ranges := fetched.acquired[partition]:
                self.run.counts["fetch with records"] += 1
                self.held.setdefault(partition, []).extend((first, last) for first, last, _ in ranges)

    def _acknowledge(self, member: RawMember) -> None:
        if given := self._some():
            self._count("ack", member.acknowledge(given))

    def _renew(self, member: RawMember) -> None:
        given = {
            partition: [(*each, (RENEW,)) for each in sorted(held)] for partition, held in self.held.items() if held
        }
        if not given:
            return
        if self.rnd.random() < 0.5:
            self._count("renew", member.acknowledge(given, renews=True))
        else:
            self.run.counts[f"renewing fetch {member.fetch(given).error}"] += 1

    def _acknowledge_anything(self, member: RawMember) -> None:
        """Acknowledge what it may not hold, in a way that may be wrong."""
        if not member.assigned:
            return
        partition = self.rnd.choice(member.assigned)
        first = self.rnd.randrange(200)
        if held := self.held.get(partition):
            first = self.rnd.choice(held)[0] + self.rnd.randint(-20, 20)
        last = max(first, 0) + self.rnd.choice((-1, 0, 0, 3, 10))
        types = self.rnd.choice(((ACCEPT,), (RELEASE,), (REJECT,), (GAP,), (RENEW,), (1, 2), (7,), ()))
        self._count("wrong ack", member.acknowledge({partition: [(max(first, 0), last, types)]}))

    def _leave(self, member: RawMember) -> None:
        if self.rnd.random() < 0.5:
            self._count("close", member.acknowledge(self._some(), closes=True))
        else:
            member.leave()
            self.member = None
            self.run.counts["leave"] += 1
        self.held.clear()

    def _drop(self, member: RawMember) -> None:
        self.run.counts["drop"] += 1
        self.held.clear()
        if self.rnd.random() < 0.5:
            member.reconnect()
        else:
            member.hang_up()
            self.member = None

    def _some(self) -> dict[Partition, list[Acknowledgement]]:
        """Take some of what it holds, and decide what becomes of it."""
        given = {}
        for partition, held in self.held.items():
            keep: list[tuple[int, int]] = []
            batches = [batch for span in sorted(held) for batch in self._decide(*span, keep)]
            self.held[partition] = keep
            if batches:
                given[partition] = batches
        return given

    def _decide(self, first: int, last: int, keep: list[tuple[int, int]]) -> list[Acknowledgement]:
        how = self.rnd.random()
        if how < 0.2:
            keep.append((first, last))
            return []
        if how < 0.5:
            return [(first, last, (self.rnd.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)),))]
        if how < 0.75:
            types = self.rnd.choices((ACCEPT, RELEASE, REJECT, GAP), (6, 4, 2, 1), k=last - first + 1)
            return [(first, last, tuple(types))]
        cut = self.rnd.randint(first, last)
        batches: list[Acknowledgement] = [(first, cut, (self.rnd.choice((ACCEPT, RELEASE)),))]
        if cut < last:
            if self.rnd.random() < 0.5:
                batches.append((cut + 1, last, (self.rnd.choice((ACCEPT, RELEASE)),)))
            else:
                keep.append((cut + 1, last))
        return batches

    def _count(self, what: str, codes: Mapping[Partition | None, str]) -> None:
        for code in codes.values():
            self.run.counts[f"{what} {code}"] += 1
