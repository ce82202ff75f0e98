"""Objects that are ones, with rubbish inside: every command that reads a state answers, or names what is wrong; none breaks."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.test_malformed import SERVERS, WITH_A_STATE

RUBBISH: Final[tuple[Any, ...]] = (
    None,
    "x",
    "",
    -1,
    10**30,
    1.5,
    True,
    [],
    [None],
    ["x"],
    {},
    {"x": None},
    {"": {"": []}},
)
VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
BASE: Final[dict[str, dict[str, Any]]] = {
    "Node": {"apiVersion": "v1", "spec": {}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}},
    "Namespace": {"apiVersion": "v1"},
    "Pod": {
        "apiVersion": "v1",
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {},
    },
    "Queue": {"apiVersion": VOLCANO, "spec": {}, "status": {}},
    "PodGroup": {"apiVersion": VOLCANO, "spec": {}, "status": {}},
    "Deployment": {"apiVersion": "apps/v1", "spec": {"template": {"spec": {"containers": []}}}},
    "ResourceClaim": {"apiVersion": "resource.k8s.io/v1", "spec": {}},
    "DeviceClass": {"apiVersion": "resource.k8s.io/v1", "spec": {}},
}
PLACES: Final = (
    ("Node", "metadata", "labels"),
    ("Node", "metadata", "labels", "nvidia.com/gpu.product"),
    ("Node", "spec", "taints"),
    ("Node", "status", "allocatable"),
    ("Node", "status", "allocatable", "nvidia.com/gpu"),
    ("Node", "status", "conditions"),
    ("Namespace", "metadata", "annotations"),
    ("Pod", "metadata", "annotations"),
    ("Pod", "metadata", "annotations", "volcano.sh/card.name"),
    ("Pod", "metadata", "annotations", "cardquota.io/assigned"),
    ("Pod", "metadata", "annotations", "cardquota.io/gang-size"),
    ("Pod", "metadata", "ownerReferences"),
    ("Pod", "metadata", "deletionTimestamp"),
    ("Pod", "spec", "containers"),
    ("Pod", "spec", "schedulingGates"),
    ("Pod", "spec", "nodeName"),
    ("Pod", "spec", "affinity"),
    ("Pod", "spec", "resourceClaims"),
    ("Pod", "status", "conditions"),
    ("Pod", "status", "phase"),
    ("Queue", "metadata", "annotations"),
    ("Queue", "metadata", "annotations", "volcano.sh/card.quota"),
    ("Queue", "metadata", "annotations", "volcano.sh/dra.quota"),
    ("Queue", "spec", "capability"),
    ("Queue", "spec", "parent"),
    ("Queue", "spec", "dra"),
    ("Queue", "status", "allocated"),
    ("PodGroup", "spec", "minMember"),
    ("PodGroup", "spec", "queue"),
    ("PodGroup", "spec", "minTaskMember"),
    ("Deployment", "spec", "replicas"),
    ("Deployment", "spec", "template"),
    ("ResourceClaim", "spec", "devices"),
    ("DeviceClass", "spec", "extendedResourceName"),
)


def made(kind: str, path: tuple[str, ...], value: Any, name: str = "x") -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(json.dumps({**BASE[kind], "kind": kind, "metadata": {"name": name}}))
    target = raw
    for key in path[:-1]:
        target = target.setdefault(key, {})
    target[path[-1]] = value
    return raw


REVIEW: Final = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u", "operation": "CREATE", "object": made("Pod", ("spec", "x"), 1)},
}


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_rubbish_in_a_place_breaks_no_command(run: Run, tmp_path: Path, place: tuple[str, ...]) -> None:
    """What a state cannot be read with is told by its place; all the rest every command answers with, at once."""
    kind, *path = place
    around = [made(other, ("metadata", "name"), "x") for other in BASE if other != kind]
    state, taken = tmp_path / "state.json", list[dict[str, Any]]()
    for number, value in enumerate(RUBBISH):
        one = made(kind, tuple(path), value, "x" if number == len(RUBBISH) - 1 else f"x{number}")
        state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*around, one]}))
        outcome = run("plan", "--state", state)
        assert outcome.status in {0, 2}, value
        if outcome.status == 2:
            assert outcome.err.startswith(f"error: {state}:"), value
        else:
            taken.append(one)
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*around, *taken]}))
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": taken})
    for arguments in WITH_A_STATE:
        if arguments[0] in SERVERS:
            continue
        given = json.dumps(REVIEW) if arguments == ("review",) else manifests
        outcome = run(*arguments, "--state", state, stdin=given)
        assert outcome.status in {0, 1, 2, 3}, arguments
        assert "Traceback" not in outcome.err
        if outcome.status == 2:
            assert outcome.err.startswith("error: "), arguments
