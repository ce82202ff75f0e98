"""What the tests on a whole installation do over and over: create, look, wait."""

import re
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from core import names, reasons
from hack.controlplane import Answer, ApiClient, ControlPlane, wait_for
from hack.controlplane.components import COMPLETE_AFTER
from hack.controlplane.nodes import gpu_node
from hack.install import Installation

Object = dict[str, Any]


class Cluster:
    """One namespace of a control plane, and what the test made outside of it: that goes with `close`."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.api: ApiClient = plane.api
        self.namespace = namespace
        self._made: list[str] = []

    def close(self) -> None:
        """Delete the pods, nodes and queues of the test."""
        # At once: without its node nobody would end a pod in order.
        self.api.delete(self.path(), gracePeriodSeconds=0).expect()
        for path in reversed(self._made):
            self.api.delete(path).expect(200, 202, 404)

    # -- create --------------------------------------------------------------------------------------------------

    def add_nodes(self, *nodes: Mapping[str, Any]) -> None:
        """Add nodes that go at the end of the test."""
        self._made += [self.api.path_of(node) for node in nodes]
        self.plane.add_nodes(*nodes)

    def add_card(self, cards: int = 8) -> str:
        """Add a node with so many of a card that no other test knows, and return the card's name."""
        card = unique("CARD")
        self.add_nodes(gpu_node(unique("node"), product=card, cards=cards, memory_mib=143771))
        return card

    def create(self, *things: Object) -> list[Object]:
        """Create objects in this namespace, one after the other, and return what is stored."""
        return [self.try_create(thing).expect(201) for thing in things]

    def try_create(self, thing: Object, **query: str) -> Answer:
        """Ask for an object in this namespace to be created."""
        own = {**thing, "metadata": {**thing["metadata"], "namespace": self.namespace}}
        return self.api.request("POST", _with(self.api.path_of(own, collection=True), query), own)

    def create_queue(self, queue: Object) -> str:
        """Create a queue that goes at the end of the test, and return its path."""
        return self.make(queue)

    def make(self, thing: Object) -> str:
        """Create something that is in no namespace and goes at the end of the test, and return its path."""
        self.api.create(thing).expect(201)
        path = self.api.path_of(thing)
        self._made.append(path)
        return path

    def set_quota(self, path: str, quota: str) -> None:
        """Change the card quota of a queue."""
        self.api.patch(path, {"metadata": {"annotations": {names.CARD_QUOTA_ANNOTATION: quota}}}).expect()

    def scale(self, deployment: str, replicas: int) -> None:
        """Ask a Deployment for another number of pods, as its owner or an autoscaler does."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{deployment}/scale"
        self.api.patch(path, {"spec": {"replicas": replicas}}).expect()

    def finish(self, *pods: str) -> None:
        """Let running pods come to a good end."""
        for pod in pods:
            self.api.patch(self.path(pod), {"metadata": {"annotations": {COMPLETE_AFTER: "1ms"}}}).expect()

    def bind(self, binding: Object, pod: str | None = None, **query: str) -> Answer:
        """Post a Binding for the pod that it names, or for another one.

        As a scheduler does, again while a node or a queue that exists is not known to the leader yet.
        """
        path = f"{self.path(pod or binding['metadata']['name'])}/binding"

        def answered() -> list[Answer]:
            answer = self.api.request("POST", _with(path, query), binding)
            return [] if self._is_behind(binding, answer) else [answer]

        return wait_for("the leader knows node and queue", answered)[0]

    def _is_behind(self, binding: Object, answer: Answer) -> bool:
        """Whether the bind is refused for a node or a queue that is not there, and it is there."""
        said = str(answer.body)
        if f"[{reasons.NODE_NOT_FOUND}]" in said:
            path = self.api.path("v1", "Node", name=binding["target"]["name"])
        elif found := re.search(rf"\[{reasons.QUEUE_NOT_FOUND}\] Queue <([^>]+)>", said):
            path = self.api.path("scheduling.volcano.sh/v1beta1", "Queue", name=found[1])
        else:
            return False
        return self.api.get(path).status == HTTPStatus.OK

    # -- look ----------------------------------------------------------------------------------------------------

    def path(self, pod: str = "") -> str:
        """The path of a pod, or of all of them."""
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{pod}" if pod else "")

    def pods(self) -> dict[str, Object]:
        """Every pod of the namespace by name."""
        return {item["metadata"]["name"]: item for item in self.api.get(self.path()).expect()["items"]}

    def pod(self, name: str) -> Object:
        """The pod of this name."""
        found: Object = self.api.get(self.path(name)).expect()
        return found

    def running(self) -> set[str]:
        """The names of the pods that run."""
        return {name for name, pod in self.pods().items() if pod["status"].get("phase") == "Running"}

    def gated(self) -> set[str]:
        """The names of the pods at our gate."""
        return {name for name, pod in self.pods().items() if names.GATE in gates(pod)}

    def allocated(self, queue_path: str) -> dict[str, str]:
        """What the status of a queue says is in use."""
        return dict(self.api.get(queue_path).expect().get("status", {}).get("allocated") or {})

    def events(self, name: str, reporter: str = "cardquota", kind: str = "Pod") -> list[tuple[str, str]]:
        """Reason and message of each event about an object from one component."""
        query = {"fieldSelector": f"involvedObject.name={name},involvedObject.kind={kind}"}
        found = self.api.get(f"/api/v1/namespaces/{self.namespace}/events", **query).expect()["items"]
        return [(e["reason"], e["message"]) for e in found if e.get("reportingComponent") == reporter]

    # -- wait ----------------------------------------------------------------------------------------------------

    def wait_running(self, *pods: str, timeout_s: float = 30.0) -> None:
        """Return once exactly these pods of the namespace run."""
        wait_for(f"{sorted(pods)} run and nobody else", lambda: self.running() == set(pods), timeout_s)

    def wait_allocated(self, queue_path: str, allocated: Mapping[str, int], timeout_s: float = 30.0) -> None:
        """Return once the status of a queue shows exactly these cards in use."""
        wanted = {card: str(count) for card, count in allocated.items()}
        wait_for(f"{queue_path} shows {wanted}", lambda: self.allocated(queue_path) == wanted, timeout_s)

    def wait_said(self, name: str, reason: str, kind: str = "Pod", timeout_s: float = 30.0) -> str:
        """Return the message of the controller's event of this reason about an object, once there is one."""

        def said() -> str:
            return next((text for code, text in self.events(name, kind=kind) if code == reason), "")

        return wait_for(f"{kind} {name} is said to wait: {reason}", said, timeout_s)


def _with(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def unique(prefix: str) -> str:
    """A name that nobody else has."""
    return f"{prefix}-{secrets.token_hex(4)}"


def charged(pod: Mapping[str, Any]) -> str:
    """The queue that a pod is on record for."""
    return str(pod["metadata"].get("annotations", {}).get(names.CHARGED_QUEUE_ANNOTATION, ""))


def gates(pod: Mapping[str, Any]) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def terms(pod: Mapping[str, Any]) -> list[Any]:
    """The terms of a pod's required node affinity."""
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    found: list[Any] = required.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get(
        "nodeSelectorTerms", []
    )
    return found


def samples(exposition: str, name: str, **labels: str) -> float:
    """The sum of the samples of a metric that carry these labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = (line for line in exposition.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(text in line for text in wanted))


def wait_known(installation: Installation, queue_name: str, card: str, quota: int) -> None:
    """Return once the controller has seen this quota of a queue: its watch of pods may be ahead of that of queues."""

    def shown() -> float:
        metrics = installation.metrics("controller", -1)
        return samples(metrics, "volcano_queue_card_deserved", queue_name=queue_name, card=card)

    wait_for(f"{quota} of {card} are known", lambda: shown() == quota)
