"""Objects of every kind that is read, as they are usually written."""

from typing import Any

from core import names
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.workloads import SAMPLES

Json = dict[str, Any]

_CARD = a_pod("card").card("A|B").gpu(2).in_queue("q")
_SHARE = a_pod("share").mgpu("c1", core=30, memory=1024).only("c1").in_queue("q")
_TEMPLATE = {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: "A"}}, "spec": _CARD.build()["spec"]}

PODS: tuple[Json, ...] = (
    _CARD.build(),
    _CARD.gated().build(),
    _CARD.gated().in_group("g").build(),
    _CARD.card("A").charged("q").assigned({"A": 2}).put("spec", "nodeName", value="n1").build(),
    _SHARE.gated().build(),
    _SHARE.cards_per_container(1).led_to("n1").charged("q").build(),
    a_pod("claims")
    .put("spec", "resourceClaims", value=[{"name": "x", "resourceClaimName": "claim"}])
    .gated()
    .build(),
    a_pod("named")
    .card("A")
    .gpu(1)
    .annotation(names.GANG_NAME_ANNOTATION, "g")
    .annotation(names.GANG_SIZE_ANNOTATION, "2")
    .build(),
    a_pod("cpu").request("cpu", 4).build(),
)
QUEUES: tuple[Json, ...] = (
    a_queue("q").cards({"A": 4, "B": 2}).build(),
    a_queue("child")
    .cards({"A": 1})
    .put("spec", "parent", value="q")
    .annotation(names.NAMESPACES_ANNOTATION, "ml,other")
    .build(),
    a_queue("d")
    .annotation(names.DRA_QUOTA_ANNOTATION, '{"capability": {"gpu.example.com": {"count": 2}}}')
    .build(),
)
NODES: tuple[Json, ...] = (
    a_node("n1").card("A", 8).build(),
    a_node("n2").product("B").mps(16, replicas=8).build(),
    a_node("n3").card("A", 4).mig("1g", 2).build(),
)
WORKLOADS: tuple[Json, ...] = (
    *(sample.object(_TEMPLATE) for sample in SAMPLES),
    a_job("vj").build(),
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ml"},
        "spec": {"replicas": 3, "template": _TEMPLATE},
    },
)
OTHERS: tuple[Json, ...] = (
    a_group("g").build(),
    a_namespace("ml").in_queue("q").build(),
    a_claim("claim").exactly("gpu", "gpu.example.com", count=2, capacity={"memory": "10Gi"}).build(),
    a_template("template")
    .first_available("gpu", {"name": "a", "deviceClassName": "gpu.example.com"})
    .build(),
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"},
        "spec": {},
    },
)
ALL: tuple[Json, ...] = (*PODS, *QUEUES, *NODES, *WORKLOADS, *OTHERS)

SETTINGS: tuple[Json, ...] = (
    {},
    {"cards": {"pools": {"A": {"labels": {"pool": "a"}, "resource": "nvidia.com/gpu"}}, "hierarchy": True}},
    {
        "cards": {"equivalents": {"A": ["gpu.example.com"]}, "podsWithoutCardName": "infer"},
        "mgpu": {"cardQuota": True},
    },
    {"crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "quota": {"cpu": "32"}, "weights": {"cpu": 10}}},
    {
        "predicate.MGPUEnable": True,
        "quota.cpu": "32",
        "gpu-resource-names": "nvidia.com/gpu",
        "label-selector": "a in (b)",
    },
    {"workloads": [{"group": "x.io", "kind": "X", "resource": "xs", "templates": ["spec.template"]}]},
    {"discovery": [{"vendor": "x", "product": "x.io/product", "resources": ["x.io/gpu"]}]},
    {
        "reservation": {"warnAfter": "10m"},
        "quota": {"maxFreeGrace": "5m"},
        "extender": {"maxBodyBytes": "16Mi"},
    },
)
