"""CrossQuota from the command line: `cross`, `place` and `serve` over a state file."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

import pytest

from tests.unit.cli.conftest import ROOT, Run

STATE = """\
apiVersion: v1
kind: Node
metadata: {name: gpu, annotations: {volcano.sh/crossquota-cpu: "8"}}
status: {allocatable: {cpu: "64", memory: 64Gi, nvidia.com/gpu: "8"}}
---
apiVersion: v1
kind: Node
metadata: {name: cpu}
status: {allocatable: {cpu: "64", memory: 64Gi}}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {tier: %s}}
spec: {nodeName: %s, containers: [{name: c, resources: {requests: {cpu: "%s", memory: %s}}}]}
---
"""
PODS = "".join(
    POD % values
    for values in (
        ("a", "batch", "gpu", "1", "1Gi"),
        ("b", "batch", "gpu", "2500m", "0"),
        ("c", "web", "gpu", "500m", "3Gi"),
        ("d", "batch", "gpu", "1", "0"),
        ("e", "batch", "cpu", "32", "1Gi"),
        ("new", "batch", '""', "4", "1Gi"),
    )
)
CONFIG = """\
gpu-resource-names: nvidia.com/gpu
quota-resources: cpu,memory
quota-percentage.memory: "50"
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "cardquota.yaml"
    file.write_text(CONFIG)
    return str(file)


def test_who_holds_cpu_on_gpu_nodes(run: Run, config: str) -> None:
    outcome = run("cross", "--config", config, "--state", "-", stdin=STATE + PODS)
    assert (outcome.status, outcome.err) == (0, "")
    lines = [line.split(maxsplit=4) for line in outcome.out.splitlines()]
    assert lines == [
        ["NODE", "RESOURCE", "QUOTA", "USED", "LARGEST PODS"],
        ["gpu", "cpu", "8", "5", "default/b 2500m, default/a 1, default/d 1, and 1 more"],
        ["gpu", "memory", "32Gi", "4Gi", "default/c 3Gi, default/a 1Gi"],
    ]


def test_json_names_every_pod(run: Run, config: str) -> None:
    outcome = run("cross", "--config", config, "--state", "-", "-o", "json", stdin=STATE + PODS)
    found = json.loads(outcome.out)["nodes"]["gpu"]["cpu"]
    assert (found["quota"], found["used"]) == ("8", "5")
    assert list(found["pods"].items()) == [
        ("default/b", "2500m"),
        ("default/a", "1"),
        ("default/d", "1"),
        ("default/c", "500m"),
    ]


def test_only_selected_pods_are_counted(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CONFIG + "label-selector: {matchLabels: {tier: web}}\n")
    arguments = ("--config", str(file), "--state", "-", "-o", "json")
    found = json.loads(run("cross", *arguments, stdin=STATE + PODS).out)
    assert found["nodes"]["gpu"]["cpu"]["pods"] == {"default/c": "500m"}
    placed = json.loads(run("place", "new", *arguments, stdin=STATE + PODS).out)
    assert placed["nodes"]["gpu"] == {"fits": True, "reasons": [], "unresolvable": False}


def test_without_patterns_it_says_that_the_feature_is_off(run: Run) -> None:
    outcome = run("cross", "--state", "-", stdin=STATE + PODS)
    assert outcome.status == 0
    assert outcome.err.startswith("warning: CrossQuota is off: ")
    assert len(outcome.out.splitlines()) == 1


def test_place_shows_why_a_gpu_node_is_full(run: Run, config: str) -> None:
    outcome = run("place", "new", "--config", config, "--state", "-", "-o", "json", stdin=STATE + PODS)
    nodes = json.loads(outcome.out)["nodes"]
    assert nodes["cpu"] == {"fits": True, "reasons": [], "unresolvable": False}
    message = "cpu quota exceeded: required 4, used 5, quota 8"
    assert nodes["gpu"] == {
        "fits": False,
        "reasons": [{"code": "CrossQuotaExceeded", "message": message}],
        "unresolvable": False,
        "crossquota": {"score": 0.0},
    }


def test_place_leaves_the_pod_itself_out(run: Run, config: str) -> None:
    outcome = run("place", "b", "--config", config, "--state", "-", "-o", "json", stdin=STATE + PODS)
    node = json.loads(outcome.out)["nodes"]["gpu"]
    assert node["fits"] is True
    assert node["crossquota"]["score"] == 6.25, "2500m beside the 2500m of the others, of 8"


def line_of(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.readline().decode()


def post(url: str, body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def served(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "cli", "serve", "--port", "0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)


def wait_ready(url: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=10):
                return
        except urllib.error.HTTPError as error:
            error.close()
            assert time.monotonic() < deadline, "never ready"
            time.sleep(0.05)


@pytest.mark.parametrize("enabled", [True, False])
def test_serve_answers_schedulers_unless_that_is_switched_off(
    tmp_path: Path, config: str, enabled: bool
) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(STATE + PODS)
    Path(config).write_text(CONFIG + f"features: {{extender: {str(enabled).lower()}}}\n")
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "4"}}}]}}
    with served("--state", str(state), "--config", config) as process:
        try:
            url = line_of(process.stdout).removeprefix("Serving on ").strip()
            wait_ready(url)
            status, answer = post(f"{url}/kube/filter", {"pod": pod, "nodenames": ["gpu", "cpu"]})
            assert status == (200 if enabled else 404)
            if enabled:
                assert answer["NodeNames"] == ["cpu"]
                assert answer["FailedNodes"]["gpu"].startswith("cpu quota exceeded")
                assert post(f"{url}/volcano/queueOverused", {"queue": {"Name": "q"}})[1] == {
                    "overused": False
                }
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=20)[1] == b""
        finally:
            process.kill()
