"""`cardquota place`: every node's answer for one pod."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Run, spawn
from tests.unit.cli.objects import CPU_POD, GATED, NODE, POD, SHARE_NODE, SHARE_POD

STATE = (
    NODE % ("cards", 8)
    + SHARE_NODE % ("shares", 200, 32768, 200, 32768)
    + POD % ("card", "NVIDIA-H100|NVIDIA-H200", "team", GATED)
    + SHARE_POD % ("share", 30, 1024)
    + CPU_POD % "cpu"
)


def placed(run: Run, pod: str) -> dict[str, Any]:
    outcome = run("place", pod, "--state", "-", "-o", "json", stdin=STATE)
    assert (outcome.status, outcome.err) == (0, "")
    report: dict[str, Any] = json.loads(outcome.out)
    assert report["pod"] == "default/" + pod.removeprefix("default/")
    nodes: dict[str, Any] = report["nodes"]
    assert sorted(nodes) == ["cards", "shares"]
    return nodes


@pytest.mark.parametrize("name", ["share", "default/share"])
def test_an_mgpu_pod_gets_indexes_and_scores_where_it_fits(run: Run, name: str) -> None:
    nodes = placed(run, name)
    fit = nodes["shares"]
    assert (fit["fits"], fit["reasons"], fit["unresolvable"]) == (True, [], False)
    mgpu = fit["mgpu"]
    assert mgpu["annotations"]["vke.volcengine.com/gpu-index-container-c"] in {"0", "1"}
    assert 0 <= mgpu["score"] <= 100
    assert 0 <= mgpu["combination"] <= 1
    assert mgpu["optimal"] is True
    assert "cards" not in fit


def test_a_node_that_does_not_fit_says_why(run: Run) -> None:
    unfit = placed(run, "share")["cards"]
    assert (unfit["fits"], unfit["unresolvable"]) == (False, True)
    (reason,) = unfit["reasons"]
    assert reason["code"] == "MgpuNodeType"
    assert reason["message"]
    assert "mgpu" not in unfit


def test_a_card_pod_gets_the_first_card_that_the_node_has(run: Run) -> None:
    nodes = placed(run, "card")
    assert nodes["cards"]["cards"]["card"] == "NVIDIA-H200"
    assert "mgpu" not in nodes["cards"]
    assert "cards" not in nodes["shares"]


class TestCards:
    """Twelve on nodes of eight, a card that no node has, a full node: none of them fits."""

    @staticmethod
    def asked(run: Run, card: str, count: int, *others: str) -> dict[str, Any]:
        pod = (POD % ("p", card, "team", GATED)).replace("nvidia.com/gpu: 1", f"nvidia.com/gpu: {count}")
        state = NODE % ("cards", 8) + SHARE_NODE % ("shares", 200, 32768, 200, 32768) + pod + "".join(others)
        report: dict[str, Any] = json.loads(run("place", "p", "--state", "-", "-o", "json", stdin=state).out)
        return report

    def test_as_many_as_the_node_has_fit(self, run: Run) -> None:
        nodes = self.asked(run, "NVIDIA-H200", 8)["nodes"]
        assert nodes["cards"]["fits"]
        (reason,) = nodes["shares"]["reasons"]
        assert (reason["code"], nodes["shares"]["unresolvable"]) == ("CardNotOnNode", True)

    def test_more_than_that_never_do(self, run: Run) -> None:
        node = self.asked(run, "NVIDIA-H200", 9)["nodes"]["cards"]
        assert (node["fits"], node["unresolvable"]) == (False, True)
        assert node["reasons"] == [
            {"code": "CardNoRoom", "message": "8 of 8 nvidia.com/gpu are free, 9 are asked for"}
        ]

    def test_what_others_hold_is_not_free_but_may_be_again(self, run: Run) -> None:
        other = (POD % ("other", "NVIDIA-H200", "team", "nodeName: cards")).replace(": 1}", ": 3}")
        node = self.asked(run, "NVIDIA-H200", 6, other)["nodes"]["cards"]
        assert (node["fits"], node["unresolvable"]) == (False, False)
        assert node["reasons"][0]["message"] == "5 of 8 nvidia.com/gpu are free, 6 are asked for"
        assert self.asked(run, "NVIDIA-H200", 5, other)["nodes"]["cards"]["fits"]

    def test_a_card_that_no_node_has_fits_nowhere_and_the_gate_says_why(self, run: Run) -> None:
        report = self.asked(run, "Q|R", 1)
        assert {node["reasons"][0]["code"] for node in report["nodes"].values()} == {"CardNotOnNode"}
        assert report["gate"]["decision"] == "hold"
        assert report["gate"]["reason"] == "QueueNotFound"

    def test_a_bound_pod_does_not_count_itself(self, run: Run) -> None:
        pod = (POD % ("p", "NVIDIA-H200", "team", "nodeName: cards")).replace(": 1}", ": 8}")
        report = json.loads(
            run("place", "p", "--state", "-", "-o", "json", stdin=NODE % ("cards", 8) + pod).out
        )
        assert report["nodes"]["cards"]["fits"]
        assert "gate" not in report


REFUSED = (
    "Pod default/new would be refused: CardNameMalformed: metadata.annotations[volcano.sh/card.name]: "
    'Invalid value: "A||B": has an empty alternative: | stands between two card names\n'
)


@pytest.mark.parametrize("command", ["place", "explain"])
def test_a_new_pod_that_admission_refuses_is_answered_with_its_words(run: Run, command: str) -> None:
    """And no node is shown for it: it will never exist."""
    state = STATE + POD % ("new", "A||B", "team", "")
    outcome = run(command, "new", "--state", "-", stdin=state)
    assert (outcome.status, outcome.out) == (0, REFUSED)
    report = json.loads(run(command, "new", "--state", "-", "-o", "json", stdin=state).out)
    if command == "place":
        assert report["nodes"] == {}
        assert report["refused"]["reason"] == "CardNameMalformed"
    else:
        assert report["refused"]["default/new"]["reason"] == "CardNameMalformed"
        assert "decision" not in report


def test_pods_of_a_workload_that_are_refused_for_the_same_reason_are_told_once(run: Run) -> None:
    template = {
        "metadata": {"annotations": {"volcano.sh/card.name": "A||B"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }
    spec = {"replicas": 3, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "new"}, "spec": spec}
    outcome = run("explain", "deploy/new", "--state", "-", stdin=STATE + json.dumps(made))
    assert outcome.out == "Deployment default/new: no pods\n" + REFUSED.replace(
        "default/new", "default/new-0 and 2 more pods"
    )


def test_what_does_not_apply_is_left_out(run: Run) -> None:
    for node in placed(run, "cpu").values():
        assert node == {"fits": True, "reasons": [], "unresolvable": False}


def test_text_is_a_table(run: Run) -> None:
    head, empty, *lines = run("place", "share", "--state", "-", stdin=STATE).out.splitlines()
    assert (head, empty) == (
        "Pod default/share waits at the gate of queue default and would be lifted now",
        "",
    )
    scores = ["MGPU", "CROSSQUOTA", "CARDS"]
    assert lines[0].split() == ["NODE", "FITS", "CARD", "GPUS", *scores, "REASON", "MESSAGE"]
    assert lines[1].split()[:8] == ["cards", "no", *["<none>"] * 5, "MgpuNodeType"]
    assert lines[2].split()[:4] == ["shares", "yes", "<none>", "c:"]


@pytest.mark.parametrize("name", ["none", "ml/share", "", "a/b/c", "\x1b[2J"])
def test_a_pod_that_is_not_there_is_an_error(run: Run, name: str) -> None:
    outcome = run("place", name, "--state", "-", "-o", "json", stdin=STATE)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: there is no pod ")
    assert "\x1b" not in outcome.err


def test_as_a_process() -> None:
    outcome = spawn("place", "share", "--state", "-", stdin=STATE.encode())
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines()[2].startswith("NODE ")
