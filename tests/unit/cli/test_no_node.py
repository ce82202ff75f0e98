"""A pod that no node would take, were it empty and open, is told so wherever quota is advised; quota would be in vain."""

import json
from typing import Any

import pytest

from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Run

CARD = "NVIDIA-H200"
SHORT = a_queue("team").cards({CARD: 1})
NODE = a_node("n1").card(CARD, 8).label("zone", "sun").allocatable("cpu", 8)
TAINTED = NODE.tainted("dedicated", "ml")
WAITING = a_pod("p").card(CARD).gpu(2).in_queue("team").gated()
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["moon"]}]}
            ]
        }
    }
}
TOLERATION = [{"key": "dedicated", "operator": "Equal", "value": "ml"}]
NOWHERE = [
    pytest.param(NODE, WAITING.selects("zone", "moon"), "does not admit it", id="selector"),
    pytest.param(NODE, WAITING.put("spec", "affinity", value=AFFINITY), "does not admit it", id="affinity"),
    pytest.param(TAINTED, WAITING, "it has the taint dedicated=ml:NoSchedule", id="taint"),
    pytest.param(NODE, WAITING.request("cpu", 9), "it has not enough cpu", id="cpu"),
]
SOMEWHERE = [
    pytest.param(NODE.cordoned(), WAITING.selects("zone", "sun"), id="cordoned"),
    pytest.param(NODE.not_ready(), WAITING, id="not ready"),
    pytest.param(
        NODE.cordoned().tainted("node.kubernetes.io/unschedulable"), WAITING, id="cordoned, with its taint"
    ),
    pytest.param(TAINTED, WAITING.put("spec", "tolerations", value=TOLERATION), id="tolerated"),
    pytest.param(NODE, WAITING.request("cpu", 8), id="cpu of a whole node"),
]


def reported(run: Run, *objects: Any, command: tuple[str, ...] = ("explain", "ml/p")) -> Any:
    state = json.dumps({"apiVersion": "v1", "kind": "List", "items": [one.build() for one in objects]})
    return json.loads(run(*command, "--state", "-", "-o", "json", stdin=state).out)


@pytest.mark.parametrize(("node", "pod", "why"), NOWHERE)
def test_explain_does_not_advise_quota_for_it(run: Run, node: Any, pod: Any, why: str) -> None:
    report = reported(run, SHORT, node, pod)
    assert report["decision"] == "hold"
    assert report["beyondNodes"].startswith("no node would take it, not even one without pods: node n1: ")
    assert why in report["beyondNodes"]
    assert report["help"] == []
    assert report["remedy"].startswith("make the pod anew so that a node that there is would do")
    assert report["remedy"].endswith("let in now, the pod would find no node")


@pytest.mark.parametrize(("node", "pod", "why"), NOWHERE)
def test_nor_does_advise(run: Run, node: Any, pod: Any, why: str) -> None:
    report = reported(run, SHORT, node, pod, command=("advise", "team"))
    (never,) = report["never"]
    assert why in never["message"]
    assert (report["quota"], report["commands"], report["noNode"]) == ({}, [], [])


@pytest.mark.parametrize(("node", "pod"), SOMEWHERE)
def test_one_that_a_node_would_take_when_it_is_open_is_advised_quota(run: Run, node: Any, pod: Any) -> None:
    report = reported(run, SHORT, node, pod)
    assert "beyondNodes" not in report
    assert any(step["action"] == "raise" for one in report["help"] for step in one["steps"])
    assert reported(run, SHORT, node, pod, command=("advise", "team"))["quota"][CARD]["needed"] == "2"


@pytest.mark.parametrize(("node", "pod"), SOMEWHERE[:3])
def test_who_is_let_in_waits_for_a_closed_node_and_is_not_told_never(run: Run, node: Any, pod: Any) -> None:
    charged = a_pod("p").card(CARD).gpu(1).in_queue("team").charged("team").assigned({CARD: 1})
    report = reported(run, SHORT, node, charged)
    assert report["noRoom"] == "node n1: it is not ready, or takes no pods now"
    assert "beyondNodes" not in report
    assert "remedy" not in report


def test_another_card_is_advised_only_where_a_node_would_take_the_pod(run: Run) -> None:
    """Cards of a node that the pod's selector does not admit are no way out, those of one that it does are."""
    queue, pod = a_queue("team").cards({CARD: 1, "NVIDIA-B200": 4}), WAITING.selects("zone", "moon")
    other = a_node("n2").card("NVIDIA-B200", 8)
    assert reported(run, queue, NODE, other.label("zone", "sun"), pod)["help"] == []
    (remedy,) = reported(run, queue, NODE, other.label("zone", "moon"), pod)["help"]
    assert [(step["action"], step["key"]) for step in remedy["steps"]] == [("card", "NVIDIA-B200")]


@pytest.mark.parametrize("named", [CARD, "NVIDIA-B30|NVIDIA-H30"])
def test_where_no_node_takes_the_pod_with_the_first_other_card_the_next_one_is_advised(
    run: Run, named: str
) -> None:
    """Of another name, and of one that may be meant."""
    queue = a_queue("team").cards({CARD: 1, "NVIDIA-B300": 4, "NVIDIA-H300": 4})
    nodes = [
        a_node("n2").card("NVIDIA-B300", 8).label("zone", "sun"),
        a_node("n3").card("NVIDIA-H300", 8).label("zone", "moon"),
    ]
    pod = a_pod("p").card(named).gpu(2).in_queue("team").gated().selects("zone", "moon")
    found = reported(run, queue, NODE, *nodes, pod)["help"]
    assert {(step["action"], step["key"]) for one in found for step in one["steps"]} == {
        ("card", "NVIDIA-H300")
    }


@pytest.mark.parametrize(("node", "pod", "why"), NOWHERE)
def test_can_run_says_the_same(run: Run, tmp_path: Any, node: Any, pod: Any, why: str) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod.build()), "utf-8")
    report = reported(run, SHORT, node, command=("can-run", str(file)))
    assert report["ever"] is False
    assert why in report["objects"][0]["never"]


@pytest.mark.parametrize(("node", "pod"), SOMEWHERE[:3])
def test_can_run_says_never_of_nothing_that_a_closed_node_would_take(
    run: Run, tmp_path: Any, node: Any, pod: Any
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod.build()), "utf-8")
    report = reported(run, a_queue("team").cards({CARD: 4}), node, command=("can-run", str(file)))
    assert report["verdict"] == "waits"
    assert report["ever"] is True
