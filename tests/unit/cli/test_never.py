"""What no node could ever hold is said before anything else, and quota is not advised for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.answers.beyond import Reach
from core.cards.ask import CardAsk
from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE

CLUSTER = NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 2}')
RUNNING = POD % ("one", "NVIDIA-H200", "team", "nodeName: n1")


def pod(name: str, count: int, card: str = "NVIDIA-H200", field: str = GATED) -> str:
    return (POD % (name, card, "team", field)).replace("nvidia.com/gpu: 1", f"nvidia.com/gpu: {count}")


def told(run: Run, state: str, *arguments: object) -> str:
    return run(*arguments, "--state", "-", stdin=state).out


def reported(run: Run, state: str, *arguments: object) -> Any:
    return json.loads(run(*arguments, "--state", "-", "-o", "json", stdin=state).out)


NEVER = "no node has 12 NVIDIA-H200: the largest has 8"


def test_explain_says_it_first_and_advises_what_helps(run: Run) -> None:
    text = told(run, CLUSTER + RUNNING + pod("huge", 12), "explain", "huge")
    assert text.splitlines()[0] == f"Pod default/huge waits in queue team and can never run: {NEVER}"
    assert text.splitlines()[1].startswith("  InsufficientScalarQuota: Queue <team> has insufficient")
    assert text.endswith(
        "\nWhat would help: ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12; "
        "let in now, the pod\n                 would find no node\n"
    )
    assert "annotate queue" not in text
    assert "May start" not in text
    report = reported(run, CLUSTER + RUNNING + pod("huge", 12), "explain", "huge")
    assert report["help"] == []
    assert report["beyondNodes"] == NEVER
    assert report["remedy"].startswith("ask for at most 8 NVIDIA-H200 in one pod")


def test_what_some_node_could_hold_is_not_beyond_them(run: Run) -> None:
    """One that takes no pods now, a choice of which one card would do, a pool that may bring any node."""
    larger = (NODE % ("n2", 16)).replace("status:", "spec: {unschedulable: true}\nstatus:", 1)
    assert "can never run" not in told(run, CLUSTER + larger + pod("p", 12), "explain", "p")
    other = (NODE % ("n2", 16)).replace("NVIDIA-H200", "NVIDIA-A100")
    choice = pod("p", 12, "NVIDIA-H200|NVIDIA-A100")
    assert "can never run" not in told(run, CLUSTER + other + choice, "explain", "p")
    assert "can never run" in told(run, CLUSTER + choice, "explain", "p")


def test_nor_is_what_a_pool_may_bring(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    pool = {"labels": {"pool": "h200"}, "resource": "nvidia.com/gpu"}
    file.write_text(json.dumps({"cards": {"pools": {"NVIDIA-H200": pool}}}), "utf-8")
    text = told(run, CLUSTER + pod("p", 12), "explain", "p", "--config", file)
    assert "raise the quota" in text
    assert "can never run" not in text


def test_another_card_is_advised_only_where_a_node_could_hold_the_pod(run: Run) -> None:
    quota = QUEUE % ("team", '{"NVIDIA-H200": 2, "NVIDIA-A100": 20, "NVIDIA-B200": 20}')
    small = (NODE % ("n2", 8)).replace("NVIDIA-H200", "NVIDIA-A100")
    large = (NODE % ("n3", 16)).replace("NVIDIA-H200", "NVIDIA-B200")
    state = NODE % ("n1", 8) + quota + pod("huge", 12)
    assert reported(run, state + small, "explain", "huge")["help"] == []
    (remedy,) = reported(run, state + small + large, "explain", "huge")["help"]
    assert [(step["action"], step["key"]) for step in remedy["steps"]] == [("card", "NVIDIA-B200")]


def test_a_misspelt_card_is_not_named_rightly_for_a_pod_that_no_node_could_hold_then(run: Run) -> None:
    """Only once the card is right can it be seen that no node has so many."""
    state = CLUSTER + QUEUE % ("wide", '{"NVIDIA-H200": 20}')
    misspelt = pod("p", 12, "NVIDIA-H20O").replace("team", "wide")
    assert reported(run, state + misspelt, "explain", "p")["help"] == []
    fits = pod("p", 8, "NVIDIA-H20O").replace("team", "wide")
    (remedy,) = reported(run, state + fits, "explain", "p")["help"]
    assert [step["key"] for step in remedy["steps"]] == ["NVIDIA-H200"]


def test_place_says_it_first(run: Run) -> None:
    state = CLUSTER + RUNNING + pod("huge", 12)
    assert told(run, state, "place", "huge").splitlines()[0] == f"Pod default/huge can never run: {NEVER}"
    assert reported(run, state, "place", "huge")["beyondNodes"] == NEVER
    assert "beyondNodes" not in reported(run, state + pod("p", 1), "place", "p")


def test_advise_asks_no_quota_for_it(run: Run) -> None:
    state = CLUSTER + RUNNING + pod("huge", 12)
    outcome = run("advise", "team", "--state", "-", stdin=state)
    assert (outcome.status, outcome.out) == (
        3,
        (
            f"1 pod can never run, whatever the quota:\n  default/huge: {NEVER}\n"
            "    -> ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12; let in now, the pod would find no\n"
            "       node\n"
        ),
    )
    report = reported(run, state + pod("w0", 1) + pod("w1", 1), "advise", "team")
    assert [one["pod"] for one in report["never"]] == ["default/huge"]
    assert report["pods"] == 3


def test_can_run_says_it_of_each_object(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(pod("huge", 12, field=""), "utf-8")
    outcome = run("can-run", file, "--state", "-", "-o", "json", stdin=CLUSTER)
    report = json.loads(outcome.out)
    assert (outcome.status, report["ever"]) == (3, False)
    assert report["objects"][0]["never"] == NEVER


@pytest.mark.parametrize("field", ["", "nodeName: n1"])
def test_of_one_that_was_let_in_it_is_said_until_it_has_a_node(run: Run, field: str) -> None:
    stored = pod("p", 12, field=field).replace("name: p", "name: p\n  uid: u1")
    text = told(run, CLUSTER + stored, "explain", "p")
    assert ("can never run" in text) == (not field)


def test_nodes_that_lack_only_a_label_are_named_to_whoever_waits_for_their_card(run: Run) -> None:
    """Were it there they would serve the pod: `cards` alone said so before."""
    short = "".join(
        (NODE % (name, 8)).replace(', nvidia.com/gpu.memory: "143771"', "") for name in ("n1", "n2")
    )
    state = short + QUEUE % ("team", '{"NVIDIA-H200": 2}') + pod("p", 1)
    note = "label nvidia.com/gpu.memory is missing, NVIDIA-H200 is not recognised"
    text = " ".join(told(run, state, "explain", "p").split())
    assert "GetTaskRequestResourceFailed" in text
    assert "Passed over node n1 and 1 more node: nvidia.com/gpu is offered and gives no card" in text
    assert note in text
    (one,) = reported(run, state, "explain", "p")["illLabelled"]
    assert (one["node"], one["nodes"]) == ("n1", 2)
    for node in reported(run, state, "place", "p")["nodes"].values():
        assert note in node["reasons"][0]["message"]
    assert "illLabelled" not in reported(run, CLUSTER + pod("p", 3), "explain", "p")


def test_also_to_one_that_waits_for_quota_of_a_card_that_others_carry(run: Run) -> None:
    short = (NODE % ("n2", 8)).replace('status:\n  allocatable: {nvidia.com/gpu: "8"}\n', "")
    text = told(run, CLUSTER + short + pod("p", 3), "explain", "p")
    assert "Passed over   node n2: labels contradict status.allocatable: NVIDIA-H200 has a label" in text


@pytest.mark.parametrize("command", ["advise", "can-run"])
def test_each_distinct_ask_is_judged_once_however_many_pods_ask_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """And not once for each pod: there may be thousands of both."""
    looked = list[str]()
    found = Reach._of_cards

    def counting(reach: Reach, asked: CardAsk) -> Any:
        looked.append(asked.card)
        return found(reach, asked)

    monkeypatch.setattr(Reach, "_of_cards", counting)
    file = tmp_path / "m.yaml"
    file.write_text("".join(pod(f"h{number}", 12 + number % 2, field="") for number in range(40)), "utf-8")
    asked = (command, file) if command == "can-run" else (command, "team", "--fits", file)
    assert run(*asked, "--state", "-", "-o", "json", stdin=CLUSTER).status == 3
    # Two distinct asks; what `can-run` explains of the first that waits, and each remedy for it, is asked for one pod more.
    assert 0 < len(looked) <= 10
