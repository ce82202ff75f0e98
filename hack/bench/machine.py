"""What is to be known of a machine beside figures that were measured on it, and when and of what they were."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
_CPUINFO: Final = Path("/proc/cpuinfo")


def facts() -> dict[str, Any]:
    """By the names that they have in the JSON; memory in GiB. What this machine does not tell is empty."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "processor": _model(),
        "memory": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 1),
    }


def in_words(found: dict[str, Any]) -> str:
    """The same on one line."""
    commit = f", commit {found['commit']}" if found["commit"] else ""
    model = f" ({found['processor']})" if found["processor"] else ""
    return (
        f"{found['date']}{commit}, Python {found['python']}, {found['processors']} processors{model}, "
        f"{found['memory']:g} GiB, kernel {found['kernel']}, load {found['load']}"
    )


def _commit() -> str:
    """Of the tree, `+` behind it where something was changed since; empty outside of a repository."""
    command = ["git", "describe", "--always", "--match=", "--dirty=+"]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _model() -> str:
    """How Linux names the processor; most machines with another architecture than x86 do not."""
    text = _CPUINFO.read_text("utf-8") if _CPUINFO.exists() else ""
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return named[1] if named else ""
