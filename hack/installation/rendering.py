"""The chart, rendered by the helm that the toolchain built."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "cardquota"
RELEASE = "cardquota"

_TIMEOUT_S = 60.0

Object = dict[str, Any]


class RenderError(Exception):
    """Helm refused the chart or its values; the message is helm's."""


def helm(binary: Path, *args: str, stdin: str | None = None, timeout_s: float = _TIMEOUT_S) -> str:
    """Run helm and return its output. Raises `RenderError`."""
    done = subprocess.run(
        [str(binary), *args], input=stdin, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode != 0:
        # `helm lint` reports on standard output.
        raise RenderError((done.stderr.strip() or done.stdout.strip()) or f"exit status {done.returncode}")
    return done.stdout


def render(binary: Path, values: Mapping[str, Any], namespace: str, *, hooks: bool = False) -> list[Object]:
    """Return every object that `helm install` with these values would create in `namespace`.

    With `hooks` also those that are there only while helm does something.
    """
    text = helm(
        binary,
        "template",
        RELEASE,
        str(CHART),
        f"--namespace={namespace}",
        "--values=-",
        *([] if hooks else ["--no-hooks"]),
        stdin=json.dumps(values),  # JSON is YAML
    )
    return [thing for thing in yaml.safe_load_all(text) if thing]


def of_kind(things: Sequence[Object], kind: str) -> dict[str, Object]:
    """Return the objects of a kind by name."""
    return {thing["metadata"]["name"]: thing for thing in things if thing["kind"] == kind}
