"""The chart, rendered by the helm that the toolchain built."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "cardquota"
RELEASE = "cardquota"

_TIMEOUT_S = 60.0
_ORDER = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ValidatingAdmissionPolicy")
_PROBED_BINDING = "cardquota-create"

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


def in_order(things: Iterable[Object]) -> list[Object]:
    """Return the objects in the order in which they are to be applied: what others need comes first.

    The binding of the policy on creations is the last of the policies, so that all are in force when that is seen to be.
    """
    return sorted(things, key=_rank)


def _rank(thing: Object) -> tuple[int, bool]:
    kind = thing["kind"]
    return (
        _ORDER.index(kind) if kind in _ORDER else len(_ORDER),
        kind == "ValidatingAdmissionPolicyBinding" and thing["metadata"]["name"] == _PROBED_BINDING,
    )
