"""
The share sessions of a broker: which partitions a member fetches, in which order, and what a response has of them.

It reads no clock and does no I/O: the time comes in as ``now_ms``, and what a request changes comes out as values.
"""

from sharestate.broker.sessions.acknowledgements import (
    AcknowledgementPlan,
    plan_acknowledgements,
    with_acknowledgements,
)
from sharestate.broker.sessions.cache import DEFAULT_MAX_SESSIONS, Disconnection, ShareSessionCache
from sharestate.broker.sessions.contexts import (
    Candidates,
    ContextKind,
    FetchedPartition,
    ShareFetchAnswer,
    ShareFetchContext,
    response_size,
    rotated,
)
from sharestate.broker.sessions.epoch_checks import REQUESTS, Change, Check, RequestRow, Rpc
from sharestate.broker.sessions.profiles import (
    LATEST_SESSIONS,
    SESSION_PROFILES,
    SESSIONS_4_2,
    SESSIONS_4_3,
    SESSIONS_4_4,
    SessionProfile,
    SessionQuirk,
)
from sharestate.broker.sessions.request_form import (
    MAX_MEMBER_ID,
    RENEW_VERSION,
    REQUEST_CHECKS,
    RequestError,
    ShareRequest,
    WholeRequest,
    request_error,
)
from sharestate.broker.sessions.share_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedSharePartition,
    ShareSession,
    ShareSessionKey,
    next_epoch,
)
from sharestate.broker.sessions.topic_checks import TOPIC_CHECKS, TopicIdPartition, TopicMetadata, topic_error
from sharestate.errors import (
    DuplicatePartitionError,
    InvalidSessionRequestError,
    InvalidShareSessionEpochError,
    ShareSessionLimitReachedError,
    ShareSessionNotFoundError,
)

__all__ = [
    "DEFAULT_MAX_SESSIONS",
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "LATEST_SESSIONS",
    "MAX_MEMBER_ID",
    "RENEW_VERSION",
    "REQUESTS",
    "REQUEST_CHECKS",
    "SESSIONS_4_2",
    "SESSIONS_4_3",
    "SESSIONS_4_4",
    "SESSION_PROFILES",
    "TOPIC_CHECKS",
    "AcknowledgementPlan",
    "CachedSharePartition",
    "Candidates",
    "Change",
    "Check",
    "ContextKind",
    "Disconnection",
    "DuplicatePartitionError",
    "FetchedPartition",
    "InvalidSessionRequestError",
    "InvalidShareSessionEpochError",
    "RequestError",
    "RequestRow",
    "Rpc",
    "SessionProfile",
    "SessionQuirk",
    "ShareFetchAnswer",
    "ShareFetchContext",
    "ShareRequest",
    "ShareSession",
    "ShareSessionCache",
    "ShareSessionKey",
    "ShareSessionLimitReachedError",
    "ShareSessionNotFoundError",
    "TopicIdPartition",
    "TopicMetadata",
    "WholeRequest",
    "next_epoch",
    "plan_acknowledgements",
    "request_error",
    "response_size",
    "rotated",
    "topic_error",
    "with_acknowledgements",
]
