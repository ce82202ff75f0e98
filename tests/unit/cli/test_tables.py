"""`cardquota queues` and `cards` over a state."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run, spawn
from tests.unit.cli.objects import BARE, GATED, NODE, POD, QUEUE

STATE = (
    NODE % ("n1", 8)
    + NODE % ("n2", 4)
    + QUEUE % ("team", '{"NVIDIA-H200": 4, "NVIDIA-A100": 1}')
    + QUEUE % ("empty", "")
    + POD % ("bound", "NVIDIA-H200", "team", "nodeName: n1")
    + (POD % ("lifted", "NVIDIA-H200", "team", "")).replace("name: lifted", "name: lifted\n  uid: u1")
    + POD % ("one", "NVIDIA-H200", "team", GATED)
    + POD % ("two", "NVIDIA-H200", "team", GATED)
    + POD % ("either", "NVIDIA-H200|NVIDIA-A100", "team", GATED)
    + POD % ("lost", "NVIDIA-H200", "nowhere", GATED)
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.yaml"
    path.write_text(STATE)
    return path


def test_queues_shows_each_key_of_each_queue(run: Run, state: Path) -> None:
    outcome = run("queues", "--state", state)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "QUEUE     STATE      KEY                       QUOTA    ALLOCATED   RESERVED   WAITING\n"
        "empty     Open       <none>                    <none>   <none>      <none>     <none>\n"
        "nowhere   NotFound   NVIDIA-H200               <none>   0           0          1\n"
        "team      Open       NVIDIA-A100               1        0           0          0\n"
        "team      Open       NVIDIA-H200               4        1           1          2\n"
        "team      Open       NVIDIA-H200|NVIDIA-A100   <none>   0           0          1\n"
    )


def test_queues_as_json(run: Run, state: Path) -> None:
    report = json.loads(run("queues", "--state", state, "-o", "json").out)
    assert list(report) == ["empty", "nowhere", "team"]
    assert report["nowhere"].pop("attributes") == {}
    assert report["team"].pop("attributes")["request"] == {
        "NVIDIA-H200": "4",
        "NVIDIA-H200|NVIDIA-A100": "1",
    }
    assert report["team"] == {
        "state": "Open",
        "access": {"open": True},
        "quota": {"NVIDIA-A100": "1", "NVIDIA-H200": "4"},
        "allocated": {"NVIDIA-H200": "1"},
        "reserved": {"NVIDIA-H200": "1"},
        "waiting": {"NVIDIA-H200": "2", "NVIDIA-H200|NVIDIA-A100": "1"},
        "share": 0.5,
    }


WIDE = """
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: 10, memory: 4Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team, annotations: {volcano.sh/card.quota: '{"NVIDIA-H200": 4}'}}
spec: {capability: {cpu: 8}, deserved: {cpu: 4}, guarantee: {resource: {cpu: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {scheduling.volcano.sh/queue-name: team}}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}
---
"""


def test_queues_wide_shows_cpu_and_memory_and_all_attributes(run: Run) -> None:
    outcome = run("queues", "--state", "-", "-o", "wide", stdin=NODE % ("n1", 8) + WIDE)
    assert (outcome.status, outcome.err) == (0, "")
    lines = [line.split() for line in outcome.out.splitlines()[1:]]
    assert lines == [
        ["team", "NVIDIA-H200", "4", "4", "4", "8", "0", "0", "0", "0"],
        ["team", "cpu", "8", "2", "4", "10", "500m", "500m", "0", "0"],
        ["team", "memory", "4Gi", "0", "0", "4Gi", "1Gi", "1Gi", "0", "0"],
    ]


def test_a_quota_that_cannot_be_read_is_told(run: Run) -> None:
    outcome = run("queues", "--state", "-", stdin=QUEUE % ("q", '{"A": -1}'))
    assert outcome.status == 0
    assert outcome.err.startswith("warning: queue q has no cards: its quota ")


def test_who_may_use_a_queue_is_shown_and_what_cannot_be_read_is_told(run: Run) -> None:
    queue = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: team
  annotations: {cardquota.io/namespaces: "a, b-*", cardquota.io/namespace-selector: "x in"}
"""
    outcome = run("queues", "--state", "-", "-o", "json", stdin=queue)
    assert json.loads(outcome.out)["team"]["access"] == {
        "open": False,
        "namespaces": "a, b-*",
        "namespaceSelector": "x in",
    }
    assert outcome.err.startswith(
        "warning: queue team: cardquota.io/namespace-selector admits nobody: in and"
    )


def test_cards_adds_up_the_nodes(run: Run, state: Path) -> None:
    outcome = run("cards", "--state", state)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "CARD          RESOURCE         COUNT   NODES\nNVIDIA-H200   nvidia.com/gpu   12      2\n"
    )
    assert json.loads(run("cards", "--state", state, "-o", "json").out) == {
        "NVIDIA-H200": {"resource": "nvidia.com/gpu", "count": 12, "nodes": {"n1": 8, "n2": 4}}
    }


def test_cards_of_the_settings_are_shown_before_any_node_has_one(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "cardquota.yaml"
    config.write_text("cards: {resources: {Ascend910: huawei.com/Ascend910}}\n")
    outcome = run("cards", "--state", "-", "--config", config, stdin=BARE)
    assert outcome.out.splitlines()[1].split() == ["Ascend910", "huawei.com/Ascend910", "0", "0"]


def test_a_node_whose_labels_do_not_add_up_is_told(run: Run) -> None:
    outcome = run("cards", "--state", "-", stdin=NODE % ("n1", 0))
    assert outcome.status == 0
    assert outcome.err.startswith("warning: node n1: labels contradict status.allocatable: NVIDIA-H200 ")


def test_an_accelerator_without_card_is_told_with_its_node_and_resource(run: Run) -> None:
    outcome = run("cards", "--state", "-", stdin=(NODE % ("n1", 8)).replace("gpu.product", "gpu.model"))
    assert outcome.err.startswith("warning: node n1: nvidia.com/gpu is offered and gives no card")
    assert len(outcome.err.splitlines()) == 1
    assert len(outcome.out.splitlines()) == 1


def test_wide_shows_each_node_with_its_own_resource(run: Run) -> None:
    other = (NODE % ("n3", 2)).replace("nvidia.com", "example.com")
    outcome = run("cards", "--state", "-", "-o", "wide", stdin=NODE % ("n1", 8) + other)
    assert outcome.status == 0
    assert outcome.out == (
        "CARD          NODE   RESOURCE          COUNT\n"
        "NVIDIA-H200   n1     nvidia.com/gpu    8\n"
        "NVIDIA-H200   n3     example.com/gpu   2\n"
    )


@pytest.mark.parametrize("form", ["text", "wide", "json"])
def test_a_card_under_different_resources_is_told(run: Run, form: str) -> None:
    other = (NODE % ("n3", 2)).replace("nvidia.com", "example.com")
    outcome = run("cards", "--state", "-", "-o", form, stdin=NODE % ("n1", 8) + other)
    assert outcome.status == 0
    assert outcome.err == (
        "warning: nodes show the card NVIDIA-H200 under different resources: example.com/gpu, nvidia.com/gpu\n"
    )


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("nvidia.com/gpu.memory", "label nvidia.com/gpu.memory is missing, NVIDIA-H200 is not recognised"),
        ("nvidia.com/gpu.product", "no product label is recognised"),
    ],
)
def test_what_discovery_skipped_is_told_with_the_reason(run: Run, label: str, told: str) -> None:
    outcome = run("cards", "--state", "-", stdin=(NODE % ("n1", 8)).replace(label, "x"))
    assert outcome.err == (
        "warning: node n1: nvidia.com/gpu is offered and gives no card, so no card quota counts it: "
        f"{told}; docs/cards.md says what a node has to show\n"
    )
    assert len(outcome.out.splitlines()) == 1


def test_cards_that_claims_may_also_be_made_for_are_told(run: Run) -> None:
    device_class = (
        "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.nvidia.com}\n"
    )
    outcome = run("cards", "--state", "-", stdin=NODE % ("n1", 8) + device_class)
    assert outcome.status == 0
    assert outcome.err == (
        "warning: card NVIDIA-H200 and DeviceClass gpu.nvidia.com may be the same devices; "
        "neither quota counts the other\n"
    )


@pytest.mark.parametrize("command", ["queues", "cards"])
def test_a_cluster_before_anything_is_in_it_is_an_empty_table(run: Run, command: str) -> None:
    outcome = run(command, "--state", "-", stdin=BARE)
    assert (outcome.status, len(outcome.out.splitlines())) == (0, 1)
    assert run(command, "--state", "-", "-o", "json", stdin=BARE).out == "{}\n"


@pytest.mark.parametrize("command", ["queues", "cards"])
def test_a_state_that_cannot_be_read_is_an_error(run: Run, command: str) -> None:
    outcome = run(command, "--state", "-", stdin=b"kind: Pod")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "error: <stdin>:1: apiVersion must be set, for instance to v1",
        "try: correct what stands there; nothing was taken from the file",
    ]


def test_as_a_process() -> None:
    assert spawn("queues", "--state", "-", stdin=STATE.encode()).out.startswith("QUEUE ")
    assert spawn("cards", "--state", "-", stdin=STATE.encode()).out.startswith("CARD ")
