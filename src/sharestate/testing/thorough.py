"""
A search of some minutes for each door: settings of Hypothesis, under the name ``sharestate-thorough``.

Importing this module registers them, so that a ``conftest.py`` that does makes ``--hypothesis-profile`` know the name.
"""

from __future__ import annotations

from typing import Final

try:
    from hypothesis import HealthCheck, Phase, settings
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.thorough needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

NAME: Final = "sharestate-thorough"
"""The name of the profile."""

PHASES: Final = tuple(phase for phase in Phase if phase is not Phase.explain)
"""
What a search of any length goes through. To explain an error Hypothesis traces each line of each program that it tries,
with which a find took three to five times as long; and the machines say themselves what is wrong.
"""

THOROUGH: Final = settings(
    max_examples=20_000,
    stateful_step_count=60,
    phases=PHASES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # it is meant to be long
)
"""20,000 runs of up to 60 events each: some minutes for what is in memory, longer for a broker."""

THOROUGH_SEEDS: Final = range(60_000)
"""The sequences of a thorough `compare`: some two million requests."""

settings.register_profile(NAME, THOROUGH)
