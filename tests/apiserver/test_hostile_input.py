"""The running processes, asked over HTTPS by somebody who means no good: every answer is an answer, none a crash."""

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from core import names
from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.apiserver.cluster import Object, samples
from tests.apiserver.manifests import binding, card_pod, deployment, queue, share_pod

JSON = "application/json"
MIB = 1024 * 1024
TIMEOUT_S = 30.0

# 1e400 is legal JSON and no number of Python's; digits beyond what an integer may have are legal too.
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\u0000\ud7ff",
    [],
    [None],
    [[]],
    {},
    {"": None},
)
RAW = ("1e400", "-0", "9" * 5000, '"\\ud800"')
PLACE = "@@here@@"

BINDINGS = "/mutate/bindings"
"""What the path of the hook is called; where it is served only the configuration says."""


class Process:
    """One webhook process as the API server reaches it; one kept-alive connection."""

    def __init__(self, url: str, ca: str) -> None:
        address = urlsplit(url)
        self._hook = address.path
        tls = ssl.create_default_context(cadata=base64.b64decode(ca).decode())
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=tls, timeout=TIMEOUT_S
        )

    def post(self, path: str, body: bytes, content_type: str = JSON) -> tuple[int, str]:
        """Status and text of the answer; an answer before the end of the body ends the connection."""
        with suppress(BrokenPipeError, ConnectionResetError):  # the answer may be there all the same
            place = self._hook if path == BINDINGS else path
            self._connection.request("POST", place, body, {"Content-Type": content_type})
        with self._connection.getresponse() as response:
            return response.status, response.read().decode()

    def review(self, path: str, request: Object) -> tuple[int, str]:
        return self.post(path, review(request))

    def close(self) -> None:
        self._connection.close()


def review(request: Object, version: str = "admission.k8s.io/v1") -> bytes:
    return json.dumps({"apiVersion": version, "kind": "AdmissionReview", "request": request}).encode()


def request_for(thing: Object, group: str, version: str, resource: str, subresource: str = "") -> Object:
    """What the API server sends of an object that is created; with both sides for an update."""
    return {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": thing["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "subResource": subresource,
        "operation": "UPDATE" if subresource == "status" else "CREATE",
        "name": "x",
        "namespace": "default",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
        "object": thing,
        "oldObject": thing if subresource == "status" else None,
        "options": {"fieldManager": "x"},
        "dryRun": False,
    }


def a_busy_pod() -> Object:
    """A pod in which everything is used that anything here reads."""
    pod = card_pod("x", "NVIDIA-H200|NVIDIA-H800", "q", nodeSelector={"a": "b"}, schedulerName="volcano")
    pod["metadata"]["annotations"] |= {
        names.MGPU_MULTIPLE_ANNOTATION: "1",
        names.MGPU_POLICY_KEY: "fixed-share",
    }
    pod["metadata"]["labels"] = {"app": "x"}
    pod["spec"]["containers"] += share_pod("y", 30, 1024)["spec"]["containers"]
    pod["spec"]["initContainers"] = share_pod("z", 30, 1024)["spec"]["containers"]
    pod["spec"]["schedulingGates"] = [{"name": "example.com/x"}]
    pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    return pod


def a_busy_queue() -> Object:
    thing = queue("x", '{"NVIDIA-H200": 3}')
    fields = {"manager": "x", "operation": "Update", "fieldsV1": {"f:status": {"f:allocated": {"f:cpu": {}}}}}
    thing["metadata"]["managedFields"] = [fields]
    thing["status"] = {"state": "Open", "allocated": {"cpu": "1", "NVIDIA-H200": "1"}}
    return thing


QUEUES = ("scheduling.volcano.sh", "v1beta1", "queues")
CASES = {
    "/mutate/pods": request_for(a_busy_pod(), "", "v1", "pods"),
    "/validate/pods": request_for(a_busy_pod(), "", "v1", "pods"),
    "/validate/queues": request_for(a_busy_queue(), *QUEUES),
    "/mutate/queue-status": request_for(a_busy_queue(), *QUEUES, "status"),
    "/validate/workloads": request_for(deployment("x", a_busy_pod(), 1), "apps", "v1", "deployments"),
    BINDINGS: request_for(binding("x", "n", uid="u"), "", "v1", "pods", "binding"),
}
"""A good request of each kind, by the path that serves it."""


@pytest.fixture(scope="module")
def processes(control_plane: ControlPlane, installation: Installation) -> Iterator[dict[str, Process]]:
    """The process that serves each path."""
    found: dict[str, Process] = {}
    for kind in ("Mutating", "Validating"):
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations/cardquota-{kind.lower()}"
        for entry in control_plane.api.get(path).expect()["webhooks"]:
            client = entry["clientConfig"]
            path = urlsplit(client["url"]).path
            found[BINDINGS if path.startswith(BINDINGS) else path] = Process(
                client["url"], client["caBundle"]
            )
    yield found
    for process in found.values():
        process.close()


@pytest.fixture(autouse=True)
def nothing_crashed(installation: Installation) -> Iterator[None]:
    """Neither process has answered 500, said anything at level error, or ended."""
    yield
    running = {
        "webhook": installation.webhook_processes[0],
        "controller": installation.controller_processes[0],
    }
    for component, process in running.items():
        assert process.running
        log = process.log.read_text("utf-8")
        assert "Traceback" not in log
        assert '"level":"error"' not in log
        assert samples(installation.metrics(component), "cardquota_admission_requests_total", code="500") == 0


@pytest.mark.parametrize("path", CASES)
def test_wrong_types_at_every_level_are_answered(processes: dict[str, Process], path: str) -> None:
    """Every value of the request is exchanged for each of the wrong ones: an answer with a verdict, or 400 with a place."""
    for position in positions(CASES[path]):
        text = json.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": exchanged(CASES[path], position),
            }
        )
        for value in (*map(json.dumps, WRONG), *RAW):
            body = text.replace(json.dumps(PLACE), value).encode()
            status, answer = processes[path].post(path, body)
            assert status in (200, 400), (position, value, answer)
            if status == 200:
                assert isinstance(json.loads(answer)["response"]["allowed"], bool)
            else:
                assert 0 < len(answer) < 1000, (position, value)


def positions(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside of a JSON value."""
    children: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        children = iter(value.items())
    elif isinstance(value, list):
        children = iter(enumerate(value))
    for key, child in children:
        yield (*before, key)
        yield from positions(child, (*before, key))


def exchanged(value: Any, position: tuple[Any, ...]) -> Any:
    """The value with `PLACE` at a position."""
    if not position:
        return PLACE
    key, *rest = position
    inner = exchanged(value[key], tuple(rest))
    if isinstance(value, dict):
        return {**value, key: inner}
    return [*value[:key], inner, *value[key + 1 :]]


@pytest.mark.parametrize("path", CASES)
def test_bytes_that_are_no_review_are_refused(processes: dict[str, Process], path: str) -> None:
    good = review(CASES[path])
    for end in range(0, len(good), max(1, len(good) // 20)):
        status, text = processes[path].post(path, good[:end])
        assert (status, "\n" in text[:-1]) == (400, False), (end, text)
    assert processes[path].post(path, b"\xff\xfe" + good)[0] == 400
    assert processes[path].post(path, b"[" * 100_000)[0] == 400
    status, text = processes[path].post(path, review(CASES[path], "admission.k8s.io/v2"))
    assert (status, "admission.k8s.io/v2" in text) == (400, True)
    for content_type in ("text/plain", "application/yaml", "application/jsonx", ""):
        assert processes[path].post(path, good, content_type)[0] == 415
    unknown = {**CASES[path], "resource": {"group": "", "version": "v1", "resource": "secrets"}}
    status, text = processes[path].review(path, unknown)
    assert (status, text) == (400, f"{path} does not serve secrets\n")
    assert processes[path].post(path, good)[0] == 200


def test_annotations_of_a_mebibyte_are_judged_and_not_quoted(processes: dict[str, Process]) -> None:
    for key in (names.CARD_NAME_ANNOTATION, names.MGPU_MULTIPLE_ANNOTATION):
        for text in ("A" * MIB, "A|" * (MIB // 2), "1," * (MIB // 2), '"' * MIB):
            pod = share_pod("x", 30, 1024)
            pod["metadata"]["annotations"] = {key: text}
            status, answer = processes["/validate/pods"].review(
                "/validate/pods", request_for(pod, "", "v1", "pods")
            )
            response = json.loads(answer)["response"]
            assert (status, response["allowed"]) == (200, False)
            assert f"metadata.annotations[{key}]" in response["status"]["message"]
            assert len(response["status"]["message"]) < 5000
    for quota in (
        '{"A": ' * (MIB // 6),
        "{" + ",".join(f'"C{n}": {n}' for n in range(60_000)) + "}",
        "9" * MIB,
    ):
        request = request_for(queue("x", quota), *QUEUES)
        status, answer = processes["/validate/queues"].review("/validate/queues", request)
        message = json.loads(answer)["response"].get("status", {}).get("message", "")
        assert status == 200
        assert len(message) < 5000


@pytest.mark.parametrize("path", CASES)
def test_more_than_any_object_can_be_is_not_even_read(
    control_plane: ControlPlane, processes: dict[str, Process], path: str
) -> None:
    """The answer comes before the end of the body, so it has a connection of its own."""
    kind = "validating" if path.startswith("/validate") else "mutating"
    configuration = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/cardquota-{kind}"
    client = next(
        entry["clientConfig"]
        for entry in control_plane.api.get(configuration).expect()["webhooks"]
        if urlsplit(entry["clientConfig"]["url"]).path.startswith(path)
    )
    with closing(Process(client["url"], client["caBundle"])) as process:
        assert process.post(path, b" " * (9 * MIB))[0] == 413
    assert processes[path].review(path, CASES[path])[0] == 200
