"""Which workloads and queues the API server sends to which webhook entry of the chart; the real one decides."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane
from hack.installation.inventory import Inventory
from tests.apiserver.recorder import Recorder, recording
from tests.apiserver.sending import (
    CRONJOBS,
    DELETIONS,
    H200,
    MGPU,
    PODGROUPS,
    QUEUE_HINTS,
    QUEUE_STATUS,
    QUEUES,
    VOLCANO_JOBS,
    WORKLOADS,
    Send,
    sent_to,
)

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


@pytest.fixture(scope="module", autouse=True)
def volcano_jobs(control_plane: ControlPlane) -> None:
    """Volcano's Job is served: the published definition if somebody applied it, else one without a schema. It stays."""
    path = control_plane.api.path_of(VOLCANO_JOB_CRD)
    if control_plane.api.get(path).status == 404:
        Inventory(control_plane.api).apply(VOLCANO_JOB_CRD)


@pytest.fixture(scope="module")
def recorder(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with (
        recording(tmp_path_factory.mktemp("recorder")) as server,
        sent_to(control_plane, server, {}),
    ):
        yield server


@pytest.fixture
def send(control_plane: ControlPlane, recorder: Recorder) -> Send:
    return Send(control_plane, recorder)


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


TEMPLATES: dict[str, tuple[dict[str, Any], bool]] = {
    "cpu": (template(resources={"limits": {"cpu": 1}}), False),
    "other annotations": (template({names.CROSSQUOTA_STRATEGY_ANNOTATION: "least-allocated"}), False),
    "card": (template(H200), True),
    "mgpu": (template(resources={"limits": MGPU}), True),
    "gpu without a name": (template(resources={"limits": {"cpu": 1, "nvidia.com/gpu": 1}}), True),
    "misspelt name": (template({names.CARD_NAME_MISPRINT: "A"}), True),
    "unknown strategy": (template({names.CROSSQUOTA_STRATEGY_ANNOTATION: "random"}), True),
    "a record": (template({names.ASSIGNED_ANNOTATION: "{}"}), True),
}


@pytest.mark.parametrize("kind", WORKLOAD_KINDS)
@pytest.mark.parametrize("case", TEMPLATES)
def test_workload_creation(send: Send, namespace: str, kind: str, case: str) -> None:
    make, entry = WORKLOAD_KINDS[kind]
    pod, sent = TEMPLATES[case]
    assert send.create(make(namespace, pod)) == ([entry] if sent else [])


@pytest.mark.parametrize("case", [case for case, (_, sent) in TEMPLATES.items() if sent])
def test_a_deployment_is_sent_again_only_when_its_template_changed(
    send: Send, namespace: str, case: str
) -> None:
    deployment = WORKLOAD_KINDS["Deployment"][0](namespace, TEMPLATES[case][0])
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


def test_a_podgroup_is_sent_for_its_request_and_not_for_its_state(send: Send, namespace: str) -> None:
    """Without a status subresource, Volcano writes the state of a PodGroup into the object itself."""
    group = workload("scheduling.volcano.sh/v1beta1", "PodGroup", namespace, {"minMember": 1})
    assert send.create(group) == []
    group["metadata"]["annotations"] = {names.CARD_REQUEST_ANNOTATION: '{"NVIDIA-H200": 2}'}
    assert send.create(group) == [PODGROUPS]
    send.store(group)
    assert send.patch(group, {"status": {"phase": "Running"}}) == []
    assert send.patch(group, {"spec": {"minMember": 2}, "metadata": {"labels": {"a": "b"}}}) == []
    changed = {"metadata": {"annotations": {names.CARD_REQUEST_ANNOTATION: '{"NVIDIA-H200": 3}'}}}
    assert send.patch(group, changed) == [PODGROUPS]
    removed = {"metadata": {"annotations": {names.CARD_REQUEST_ANNOTATION: None}}}
    assert send.patch(group, removed) == []


def test_a_large_volcano_job_stays_within_the_cost_budget(send: Send, namespace: str) -> None:
    """Of tasks that concern nobody every container is looked at."""
    limits = {f"r{number}": 1 for number in range(10)}
    containers = [{"name": f"c{number}", "resources": {"limits": limits}} for number in range(20)]
    tasks = [
        {"name": f"t{number}", "template": {"spec": {"containers": containers}}} for number in range(100)
    ]
    job = workload("batch.volcano.sh/v1alpha1", "Job", namespace, {"tasks": tasks})
    assert send.create(job) == []


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
    thing = a_queue(CARD_QUOTA)
    control_plane.api.create(thing).expect(201)
    path = control_plane.api.path_of(thing)
    status = {"status": {"allocated": {"NVIDIA-H200": "4", "cpu": "1"}}}
    control_plane.api.patch(f"{path}/status", status, fieldManager=names.FIELD_MANAGER).expect(200)
    recorder.clear()
    yield thing
    control_plane.api.delete(path).expect()


def a_queue(annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": f"q-{secrets.token_hex(6)}", "annotations": dict(annotations or {})},
        "spec": {"weight": 1, **spec},
    }


CARD_QUOTA = {names.CARD_QUOTA_ANNOTATION: '{"NVIDIA-H200": 8}'}
DEVICES = {"capability": {"gpu.example.com": {"count": 8}}}
DROPPED = {names.LAST_APPLIED_ANNOTATION: '{"spec":{"dra":{}}}'}

NEW_QUEUES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": (a_queue(), []),
    "cpu": (a_queue(capability={"cpu": 8, "nvidia.com/gpu": 8}), []),
    "an empty card quota": (a_queue({names.CARD_QUOTA_ANNOTATION: ""}), [QUEUES]),
    "a card quota": (a_queue({names.CARD_QUOTA_ANNOTATION: "{"}), [QUEUES]),
    "a device quota": (a_queue(dra=DEVICES), [QUEUES]),
    "a device quota as annotation": (a_queue({names.DRA_QUOTA_ANNOTATION: "{"}), [QUEUES]),
    "a device key": (a_queue(capability={"deviceclass/gpu.example.com": 8}), [QUEUES]),
    "a dimension key": (a_queue(capability={"memory.deviceclass/gpu.example.com": "80Gi"}), [QUEUES]),
    "below the root": (a_queue(parent="root"), []),
    "below another": (a_queue(parent="org"), [QUEUE_HINTS]),
    "below another, with a quota": (a_queue(CARD_QUOTA, parent="org"), [QUEUES]),
    "a quota that was dropped": (a_queue(DROPPED), [QUEUE_HINTS]),
}


@pytest.mark.parametrize("case", NEW_QUEUES)
def test_queue_creation(send: Send, case: str) -> None:
    queue, expected = NEW_QUEUES[case]
    assert send.create(queue) == expected


def annotated(annotations: Mapping[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": dict(annotations)}}


CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the weight": ({"spec": {"weight": 2}}, []),
    "the card quota": (annotated({names.CARD_QUOTA_ANNOTATION: '{"NVIDIA-H200": 9}'}), [QUEUES]),
    "no card quota any more": (annotated({names.CARD_QUOTA_ANNOTATION: None}), [QUEUES]),
    "a device quota": ({"spec": {"dra": DEVICES}}, [QUEUES]),
    "a device quota as annotation": (annotated({names.DRA_QUOTA_ANNOTATION: "{"}), [QUEUES]),
    "a device key": ({"spec": {"capability": {"deviceclass/gpu.example.com": 8}}}, [QUEUES]),
    "cpu": ({"spec": {"capability": {"cpu": 8}}}, []),
    "a device that the card quota may be of": (
        {"spec": {"capability": {"nvidia.com/gpu": 8}}},
        [QUEUE_HINTS],
    ),
    "below another": ({"spec": {"parent": "org"}}, [QUEUE_HINTS]),
    "below the root": ({"spec": {"parent": "root"}}, []),
    "a quota that was dropped": (annotated(DROPPED), [QUEUE_HINTS]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_queue_is_sent_again_only_when_its_quota_changed(
    send: Send, queue: dict[str, Any], case: str
) -> None:
    patch, expected = CHANGES[case]
    assert send.patch(queue, patch) == expected


@pytest.mark.parametrize(
    "patch",
    [
        annotated({names.DRA_QUOTA_ANNOTATION: None}),
        {"spec": {"dra": None}},
        {"spec": {"dra": {"capability": {"gpu.example.com": {"count": 7}}}}},
        {"spec": {"capability": {"deviceclass/gpu.example.com": None}}},
        {"spec": {"capability": None}},
    ],
    ids=str,
)
def test_a_queue_is_sent_when_a_device_quota_is_lowered_or_removed(
    control_plane: ControlPlane, send: Send, patch: dict[str, Any]
) -> None:
    capability = {"deviceclass/gpu.example.com": 8}
    thing = a_queue({names.DRA_QUOTA_ANNOTATION: "{}"}, dra=DEVICES, capability=capability)
    send.store(thing)
    assert send.patch(thing, patch) == [QUEUES]
    assert send.patch(thing, {"spec": {"weight": 2}}) == []
    control_plane.api.delete(control_plane.api.path_of(thing)).expect()


def test_a_deletion_is_sent_when_the_queue_is_in_use(
    control_plane: ControlPlane, send: Send, recorder: Recorder, queue: dict[str, Any]
) -> None:
    api, idle = control_plane.api, a_queue(CARD_QUOTA)
    send.store(idle)
    recorder.clear()
    api.delete(api.path_of(idle)).expect()
    api.delete(f"{api.path_of(queue)}?dryRun=All").expect()
    assert recorder.entries_for(queue["metadata"]["name"]) == [DELETIONS]
    assert recorder.entries_for(idle["metadata"]["name"]) == []


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
