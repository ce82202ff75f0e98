"""`explain` and `advise` where the quotas of several queues, one above the other, are short at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE

RUNNING = NODE % ("n1", 8) + POD % ("one", "NVIDIA-H200", "a", "nodeName: n1")
WAITING = POD % ("w0", "NVIDIA-H200", "a", GATED) + POD % ("w1", "NVIDIA-H200", "a", GATED)


def queue(name: str, parent: str, cards: int) -> str:
    made = QUEUE % (name, json.dumps({"NVIDIA-H200": cards}))
    return made.replace("metadata:", f"spec: {{parent: {parent}}}\nmetadata:", 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Settings with which card quotas hold through the tree."""
    file = tmp_path / "tree.yaml"
    file.write_text("cards: {hierarchy: true}\n", "utf-8")
    return file


def asked(run: Run, config: Path, state: str, *arguments: object, form: str = "json") -> Any:
    outcome = run(*arguments, "--state", "-", "--config", config, "-o", form, stdin=state)
    assert outcome.err == ""
    return json.loads(outcome.out) if form == "json" else outcome.out


TWO_SHORT = RUNNING + queue("a", "p", 1) + queue("p", "root", 2) + WAITING


def test_the_raise_of_every_queue_that_is_short_is_told_together(run: Run, tree: Path) -> None:
    text = asked(run, tree, TWO_SHORT, "explain", "w1", form="text")
    assert text.endswith("""
What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue a for NVIDIA-H200 by 2 (1 -> 3)
       kubectl annotate queue a --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 3}'
     and raise the quota of queue p (above a) for NVIDIA-H200 by 1 (2 -> 3)
       kubectl annotate queue p --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 3}'
""")
    steps = asked(run, tree, TWO_SHORT, "explain", "w1")["help"][0]["steps"]
    assert [(one["action"], one["object"], one["by"], one["to"]) for one in steps] == [
        ("raise", "Queue a", "2", "3"),
        ("raise", "Queue p", "1", "3"),
    ]


def test_what_was_advised_for_the_tree_lets_in_all_that_waits(run: Run, tree: Path) -> None:
    assert asked(run, tree, TWO_SHORT, "advise", "a", form="text") == (
        "Queue a needs this quota for 2 pods, with those before them in line served first:\n"
        "  NVIDIA-H200: 3 instead of 1 (2 more)\n"
        "  NVIDIA-H200 in queue p above: 3 instead of 2 (1 more)\n"
        "  kubectl annotate queue a --overwrite 'volcano.sh/card.quota={\"NVIDIA-H200\": 3}'\n"
        "  kubectl annotate queue p --overwrite 'volcano.sh/card.quota={\"NVIDIA-H200\": 3}'\n"
    )
    report = asked(run, tree, TWO_SHORT, "advise", "a")
    assert report["above"] == {"p": {"NVIDIA-H200": {"by": "1", "needed": "3", "now": "2"}}}
    raised = RUNNING + queue("a", "p", 3) + queue("p", "root", 3) + WAITING
    plan = asked(run, tree, raised, "plan")["pods"]
    assert {pod["decision"] for pod in plan.values()} == {"allocated", "lift"}


def test_a_queue_above_that_alone_is_short_is_raised_alone(run: Run, tree: Path) -> None:
    state = RUNNING + queue("a", "p", 8) + queue("p", "root", 1) + WAITING
    for target in (("explain", "w0"), ("advise", "a")):
        text = asked(run, tree, state, *target, form="text")
        assert "annotate queue p " in text
        assert "annotate queue a " not in text
    assert asked(run, tree, state, "advise", "a")["quota"] == {}


DEVICES = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 3}}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: w
  annotations: {scheduling.volcano.sh/queue-name: a}
spec:
  schedulingGates: [{name: cardquota.io/quota}]
  resourceClaims: [{name: c, resourceClaimName: c}]
  containers: [{name: c}]
---
"""


def devices(name: str, parent: str, count: int) -> str:
    dra = {"capability": {"gpu": {"count": count}}}
    return (
        json.dumps(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"parent": parent, "dra": dra},
            }
        )
        + "\n---\n"
    )


@pytest.mark.parametrize(("own", "above"), [(1, 2), (8, 2), (1, 8)])
def test_device_quotas_are_raised_through_the_tree(run: Run, tree: Path, own: int, above: int) -> None:
    state = devices("a", "p", own) + devices("p", "root", above) + DEVICES
    wanted = [("Queue a", "3")] * (own < 3) + [("Queue p", "3")] * (above < 3)
    steps = asked(run, tree, state, "explain", "w")["help"][0]["steps"]
    assert [(step["object"], step["to"]) for step in steps] == wanted
    report = asked(run, tree, state, "advise", "a")
    assert report["waits"] == []
    assert {"needed": "3"}.items() <= (report["quota"] or report["above"]["p"])["deviceclass/gpu"].items()
