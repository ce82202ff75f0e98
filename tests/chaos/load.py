"""Does to the cluster what the load of a plan says. What cannot be had at the moment is tried again for a while, and given up."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from core import names
from hack.controlplane import Answer, ApiClient
from hack.controlplane.components import COMPLETE_AFTER
from hack.controlplane.nodes import gpu_node, made_ready, mgpu_node
from tests.apiserver import manifests
from tests.apiserver.manifests import Object
from tests.chaos import beside, claims, plan
from tests.chaos.beside import Step

NAMESPACE: Final = "chaos"
CARD_MIB: Final = 10_000
_QUEUES: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
_TRIES: Final = 4
_PAUSE_S: Final = 0.5
_TIMEOUT_S: Final = 5.0
_DONE: Final = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)
_USELESS: Final = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)


class Load:
    """The deeds, each by its name; `done` counts them and what became of their requests."""

    def __init__(self, api: ApiClient, over: threading.Event) -> None:
        self._api = api
        self._over = over
        self.done: Counter[str] = Counter()

    def prepare(self) -> None:
        """The namespace's queues; and where the kinds that come later are served, which is not asked in the middle of faults."""
        for version, kind in (("v1", "Pod"), ("v1", "Node"), ("apps/v1", "Deployment")):
            self._api.path(version, kind)
        for name, quota in plan.QUEUES.items():
            made = manifests.queue(name, json.dumps(quota))
            made["spec"] |= {"parent": plan.PARENTS[name]} if name in plan.PARENTS else {}
            self._api.create(made).expect()
        line = manifests.queue(beside.LINE, json.dumps(beside.LINE_QUOTA))
        line["spec"]["dequeueStrategy"] = "fifo"
        self._api.create(line).expect()
        for name, value in beside.PRIORITIES.items():
            self._api.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            ).expect()
        self._prepare_devices()
        shares = manifests.queue(plan.SHARES, "{}")
        shares["spec"]["capability"] = {
            names.MGPU_CORE: "500",
            names.MGPU_MEMORY: "60000",
        }
        self._api.create(shares).expect()

    def _prepare_devices(self) -> None:
        """A class, nodes that offer devices of it, a queue, and the claims and templates that stay."""
        made = manifests.queue(beside.DEVICES, "{}")
        made["metadata"]["annotations"][names.DRA_QUOTA_ANNOTATION] = _device_quota(beside.DEVICE_QUOTA)
        self._api.create(made).expect()
        for thing in claims.cluster_objects([f"a{number}" for number in range(2)]):
            self._api.create(thing).expect()
        for thing in claims.of_tenants(beside.TEMPLATES, beside.SHARED):
            self._create(thing)

    @staticmethod
    def nodes() -> list[Object]:
        """The nodes that stay."""
        return [
            *(gpu_node(f"a{number}", product="A", cards=8, memory_mib=1000) for number in range(2)),
            gpu_node("b0", product="B", cards=6, memory_mib=1000),
            *(mgpu_node(f"m{number}", memory_mib=CARD_MIB) for number in range(2)),
        ]

    def run(self, steps: tuple[Step, ...]) -> None:
        """Do all in time, or as soon after it as the one before is done; end early once it is over."""
        began = time.monotonic()
        for step in steps:
            if self._over.wait(max(0.0, began + step.at - time.monotonic())):
                return
            self.done[f"load: {step.deed}"] += 1
            deed: Callable[..., None] = getattr(self, f"_{step.deed}")
            deed(**step.how)

    def calm(self) -> None:
        """Undo what would keep pods from starting for good."""
        for node in ("a0", "b0", "m0"):
            self._uncordon(node)

    # -- deeds ---------------------------------------------------------------------------------------------------

    def _pod(self, name: str, queue: str, card: str, count: int) -> None:
        self._create(manifests.card_pod(name, card, queue, count))

    def _crowd(self, names: list[str], queue: str, card: str) -> None:
        for name in names:
            self._pod(name, queue, card, 1)

    def _gang(self, name: str, members: list[str], minimum: int, queue: str, card: str) -> None:
        self._create(manifests.podgroup(name, queue, minimum))
        for pod in manifests.in_group(name, *(manifests.card_pod(member, card, queue) for member in members)):
            self._create(pod)

    def _share(self, name: str, core: int, memory: int | None) -> None:
        pod = manifests.share_pod(name, core, memory)
        pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] = plan.SHARES
        self._create(pod)

    def _deploy(self, name: str, replicas: int, queue: str, card: str) -> None:
        made = manifests.deployment(name, manifests.card_pod(name, card, queue), replicas)
        if self._create(made) == HTTPStatus.CONFLICT:
            path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}/scale"
            self._merge(path, {"spec": {"replicas": replicas}})

    def _finish(self, names: list[str]) -> None:
        for name in names:
            self._merge(_pod_path(name), {"metadata": {"annotations": {COMPLETE_AFTER: "1ms"}}})

    def _delete(self, names: list[str]) -> None:
        for name in names:
            self._send("DELETE", _pod_path(name))

    def _delete_gang(self, name: str, names: list[str]) -> None:
        self._delete(names)
        self._send("DELETE", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups/{name}")

    def _quota(self, queue: str, quota: Mapping[str, int]) -> None:
        annotations = {names.CARD_QUOTA_ANNOTATION: json.dumps(quota)}
        self._merge(f"{_QUEUES}/{queue}", {"metadata": {"annotations": annotations}})

    def _node_comes(self, name: str, card: str) -> None:
        made = (
            mgpu_node(name, memory_mib=CARD_MIB)
            if card == "mgpu"
            else gpu_node(name, product=card, cards=2, memory_mib=1000)
        )
        self._create(made_ready(made))

    def _node_goes(self, name: str) -> None:
        self._send("DELETE", f"/api/v1/nodes/{name}")

    def _cordon(self, name: str) -> None:
        self._merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})

    def _uncordon(self, name: str) -> None:
        self._merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})

    def _tamper(self, name: str, what: str) -> None:
        """What the policies forbid, to administrators as well."""
        index = f"{names.GPU_INDEX_PREFIX}c"
        patches: dict[str, Object] = {
            "gate": {"spec": {"schedulingGates": None}},
            "record": {"metadata": {"annotations": {names.ASSIGNED_ANNOTATION: '{"A":0}'}}},
            "index": {"metadata": {"annotations": {index: "7"}}},
        }
        self._merge(_pod_path(name), patches[what])

    def _line_pod(self, name: str, priority: str, card: str, count: int) -> None:
        self._create(manifests.card_pod(name, card, beside.LINE, count, priorityClassName=priority))

    def _line_finish(self, names: list[str]) -> None:
        self._finish(names)

    def _line_delete(self, names: list[str]) -> None:
        self._delete(names)

    def _line_quota(self, quota: Mapping[str, int]) -> None:
        self._quota(beside.LINE, quota)

    def _claim_pod(self, name: str, templates: list[str], shared: list[str]) -> None:
        self._create(claims.pod(name, beside.DEVICES, templates, shared))

    def _claim_finish(self, names: list[str]) -> None:
        self._finish(names)

    def _claim_delete(self, names: list[str]) -> None:
        self._delete(names)

    def _claim_quota(self, count: int) -> None:
        annotations = {names.DRA_QUOTA_ANNOTATION: _device_quota(count)}
        self._merge(f"{_QUEUES}/{beside.DEVICES}", {"metadata": {"annotations": annotations}})

    # -- requests ------------------------------------------------------------------------------------------------

    def _create(self, thing: Object) -> int:
        metadata = (
            thing["metadata"] if thing["kind"] == "Node" else {**thing["metadata"], "namespace": NAMESPACE}
        )
        own = {**thing, "metadata": metadata}
        return self._send("POST", self._api.path_of(own, collection=True), own)

    def _merge(self, path: str, patch: Object) -> int:
        return self._send("PATCH", path, patch, "application/merge-patch+json")

    def _send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> int:
        """Send it until it is answered for good; the last status, 0 for none."""
        status = 0
        for _ in range(_TRIES):
            try:
                answer: Answer = self._api.request(
                    method, path, body, content_type=content_type, timeout_s=_TIMEOUT_S
                )
            except OSError:
                self.done["requests: no answer"] += 1
            else:
                status = answer.status
                if status in _DONE or status in _USELESS:
                    break
            if self._over.wait(_PAUSE_S):
                break
        self.done[f"requests: {status}"] += 1
        return status


def _pod_path(name: str) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"


def _device_quota(count: int) -> str:
    return json.dumps({"capability": {claims.CLASS: {"count": count}}})
