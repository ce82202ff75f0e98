"""A pod that asks for an accelerator and names no card, where the nodes show none: told alike by everybody who judges it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder
from tests.unit.cli.conftest import Run

PATH = "metadata.annotations[volcano.sh/card.name]"
TEXT = "nvidia.com/gpu is asked for without a card name"
UNLABELLED = a_node("n").allocatable("nvidia.com/gpu", 8)
KNOWN = a_node("n").card("NVIDIA-H200", 8)
CPU = a_node("n")


def a_review(pod: dict[str, Any]) -> str:
    request = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "ml",
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@pytest.mark.parametrize(
    ("node", "such_as"),
    [(UNLABELLED, ""), (CPU, ""), (KNOWN, " (such as NVIDIA-H200)")],
    ids=["unlabelled", "no accelerator", "known"],
)
@pytest.mark.parametrize("policy", ["warn", "ignore", "deny", "infer"])
def test_webhook_check_and_can_run_say_the_same(
    run: Run, tmp_path: Path, node: NodeBuilder, such_as: str, policy: str
) -> None:
    """A guess by the name alone refuses nothing; where a card is inferred, a pod without a known one is not."""
    state, manifest, settings = (tmp_path / name for name in ("state.json", "pod.json", "cardquota.yaml"))
    items = [node.build(), a_queue("default").cards({"NVIDIA-H200": 8}).build()]
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    pod = a_pod("p").gpu(1).build()
    manifest.write_text(json.dumps(pod))
    settings.write_text(f"cards: {{podsWithoutCardName: {policy}}}")
    common = ("--state", state, "--config", settings)
    checked = json.loads(run("check", *common, "-o", "json", manifest).out)["findings"]
    answer = json.loads(run("review", *common, stdin=a_review(pod)).out)["response"]
    judged = run("can-run", *common, manifest)
    if policy == "ignore" or (policy == "infer" and such_as):
        assert (checked, answer.get("warnings", []), judged.err) == ([], [], "")
        return
    (finding,) = checked
    assert (finding["code"], finding["path"]) == ("CardNameMissing", PATH)
    refused = policy == "deny" and bool(such_as)
    assert (finding["severity"], answer["allowed"]) == ("error" if refused else "warning", not refused)
    if refused:
        assert TEXT + such_as in answer["status"]["message"]
        assert judged.status == 1
        assert TEXT + such_as in " ".join(judged.out.split())
        return
    told = f"{PATH}: {TEXT}{such_as}, so no card quota counts it"
    assert f"{finding['path']}: {finding['message']}" == told
    assert answer["warnings"] == [told]
    assert [line for line in judged.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: {manifest}:1: {told}"
    ]


def test_without_a_state_the_name_of_the_resource_has_to_do(run: Run, tmp_path: Path) -> None:
    """Resources of accelerators alone; where a card is to be inferred nobody can tell without nodes."""
    settings = tmp_path / "cardquota.yaml"
    for resource, policy, expected in (
        ("nvidia.com/gpu", "warn", ["CardNameMissing"]),
        ("huawei.com/Ascend910", "warn", ["CardNameMissing"]),
        ("nvidia.com/gpu", "infer", []),
        ("rdma/hca", "warn", []),
        ("vke.volcengine.com/mgpu-core", "warn", []),
        ("deviceclass.resource.kubernetes.io/gpu", "warn", []),
    ):
        pod = json.dumps(a_pod("p").limit(resource, 1).build())
        settings.write_text(f"cards: {{podsWithoutCardName: {policy}}}")
        found = json.loads(run("check", "-", "--config", settings, "-o", "json", stdin=pod).out)["findings"]
        assert [one["code"] for one in found if one["code"] == "CardNameMissing"] == expected, resource


def test_what_a_device_class_serves_is_no_card_without_a_name(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    served = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": "nvidia.com/gpu"},
    }
    for classes, expected in (([], 1), ([served], 0)):
        state.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [UNLABELLED.build(), *classes]})
        )
        pod = json.dumps(a_pod("p").gpu(1).build())
        found = json.loads(run("check", "--state", state, "-", "-o", "json", stdin=pod).out)["findings"]
        assert [one["code"] for one in found].count("CardNameMissing") == expected
