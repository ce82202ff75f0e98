"""One type for one number: amounts of a quota's key are quantities as text, counts of things are numbers, in every command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE, SHARE_NODE, SHARE_POD

STATE = (
    NODE % ("n1", 8)
    + SHARE_NODE % ("s1", 200, 32768, 200, 32768)
    + QUEUE % ("team", '{"NVIDIA-H200": 2}')
    + POD % ("one", "NVIDIA-H200", "team", "nodeName: n1")
    + POD % ("two", "NVIDIA-H200", "team", "nodeName: n1")
    + POD % ("waits", "NVIDIA-H200", "team", GATED)
    + SHARE_POD % ("share", 30, 1024)
)
QUANTITIES: Final = frozenset(
    [
        "quota",
        "allocated",
        "reserved",
        "waiting",
        "counted",
        "asked",
        "used",
        "limit",
        "missing",
        "amounts",
        "asks",
        "by",
        "to",
        "now",
        "needed",
        "freed",
        "total",
        "free",
        "largestNode",
        "mostOnOneNode",
        "onClosedNodes",
        "capability",
        "guarantee",
        "deserved",
        "realCapability",
        "request",
        "inqueue",
        "elastic",
    ]
)
"""Keys whose values, or the values in whose mappings, are amounts of a key of a quota."""
COUNTS: Final = frozenset(
    [
        "count",
        "number",
        "of",
        "pods",
        "together",
        "ends",
        "seconds",
        "earliestSeconds",
        "latestSeconds",
        "waitedSeconds",
        "index",
        "core",
        "coreUsed",
        "memory",
        "memoryUsed",
        "score",
        "combination",
        "share",
        "assigned",
    ]
)
KEPT: Final = {
    ("gpus", "used"): "cards of a node, beside `count`: a count, under a name that is an amount elsewhere"
}
"""Keys of the first release that are numbers in one command and amounts in others."""


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, value


@pytest.fixture
def outputs(run: Run, tmp_path: Path) -> dict[str, Any]:
    """What each command says in JSON."""
    state, new = tmp_path / "state.yaml", tmp_path / "new.yaml"
    state.write_text(STATE)
    new.write_text(POD % ("new", "NVIDIA-H200", "team", ""))
    commands = {
        "plan": (),
        "explain": ("waits",),
        "can-run": (str(new),),
        "advise": ("team",),
        "queues": (),
        "cards": (),
        "gpus": (),
        "place": ("default/waits",),
    }
    return {
        name: json.loads(run(name, *target, "--state", state, "-o", "json").out)
        for name, target in commands.items()
    }


def test_every_number_has_the_type_of_its_kind(outputs: dict[str, Any]) -> None:
    seen = set[str]()
    for command, output in outputs.items():
        for path, value in leaves(output):
            kind = next((key for key in reversed(path) if key in QUANTITIES | COUNTS), "")
            if not kind or value is None or isinstance(value, bool):
                continue
            seen.add(kind)
            where = f"{command}: {'.'.join(path)} is {value!r}"
            if kind in QUANTITIES and (command, kind) not in KEPT:
                assert isinstance(value, str), where
            elif not isinstance(value, str):
                assert isinstance(value, int | float), where
            else:
                # The names of things may stand under a key that counts them elsewhere.
                assert not value.replace(".", "").isdigit(), where
    assert {"quota", "asked", "free", "now", "count", "pods", "coreUsed", "capability"} <= seen
