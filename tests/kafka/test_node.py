"""What a broker has answered to members: the same requests, sent to a node at the same times, get the same answers."""

from __future__ import annotations

from sharestate import KAFKA_4_3
from tests.support.logged_node import LoggedNode

LATE = {("5FsGuL4BTLIhgSG8hI950Q", 29): 5}
"""
The one fetch of `k431-seq` that was not to wait and whose timer fired 5 ms late: it found what it had released. [ms]
"""


def test_a_node_answers_as_a_broker_did() -> None:
    """
    Each answer to the members of three groups, and each write of share partitions, is that of the broker of 4.3.1.

    They are 389 heartbeats with their assignments, 701 fetches and 354 acknowledgements.
    """
    node = LoggedNode("k431-seq", KAFKA_4_3, LATE)
    node.replay()

    different = [(index, ours, theirs) for index, (ours, theirs) in enumerate(node.pairs) if ours != theirs]
    assert (len(node.pairs), different[:1], node.foreign_writes[:1]) == (389 + 701 + 354, [], [])
