"""`cardquota serve`: a real process on a real port."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.unit.cli.conftest import ROOT, Run
from tests.unit.cli.objects import BARE, GATED, NODE, POD, QUEUE, SHARE_NODE, SHARE_POD

STATE = (
    NODE % ("n1", 8)
    + SHARE_NODE % ("s1", 100, 16384, 100, 16384)
    + QUEUE % ("team", '{"NVIDIA-H200": 2}')
    + POD % ("waiting", "NVIDIA-H200", "team", GATED)
    + SHARE_POD.replace("  schedulingGates: [{name: cardquota.io/quota}]\n", "") % ("share", 30, 1024)
)


class Served:
    """A running server and its base URL."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, page: str) -> None:
        self.process = process
        self.url = url
        self.page = page

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def review(self, path: str, **request: Any) -> dict[str, Any]:
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u-1", **request},
        }
        post = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(post, timeout=10) as answer:
            response: dict[str, Any] = json.load(answer)["response"]
        assert response["uid"] == "u-1"
        return response


def line_of(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.readline().decode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state = tmp_path_factory.mktemp("serve") / "state.yaml"
    state.write_text(STATE)
    command = [sys.executable, "-m", "cli", "serve", "--state", str(state), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        try:
            first = line_of(process.stdout)
            assert first.startswith("Serving on http://127.0.0.1:"), first
            second = line_of(process.stdout)
            assert second.startswith("Page: http://127.0.0.1:"), second
            url = first.removeprefix("Serving on ").strip()
            yield Served(process, url, second.removeprefix(f"Page: {url}").strip())
        finally:
            process.kill()


def wait_ready(served: Served) -> None:
    deadline = time.monotonic() + 20
    while served.get("/readyz")[0] != 200:
        assert time.monotonic() < deadline, served.get("/readyz")
        time.sleep(0.05)


def test_it_is_ready_once_the_state_is_loaded(served: Served) -> None:
    wait_ready(served)
    assert served.get("/healthz") == (200, "ok\n")


def test_admission_answers_with_the_state_in_view(served: Served) -> None:
    wait_ready(served)
    pod = {
        "metadata": {"annotations": {"volcano.sh/card.name": "NVIDIA-H200"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }
    kind = {"kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE"}
    assert served.review("/mutate/pods", object=pod, **kind)["patchType"] == "JSONPatch"
    answer = served.review("/validate/pods", object=pod, **kind)
    assert answer["allowed"] is True
    assert 'there is no "default" now' in answer["warnings"][0]
    pod["spec"] = {"containers": [{"name": "c"}]}
    denied = served.review("/validate/pods", object=pod, **kind)
    assert denied["allowed"] is False
    assert "nvidia.com/gpu" in denied["status"]["message"]


def test_a_binding_gets_its_cards(served: Served) -> None:
    wait_ready(served)
    answer = served.review(
        "/mutate/bindings",
        operation="CREATE",
        kind={"group": "", "version": "v1", "kind": "Binding"},
        resource={"group": "", "version": "v1", "resource": "pods"},
        subResource="binding",
        name="share",
        namespace="default",
        object={"metadata": {"name": "share"}, "target": {"kind": "Node", "name": "s1"}},
    )
    assert answer["allowed"] is True
    assert answer["patchType"] == "JSONPatch"


def test_the_status_page_is_where_the_second_line_says_and_nowhere_else(served: Served) -> None:
    status, text = served.get(served.page)
    assert status == 200
    assert "default/waiting" in text
    assert "InsufficientScalarQuota" not in text, "two cards of the quota are free"
    assert served.get("/page/")[0] == served.get("/page")[0] == 404


def test_metrics_are_served(served: Served) -> None:
    wait_ready(served)
    status, text = served.get("/metrics")
    assert status == 200
    assert 'volcano_queue_card_capacity{card="NVIDIA-H200",queue_name="team"} 2.0' in text


def test_unknown_paths_are_404(served: Served) -> None:
    assert served.get("/nonsense")[0] == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(STATE)
    command = [sys.executable, "-m", "cli", "serve", "--state", str(state), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        try:
            line_of(process.stdout)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
            assert (process.returncode, err) == (0, b"")
        finally:
            process.kill()


def test_a_port_in_use_is_an_error_without_traceback(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [
            sys.executable,
            "-m",
            "cli",
            "serve",
            "--state",
            "-",
            "--port",
            str(taken.getsockname()[1]),
        ]
        done = subprocess.run(
            command, input=BARE.encode(), capture_output=True, timeout=60, cwd=ROOT, check=False
        )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr


def test_a_state_that_cannot_be_read_is_told_before_anything_is_served(run: Run) -> None:
    outcome = run("serve", "--state", "-", stdin="3")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines()[0] == "error: <stdin>:1: must be a Kubernetes object"
