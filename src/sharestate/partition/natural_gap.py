"""
The SPSO moves past offsets that the log does not have, where bug B10 (spec 24.1) is healed.

Kafka waits for them for ever: no batch ever covers the SPSO, so it cannot advance, and once as many records are in
flight as may be, the share partition stalls. Healed, the first fetch that begins after the gap shows that there is
nothing in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.partition.advance import advance
from sharestate.partition.gaps import active_window
from sharestate.values.profiles import Quirk

if TYPE_CHECKING:
    from sharestate.partition.ledger import Ledger
    from sharestate.values.records import FetchedRecords


def is_at_natural_gap(ledger: Ledger, fetched: FetchedRecords) -> bool:
    """Return whether *fetched* shows that the log has nothing at the SPSO, which no cached batch covers."""
    start, first_fetched = ledger.start_offset, fetched.batches[0].first_offset
    if ledger.profile.has(Quirk.B10) or not ledger.in_flight or not fetched.fetch_offset <= start < first_fetched:
        return False
    floor = ledger.in_flight.floor(start)
    return floor is None or floor.last_offset < start


def skip_natural_gap(ledger: Ledger, fetched: FetchedRecords) -> None:
    """Move the SPSO to where *fetched* shows that the log goes on."""
    first_fetched = fetched.batches[0].first_offset
    following = ledger.in_flight.higher(ledger.start_offset)
    ledger.start_offset = first_fetched if following is None else min(first_fetched, following.first_offset)
    ledger.end_offset = max(ledger.end_offset, ledger.start_offset)
    window = active_window(ledger)
    if window is not None:
        ledger.gap_window = window._replace(first_offset=max(window.first_offset, ledger.start_offset))
    advance(ledger)
