"""The protocol of dead-letter queues: what a share-partition leader relies on."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from sharestate.values.dead_letters import DeadLetterRequest


class DeadLetterQueue(Protocol):
    """
    Takes the dead letters of share groups: in memory, in a topic, in a database.

    ``enqueue`` returns at once with a future, which may be done by then or be completed later, in any thread. It must
    be completed, and only the queue may cancel it. Its records stay ARCHIVING, and hold up the SPSO, until then.

    The contract, which ``sharestate.testing.DeadLetterQueueContract`` tests:

    - **Answers.** Success is a future with a result, which nobody looks at; failure is a future with an exception. A
      failure of one request does not affect another. Either way the records become ARCHIVED: a queue retries by itself,
      and its answer is final.
    - **Answered is written.** Success says that there is a dead letter for each offset of the request. After a failure
      there may be all of them, some or none.
    - **Every offset.** There is a dead letter for each offset, whether the log has a record there or not. It says which
      record it was, for which group, how often it was delivered and why that ended: as ``dead_letter_records`` writes
      it. Key and value are the record's if the group's settings say so, else None.
    - **Order.** The dead letters of one request are in ascending order. Requests may overtake each other.
    - **Refusals.** Where ``DeadLetterSettings.refusal`` has a reason, the request fails with it and nothing is
      written. The settings are looked up again for every request.
    - **No memory of numbers.** Numbers are the sender's, and count from 0 again under the next leader. Whatever comes
      is written, even what has been written before: after a crash a leader enqueues again what was not answered.
    - **Malformed requests** fail with MalformedInputError, or ``enqueue`` raises it, and nothing is written.

    Source:
        KIP-1191; org.apache.kafka.server.share.dlq.ShareGroupDLQManager (Kafka 4.4.0).
    """

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write the dead letters of a range of records."""
        ...
