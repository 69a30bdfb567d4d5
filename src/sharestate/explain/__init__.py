"""
Explanations: what happened to a record, in plain words and as JSON, and why it is or is not deliverable.

They are made of histories of any writer, or of the state topic alone.
"""

from sharestate.explain.life import Explanation, Moment, RecordLife, explain_record
from sharestate.explain.members import KnownMembers
from sharestate.explain.outcomes import End, Lived
from sharestate.explain.overview import HeldRecords, NearLimit, Overview
from sharestate.explain.partition_life import PartitionLife
from sharestate.explain.sentences import Happening, Outlook, Reason, StatedReason, StoredReason, Unsaid
from sharestate.explain.stored import (
    StoredExplanation,
    StoredHappening,
    StoredLife,
    StoredMoment,
    explain_stored,
    stored_lives,
)
from sharestate.explain.survey import Survey
from sharestate.explain.totals import HappenedLine, ListedRecords, Tally, WhatHappened
from sharestate.explain.why_not_delivered import Standing, StateLost

__all__ = [
    "End",
    "Explanation",
    "HappenedLine",
    "Happening",
    "HeldRecords",
    "KnownMembers",
    "ListedRecords",
    "Lived",
    "Moment",
    "NearLimit",
    "Outlook",
    "Overview",
    "PartitionLife",
    "Reason",
    "RecordLife",
    "Standing",
    "StateLost",
    "StatedReason",
    "StoredExplanation",
    "StoredHappening",
    "StoredLife",
    "StoredMoment",
    "StoredReason",
    "Survey",
    "Tally",
    "Unsaid",
    "WhatHappened",
    "explain_record",
    "explain_stored",
    "stored_lives",
]
