"""The objects that are measured with: as large, and as full of what nobody looks at, as those of a real cluster."""

from collections.abc import Mapping
from typing import Any

import orjson

from core import names
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder, QueueBuilder

Json = dict[str, Any]

PRODUCTS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "Tesla-V100-SXM2-32GB")
CARDS_PER_NODE = 8
NAMESPACE = "ml"
_VARIABLES = 18


def product(number: int) -> str:
    """The products in turns."""
    return PRODUCTS[number % len(PRODUCTS)]


def card_node(number: int) -> NodeBuilder:
    """Node `n<number>` with eight cards of one product."""
    return a_node(f"n{number}").card(product(number), CARDS_PER_NODE).allocatable("cpu", 128)


def queue(number: int, quota: Mapping[str, int]) -> QueueBuilder:
    """Queue `q<number>` with this card quota."""
    return a_queue(f"q{number}").cards(quota)


def card_pod(name: str, queue_number: int, expression: str) -> PodBuilder:
    """A small pod that asks for one card; enough where only its view is looked at."""
    return a_pod(name, namespace=NAMESPACE).gpu(1).card(expression).in_queue(f"q{queue_number}")


def training_pod(name: str) -> PodBuilder:
    """A pod of about 5 KB that asks for one card, as it arrives at admission."""
    return _with_ballast(card_pod(name, 1, product(0)))


def web_pod(name: str, node: str = "") -> PodBuilder:
    """A pod of about 5 KB that asks for nothing of ours; on a node where one is named."""
    pod = _with_ballast(a_pod(name, namespace=NAMESPACE))
    return pod.bound_to(node) if node else pod


def pod_review(pod: Json) -> bytes:
    """The AdmissionReview of the creation of a pod."""
    return _review(pod, {"resource": "pods"}, "Pod")


def binding_review(name: str, node: str) -> bytes:
    """The AdmissionReview of the bind of a pod."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{NAMESPACE}-{name}"},
        "target": {"kind": "Node", "name": node},
    }
    return _review(binding, {"resource": "pods", "subResource": "binding"}, "Binding")


def _review(raw: Json, what: Json, kind: str) -> bytes:
    resource = {"group": "", "version": "v1", "resource": what["resource"]}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": resource,
        "requestKind": {"group": "", "version": "v1", "kind": kind},
        "requestResource": resource,
        "subResource": what.get("subResource", ""),
        "name": raw["metadata"]["name"],
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:replicaset-controller",
            "uid": "5f1c4f2e-7f0b-4b8a-9f0c-9a5cbb1cf0d2",
            "groups": [
                "system:serviceaccounts",
                "system:serviceaccounts:kube-system",
                "system:authenticated",
            ],
        },
        "object": raw,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def _with_ballast(pod: PodBuilder) -> PodBuilder:
    """What charts, controllers and the API server add to a pod."""
    app = "training-llm-7b"
    pod = (
        pod.label("app.kubernetes.io/name", app)
        .label("app.kubernetes.io/instance", f"{app}-prod")
        .label("pod-template-hash", "6d4cf56db6")
        .annotation("prometheus.io/scrape", "true")
        .annotation("checksum/config", "9b6d2a1be2c5a4a7f7b6b1c0c8dd0a43a2f0e9d1c7b6a5948372615f4e3d2c1b")
        .owned_by("ReplicaSet", f"{app}-6d4cf56db6")
        .put("metadata", "generateName", value=f"{app}-6d4cf56db6-")
        .put("metadata", "managedFields", value=[_managed_fields()])
        .limit("cpu", "8")
        .limit("memory", "64Gi")
        .request("cpu", "4")
        .request("memory", "32Gi")
    )
    main = {**pod.raw["spec"]["containers"][0], **_container(app)}
    for key, value in {**_spec(app), "containers": [main]}.items():
        pod = pod.put("spec", key, value=value)
    return pod


def _managed_fields() -> Json:
    env: Json = {
        f'k:{{"name":"TRAIN_{number}"}}': {".": {}, "f:name": {}, "f:value": {}}
        for number in range(_VARIABLES)
    }
    container = {
        ".": {},
        "f:env": {".": {}, **env},
        "f:image": {},
        "f:name": {},
        "f:resources": {"f:limits": {}},
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": {'k:{"name":"main"}': container}, "f:schedulerName": {}}},
    }


def _container(app: str) -> Json:
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "initialDelaySeconds": 30,
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 6,
    }
    return {
        "image": f"registry.example.com/ml/{app}:2024.01.1",
        "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"],
        "args": ["--learning-rate=3e-4", "--batch-size=64", "--checkpoint=/data/checkpoints"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": f"TRAIN_{number}", "value": f"value-of-variable-{number}"}
            for number in range(_VARIABLES)
        ],
        "volumeMounts": [
            {"name": volume, "mountPath": f"/mnt/{volume}", "readOnly": volume != "data"}
            for volume in ("config", "data", "token")
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _spec(app: str) -> Json:
    selector = {"matchLabels": {"app.kubernetes.io/name": app}}
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
            {"name": "data", "persistentVolumeClaim": {"claimName": f"{app}-data"}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "schedulerName": names.DEFAULT_SCHEDULER,
        "securityContext": {"runAsNonRoot": True, "fsGroup": 2000},
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
