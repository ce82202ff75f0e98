"""Small audit logs made by hand: a store of a few objects, and what an API server would write down of each request."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.chaos.checker import Disturbance, Terms, Verdict, judge, parse, terms
from tests.chaos.checker.history import KINDS

Object = dict[str, Any]

CONTROLLER = Terms().controller
SCHEDULER, KUBELET, SOMEBODY = "system:kube-scheduler", "kwok", "somebody"
_BEGIN = 1_800_000_000.0
_NAMESPACE = "ns"
_NAMESPACED = {"pods", "podgroups", "events", "leases", "resourceclaims", "resourceclaimtemplates"}


class Log:
    """Each method is one request, a hundredth of a second after the one before; the objects are what is stored."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = _BEGIN
        self._revision = 0
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}

    def verdict(self, *disturbances: Disturbance, **given: Any) -> Verdict:
        return judge(parse(self.lines), disturbances, Terms(**given))

    def rules(self, *disturbances: Disturbance) -> list[str]:
        """The rules that are broken."""
        return [violation.rule for violation in self.verdict(*disturbances).violations]

    def wait(self, seconds: float) -> None:
        self.now += seconds

    # -- requests ------------------------------------------------------------------------------------------------

    def create(self, kind: str, name: str, thing: Mapping[str, Any], user: str = SOMEBODY) -> None:
        at = {"creationTimestamp": _text(int(self.now))}
        metadata = {"name": name, "uid": f"uid-of-{name}", **at, **thing.get("metadata", {})}
        if kind in _NAMESPACED:
            metadata["namespace"] = _NAMESPACE
        made = {**copy.deepcopy(dict(thing)), "metadata": metadata}
        self.objects[kind][name] = made
        self._revise(made)
        self.request("create", kind, name, user, thing, made)

    def change(
        self,
        kind: str,
        name: str,
        how: Callable[[Object], None],
        user: str = SOMEBODY,
        request: Any = None,
        seen: bool = True,
    ) -> None:
        """A write to an object, or to its subresource; not `seen`, it is stored and missing in the log."""
        thing = self.objects[kind.partition("/")[0]][name]
        how(thing)
        self._revise(thing)
        if seen:
            self.request("patch", kind, name, user, request or {}, thing)

    def request(
        self,
        verb: str,
        resource: str,
        name: str,
        user: str,
        asked: Any = None,
        answered: Any = None,
        code: int = 200,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        began, self.now = self.now, self.now + 0.01
        kind, _, subresource = resource.partition("/")
        event = {
            "stage": "ResponseComplete",
            "requestURI": f"/{resource}/{name}",
            "verb": verb,
            "user": {"username": user},
            "objectRef": {
                "resource": kind,
                "subresource": subresource,
                "namespace": _NAMESPACE if kind in _NAMESPACED else "",
                "name": name,
            },
            "responseStatus": {"code": code},
            "requestObject": asked,
            "responseObject": answered,
            "requestReceivedTimestamp": _text(began),
            "stageTimestamp": _text(self.now),
            "annotations": dict(notes or {}),
        }
        self.lines.append(json.dumps(event))

    def _revise(self, thing: Object) -> None:
        self._revision += 1
        thing["metadata"]["resourceVersion"] = str(self._revision)

    # -- objects -------------------------------------------------------------------------------------------------

    def queue(
        self,
        name: str,
        parent: str = "",
        capability: Mapping[str, str] | None = None,
        strategy: str = "",
        devices: Mapping[str, int] | None = None,
        **quota: int,
    ) -> None:
        spec = {"parent": parent, "capability": dict(capability or {}), "dequeueStrategy": strategy}
        limits = {name: {"count": count} for name, count in (devices or {}).items()}
        annotations = {
            terms.CARD_QUOTA: json.dumps(quota),
            terms.DEVICE_QUOTA: json.dumps({"capability": limits}),
        }
        self.create("queues", name, {"metadata": {"annotations": annotations}, "spec": spec})

    def set_quota(self, name: str, **quota: int) -> None:
        def cut(queue: Object) -> None:
            queue["metadata"]["annotations"][terms.CARD_QUOTA] = json.dumps(quota)

        self.change("queues", name, cut)

    def show(self, queue: str, **allocated: int) -> None:
        """The controller writes Queue status."""

        def shown(thing: Object) -> None:
            thing["status"] = {"allocated": {card: str(count) for card, count in allocated.items()}}

        self.change("queues/status", queue, shown, CONTROLLER)

    def node(self, name: str, card: str = "A", cards: int = 8) -> None:
        self._node(name, {terms.PRODUCT: card}, {terms.GPU: str(cards)})

    def mgpu_node(self, name: str, cards: int = 1, memory: int = 1000) -> None:
        allocatable = {terms.CORE: str(100 * cards), terms.MEMORY: f"{memory * cards}"}
        self._node(name, {terms.MGPU_NODE: "mgpu"}, allocatable)

    def _node(self, name: str, labels: Mapping[str, str], allocatable: Mapping[str, str]) -> None:
        ready = [{"type": "Ready", "status": "True"}]
        status = {"allocatable": dict(allocatable), "conditions": ready}
        self.create("nodes", name, {"metadata": {"labels": dict(labels)}, "spec": {}, "status": status})

    def group(self, name: str, queue: str, minimum: int) -> None:
        self.create("podgroups", name, {"spec": {"queue": queue, "minMember": minimum}})

    # -- pods ----------------------------------------------------------------------------------------------------

    def pod(
        self,
        name: str,
        queue: str = "q",
        card: str = "A",
        count: int = 1,
        group: str = "",
        records: Mapping[str, str] | None = None,
        priority: int = 0,
        gated: bool = True,
    ) -> None:
        annotations = {terms.CARD_NAME: card, terms.QUEUE_NAME: queue, **(records or {})}
        if group:
            annotations[terms.GROUP_NAME] = group
        self._pod(name, annotations, {terms.GPU: str(count)}, priority, gated=gated)

    def claim(self, name: str, **devices: int) -> None:
        self.create("resourceclaims", name, {"spec": _asking(devices)})

    def template(self, name: str, **devices: int) -> None:
        self.create("resourceclaimtemplates", name, {"spec": {"spec": _asking(devices)}})

    def claiming_pod(
        self, name: str, queue: str = "q", claims: Sequence[str] = (), templates: Sequence[str] = ()
    ) -> None:
        entries = [
            *({"name": claim, "resourceClaimName": claim} for claim in claims),
            *({"name": template, "resourceClaimTemplateName": template} for template in templates),
        ]
        self._pod(name, {terms.QUEUE_NAME: queue}, {}, claims=entries)

    def share_pod(self, name: str, core: int, memory: str, queue: str = "q") -> None:
        self._pod(name, {terms.QUEUE_NAME: queue}, {terms.CORE: str(core), terms.MEMORY: memory})

    def _pod(
        self,
        name: str,
        annotations: Mapping[str, str],
        limits: Mapping[str, str],
        priority: int = 0,
        claims: Sequence[Object] = (),
        *,
        gated: bool = True,
    ) -> None:
        spec = {
            "priority": priority,
            "resourceClaims": list(claims),
            "schedulingGates": [{"name": terms.GATE}] if gated else [],
            "containers": [{"name": "c", "resources": {"limits": dict(limits)}}],
        }
        thing = {"metadata": {"annotations": dict(annotations)}, "spec": spec, "status": {"phase": "Pending"}}
        self.create("pods", name, thing)

    def lift(
        self, *names: str, user: str = CONTROLLER, card: str = "A", queue: str = "q", **how: Any
    ) -> None:
        for name in names:
            records = {terms.CHARGED: queue}
            if terms.CARD_NAME in self.annotations(name):
                count = self.objects["pods"][name]["spec"]["containers"][0]["resources"]["limits"][terms.GPU]
                records[terms.ASSIGNED] = json.dumps({card: int(count)})
            if self.objects["pods"][name]["spec"]["resourceClaims"]:
                records[terms.CLAIMS] = "{}"

            def lifted(pod: Object, records: Mapping[str, str] = records) -> None:
                pod["spec"].pop("schedulingGates")
                pod["metadata"]["annotations"] |= records

            self.change("pods", name, lifted, user, request=[{"op": "add", "value": records}], **how)

    def bind(
        self, name: str, node: str, *, failed_open: bool = False, apart: bool = False, **granted: str
    ) -> None:
        """A Binding, and the granted records that the hook put into it, `c` for instance with the indexes of a container.

        `apart`: each by an operation of its own, after one that takes away what the Binding brought along.
        """
        records = {terms.INDEX_OF + container: indexes for container, indexes in granted.items()}
        pod = self.objects["pods"][name]
        pod["spec"]["nodeName"] = node
        pod["metadata"]["annotations"] |= records
        self._revise(pod)
        notes = {}
        if records:
            under = "/metadata/annotations"
            patch: list[Object] = [{"op": "add", "path": under, "value": records}]
            if apart:
                patch = [{"op": "remove", "path": f"{under}/{_pointer(terms.ASSUMED)}"}]
                patch += [
                    {"op": "add", "path": f"{under}/{_pointer(k)}", "value": v} for k, v in records.items()
                ]
            notes["patch.webhook.admission.k8s.io/round_0_index_0"] = json.dumps({"patch": patch})
        if failed_open:
            notes["failed-open.mutating.webhook.admission.k8s.io/round_0_index_0"] = "bindings.cardquota.io"
        asked = {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "target": {"name": node}}
        self.request("create", "pods/binding", name, SCHEDULER, asked, {"kind": "Status"}, 201, notes)

    def phase(self, name: str, phase: str = "Running") -> None:
        def become(pod: Object) -> None:
            pod["status"]["phase"] = phase

        self.change("pods/status", name, become, KUBELET)

    def through(self, *names: str, node: str = "n", **granted: Any) -> None:
        """Lifted, bound and running."""
        for name in names:
            self.lift(name)
            self.bind(name, node, **granted)
            self.phase(name)

    def annotate(self, name: str, user: str, **annotations: str) -> None:
        def annotated(pod: Object) -> None:
            pod["metadata"]["annotations"] |= annotations

        self.change("pods", name, annotated, user, request={"metadata": {"annotations": annotations}})

    def annotations(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.objects["pods"][name]["metadata"]["annotations"]
        return found

    def delete(self, name: str, user: str = SOMEBODY, *, seen: bool = True, revision: bool = True) -> None:
        """It is gone at once; without `revision` the answer does not show at which."""
        pod = self.objects["pods"].pop(name)
        self._revise(pod)
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
        if not revision:
            del pod["metadata"]["resourceVersion"]
        if seen:
            self.request("delete", "pods", name, user, {}, pod)

    # -- leaders and lists ---------------------------------------------------------------------------------------

    def lead(self, holder: str = "controller-0", seconds: float = 0.0) -> None:
        """The holder writes the Lease, and goes on for so long."""
        until = self.now + seconds
        while True:
            spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
            lease = {"metadata": {"uid": "lease", "resourceVersion": "1"}, "spec": spec}
            self.request("update", "leases", Terms().lease, CONTROLLER, {}, lease)
            if self.now >= until:
                return
            self.wait(2)

    def tell(self, pod: str) -> None:
        event = {"regarding": {"uid": f"uid-of-{pod}"}}
        self.request("create", "events", "e", CONTROLLER, event, event, 201)

    def census(self, kinds: Sequence[str] = ("pods", "nodes", "queues", "podgroups")) -> None:
        for kind in kinds:
            items = list(self.objects[kind].values())
            listed = {"metadata": {"resourceVersion": str(self._revision)}, "items": items}
            self.request("list", kind, "", "census", None, listed)


def _asking(devices: Mapping[str, int]) -> Object:
    requests = [
        {"name": name, "exactly": {"deviceClassName": name, "count": count}}
        for name, count in devices.items()
    ]
    return {"devices": {"requests": requests}}


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
