"""`can-run` and `advise` where a card comes with a node pool: nodes of other cards are no room for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import NODE, POD, QUEUE

POOLS = {
    "cards": {"pools": {"NVIDIA-H200": {"labels": {"pool": "h200"}, "resource": "nvidia.com/gpu"}}},
}
OTHER = (NODE % ("n1", 8)).replace("NVIDIA-H200", "NVIDIA-A100")
QUEUED = QUEUE % ("team", '{"NVIDIA-H200": 9, "NVIDIA-A100": 9}')
NEW = POD % ("new", "NVIDIA-H200", "team", "")
SHARE = """\
apiVersion: v1
kind: Pod
metadata: {name: s, annotations: {scheduling.volcano.sh/queue-name: team}}
spec:
  containers: [{name: c, resources: {limits: {vke.volcengine.com/mgpu-core: 50, vke.volcengine.com/mgpu-memory: 1024}}}]
"""
NONE_YET = "none has NVIDIA-H200 yet, and its pool brings one"


class Asked:
    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        (folder / "pools.json").write_text(json.dumps(POOLS), "utf-8")

    def __call__(self, *command: str, state: str, manifest: str = NEW) -> tuple[int, Any]:
        """Exit status and report; `FILE` in the command is the manifest."""
        (self._folder / "m.yaml").write_text(manifest, "utf-8")
        given = [str(self._folder / "m.yaml") if word == "FILE" else word for word in command]
        flags = ("--state", "-", "--config", self._folder / "pools.json", "-o", "json")
        outcome = self._run(*given, *flags, stdin=state)
        return outcome.status, json.loads(outcome.out)


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path)


def test_a_pod_whose_pool_has_no_node_yet_has_no_room_on_nodes_of_other_cards(asked: Asked) -> None:
    status, report = asked("can-run", "FILE", state=OTHER + QUEUED)
    (one,) = report["objects"]
    assert (status, one["verdict"], one["nodes"]) == (3, "waits", {})
    assert one["message"] == f"is let in, and no node has room: {NONE_YET}"
    assert report["ever"], "the pool brings a node"


def test_nor_does_advise_say_so(asked: Asked) -> None:
    _, report = asked("advise", "team", "--fits", "FILE", state=OTHER + QUEUED)
    assert [one["message"] for one in report["noNode"]] == [NONE_YET]
    assert report["never"] == []


def test_where_all_nodes_of_the_card_are_full_its_pool_may_bring_another(asked: Asked) -> None:
    full = NODE % ("n2", 1) + POD % ("old", "NVIDIA-H200", "team", "nodeName: n2")
    _, report = asked("can-run", "FILE", state=OTHER + QUEUED + full)
    (one,) = report["objects"]
    assert one["message"].startswith("is let in, and no node has room: node n2: ")
    assert one["message"].endswith("; the pool of NVIDIA-H200 may bring another node")
    assert report["ever"]


def test_a_node_of_the_pool_with_room_is_named(asked: Asked) -> None:
    status, report = asked("can-run", "FILE", state=OTHER + QUEUED + NODE % ("n2", 1))
    assert (status, report["objects"][0]["nodes"]) == (0, {"n2": 1})


def test_a_pool_that_the_pods_own_selector_excludes_brings_nothing(asked: Asked) -> None:
    elsewhere = POD % ("new", "NVIDIA-H200", "team", "nodeSelector: {pool: other}")
    _, report = asked("can-run", "FILE", state=OTHER + QUEUED, manifest=elsewhere)
    assert report["objects"][0]["reason"] == "AffinityExcludesCards"


def test_shares_that_a_pool_may_bring_are_not_told_that_they_can_never_run(run: Run, tmp_path: Path) -> None:
    labels = {"pool": "a10", "vke.node.gpu.schedule": "mgpu"}
    pools = {"A10": {"labels": labels, "resource": "vke.volcengine.com/mgpu-core"}}
    settings = tmp_path / "shares.json"
    settings.write_text(json.dumps({"cards": {"pools": pools}}), "utf-8")
    file = tmp_path / "m.yaml"
    file.write_text(SHARE, "utf-8")
    outcome = run("can-run", file, "--state", "-", "--config", settings, "-o", "json", stdin=OTHER + QUEUED)
    report = json.loads(outcome.out)
    (one,) = report["objects"]
    assert (outcome.status, one["verdict"], report["ever"]) == (3, "waits", True), report
    assert one["message"].endswith("; the pool of A10 may bring another node")
    assert (
        "can never run"
        not in run("can-run", file, "--state", "-", "--config", settings, stdin=OTHER + QUEUED).out
    )
