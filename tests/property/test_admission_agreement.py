"""`check`, `review` and the webhook's paths say the same of the same object."""

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from cli.check import Finding, check
from core import admission, names, reasons
from core.admission import PATHS, ClusterView, Context, Decision
from core.admission.messages import WARNING_MAX, WARNINGS_MAX, one_line
from core.cards.inventory import Inventory
from core.settings import Settings
from kube.admission import wire
from tests.builders import a_namespace, a_node, a_queue

SETTINGS = Settings()


def view() -> ClusterView:
    inventory = Inventory({})
    for node in (a_node("n1").card("A", 4).mig("1g", 2), a_node("n2").card("B", 4, prefix="x.com/npu")):
        inventory.put(node.view())
    queues = (a_queue("q").cards({"A": 2, "B": 9}).view(), a_queue("default").view())
    return ClusterView(
        inventory=inventory,
        queues={queue.name: queue for queue in queues},
        namespaces={"ml": a_namespace("ml").in_queue("q").view()},
    )


VIEW = view()

amounts = st.sampled_from(["0", "1", "3", 2, "x", "-1", 1.5, None, "50", "1024"])
resources = st.dictionaries(
    st.sampled_from(
        ["nvidia.com/gpu", "x.com/npu", "nvidia.com/mig-1g", names.MGPU_CORE, names.MGPU_MEMORY, "cpu"]
    ),
    amounts,
    max_size=3,
)
card_names = st.sampled_from(
    [
        "A",
        "B",
        "A|B",
        "B|A",
        "A|",
        "",
        "Q",
        "A/mig-1g-mixed",
        "A/vgpu-1",
        "A|A/mig-1g-mixed",
        "a b",
        "A\nB",
        "显卡",
    ]
)
queue_names = st.sampled_from(["q", "default", "x", "", "q\u2028r"])
counts = st.sampled_from(
    [
        '{"A": 1}',
        '{"A": 9}',
        '{"A|B": 3, "Q": 1}',
        "{",
        "",
        "{}",
        '{"A": -1}',
        '{"A": "1"}',
        '{"A/vgpu-1": 1}',
    ]
)
annotations = st.fixed_dictionaries(
    {},
    optional={
        names.CARD_NAME_ANNOTATION: card_names,
        names.QUEUE_NAME_ANNOTATION: queue_names,
        names.JOB_QUEUE_ANNOTATION: queue_names,
        names.GROUP_NAME_ANNOTATION: st.just("g"),
        names.CARD_NAME_MISPRINT: card_names,
        names.ASSIGNED_ANNOTATION: counts,
        names.MGPU_MULTIPLE_ANNOTATION: st.sampled_from(["1", "2,1", "x"]),
        names.MIRROR_POD_ANNOTATION: st.just("h"),
        names.CARD_REQUEST_ANNOTATION: counts,
        names.CARD_QUOTA_ANNOTATION: counts,
    },
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["c", "d", "n" * 44])},
        optional={
            "resources": st.fixed_dictionaries({}, optional={"limits": resources, "requests": resources})
        },
    ),
    max_size=3,
)
pod_specs = st.fixed_dictionaries(
    {"containers": containers},
    optional={
        "initContainers": containers,
        "schedulerName": st.sampled_from(["", "volcano", "other"]),
        "nodeName": st.sampled_from(["", "n1"]),
        "resourceClaims": st.just([{"name": "c", "resourceClaimTemplateName": "t"}]),
    },
)
metadata = st.fixed_dictionaries(
    {"name": st.just("x")},
    optional={"namespace": st.sampled_from(["ml", "other"]), "annotations": annotations},
)
proper_metadata = st.fixed_dictionaries(
    {
        "annotations": st.fixed_dictionaries(
            {
                names.CARD_NAME_ANNOTATION: st.sampled_from(["A", "Q", "A|R"]),
                names.QUEUE_NAME_ANNOTATION: st.sampled_from(["q", "x"]),
            }
        )
    }
)
proper_specs = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.integers(1, 3).map(lambda n: {"name": "c", "resources": {"limits": {"nvidia.com/gpu": n}}}),
            min_size=1,
            max_size=2,
        )
    }
)
templates = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"annotations": annotations}), "spec": pod_specs}
) | st.fixed_dictionaries({"metadata": proper_metadata, "spec": proper_specs})
"""Anything at all, or what breaks no rule and may still be hinted at."""
tasks = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b"]), "template": templates},
        optional={"replicas": st.sampled_from([0, 1, 3])},
    ),
    max_size=3,
)


def of_kind(api_version: str, kind: str, spec: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"apiVersion": st.just(api_version), "kind": st.just(kind), "metadata": metadata, "spec": spec}
    )


with_template = st.fixed_dictionaries({"template": templates})
objects = st.one_of(
    of_kind("v1", "Pod", pod_specs),
    *(
        of_kind("apps/v1", kind, with_template)
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
    ),
    of_kind("batch/v1", "Job", with_template),
    of_kind(
        "batch/v1",
        "CronJob",
        st.fixed_dictionaries({"jobTemplate": st.fixed_dictionaries({"spec": with_template})}),
    ),
    of_kind(
        "batch.volcano.sh/v1alpha1",
        "Job",
        st.fixed_dictionaries({"tasks": tasks}, optional={"queue": queue_names}),
    ),
    of_kind(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        st.fixed_dictionaries({}, optional={"queue": queue_names}),
    ),
    of_kind("scheduling.volcano.sh/v1beta1", "Queue", st.just({})),
)


def reviewed(raw: dict[str, Any]) -> dict[str, Any]:
    """What `review` answers to the creation of an object, from bytes to bytes."""
    request = admission.creation_of(raw)
    assert request is not None
    review = {
        "apiVersion": wire.API_VERSION,
        "kind": wire.KIND,
        "request": {
            "uid": "u",
            "kind": {"group": request.group, "kind": request.kind},
            "resource": {"group": request.group, "resource": request.resource},
            "name": request.name,
            "namespace": request.namespace,
            "operation": "CREATE",
            "object": raw,
        },
    }
    decoded = wire.decode(orjson.dumps(review))
    answer: dict[str, Any] = orjson.loads(wire.encode("u", admission.review(decoded, VIEW, SETTINGS)))
    response: dict[str, Any] = answer["response"]
    return response


def by_paths(raw: dict[str, Any]) -> list[Decision]:
    """What the webhook answers at each of its paths that a cluster would ask."""
    request = admission.creation_of(raw)
    assert request is not None
    asked = {PATHS[path] for path in PATHS if any(rule.applies(request) for rule in PATHS[path])}
    return [admission.review(request, VIEW, SETTINGS, rules=rules) for rules in asked]


def warnings_of(findings: list[Finding]) -> list[str]:
    lines = [one_line(f"{found.path}: {found.message}", WARNING_MAX) for found in findings]
    return list(dict.fromkeys(lines))


@given(objects)
def test_check_and_review_find_the_same(raw: dict[str, Any]) -> None:
    """`check` also guesses what may have been meant, of which no webhook speaks."""
    findings, _ = check([("x.json", json.dumps(raw).encode())], Context(VIEW, SETTINGS))
    errors = [found for found in findings if found.severity == "error"]
    response = reviewed(raw)
    assert response["allowed"] == (not errors)
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [(cause["reason"], cause["field"]) for cause in causes] == [
        (found.code, one_line(found.path, 512)) for found in errors
    ]
    hints = [found for found in findings if found.severity == "warning"]
    warned = response.get("warnings", [])
    assert warned == [line for line in warnings_of(hints) if line in warned]
    guesses = {reasons.KEY_UNREAD, reasons.CARD_RESOURCE_MISSING, reasons.BEYOND_QUOTA}
    beyond = warnings_of([found for found in hints if found.code not in guesses])
    assert set(beyond[:WARNINGS_MAX]) <= set(warned)


@given(objects)
def test_the_paths_of_the_webhook_together_say_what_review_says(raw: dict[str, Any]) -> None:
    request = admission.creation_of(raw)
    assert request is not None
    whole, parts = admission.review(request, VIEW, SETTINGS), by_paths(raw)
    assert whole.allowed == all(part.allowed for part in parts)
    denials = {part.denial for part in parts if part.denial is not None}
    assert denials == ({whole.denial} if whole.denial is not None else set())
    assert {warning for part in parts for warning in part.warnings} == set(whole.warnings)
    if whole.allowed:
        assert [step for part in parts for step in part.patch] == list(whole.patch)


@given(objects)
def test_yaml_and_json_of_one_object_are_judged_alike(raw: dict[str, Any]) -> None:
    """A stream of both: JSON is YAML, but other parsers read it."""
    context = Context(VIEW, SETTINGS)
    as_json, _ = check([("x", json.dumps(raw).encode())], context)
    as_yaml, _ = check([("x", b"---\n" + json.dumps(raw).encode())], context)
    assert [(found.code, found.path, found.message) for found in as_json] == [
        (found.code, found.path, found.message) for found in as_yaml
    ]
