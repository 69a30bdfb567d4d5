"""
What analyzing a million letters costs: `python -m bench.dead_letters [LETTERS]`, CPU seconds and memory, of two topics.

One is an outage: neighbors of eight partitions, ten in a millisecond. In the other each letter is alone, with one of a
million keys. Records are made as they are read, which is counted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Final

from sharestate.dead_letter_topic import LoggedLetter, analyze_letters, read_contents, redrive_ranges

_PARTITIONS: Final = 8
_BEGIN_MS: Final = 1_700_000_000_000
_VALUE: Final = 100
"""The size of a value. [bytes]"""

_KINDS: Final = ("outage", "alone")


class MadeLetters:
    """Letters that are made as they are read; ``outage`` or ``alone``."""

    def __init__(self, kind: str, count: int) -> None:
        """Make so many of a kind."""
        self.spans = {number: range(-(-(count - number) // _PARTITIONS)) for number in range(_PARTITIONS)}
        self.size = count
        self.position = 0
        self._is_outage = kind == "outage"

    def __iter__(self) -> Iterator[LoggedLetter]:
        """Yield them."""
        random = Random(1)  # noqa: S311 - no secret
        for number in range(self.size):
            queue_offset, partition = divmod(number, _PARTITIONS)
            if self._is_outage:
                offset, at_ms, key = queue_offset, number // 10, b"k%d" % (number % 100_000)
            else:
                offset, at_ms, key = number * 13, number * 600, b"key-%d" % random.randrange(10**6)
            headers = (
                ("__dlq.errors.topic", b"orders"),
                ("__dlq.errors.partition", b"%d" % partition),
                ("__dlq.errors.offset", b"%d" % offset),
                ("__dlq.errors.group", b"g"),
                ("__dlq.errors.delivery.count", b"5"),
                ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
            )
            yield LoggedLetter(partition, queue_offset, _BEGIN_MS + at_ms, key, _VALUE, headers)


def analyze(kind: str, count: int) -> None:
    """Analyze letters of a kind, and print what that has cost."""
    begin = time.process_time()
    contents = read_contents(MadeLetters(kind, count))
    read = time.process_time()
    analysis = analyze_letters("dlq.orders", contents)
    analysis.to_json()
    ranges = sum(1 for _ in redrive_ranges(analysis))
    end = time.process_time()
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    of = ", ".join(f"{rule.value} {letters:,}" for rule, letters in analysis.patterns.letters().items())
    print(  # noqa: T201 - what it is for
        f"{kind}: {analysis.records:,} records ({of}), {ranges:,} ranges: "
        f"{read - begin:.1f} s of CPU to read, {end - read:.1f} s to analyze; {megabytes:.0f} MB at the most"
    )


def main() -> None:
    """Analyze letters of each kind in a process of its own."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for kind in _KINDS:
        command = "import sys; from bench.dead_letters import analyze; analyze(sys.argv[1], int(sys.argv[2]))"
        subprocess.run([sys.executable, "-c", command, kind, str(count)], check=True)


if __name__ == "__main__":
    main()
