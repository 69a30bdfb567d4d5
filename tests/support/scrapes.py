"""A monitor in a process of its own, and what it shows."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_S: Final = 60


class Scrape(NamedTuple):
    """What is shown at one moment: values by name and labels."""

    values: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def find(self, name: str, **labels: str) -> list[float]:
        """Return the values of a metric that have these labels."""
        wanted = labels.items()
        return [value for (each, found), value in self.values.items() if each == name and wanted <= found]

    def value(self, name: str, **labels: str) -> float:
        """Return the only value of a metric that has these labels."""
        (value,) = self.find(name, **labels)
        return value


def parsed(text: str) -> Scrape:
    """Return what stands in the text format of Prometheus, by its own parser."""
    return Scrape(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


class Monitor:
    """``sharestate monitor``, which reads some times a second."""

    def __init__(self, bootstrap_servers: str, checkpoint: Path | None) -> None:
        """Start it."""
        command = [sys.executable, "-m", "sharestate", "monitor", "--bootstrap", bootstrap_servers]
        command += ["--listen", "127.0.0.1:0", "--interval", "0.2"]
        command += [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def scrape(self) -> Scrape:
        """Return what it shows once it has read all that is there now."""
        since_s, rounds = time.time(), 0
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            with urlopen(self.address, timeout=PATIENCE_S) as response:  # noqa: S310 - its own address
                scrape = parsed(response.read().decode())
            read_s = scrape.find("sharestate_read_timestamp_seconds")
            if read_s and read_s[0] > since_s:
                since_s, rounds = read_s[0], rounds + 1
            if rounds == 2:  # the first may have read before it was asked for; the next one has not
                return scrape
            assert time.monotonic() < give_up_s
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill it, so that it has no time for anything."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ask it to end, which it does without an error."""
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0
