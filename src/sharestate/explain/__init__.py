"""
Explanations: what happened to a record, in plain words and as JSON, and why it is or is not deliverable.

They are made of histories, whoever has written them.
"""

from sharestate.explain.life import Explanation, Moment, RecordLife, explain_record
from sharestate.explain.overview import HeldRecords, NearLimit, Overview, PartitionLife
from sharestate.explain.sentences import Finding, Happening, Reason, Verdict
from sharestate.explain.standing import Standing
from sharestate.explain.survey import Survey
from sharestate.explain.verified import VerifiedReplay, is_verifiable

__all__ = [
    "Explanation",
    "Finding",
    "Happening",
    "HeldRecords",
    "Moment",
    "NearLimit",
    "Overview",
    "PartitionLife",
    "Reason",
    "RecordLife",
    "Standing",
    "Survey",
    "Verdict",
    "VerifiedReplay",
    "explain_record",
    "is_verifiable",
]
