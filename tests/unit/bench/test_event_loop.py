"""The benchmark of how long a persister holds up an event loop."""

from __future__ import annotations

from bench.event_loop import MEMBERS, report


def test_each_persister_has_a_row_for_each_number_of_members() -> None:
    """How many acknowledgements a second, and how late the event loop was: the median is not above the most."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in report(20, 1)][2:]
    names = ["InMemoryPersister", "SqlitePersister", "ThreadedPersister"]

    assert [(name, members) for name, members, *_ in lines] == [(name, str(n)) for n in MEMBERS for name in names]
    for _, _, *figures in lines:
        speed, middle, high, most = (float(figure.replace(",", "")) for figure in figures)
        assert speed > 0
        assert 0 <= middle <= high <= most
