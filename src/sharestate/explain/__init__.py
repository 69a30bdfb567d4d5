"""
Explanations: what happened to a record, in plain words and as JSON, and why it is or is not deliverable.

They are made of histories, whoever has written them, or of the state topic alone.
"""

from sharestate.explain.happened import HappenedLine, ListedRecords, Tally, WhatHappened
from sharestate.explain.life import Explanation, Moment, RecordLife, explain_record
from sharestate.explain.members import Members
from sharestate.explain.outcomes import End, Lived
from sharestate.explain.overview import HeldRecords, NearLimit, Overview, PartitionLife
from sharestate.explain.sentences import Finding, Happening, Reason, StoredReason, Unsaid, Verdict
from sharestate.explain.standing import Lost, Standing
from sharestate.explain.stored import (
    StoredExplanation,
    StoredHappening,
    StoredLife,
    StoredMoment,
    explain_stored,
    stored_lives,
)
from sharestate.explain.survey import Survey

__all__ = [
    "End",
    "Explanation",
    "Finding",
    "HappenedLine",
    "Happening",
    "HeldRecords",
    "ListedRecords",
    "Lived",
    "Lost",
    "Members",
    "Moment",
    "NearLimit",
    "Overview",
    "PartitionLife",
    "Reason",
    "RecordLife",
    "Standing",
    "StoredExplanation",
    "StoredHappening",
    "StoredLife",
    "StoredMoment",
    "StoredReason",
    "Survey",
    "Tally",
    "Unsaid",
    "Verdict",
    "WhatHappened",
    "explain_record",
    "explain_stored",
    "stored_lives",
]
