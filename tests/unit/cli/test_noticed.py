"""`explain` names a card name that is missing or misspelt, with its field, the suggestion and the remedy, as `check` does."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kube import resources
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder
from tests.builders.pods import PodBuilder
from tests.fakes.apiserver import FakeApiServer
from tests.unit.cli.conftest import Run
from tests.unit.cli.live_cluster import forbid_everywhere
from tests.unit.cli.test_cluster import kubeconfig

KNOWN = a_node("n").card("NVIDIA-H200", 8)
UNLABELLED = a_node("n").allocatable("nvidia.com/gpu", 8)
QUEUE = a_queue("q").cards({"NVIDIA-H200": 8})
KEY = "metadata.annotations[volcano.sh/card.name]"
ADD = "add the annotation volcano.sh/card.name to the pod template"
GPU = a_pod("p").gpu(1).in_queue("q")


def a_state(*objects: Any) -> str:
    items = [one if isinstance(one, dict) else one.build() for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.mark.parametrize(
    ("node", "pod", "expected"),
    [
        (KNOWN, GPU, [("CardNameMissing", KEY, "without a card name (such as NVIDIA-H200)", ADD)]),
        (UNLABELLED, GPU, [("CardNameMissing", KEY, "nvidia.com/gpu is asked for without a card name", ADD)]),
        (
            KNOWN,
            GPU.bound_to("n"),
            [("CardNameMissing", KEY, "so no card quota counts it", ADD)],
        ),
        (
            KNOWN,
            GPU.annotation("volcano.sh/card-name", "NVIDIA-H200"),
            [
                ("CardNameMissing", KEY, "without a card name", ADD),
                (
                    "KeyUnread",
                    "metadata.annotations[volcano.sh/card-name]",
                    "did you mean volcano.sh/card.name?",
                    "write it as the message says",
                ),
            ],
        ),
        (
            KNOWN,
            GPU.annotation("volcano.sh/card.card", "NVIDIA-H200"),
            [
                (
                    "CardNameMisspelt",
                    "metadata.annotations[volcano.sh/card.card]",
                    "the card is named by volcano.sh/card.name",
                    "write volcano.sh/card.name",
                ),
                ("CardNameMissing", KEY, "without a card name", ADD),
            ],
        ),
        (
            KNOWN,
            GPU.card("nvidia-h200").gated(),
            [
                (
                    "CardUnknown",
                    KEY,
                    "did you mean NVIDIA-H200?",
                    "check the spelling against `cardquota cards`",
                )
            ],
        ),
        (
            KNOWN,
            a_pod("p").card("NVIDIA-H200").in_queue("q").gated(),
            [("CardResourceMissing", "spec.containers", "nvidia.com/gpu", "")],
        ),
        (KNOWN, GPU.card("NVIDIA-H200").gated(), []),
        (KNOWN, GPU.card("GONE").charged("q").assigned({"GONE": 1}).bound_to("n"), []),
        (KNOWN, GPU.phase("Succeeded"), []),
        (KNOWN, a_pod("p"), []),
    ],
    ids=[
        "missing",
        "missing, and no node shows a card",
        "missing on a pod that runs",
        "a key nearly right",
        "the misprint",
        "a card in small letters",
        "a card without its resource",
        "right",
        "a card that is gone from under a pod that runs",
        "ended",
        "no card at all",
    ],
)
def test_what_is_wrong_with_the_card_name(
    run: Run, node: NodeBuilder, pod: PodBuilder, expected: list[tuple[str, str, str, str]]
) -> None:
    state = a_state(node, QUEUE, pod)
    outcome = run("explain", "ml/p", "--state", "-", "-o", "json", stdin=state)
    found = json.loads(outcome.out).get("noticed", [])
    assert [(one["code"], one["path"]) for one in found] == [one[:2] for one in expected]
    text = " ".join(run("explain", "ml/p", "--state", "-", stdin=state).out.split())
    assert text.count("Noticed") == len(expected)
    for one, (code, path, message, remedy) in zip(found, expected, strict=True):
        assert message in one["message"]
        assert one["remedy"].startswith(remedy)
        assert f"Noticed {code}: {path}: {' '.join(one['message'].split())} -- {one['remedy']}" in text


@pytest.mark.parametrize("node", [KNOWN, UNLABELLED], ids=["known", "unlabelled"])
def test_it_is_said_in_the_words_of_check(run: Run, tmp_path: Path, node: NodeBuilder) -> None:
    manifest, state = tmp_path / "pod.json", tmp_path / "state.json"
    pod = GPU.annotation("volcano.sh/card-name", "NVIDIA-H200")
    manifest.write_text(json.dumps(pod.build()))
    state.write_text(a_state(node, QUEUE, pod))
    checked = json.loads(run("check", "--state", state, "-o", "json", manifest).out)["findings"]
    noticed = json.loads(run("explain", "ml/p", "--state", state, "-o", "json").out)["noticed"]
    assert len(noticed) == 2
    keys = ("code", "path", "message", "remedy")
    assert [[one[key] for key in keys] for one in noticed] == [[one[key] for key in keys] for one in checked]


def test_the_annotation_on_the_workload_instead_of_its_template(run: Run) -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "ml",
            "annotations": {"volcano.sh/card.name": "NVIDIA-H200"},
        },
        "spec": {"replicas": 1, "template": template},
    }
    outcome = run("explain", "deploy/ml/web", "--state", "-", stdin=a_state(KNOWN, QUEUE, deployment))
    text = " ".join(outcome.out.split())
    assert f"Noticed CardNameMissing: {KEY}: nvidia.com/gpu is asked for" in text
    assert f"Noticed KeyUnread: {KEY}: is read on pods only: put it into spec.template.metadata" in text


@pytest.mark.parametrize("tenant", [False, True], ids=["admin", "tenant"])
async def test_of_a_live_cluster_as_well_and_to_one_who_may_not_see_nodes(
    run: Run, tmp_path: Path, tenant: bool
) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }
    async with FakeApiServer() as server:
        server.put(resources.PODS, pod)
        if tenant:
            forbid_everywhere(server, resources.NODES)
        config = kubeconfig(tmp_path, server.url)
        outcome = await asyncio.to_thread(run, "explain", "ml/p", "--kubeconfig", config)
    text = " ".join(outcome.out.split())
    assert f"Noticed CardNameMissing: {KEY}: nvidia.com/gpu is asked for without a card name" in text
