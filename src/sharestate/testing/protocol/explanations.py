"""What to look at when an invariant does not hold, and where Kafka has broken it: by the invariants' names."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Hint(NamedTuple):
    """
    What an invariant is about.

    Attributes:
        look_at: What to look at in an implementation that breaks it.
        kafka: Kafka's issues, its improvement proposals, and the bugs of the page "Kafka's bugs" by id.
    """

    look_at: str
    kafka: tuple[str, ...] = ()


EXPLANATIONS: Final[Mapping[str, Hint]] = MappingProxyType(
    {
        "errors_are_typed": Hint("what throws, and whether the caller still gets an answer", ("KAFKA-20505", "B5")),
        "batches_never_overlap": Hint("how new batches are cut around those in flight", ("KAFKA-19808", "B13")),
        "only_acquired_records_have_an_owner": Hint(
            "what a write that fails, or a lock that expires meanwhile, does to owner and lock", ("KAFKA-19476",)
        ),
        "what_is_acquired_is_held": Hint("whether the response is built from what was locked", ("KAFKA-19808",)),
        "only_available_records_are_acquired": Hint(
            "whether acquisition asks for pending writes, in a full window too", ("KAFKA-18084", "KAFKA-19808")
        ),
        "what_is_acquired_was_fetched": Hint("where an acquisition begins and ends", ("KAFKA-19954",)),
        "a_pending_record_is_left_alone": Hint(
            "what asks for pending writes before it changes, splits or drops a record", ("KAFKA-18084", "B4")
        ),
        "a_release_is_of_one_member": Hint(
            "how a closed session finds the records of its member", ("KAFKA-19953", "KAFKA-19972")
        ),
        "the_log_start_archives_what_is_available": Hint(
            "records at the edge of a batch, and those whose release is pending", ("KAFKA-19476",)
        ),
        "the_next_fetch_finds_what_is_available": Hint(
            "what has to make the next fetch look back: releases, expired locks, failed writes"
        ),
        "writes_carry_the_epochs_of_the_leader": Hint("what sets the state epoch: the first read alone", ("F3",)),
        "a_record_limit_is_kept": Hint("how a batch that is larger than the limit is cut", ("KIP-1206",)),
        "only_an_active_partition_acquires": Hint("the order of fencing and initialization", ("B14",)),
        "terminal_records_stay_terminal": Hint(
            "late answers to writes, and timers that run after they were cancelled", ("KAFKA-19476",)
        ),
        "delivery_counts_never_fall": Hint("what releases and expired locks do to the count", ("KAFKA-19972",)),
        "a_refused_acknowledgement_changes_no_record": Hint(
            "how what was begun is taken back when a later record is refused", ("B18",)
        ),
        "writes_are_not_empty": Hint("how the batches of a write are collected", ("C1",)),
        "a_fenced_partition_stays_fenced": Hint("answers that come after fencing", ("B14",)),
        "brokers_write_what_changed": Hint("when a write is issued at all"),
        "the_start_never_moves_back": Hint("moves of the SPSO after the log start has moved", ("KAFKA-19859", "B9b")),
        "nothing_is_acquired_below_the_start": Hint("log batches across the SPSO", ("KAFKA-19954", "B6")),
        "no_fetch_begins_below_the_start": Hint(
            "what becomes of the gap window, and of records, when the log start moves into them", ("F5", "F8")
        ),
        "the_complete_count_is_right": Hint(
            "what archives records without counting them, or counts them twice", ("F2", "B22", "KIP-1226")
        ),
        "nothing_goes_to_a_queue": Hint("what asks whether there is a dead-letter queue", ("KIP-1191",)),
        "the_queue_gets_what_was_written": Hint("the order of write and hand-over", ("KIP-1191",)),
        "an_answer_of_the_queue_is_followed_by_a_write": Hint("failures of the queue", ("KIP-1191", "B25")),
        "archiving_records_are_left_alone": Hint("what takes ARCHIVING for ACQUIRED", ("KIP-1191", "B23")),
        "the_start_waits_for_the_queue": Hint("what the SPSO takes for terminal", ("KIP-1191",)),
        "a_failed_write_gives_back_what_it_took": Hint(
            "what is kept of a record until its write is answered: state, delivery count and member",
            ("KAFKA-19972", "B2"),
        ),
        "records_are_archived_exactly_at_the_limit": Hint(
            "whether releases, closed sessions and expired locks ask for the limit, and for the one in force",
            ("KIP-932", "KIP-1240"),
        ),
        "what_keeps_failing_is_halved": Hint(
            "the threshold of throttling, and what is acquired in the same fetch", ("KAFKA-17541",)
        ),
        "a_last_attempt_is_alone": Hint(
            "where an acquisition stops before and after a record with one delivery left", ("KAFKA-17541",)
        ),
        "waiting_fetches_are_woken": Hint(
            "what follows the advance of the SPSO, and an expired lock", ("KAFKA-20505", "B7")
        ),
        "a_new_leader_takes_what_is_persisted": Hint(
            "how state batches become batches in flight, and what is taken for a gap", ("KIP-932", "B16")
        ),
        "what_is_acknowledged_is_persisted": Hint(
            "what a write carries, and whether a record is final before the write is confirmed", ("KAFKA-18084", "B15")
        ),
        "the_window_is_overfilled_by_one_log_batch_at_most": Hint(
            "how much room an acquisition believes to have, in a gap too", ("KAFKA-19808", "B1", "B13")
        ),
        "combined_batches_are_in_order": Hint("how batches that overlap are cut", ("C1", "B16")),
        "combined_batches_say_the_most": Hint(
            "which of two batches wins where they overlap: the higher delivery count, then the higher state",
            ("KIP-932",),
        ),
        "the_log_is_the_state": Hint(
            "what becomes of the state when a record cannot be logged, and when a snapshot is due", ("KIP-932",)
        ),
        "a_write_takes_nothing_back": Hint("whether a late write may lower the start offset", ("F3",)),
        "an_initialization_takes_nothing_back": Hint(
            "whether a retried initialization may be carried out after writes, and what it does then", ("C2",)
        ),
        "effects_are_values": Hint("callbacks and containers in what a command returns", ("B20",)),
        "a_full_window_waits_for_something": Hint(
            "what moves the SPSO past terminal records: in a gap window, before a hole of the log, without a write",
            ("F1", "B10", "B17", "F4", "F5", "F6", "F7"),
        ),
    }
)
"""The explanations."""


def explain(invariant: Callable[..., object]) -> str:
    """
    Return what *invariant* says, what to look at, and what Kafka has had of it; as far as that is known.

    >>> from sharestate.testing.protocol.always import a_record_limit_is_kept
    >>> print(explain(a_record_limit_is_kept))
      What should be: In mode ``record_limit`` no more than ``max_records`` are acquired.
      Look at: how a batch that is larger than the limit is cut.
      Kafka: KIP-1206
    """
    sentence = (invariant.__doc__ or "").strip().partition("\n")[0]
    lines = [f"  What should be: {sentence}"] if sentence else []
    found = EXPLANATIONS.get(getattr(invariant, "__name__", ""))
    if found is not None:
        lines.append(f"  Look at: {found.look_at}.")
        lines += [f"  Kafka: {', '.join(found.kafka)}"] if found.kafka else []
    return "\n".join(lines)
