"""`cardquota plan`: the shapes that programs rely on, and the tables for people."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.output import table
from cli.state import TO_WRITE_ONE
from tests.unit.cli.conftest import Run, spawn
from tests.unit.cli.objects import BARE, CPU_POD, GATED, NO_OBJECTS, NODE, POD, QUEUE, SHARE_NODE, SHARE_POD

STATE = (
    NODE % ("n1", 8)
    + QUEUE % ("team", '{"NVIDIA-H200": 2}')
    + POD % ("bound", "NVIDIA-H200", "team", "nodeName: n1")
    + POD % ("first", "NVIDIA-H200", "team", GATED)
    + POD % ("second", "NVIDIA-H200", "team", GATED)
    + CPU_POD % "cpu"
)
NARROWED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H200"]}
                    ]
                }
            ]
        }
    }
}
SHORT = (
    "Queue <team> has insufficient <NVIDIA-H200> quota: requested <1000>, total would be <3000>, "
    "but capability is <2000>. In cards: asks for 1, 2 of 2 are in use; wait for cards to come back, or raise the quota."
)


def planned(run: Run, state: str, *arguments: object) -> dict[str, Any]:
    outcome = run("plan", "--state", "-", "-o", "json", *arguments, stdin=state)
    assert (outcome.status, outcome.err) == (0, "")
    report: dict[str, Any] = json.loads(outcome.out)
    return report


def test_the_json_shape_is_a_contract(run: Run) -> None:
    assert planned(run, STATE) == {
        "cards": {"NVIDIA-H200": {"resource": "nvidia.com/gpu", "count": 8, "nodes": {"n1": 8}}},
        "queues": {
            "team": {
                "quota": {"NVIDIA-H200": "2"},
                "allocated": {"NVIDIA-H200": "1"},
                "reserved": {"NVIDIA-H200": "1"},
                "waiting": {"NVIDIA-H200": "1"},
                "share": 1.0,
            }
        },
        "pods": {
            "default/bound": {"queue": "team", "decision": "allocated", "reason": "", "message": ""},
            "default/first": {
                "queue": "team",
                "decision": "lift",
                "reason": "",
                "message": "",
                "assigned": {"NVIDIA-H200": 1},
                "patch": [
                    {"op": "test", "path": "/spec/schedulingGates/0/name", "value": "cardquota.io/quota"},
                    {"op": "remove", "path": "/spec/schedulingGates/0"},
                    {"op": "add", "path": "/spec/affinity", "value": NARROWED},
                    {"op": "add", "path": "/metadata/annotations/cardquota.io~1queue", "value": "team"},
                    {
                        "op": "add",
                        "path": "/metadata/annotations/cardquota.io~1assigned",
                        "value": '{"NVIDIA-H200":1}',
                    },
                ],
            },
            "default/second": {
                "queue": "team",
                "decision": "hold",
                "reason": "InsufficientScalarQuota",
                "message": SHORT,
            },
            "default/cpu": {"queue": "default", "decision": "ignored", "reason": "", "message": ""},
        },
        "events": [
            {
                "object": "Pod default/second",
                "type": "Warning",
                "reason": "InsufficientScalarQuota",
                "message": SHORT,
            }
        ],
    }


def test_the_patch_tests_only_what_the_pod_has(run: Run) -> None:
    """Stand-ins are ours; a patch that tested them could not be applied to the object as it was given."""
    for given, tested in [
        ("", []),
        ('  uid: ""\n', []),
        ("  uid: u-1\n", ["/metadata/uid"]),
        ("  uid: u-1\n  resourceVersion: '7'\n", ["/metadata/uid", "/metadata/resourceVersion"]),
    ]:
        pod = (POD % ("p", "NVIDIA-H200", "team", GATED)).replace("  name: p\n", f"  name: p\n{given}")
        patch = planned(run, STATE.split("---\n")[0] + "---\n" + QUEUE % ("team", '{"NVIDIA-H200": 2}') + pod)
        operations = patch["pods"]["default/p"]["patch"]
        paths = [one["path"] for one in operations if one["op"] == "test"]
        assert [path for path in paths if path.startswith("/metadata/")] == tested


def test_an_mgpu_pod_is_lifted_without_assigned(run: Run) -> None:
    state = SHARE_NODE % ("s1", 200, 32768, 200, 32768) + SHARE_POD % ("p", 30, 1024)
    pod = planned(run, state)["pods"]["default/p"]
    assert pod["decision"] == "lift"
    assert "assigned" not in pod
    assert pod["patch"]


def test_pods_without_times_are_taken_in_the_order_of_the_file(run: Run) -> None:
    state = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 1}')
    for order in (["b", "a"], ["a", "b"]):
        pods = "".join(POD % (name, "NVIDIA-H200", "team", GATED) for name in order)
        decisions = planned(run, state + pods)["pods"]
        assert decisions[f"default/{order[0]}"]["decision"] == "lift"
        assert decisions[f"default/{order[1]}"]["decision"] == "hold"


def test_text_shows_pods_that_ask_and_queues(run: Run) -> None:
    outcome = run("plan", "--state", "-", stdin=STATE)
    assert (outcome.status, outcome.err) == (0, "")
    pods = table(
        ("POD", "QUEUE", "DECISION", "ASSIGNED", "REASON", "MESSAGE"),
        [
            ("default/bound", "team", "allocated", "", "", ""),
            ("default/first", "team", "lift", "1 NVIDIA-H200", "", ""),
            ("default/second", "team", "hold", "", "InsufficientScalarQuota", SHORT),
        ],
    )
    queues = table(
        ("QUEUE", "KEY", "QUOTA", "ALLOCATED", "RESERVED", "WAITING"),
        [("team", "NVIDIA-H200", "2", "1", "1", "1")],
    )
    assert outcome.out == f"{pods}\n\n{queues}\n"


@pytest.mark.parametrize(
    "stdin",
    ["", " \n", "---\n---\n", "# nothing\n", "null", NO_OBJECTS, NO_OBJECTS.replace("[]", "null")],
)
def test_a_state_without_objects_is_an_error(run: Run, stdin: str) -> None:
    """What a command leaves behind that has failed."""
    outcome = run("plan", "--state", "-", stdin=stdin)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines() == ["error: <stdin>: there is no object in it", f"try: {TO_WRITE_ONE}"]


def test_a_state_of_other_kinds_alone_is_told_by_them(run: Run) -> None:
    other = "apiVersion: v1\nkind: %s\nmetadata: {name: x}\n---\n"
    outcome = run("plan", "--state", "-", stdin=other % "Service" + other % "Event" + other % "Event")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "error: <stdin>: there is no object in it of the kinds that are read, only Event, Service",
        f"try: {TO_WRITE_ONE}",
    ]


def test_a_cluster_before_anything_is_in_it_has_an_empty_plan(run: Run) -> None:
    assert planned(run, BARE) == {"cards": {}, "queues": {}, "pods": {}, "events": []}


def test_settings_count(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "cardquota.yaml"
    config.write_text("queue: {default: other}\n")
    assert planned(run, CPU_POD % "cpu", "--config", config)["pods"]["default/cpu"]["queue"] == "other"


def test_duplicates_are_told_beside_the_plan(run: Run) -> None:
    outcome = run("plan", "--state", "-", "-o", "json", stdin=STATE + CPU_POD % "cpu")
    assert outcome.status == 0
    assert outcome.err.startswith("warning: <stdin>:")
    assert json.loads(outcome.out)["pods"]["default/cpu"]["decision"] == "ignored"


def test_a_state_that_cannot_be_read_gives_no_plan(run: Run) -> None:
    outcome = run("plan", "--state", "-", "-o", "json", stdin="a: [")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: <stdin>:2: is not YAML")


def test_as_a_process() -> None:
    outcome = spawn("plan", "--state", "-", "-o", "json", stdin=STATE.encode())
    assert (outcome.status, outcome.err) == (0, "")
    assert json.loads(outcome.out)["pods"]["default/first"]["decision"] == "lift"


DEVICES = """\
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: org}
spec:
  dra: {capability: {gpu: {count: 3}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec:
  parent: org
  dra: {capability: {gpu: {count: 8, capacity: {memory: 80Gi}}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec: {devices: {requests: [{name: r, deviceClassName: gpu, count: 2, capacity: {requests: {memory: 8Gi}}}]}}
"""
CLAIMING = """\
---
apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {scheduling.volcano.sh/queue-name: team}
spec:
  schedulingGates: [{name: cardquota.io/quota}]
  resourceClaims: [{name: dev, resourceClaimTemplateName: two}]
  containers: [{name: c, image: none}]
"""


def test_devices_are_planned_for_the_queue_and_those_above(run: Run) -> None:
    report = planned(run, DEVICES + CLAIMING % "first" + CLAIMING % "second")
    pods, queues = report["pods"], report["queues"]
    assert pods["default/first"] == {
        "queue": "team",
        "decision": "lift",
        "reason": "",
        "message": "",
        "patch": [
            {"op": "test", "path": "/spec/schedulingGates/0/name", "value": "cardquota.io/quota"},
            {"op": "remove", "path": "/spec/schedulingGates/0"},
            {"op": "add", "path": "/metadata/annotations/cardquota.io~1queue", "value": "team"},
            {
                "op": "add",
                "path": "/metadata/annotations/cardquota.io~1claims",
                "value": '{"dev":{"deviceclass/gpu":"2","memory.deviceclass/gpu":"17179869184"}}',
            },
        ],
    }
    assert pods["default/second"]["reason"] == "InsufficientDeviceQuota"
    assert pods["default/second"]["message"] == (
        "queue org: DeviceClass gpu quota exceeded: requested 2, used 2, limit 3 (queue team is below it)"
    )
    sums = {"deviceclass/gpu": "2", "memory.deviceclass/gpu": str(16 * 2**30)}
    assert queues["team"] == {
        "quota": {"deviceclass/gpu": "8", "memory.deviceclass/gpu": str(80 * 2**30)},
        "allocated": {},
        "reserved": sums,
        "waiting": sums,
        "share": 0.25,
    }
    assert queues["org"]["quota"] == {"deviceclass/gpu": "3"}
    assert queues["org"]["reserved"] == sums


def test_queues_tell_a_device_quota_that_cannot_be_read(run: Run) -> None:
    broken = DEVICES.replace("count: 3", "count: many")
    outcome = run("queues", "--state", "-", stdin=broken)
    assert outcome.status == 0
    assert outcome.err.startswith("warning: queue org: its device quota cannot be read: spec.dra.capability")


CLOSED = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: team
  annotations: {volcano.sh/card.quota: '{"NVIDIA-H200": 2}', cardquota.io/namespace-selector: tier=gold}
---
"""
HOME = """\
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {tier: %s}}
---
"""


@pytest.mark.parametrize(
    ("home", "decision"),
    [(HOME % "gold", "lift"), (HOME % "iron", "hold"), ("", "hold")],
    ids=["gold", "iron", "none"],
)
def test_a_queue_that_is_closed_to_the_namespace_lifts_nobody(run: Run, home: str, decision: str) -> None:
    """Nor to one that the state does not show."""
    report = planned(run, NODE % ("n1", 8) + CLOSED + home + POD % ("p", "NVIDIA-H200", "team", GATED))
    found = report["pods"]["default/p"]
    assert found["decision"] == decision
    if decision == "hold":
        assert found["reason"] == "QueueNotAllowed"
        assert "Queue <team> is not open to namespace <default>" in found["message"]
        assert [event["reason"] for event in report["events"]] == ["QueueNotAllowed"]
