"""What holds for every object, however odd."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.admission.dispatch import RULES
from core.admission.request import Add, AdmissionRequest
from core.objects import pod as pods
from core.objects import queue
from tests.unit.core.admission.samples import a_queue, a_view, answer, creation, patched, update, with_fields

VIEW = replace(
    a_view(),
    queues={"team-a": queue.project(a_queue('{"NVIDIA-H200": 1}')), "n1": queue.project(a_queue("{"))},
    namespaces={},
)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
KEYS = [
    "metadata", "spec", "status", "annotations", "labels", "name", "template", "jobTemplate", "tasks", "containers",
    "initContainers", "resources", "limits", "requests", "schedulingGates", "resourceClaims", "nodeName",
    "schedulerName", "allocated", "managedFields", "fieldsV1", "f:status", "f:allocated", "restartPolicy",
    names.CARD_NAME_ANNOTATION, names.CARD_QUOTA_ANNOTATION, names.CARD_REQUEST_ANNOTATION, names.MGPU_CORE,
    names.MGPU_MEMORY, names.MGPU_MULTIPLE_ANNOTATION, names.ASSUMED_ANNOTATION, names.ASSIGNED_ANNOTATION,
    names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION, names.GROUP_NAME_ANNOTATION, "queue", "replicas",
    "ownerReferences", "controller", "namespace",
]  # fmt: skip
TEXTS = [
    "NVIDIA-H200",
    "A|B",
    "A|",
    '{"A": 1}',
    "{",
    "1,2",
    "0",
    "50",
    "256",
    "1Gi",
    "n1",
    "volcano",
    names.GATE,
    "team-a",
]

odd_json: st.SearchStrategy[Any] = st.recursive(
    scalars | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=40,
)
odd_objects = st.dictionaries(st.sampled_from(KEYS), odd_json, max_size=5)

annotation_texts = st.sampled_from(TEXTS) | st.text(max_size=12)
resource_lists = st.dictionaries(
    st.sampled_from([names.MGPU_CORE, names.MGPU_MEMORY, "nvidia.com/gpu", "nvidia.com/gpu.shared", "cpu"]),
    st.sampled_from(["0", "1", "50", "100", "256", "1024", "1Gi", "x", "-1", 1.5]),
    max_size=3,
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.text(max_size=50)},
        optional={
            "resources": st.none()
            | st.fixed_dictionaries({}, optional={"limits": resource_lists, "requests": resource_lists}),
            "restartPolicy": st.sampled_from(["Always", ""]),
        },
    ),
    max_size=3,
)
likely_pods = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("p")},
            optional={
                "annotations": st.none()
                | st.dictionaries(
                    st.sampled_from([key for key in KEYS if "/" in key]), annotation_texts, max_size=4
                ),
                "labels": st.none()
                | st.dictionaries(
                    st.sampled_from(["app", names.MANAGED_LABEL]), annotation_texts, max_size=2
                ),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": containers},
            optional={
                "initContainers": containers | st.none(),
                "schedulingGates": st.none()
                | st.lists(st.sampled_from([{"name": names.GATE}, {"name": "x"}]), max_size=3),
                "schedulerName": st.sampled_from(["", "volcano", "default-scheduler", "other"]),
                "nodeName": st.sampled_from(["", "n1"]),
                "resourceClaims": st.lists(st.just({"name": "c"}), max_size=2),
            },
        ),
    }
)


@given(likely_pods)
def test_the_patch_applies_and_asking_again_adds_nothing(pod: dict[str, Any]) -> None:
    """Reinvocation, and a second webhook round, must come to rest at once."""
    decision = answer(creation(pod), VIEW)
    result = patched(pod, decision.patch)
    again = answer(creation(result), VIEW)
    assert again.patch == ()
    assert again.allowed == decision.allowed
    before = (pod["spec"].get("schedulingGates") or []).count({"name": names.GATE})
    after = (result["spec"].get("schedulingGates") or []).count({"name": names.GATE})
    added = any(operation.path[:2] == ("spec", "schedulingGates") for operation in decision.patch)
    assert after == before + added
    assert not (before and added)


@given(likely_pods)
def test_what_is_gated_is_what_the_controller_will_lift(pod: dict[str, Any]) -> None:
    """Every pod that gets the gate asks for something that is counted, as far as the pod itself shows it."""
    decision = answer(creation(pod), VIEW)
    gate_added = any(operation.path[:2] == ("spec", "schedulingGates") for operation in decision.patch)
    if gate_added:
        view = pods.project(patched(pod, decision.patch))
        assert view.asks
        assert view.gated


@given(likely_pods, likely_pods)
def test_a_pod_update_is_never_patched(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert answer(update(old, new), VIEW).patch == ()


@given(
    st.sampled_from(RULES),
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    st.sampled_from(["", "status"]),
    odd_objects,
    odd_objects,
)
def test_no_json_whatsoever_makes_a_rule_raise(
    rule: Any, operation: str, subresource: str, new: dict[str, Any], old: dict[str, Any]
) -> None:
    request = AdmissionRequest(
        uid="u",
        group=rule.group,
        resource=rule.resource,
        kind=rule.kind,
        operation=operation,
        subresource=subresource,
        object=new,
        old_object=old,
    )
    decision = answer(request, VIEW)
    for warning in decision.warnings:
        assert warning.isprintable()
        assert len(warning) <= 256
    if decision.denial is not None:
        assert decision.patch == ()
        assert decision.denial.message.encode()
        assert decision.denial.violations


@given(likely_pods, st.lists(st.tuples(st.sampled_from(KEYS), odd_json), max_size=3))
def test_a_good_pod_with_parts_replaced_never_makes_a_rule_raise(
    pod: dict[str, Any], replacements: list[tuple[str, Any]]
) -> None:
    for key, value in replacements:
        for part in (pod, pod["spec"], pod["metadata"]):
            if isinstance(part, dict) and key in part and key not in ("metadata", "spec"):
                part[key] = value
    request = creation(pod)
    answer(request, VIEW)
    answer(with_fields(request, operation="UPDATE", old_object=pod), VIEW)
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": pod}}
    answer(creation(template), VIEW)


status_maps = st.none() | st.dictionaries(
    st.sampled_from(["cpu", "NVIDIA-H200", "A/b~c"]), st.sampled_from(["1", "2", 3])
)


@given(status_maps, status_maps, st.lists(st.sampled_from(["cpu", "NVIDIA-H200"]), max_size=2))
def test_queue_status_comes_to_rest_and_loses_nothing_of_ours(old: Any, new: Any, foreign: list[str]) -> None:
    fields: dict[str, Any] = {"f:status": {"f:allocated": {f"f:{key}": {} for key in foreign}}}
    metadata = {"name": "q", "managedFields": [{"manager": "vc-scheduler", "fieldsV1": fields}]}
    base = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata}
    before, after = ({**base, "status": {"allocated": allocated}} for allocated in (old, new))
    patch: tuple[Add, ...] = answer(update(before, after, subresource="status"), VIEW).patch
    result = patched(after, patch)
    assert answer(update(before, result, subresource="status"), VIEW).patch == ()
    kept = result["status"]["allocated"] or {}
    assert set(kept) == set(new or {}) | (set(old or {}) - set(foreign))
