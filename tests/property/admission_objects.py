"""Objects of every kind that is reviewed: good ones, odd ones, and ones with a wrong type wherever a rule reads.

`objects` are what people may write; `requests` add who does what to them, and values of types that belong elsewhere.
"""

import copy
from typing import Any

from hypothesis import strategies as st

from core import names
from core.admission.dispatch import RULES, Rule
from core.admission.request import AdmissionRequest, ClusterView
from core.cards.inventory import Inventory
from core.dra.extended import DeviceClasses
from tests.builders import a_namespace, a_node, a_queue

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

CONTROLLER = "system:serviceaccount:cardquota-system:cardquota-controller"
AGENT = "system:serviceaccount:mgpu:agent"


def view() -> ClusterView:
    """Two nodes, two queues, a namespace that names one of them."""
    inventory = Inventory({})
    for node in (a_node("n1").card("A", 4).mig("1g", 2), a_node("n2").card("B", 4, prefix="x.com/npu")):
        inventory.put(node.view())
    queues = (a_queue("q").cards({"A": 2, "B": 9}).view(), a_queue("default").view())
    return ClusterView(
        inventory=inventory,
        queues={queue.name: queue for queue in queues},
        namespaces={"ml": a_namespace("ml").in_queue("q").view()},
    )


def closed_view() -> ClusterView:
    """The same, with a queue that is closed to the namespace, and all DeviceClasses known."""
    closed = a_queue("q").cards({"A": 1, "B": 9}).annotation(names.NAMESPACES_ANNOTATION, "other").view()
    return ClusterView(
        inventory=view().inventory,
        queues={"q": closed, "default": a_queue("default").view()},
        namespaces={"ml": a_namespace("ml").view(), "default": a_namespace("default").in_queue("q").view()},
        device_classes=frozenset({"gpu.example.com"}),
        serving=DeviceClasses(),
    )


def maybe(**members: Strategy) -> Strategy:
    """An object that has some of these members."""
    return st.fixed_dictionaries({}, optional=members)


def exactly(members: dict[str, Strategy], **optional: Strategy) -> Strategy:
    """An object with these members, and maybe some others."""
    return st.fixed_dictionaries(members, optional=optional)


# -- pods --------------------------------------------------------------------------------------------------------

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
        "|".join(["A"] * 17),
        "A|A",
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
        '{"A": "1", "B": -1, "": 2, "a b": 1.5}',
        '{"A/vgpu-1": 1}',
    ]
)
annotations = maybe(
    **{
        names.CARD_NAME_ANNOTATION: card_names,
        names.QUEUE_NAME_ANNOTATION: queue_names,
        names.JOB_QUEUE_ANNOTATION: queue_names,
        names.GROUP_NAME_ANNOTATION: st.just("g"),
        names.CARD_NAME_MISPRINT: card_names,
        names.ASSIGNED_ANNOTATION: counts,
        names.MGPU_MULTIPLE_ANNOTATION: st.sampled_from(["1", "2,1", "x"]),
        names.MGPU_POLICY_KEY: st.sampled_from(["fixed-share", "native-burst-share", "x"]),
        names.GPU_INDEX_PREFIX + "c": st.just("0"),
        names.CROSSQUOTA_STRATEGY_ANNOTATION: st.sampled_from(["most-allocated", "x"]),
        names.MIRROR_POD_ANNOTATION: st.just("h"),
        names.CARD_REQUEST_ANNOTATION: counts,
        names.CARD_QUOTA_ANNOTATION: counts,
    }
)
containers = st.lists(
    exactly(
        {"name": st.sampled_from(["c", "d", "n" * 44])},
        resources=maybe(limits=resources, requests=resources),
        restartPolicy=st.sampled_from(["Always", "Never"]),
    ),
    max_size=3,
)
gates = st.lists(st.sampled_from([{"name": names.GATE}, {"name": "x"}, {}]), max_size=2)
pod_specs = exactly(
    {"containers": containers},
    initContainers=containers,
    schedulerName=st.sampled_from(["", "volcano", "other"]),
    nodeName=st.sampled_from(["", "n1"]),
    resourceClaims=st.just([{"name": "c", "resourceClaimTemplateName": "t"}]),
    schedulingGates=gates,
    overhead=resources,
    resources=maybe(limits=resources, requests=resources),
)
owners = st.just(
    [{"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "j", "controller": True}]
)
labels = st.sampled_from([{}, {names.MANAGED_LABEL: "true"}, {names.MANAGED_LABEL: "x"}])
metadata = exactly(
    {"name": st.just("x")},
    namespace=st.sampled_from(["ml", "other"]),
    annotations=annotations,
    labels=labels,
    ownerReferences=owners,
)
proper_metadata = exactly(
    {
        "annotations": exactly(
            {
                names.CARD_NAME_ANNOTATION: st.sampled_from(["A", "Q", "A|R"]),
                names.QUEUE_NAME_ANNOTATION: st.sampled_from(["q", "x"]),
            }
        )
    }
)
proper_specs = exactly(
    {
        "containers": st.lists(
            st.integers(1, 3).map(lambda n: {"name": "c", "resources": {"limits": {"nvidia.com/gpu": n}}}),
            min_size=1,
            max_size=2,
        )
    }
)
templates = exactly({"metadata": maybe(annotations=annotations), "spec": pod_specs}) | exactly(
    {"metadata": proper_metadata, "spec": proper_specs}
)
"""Anything at all, or what breaks no rule and may still be hinted at."""
tasks = st.lists(
    exactly(
        {"name": st.sampled_from(["a", "b", "worker\n"]), "template": templates},
        replicas=st.sampled_from([0, 1, 3]),
    ),
    max_size=3,
)

# -- the other kinds ---------------------------------------------------------------------------------------------

device_quota = st.sampled_from(
    [
        '{"capability": {"gpu.example.com": {"count": 2}}}',
        '{"capability": {"x": {"count": -1}}, "guarantee": {"x": {"count": 3}}}',
        "{",
        "",
    ]
)
queue_annotations = maybe(
    **{
        names.CARD_QUOTA_ANNOTATION: counts,
        names.DRA_QUOTA_ANNOTATION: device_quota,
        names.NAMESPACES_ANNOTATION: st.sampled_from(["ml", "ml,x-*", "", "A B"]),
        names.NAMESPACE_SELECTOR_ANNOTATION: st.sampled_from(["a=b", "a in (b", ""]),
        names.LAST_APPLIED_ANNOTATION: st.sampled_from(['{"spec": {"dra": {"capability": {}}}}', "{}"]),
    }
)
allocated = st.dictionaries(st.sampled_from(["cpu", "A", "deviceclass/x"]), st.sampled_from(["1", "9", 3]))
queues = exactly(
    {
        "metadata": exactly({"name": st.just("q")}, annotations=queue_annotations),
        "spec": maybe(
            parent=st.sampled_from(["q", "root", "default", "x"]),
            dra=st.sampled_from([{"capability": {"gpu.example.com": {"count": 1}}}, {"x": 1}, []]),
            capability=st.dictionaries(
                st.sampled_from(["cpu", "deviceclass/gpu.example.com", "A"]), amounts, max_size=2
            ),
        ),
    },
    status=maybe(allocated=allocated, state=st.sampled_from(["Open", "Closed"])),
)
nodes = exactly(
    {
        "metadata": exactly(
            {"name": st.just("n1")},
            annotations=st.dictionaries(
                st.sampled_from([names.CROSSQUOTA_PREFIX + key for key in ("cpu", "cpu-percentage", "x")]),
                st.sampled_from(["1", "x", "50", "-1"]),
            ),
        )
    }
)
_QUEUE_FIELDS: tuple[Json | None, ...] = ({}, {"dra": {}}, None)
definitions = exactly(
    {
        "metadata": st.sampled_from([{"name": "queues.scheduling.volcano.sh"}, {"name": "x"}]),
        "spec": exactly(
            {
                "versions": st.lists(
                    st.sampled_from(
                        [
                            {"schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}}
                            for fields in _QUEUE_FIELDS
                        ]
                    ),
                    max_size=2,
                )
            }
        ),
    }
)
with_template = exactly({"template": templates})
_KINDS = {
    "Pod": exactly({"metadata": metadata, "spec": pod_specs}),
    "CronJob": exactly(
        {"metadata": metadata, "spec": exactly({"jobTemplate": exactly({"spec": with_template})})}
    ),
    "Queue": queues,
    "Node": nodes,
    "CustomResourceDefinition": definitions,
    "PodGroup": exactly({"metadata": metadata, "spec": maybe(queue=queue_names)}),
}
_TEMPLATED = exactly({"metadata": metadata, "spec": with_template})
_VOLCANO_JOB = exactly(
    {
        "metadata": metadata,
        "spec": exactly(
            {"tasks": tasks}, queue=queue_names, schedulerName=st.sampled_from(["volcano", "other", ""])
        ),
    }
)


def of_rule(rule: Rule) -> Strategy:
    """Objects of the kind that a rule is about."""
    content = _VOLCANO_JOB if rule.group == "batch.volcano.sh" else _KINDS.get(rule.kind, _TEMPLATED)
    version = f"{rule.group}/v1" if rule.group else "v1"
    return content.map(lambda raw: {"apiVersion": version, "kind": rule.kind, **raw})


_SERVED = {(rule.group, rule.kind): rule for rule in RULES}
_WRITTEN = (
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "PodGroup",
    "Queue",
)
objects: st.SearchStrategy[Json] = st.one_of(
    *(of_rule(rule) for rule in _SERVED.values() if rule.kind in _WRITTEN)
)
"""What people write and `check` judges, with the types that the API server would demand."""

# -- wrong types -------------------------------------------------------------------------------------------------

odd: Strategy = st.sampled_from(
    [None, True, 0, 1.5, "", "x", [], [None], ["x"], [{}], {}, {"x": 1}, {"x": None}]
)
"""One value of each type."""
_FIELDS = (
    ("metadata",),
    ("metadata", "name"),
    ("metadata", "generateName"),
    ("metadata", "namespace"),
    ("metadata", "annotations"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("metadata", "managedFields"),
    *(("metadata", "annotations", key) for key in (names.CARD_NAME_ANNOTATION, names.ASSIGNED_ANNOTATION)),
    ("spec",),
    ("status",),
    ("status", "allocated"),
    ("spec", "queue"),
    ("spec", "parent"),
    ("spec", "dra"),
    ("spec", "capability"),
    ("spec", "tasks"),
    ("spec", "template"),
    ("spec", "jobTemplate"),
    ("spec", "versions"),
)
_POD_FIELDS = (
    *(("spec", key) for key in ("nodeName", "schedulerName", "overhead", "resources", "affinity")),
    *(("spec", key) for key in ("containers", "initContainers", "resourceClaims", "schedulingGates")),
    ("spec", "affinity", "nodeAffinity"),
    ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    *(("spec", "containers", 0, key) for key in ("name", "restartPolicy", "resources")),
    *(("spec", "initContainers", 0, key) for key in ("name", "restartPolicy", "resources")),
    *(("spec", "containers", 0, "resources", key) for key in ("limits", "requests")),
    ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"),
    ("spec", "containers", 0, "resources", "requests", names.MGPU_CORE),
    *(("spec", "resourceClaims", 0, key) for key in ("name", "resourceClaimName")),
    ("spec", "schedulingGates", 0, "name"),
)
_PODS_AT = (
    (),
    ("spec", "template"),
    ("spec", "jobTemplate", "spec", "template"),
    ("spec", "tasks", 0, "template"),
)
_PLACES = (
    *_FIELDS,
    ("spec", "tasks", 0),
    ("spec", "tasks", 0, "name"),
    ("spec", "tasks", 0, "replicas"),
    *((*at, *field) for at in _PODS_AT for field in (*_FIELDS[:9], *_POD_FIELDS)),
)
breaks = st.lists(st.tuples(st.sampled_from(_PLACES), odd), max_size=3)


def broken(raw: Json, replaced: list[tuple[tuple[Any, ...], Any]]) -> Json:
    """The object with values put in these places, as far as there is a way to them."""
    result: Json = copy.deepcopy(raw)
    for (*parents, last), value in replaced:
        target: Any = result
        for key in parents:
            if isinstance(target, dict) and isinstance(key, str):
                target = target.get(key)
            else:
                target = target[0] if isinstance(target, list) and target and key == 0 else None
        if isinstance(target, dict):
            target[last] = copy.deepcopy(value)
    return result


# -- requests ----------------------------------------------------------------------------------------------------


@st.composite
def requests(draw: st.DrawFn, rules: tuple[Rule, ...] = RULES) -> AdmissionRequest:
    """A request that one of the rules serves: two times of three with every type as it should be."""
    rule = draw(st.sampled_from(rules))
    some = of_rule(rule)
    new, old = draw(some), draw(some)
    if draw(st.booleans()):
        # What most updates are: the same object with little changed.
        old = (
            {**new, "metadata": old["metadata"]} if draw(st.booleans()) else {**old, "spec": new.get("spec")}
        )
    if draw(st.integers(0, 2)) == 0:
        new, old = broken(new, draw(breaks)), broken(old, draw(breaks))
    operation = draw(st.sampled_from(["CREATE", "CREATE", "UPDATE", "DELETE"]))
    return AdmissionRequest(
        uid="u",
        group=rule.group,
        resource=rule.resource,
        kind=rule.kind,
        operation=operation,
        subresource=draw(st.sampled_from(["", "", *sorted(rule.subresources)])),
        namespace=draw(st.sampled_from(["", "ml", "other"])),
        username=draw(st.sampled_from(["jane", "jane", CONTROLLER, AGENT, "system:node:n1"])),
        field_manager=draw(st.sampled_from(["", names.FIELD_MANAGER])),
        object={} if operation == "DELETE" else new,
        old_object={} if operation == "CREATE" else old,
    )
