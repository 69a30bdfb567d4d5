"""What tests look at of an explanation."""

from __future__ import annotations

from sharestate.explain import Explanation, Reason, StoredReason


def what_of(explanation: Explanation) -> list[str]:
    """Return the causes of the moments of a life."""
    return [moment.what.value for moment in explanation.moments]


def reasons_of(explanation: Explanation) -> list[Reason | StoredReason]:
    """Return why the record is or is not deliverable."""
    return [finding.reason for finding in explanation.standing.findings]
