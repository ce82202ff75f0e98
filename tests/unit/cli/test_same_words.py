"""What `check` says of a manifest and what the webhook would say of it are the same."""

import json
from pathlib import Path

from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Run


def test_a_missing_default_queue_is_told_in_the_words_of_the_webhook(run: Run, tmp_path: Path) -> None:
    """Of a pod that names no queue, with and without the queue that would serve it."""
    state, manifest = tmp_path / "state.yaml", tmp_path / "pod.json"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
    node = a_node("n").card("NVIDIA-H200", 8).build()
    pod = a_pod("p").gpu(1).card("NVIDIA-H200").build()
    manifest.write_text(json.dumps(pod))
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "ml",
            "operation": "CREATE",
            "userInfo": {"username": "jane"},
            "object": pod,
        },
    }
    for queues, expected in (([], 1), ([a_queue("default").cards({"NVIDIA-H200": 8}).build()], 0)):
        state.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, node, *queues]})
        )
        checked = json.loads(run("check", "--state", state, "-o", "json", manifest).out)["findings"]
        answer = json.loads(run("review", "--state", state, stdin=json.dumps(review)).out)
        told = [f"{finding['path']}: {finding['message']}" for finding in checked]
        assert told == answer["response"].get("warnings", [])
        assert [finding["code"] for finding in checked] == ["QueueNotFound"] * expected
        assert all('there is no "default" now' in text for text in told)
