"""Which requests the API server sends to which webhook entry of the chart, decided by the real API server."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from core import names
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.installation import rendering
from hack.installation.inventory import Inventory
from hack.installation.rendering import of_kind
from tests.apiserver.recorder import Recorder, recording

NAMESPACE = "cardquota-system"
EXEMPT = "exempt-from-quota"
H200 = {names.CARD_NAME_ANNOTATION: "NVIDIA-H200"}
GPU = {"nvidia.com/gpu": 1}
MGPU = {names.MGPU_CORE: 30, names.MGPU_MEMORY: 1024}

GATE, RULES, HINTS = (
    "mutating/pods.cardquota.io",
    "validating/pods.cardquota.io",
    "validating/hints.pods.cardquota.io",
)
PROTECTION = "validating/protection.pods.cardquota.io"
QUEUES, QUEUE_STATUS = "validating/queues.cardquota.io", "mutating/queue-status.cardquota.io"
WORKLOADS, CRONJOBS = "validating/workloads.cardquota.io", "validating/cronjobs.cardquota.io"
VOLCANO_JOBS, BINDINGS = "validating/volcano-jobs.cardquota.io", "mutating/bindings.cardquota.io"

VOLCANO_JOB_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobs.batch.volcano.sh"},
    "spec": {
        "group": "batch.volcano.sh",
        "scope": "Namespaced",
        "names": {"kind": "Job", "plural": "jobs", "singular": "job"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


@contextmanager
def sent_to(plane: ControlPlane, recorder: Recorder, values: Mapping[str, Any]) -> Iterator[None]:
    """The chart's CRDs and webhook configurations, the latter calling the recorder."""
    objects = rendering.render(plane.binary("helm"), {"crds": {"install": True}, **values}, NAMESPACE)
    inventory = Inventory(plane.api)
    try:
        for thing in [*of_kind(objects, "CustomResourceDefinition").values(), VOLCANO_JOB_CRD]:
            inventory.apply(thing)
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            for configuration in of_kind(objects, kind).values():
                inventory.apply(recorder.redirected(configuration))
        probe = a_pod("default", annotations=H200)

        def called() -> bool:
            plane.api.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", probe).expect(201)
            return recorder.entries_for(probe["metadata"]["name"])[-2:] == [GATE, RULES]

        wait_for("the API server calls the webhooks", called)
        yield
    finally:
        inventory.remove()


@pytest.fixture(scope="module")
def recorder(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    values = {"webhook": {"exemptNamespaces": [EXEMPT]}}
    with (
        recording(tmp_path_factory.mktemp("recorder")) as server,
        sent_to(control_plane, server, values),
    ):
        yield server


def a_pod(
    namespace: str,
    *,
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, int] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"limits": dict(limits or {})}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p-{secrets.token_hex(6)}",
            "namespace": namespace,
            "annotations": dict(annotations or {}),
        },
        "spec": {"schedulerName": "nobody", "containers": [container], **spec},
    }


class Send:
    """Sends a dry run and says which entries were called for it."""

    def __init__(self, plane: ControlPlane, recorder: Recorder) -> None:
        self._api = plane.api
        self._recorder = recorder

    def create(self, thing: Mapping[str, Any], *statuses: int) -> list[str]:
        path = self._api.path_of(thing, collection=True)
        return self._sent(thing, self._api.request("POST", f"{path}?dryRun=All", thing), statuses or (201,))

    def patch(
        self, thing: Mapping[str, Any], patch: Any, subresource: str = "", *, manager: str = "somebody"
    ) -> list[str]:
        path = self._api.path_of(thing, subresource=subresource)
        return self._sent(thing, self._api.patch(path, patch, dryRun="All", fieldManager=manager), (200,))

    def bind(self, thing: Mapping[str, Any], path: str, node: str) -> list[str]:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": thing["metadata"]["name"], "namespace": thing["metadata"]["namespace"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self._sent(thing, self._api.request("POST", f"{path}?dryRun=All", binding), (201,))

    def store(self, thing: Mapping[str, Any]) -> None:
        """Create for good; the requests are forgotten."""
        self._api.create(thing).expect(201)
        self._recorder.clear()

    def _sent(self, thing: Mapping[str, Any], answer: Answer, statuses: tuple[int, ...]) -> list[str]:
        answer.expect(*statuses)
        sent = self._recorder.entries_for(thing["metadata"]["name"])
        self._recorder.clear()
        return sent


@pytest.fixture
def send(control_plane: ControlPlane, recorder: Recorder) -> Send:
    return Send(control_plane, recorder)


# -- pods ----------------------------------------------------------------------------------------------------------

INIT = {"name": "i", "image": "none", "resources": {"limits": MGPU}}
MAIN = {"name": "c", "image": "none"}
NODE_NAMES: dict[str, Any] = {"nodeName": "some-node"}
MIRROR = {names.MIRROR_POD_ANNOTATION: "x"}
CLAIM = [{"name": "dev", "resourceClaimTemplateName": "t"}]

PODS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cpu only": ({"limits": {"cpu": 1}}, []),
    "no limits, no annotations": ({}, []),
    "a card": ({"annotations": H200, "limits": GPU}, [GATE, RULES]),
    "alternatives": ({"annotations": {names.CARD_NAME_ANNOTATION: "A|B"}, "limits": GPU}, [GATE, RULES]),
    "a card without its resource": ({"annotations": H200}, [GATE, RULES]),
    "an empty card name": ({"annotations": {names.CARD_NAME_ANNOTATION: ""}}, [GATE, RULES]),
    "mgpu": ({"limits": MGPU}, [GATE, RULES]),
    "mgpu core alone": ({"limits": {names.MGPU_CORE: 100}}, [GATE, RULES]),
    "mgpu in an init container": ({"initContainers": [INIT]}, [GATE, RULES]),
    "card counts": ({"annotations": {names.MGPU_MULTIPLE_ANNOTATION: "2"}}, [GATE, RULES]),
    "claims": ({"resourceClaims": CLAIM}, [GATE, RULES]),
    "a card, bound by its creator": ({"annotations": H200, **NODE_NAMES}, [RULES]),
    "claims, bound by its creator": ({"resourceClaims": CLAIM, **NODE_NAMES}, [RULES]),
    "a mirror pod": ({"annotations": {**H200, **MIRROR}, **NODE_NAMES}, [RULES]),
    "cpu, bound by its creator": (NODE_NAMES, []),
    "another scheduler": ({"annotations": H200, "schedulerName": "other"}, [GATE, RULES]),
    "a gpu without a name": ({"limits": GPU}, [HINTS]),
    "a mig slice without a name": ({"limits": {"nvidia.com/mig-1g.10gb": 1}}, [HINTS]),
    "a misspelt name": ({"annotations": {names.CARD_NAME_MISPRINT: "A"}}, [HINTS]),
    "another vendor": ({"limits": {"amd.com/gpu": 1}}, []),
    "a queue name": ({"annotations": {names.QUEUE_NAME_ANNOTATION: "q"}}, []),
}


@pytest.mark.parametrize("case", PODS)
def test_pod_creation(send: Send, namespace: str, case: str) -> None:
    arguments, expected = PODS[case]
    assert send.create(a_pod(namespace, **arguments)) == expected


def test_a_request_without_limit_is_seen_before_the_api_server_refuses_it(send: Send, namespace: str) -> None:
    container = {"name": "c", "image": "none", "resources": {"requests": MGPU}}
    assert send.create(a_pod(namespace, containers=[container]), 422) == [GATE]


def test_many_containers_and_annotations_stay_within_the_cost_budget(send: Send, namespace: str) -> None:
    amounts = {f"example.com/r{number}": 1 for number in range(20)}
    containers = [
        {"name": f"c{number}", "image": "none", "resources": {"limits": amounts, "requests": amounts}}
        for number in range(500)
    ]
    annotations = {f"example.com/a{number}": "" for number in range(5000)}
    assert send.create(a_pod(namespace, containers=containers, annotations=annotations)) == []


@pytest.mark.parametrize("broken", [{"containers": None}, {"containers": [{"name": "c", "resources": None}]}])
def test_what_is_null_shows_no_expression_to_the_user(
    control_plane: ControlPlane, recorder: Recorder, namespace: str, broken: dict[str, Any]
) -> None:
    pod = a_pod(namespace)
    pod["spec"].update(broken)
    path = control_plane.api.path_of(pod, collection=True)
    answer = control_plane.api.request("POST", f"{path}?dryRun=All", pod)
    assert answer.status == 422, answer.body["message"]
    assert answer.body["message"].startswith("Pod ")


def test_null_annotations_are_no_annotations(send: Send, namespace: str) -> None:
    pod = a_pod(namespace, limits={"cpu": 1})
    pod["metadata"]["annotations"] = None
    assert send.create(pod) == []


@pytest.mark.parametrize("exempt", ["kube-system", "kube-node-lease", NAMESPACE, "volcano-system", EXEMPT])
def test_some_namespaces_are_left_alone(control_plane: ControlPlane, send: Send, exempt: str) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": exempt}}
    inventory = Inventory(control_plane.api)
    inventory.apply(space)
    account = f"/api/v1/namespaces/{exempt}/serviceaccounts/default"
    try:
        wait_for("pods can be created", lambda: control_plane.api.get(account).status == 200)
        assert send.create(a_pod(exempt, annotations=H200)) == []
    finally:
        inventory.remove()


GATED: dict[str, Any] = {"schedulingGates": [{"name": names.GATE}]}
RENAMED = {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: "NVIDIA-H100"}}}


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        (GATED, RENAMED, [RULES]),
        (GATED, {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: None}}}, []),
        (GATED, {"metadata": {"labels": {"a": "b"}}}, []),
        ({}, RENAMED, []),
    ],
    ids=["card changed while gated", "card removed while gated", "label changed", "card changed afterwards"],
)
def test_pod_update(
    send: Send, namespace: str, spec: dict[str, Any], patch: Any, expected: list[str]
) -> None:
    pod = a_pod(namespace, annotations=H200, **spec)
    send.store(pod)
    assert send.patch(pod, patch) == expected
    assert send.patch(pod, patch, "status") == []


# -- workloads -----------------------------------------------------------------------------------------------------


def template(annotations: Mapping[str, str] | None = None, **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a"}, "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "c", "image": "none", **container}]},
    }


def workload(api_version: str, kind: str, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": f"w-{secrets.token_hex(6)}", "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": dict(spec)}


SELECTOR = {"selector": {"matchLabels": {"app": "a"}}}


def job_template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}


Make = Callable[[str, dict[str, Any]], dict[str, Any]]
WORKLOAD_KINDS: dict[str, tuple[Make, str]] = {
    "Deployment": (
        lambda ns, pod: workload("apps/v1", "Deployment", ns, {**SELECTOR, "template": pod}),
        WORKLOADS,
    ),
    "ReplicaSet": (
        lambda ns, pod: workload("apps/v1", "ReplicaSet", ns, {**SELECTOR, "template": pod}),
        WORKLOADS,
    ),
    "StatefulSet": (
        lambda ns, pod: workload(
            "apps/v1", "StatefulSet", ns, {**SELECTOR, "serviceName": "s", "template": pod}
        ),
        WORKLOADS,
    ),
    "DaemonSet": (
        lambda ns, pod: workload("apps/v1", "DaemonSet", ns, {**SELECTOR, "template": pod}),
        WORKLOADS,
    ),
    "Job": (lambda ns, pod: workload("batch/v1", "Job", ns, job_template(pod)), WORKLOADS),
    "CronJob": (
        lambda ns, pod: workload(
            "batch/v1", "CronJob", ns, {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job_template(pod)}}
        ),
        CRONJOBS,
    ),
    "Volcano Job": (
        lambda ns, pod: workload(
            "batch.volcano.sh/v1alpha1", "Job", ns, {"tasks": [{"name": "a"}, {"name": "b", "template": pod}]}
        ),
        VOLCANO_JOBS,
    ),
}


@pytest.mark.parametrize("kind", WORKLOAD_KINDS)
@pytest.mark.parametrize(
    ("pod", "asks"),
    [
        (template(), False),
        (template(resources={"limits": {"cpu": 1, "nvidia.com/gpu": 1}}), False),
        (template(H200), True),
        (template(resources={"limits": MGPU}), True),
    ],
    ids=["cpu", "gpu without a name", "card", "mgpu"],
)
def test_workload_creation(send: Send, namespace: str, kind: str, pod: dict[str, Any], asks: bool) -> None:
    make, entry = WORKLOAD_KINDS[kind]
    assert send.create(make(namespace, pod)) == ([entry] if asks else [])


def test_a_deployment_is_sent_again_only_when_its_template_changed(send: Send, namespace: str) -> None:
    deployment = WORKLOAD_KINDS["Deployment"][0](namespace, template(H200))
    deployment["spec"]["replicas"] = 0
    send.store(deployment)
    assert send.patch(deployment, {"spec": {"replicas": 3}}) == []
    assert send.patch(deployment, {"spec": {"replicas": 3}}, "scale") == []
    assert send.patch(deployment, {"metadata": {"annotations": {"a": "b"}}}) == []
    metadata = {"annotations": {names.CARD_NAME_ANNOTATION: "NVIDIA-H100"}}
    assert send.patch(deployment, {"spec": {"template": {"metadata": metadata}}}) == [WORKLOADS]


def test_a_volcano_job_is_sent_for_its_request_as_well(send: Send, namespace: str) -> None:
    job = workload("batch.volcano.sh/v1alpha1", "Job", namespace, {"minAvailable": 1})
    job["metadata"]["annotations"] = {names.CARD_REQUEST_ANNOTATION: '{"NVIDIA-H200": 2}'}
    assert send.create(job) == [VOLCANO_JOBS]
    send.store(job)
    assert send.patch(job, {"spec": {"minAvailable": 2}}) == []
    changed = {"metadata": {"annotations": {names.CARD_REQUEST_ANNOTATION: '{"NVIDIA-H200": 3}'}}}
    assert send.patch(job, changed) == [VOLCANO_JOBS]
    assert send.patch(job, {"status": {"state": {"phase": "Running"}}}, "status") == []


@pytest.mark.parametrize("spec", [{}, {"tasks": None}, {"tasks": [{"template": None}]}, {"tasks": [{}]}])
def test_half_written_volcano_jobs_are_no_error(send: Send, namespace: str, spec: dict[str, Any]) -> None:
    assert send.create(workload("batch.volcano.sh/v1alpha1", "Job", namespace, spec)) == []


def test_a_large_template_stays_within_the_cost_budget(send: Send, namespace: str) -> None:
    pod = template(H200)
    pod["spec"]["containers"] = [
        {"name": f"c{number}", "image": "none", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
        for number in range(300)
    ]
    deployment = WORKLOAD_KINDS["Deployment"][0](namespace, pod)
    deployment["spec"]["replicas"] = 0
    assert send.create(deployment) == [WORKLOADS]
    send.store(deployment)
    assert send.patch(deployment, {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}) == [WORKLOADS]


# -- queues --------------------------------------------------------------------------------------------------------


@pytest.fixture
def queue(control_plane: ControlPlane, recorder: Recorder) -> Iterator[dict[str, Any]]:
    """A stored queue with a card quota of which a part is allocated."""
    thing = a_queue({names.CARD_QUOTA_ANNOTATION: '{"NVIDIA-H200": 8}'})
    control_plane.api.create(thing).expect(201)
    path = control_plane.api.path_of(thing)
    status = {"status": {"allocated": {"NVIDIA-H200": "4", "cpu": "1"}}}
    control_plane.api.patch(f"{path}/status", status, fieldManager=names.FIELD_MANAGER).expect(200)
    recorder.clear()
    yield thing
    control_plane.api.delete(path).expect()


def a_queue(annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": f"q-{secrets.token_hex(6)}", "annotations": dict(annotations or {})},
        "spec": {"weight": 1},
    }


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, []), ({names.CARD_QUOTA_ANNOTATION: ""}, []), ({names.CARD_QUOTA_ANNOTATION: "{"}, [QUEUES])],
    ids=["none", "empty", "a quota"],
)
def test_queue_creation(send: Send, annotations: dict[str, str], expected: list[str]) -> None:
    assert send.create(a_queue(annotations)) == expected


def test_a_queue_is_sent_again_only_when_its_quota_changed(send: Send, queue: dict[str, Any]) -> None:
    def quota(text: str | None) -> dict[str, Any]:
        return {"metadata": {"annotations": {names.CARD_QUOTA_ANNOTATION: text}}}

    assert send.patch(queue, {"spec": {"weight": 2}}) == []
    assert send.patch(queue, quota('{"NVIDIA-H200": 9}')) == [QUEUES]
    assert send.patch(queue, quota(None)) == []


def test_a_status_is_sent_when_somebody_else_drops_a_key(send: Send, queue: dict[str, Any]) -> None:
    dropped = {"status": {"allocated": {"NVIDIA-H200": None}}}
    assert send.patch(queue, dropped, "status", manager="vc-scheduler") == [QUEUE_STATUS]
    assert send.patch(queue, {"status": {"allocated": None}}, "status") == [QUEUE_STATUS]
    assert send.patch(queue, {"status": None}, "status") == [QUEUE_STATUS]


def test_a_status_that_keeps_all_keys_is_not_sent(send: Send, queue: dict[str, Any]) -> None:
    kept = {"status": {"state": "Closed", "allocated": {"cpu": "7", "memory": "1"}}}
    assert send.patch(queue, kept, "status") == []


def test_our_own_status_writes_are_not_sent(send: Send, queue: dict[str, Any]) -> None:
    dropped = {"status": {"allocated": {"NVIDIA-H200": None}}}
    assert send.patch(queue, dropped, "status", manager=names.FIELD_MANAGER) == []


# -- bindings ------------------------------------------------------------------------------------------------------


def test_both_ways_to_bind_are_sent(send: Send, namespace: str) -> None:
    pod = a_pod(namespace)
    send.store(pod)
    base = f"/api/v1/namespaces/{namespace}"
    assert send.bind(pod, f"{base}/pods/{pod['metadata']['name']}/binding", "n") == [BINDINGS]
    assert send.bind(pod, f"{base}/bindings", "n") == [BINDINGS]


# -- without policies ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protecting(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Last of the module: the chart with its policies off."""
    with (
        recording(tmp_path_factory.mktemp("protecting")) as server,
        sent_to(control_plane, server, {"policies": {"enabled": False}}),
    ):
        yield Send(control_plane, server)


def test_without_policies_protected_changes_are_sent(protecting: Send, namespace: str) -> None:
    pod = a_pod(namespace, annotations=H200, **GATED)
    protecting.store(pod)
    assert protecting.patch(pod, {"spec": {"schedulingGates": None}}) == [PROTECTION]
    assert protecting.patch(pod, {"metadata": {"labels": {names.MANAGED_LABEL: "x"}}}) == [PROTECTION]
    for key in (names.ASSIGNED_ANNOTATION, names.ASSUMED_ANNOTATION, names.QUEUE_NAME_ANNOTATION):
        edit = {"metadata": {"annotations": {key: "x"}}}
        assert protecting.patch(pod, edit) == [PROTECTION]
        assert protecting.patch(pod, edit, "status") == [PROTECTION]
    assert protecting.patch(pod, RENAMED) == [RULES, PROTECTION]
    assert protecting.patch(pod, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}) == []
    condition = {"type": "example.com/Seen", "status": "True"}
    assert protecting.patch(pod, {"status": {"conditions": [condition]}}, "status") == []


def test_without_policies_pods_that_bring_records_are_sent(protecting: Send, namespace: str) -> None:
    assert protecting.create(a_pod(namespace, annotations={names.ASSUMED_ANNOTATION: "true"})) == [PROTECTION]
    assert protecting.create(a_pod(namespace, limits={"cpu": 1})) == []
