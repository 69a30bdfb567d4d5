"""
A share group as its clients see it: for authors of brokers, mock brokers, proxies and clients.

Inherit `ShareGroupMachine` (extra ``testing``) and say how yours produces, fetches and acknowledges. Members, producers
and leaders then do what they do in random order, and each answer is judged by what clients can rely on, a `Guarantee`;
`GuaranteeBrokenError` says which one does not hold, and why. A known bug is an `Allowance`.

It begins in ``machine``; what happens is in ``events``, what clients know in ``model``. See "From the clients' side" in
``docs/testing.md``.
"""

from sharestate.audit.guarantees import Guarantee, GuaranteeBrokenError
from sharestate.testing.groups.allowances import KAFKA_ALLOWANCES, Allowance
from sharestate.testing.groups.machine import ShareGroupMachine
from sharestate.testing.groups.model import Delivery
from sharestate.testing.groups.settings import READ_COMMITTED, READ_UNCOMMITTED, GroupSettings
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.records import AcquireMode

__all__ = [
    "KAFKA_ALLOWANCES",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "Allowance",
    "Delivery",
    "GroupSettings",
    "Guarantee",
    "GuaranteeBrokenError",
    "ShareGroupMachine",
]
