"""What was measured with: the same code takes another time with another build of Python."""

from __future__ import annotations

import platform
import sysconfig


def python_build() -> tuple[str, str]:
    """Return the version of Python with its compiler, and how it was configured; lines."""
    return f"Python {platform.python_version()} built with {platform.python_compiler()},", f"{configured()};"


def configured() -> str:
    """Return whether this Python was configured with what makes it faster or slower."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return ", ".join(
        (
            # A distribution may call `make profile-opt` by itself: then only it knows.
            f"configured {_with(flags, '--enable-optimizations')} (PGO) and {_with(flags, '--with-lto')} (LTO)",
            "shared library" if sysconfig.get_config_var("Py_ENABLE_SHARED") else "linked statically",
        )
    )


def _with(flags: str, flag: str) -> str:
    return f"{'with' if flag in flags else 'without'} {flag}"
