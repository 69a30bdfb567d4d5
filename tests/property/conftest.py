"""How long Hypothesis searches: the same sequences every time, unless HYPOTHESIS_PROFILE=search asks for new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("check", deadline=None, derandomize=True, max_examples=60)
settings.register_profile(
    "search",
    deadline=None,
    max_examples=5000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a search is meant to be long
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))
