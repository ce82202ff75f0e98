"""A cluster in memory: an API server, a controller, schedulers, kubelets, and what really runs.

Schedulers bind whatever they can; a tenant could have any. What runs is read off pods, nodes and claims, never off a book or a
record of ours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from core import names
from core.cards.inventory import Inventory
from core.node_match import compiled
from core.objects import Pod, node, pod
from core.settings import Settings
from core.steps import Pace, finish
from tests.adversary.apiserver import FORBIDDEN, HOME, TENANT, RefusedError, key_of
from tests.adversary.leader import Led
from tests.builders.raw import Json, copied

CLUSTER: Final = "cluster"
"""Whoever acts for the cluster itself: schedulers, kubelets, the claim controller."""
DRIVER: Final = "driver.example.com/"
"""On nodes in memory, with a DeviceClass after it: how many of its devices a driver offers there."""

_ROUNDS: Final = 20


class World(Led):
    """Begins with a controller that leads, and nothing else."""

    def __init__(self, settings: Settings) -> None:
        self.inventory = Inventory({})
        self.laid_over: dict[str, str] = {}
        """Annotations that schedulers bring along with each Binding."""
        self.prepared: dict[str, dict[str, Counter[str]]] = {}
        """The devices that a pod was started with, by the UIDs of pod and claim, whatever becomes of the claim."""
        super().__init__(settings)

    def changed(self, kind: str, old: Json | None, new: Json | None) -> None:
        if kind == "Node" and new is not None:
            self.inventory.put(node.project(new))
        super().changed(kind, old, new)

    def settle(self) -> None:
        """Everybody does what is to be done, until nobody has anything left."""
        for _ in range(_ROUNDS):
            before = self._serial
            self._make_claims()
            self.control()
            for view in self.views():
                self._schedule(view)
            self._run()
            if before == self._serial:
                return
        raise AssertionError("there is no end to what is written")

    def views(self) -> list[Pod]:
        return [pod.project(raw) for raw in self.all("Pod")]

    def view(self, name: str) -> Pod:
        return pod.project(self.get("Pod", name))

    def _make_claims(self) -> None:
        """The claim controller: a claim for each pod that names a template, gated or not, and another where that is gone."""
        for view in self.views():
            for entry, _, template_name in view.claims:
                template = self.find("ResourceClaimTemplate", template_name)
                made = self.find("ResourceClaim", view.generated_claims.get(entry) or "")
                if template is None or made is not None:
                    continue
                name = f"{view.name}-{entry}-{self._serial}"
                self._generate(name, view, template["spec"]["spec"])
                raw = self.get("Pod", view.name)
                said = {"resourceClaimStatuses": [{"name": entry, "resourceClaimName": name}]}
                self.put({**raw, "status": {**raw["status"], **said}})

    def _schedule(self, view: Pod) -> None:
        """A scheduler tries all nodes that the pod's own rules admit and that have room, devices included."""
        if view.gates or view.bound or view.deleting or view.terminal:
            return
        match = finish(compiled(view.node_rules))
        for raw in self.all("Node"):
            if finish(match.admits(node.project(raw), Pace(1000))) and self._has_room(view, raw):
                self._allocate(view, raw)
                try:
                    self.bind(view.name, raw["metadata"]["name"], CLUSTER, self.laid_over)
                except RefusedError:
                    continue
                return

    def bind(
        self, name: str, node_name: str, user: str = TENANT, annotations: Mapping[str, str] | None = None
    ) -> None:
        """A Binding as a scheduler posts it, past our hook if nobody leads: its failurePolicy is Ignore."""
        if user == TENANT:
            raise RefusedError(FORBIDDEN)
        raw = self.get("Pod", name)
        written: Mapping[str, str] = dict(annotations or {})
        binding = {"metadata": {"name": name, "annotations": written}, "target": {"name": node_name}}
        view = pod.project(raw)
        if self.leads:
            written = self.hooked(binding, view, node_name)
        if view.gates or view.bound or view.deleting:
            raise RefusedError("Conflict")
        bound = copied(raw)
        bound["metadata"]["annotations"] = {**(bound["metadata"].get("annotations") or {}), **written}
        bound["spec"] |= {"nodeName": node_name}
        self.put(bound)

    def _allocate(self, view: Pod, on: Json) -> None:
        """A scheduler allocates claims before it binds, and makes one for what no device plugin serves on the node."""
        for key in self.claims_of(view):
            raw = self.objects["ResourceClaim"][key]
            if not self._allocated(key):
                self.put({**raw, "status": _allocation(raw["spec"])})
        wanted, name = self._served_by_driver(view, on), f"{view.name}-extended-resources-{view.uid}"
        if not wanted or any(not entry for entry, _, _ in view.claims):
            return
        requests: list[Json] = [
            {"name": f"r{number}", "exactly": {"deviceClassName": served, "count": count}}
            for number, (served, count) in enumerate(sorted(wanted.items()))
        ]
        spec = {"devices": {"requests": requests}}
        made = self._generate(name, view, spec)
        self.put({**made, "status": _allocation(spec)})
        raw = self.get("Pod", view.name)
        said = {"extendedResourceClaimStatus": {"resourceClaimName": name}}
        self.put({**raw, "status": {**raw["status"], **said}})

    def _generate(self, name: str, view: Pod, spec: Json) -> Json:
        """A claim that goes with its pod."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": view.name, "uid": view.uid, "controller": True}
        metadata = {"name": name, "namespace": HOME, "ownerReferences": [owner]}
        return self.create({"kind": "ResourceClaim", "metadata": metadata, "spec": spec}, CLUSTER)

    def _run(self) -> None:
        """Kubelets start what has all that it asks for: a pod that came with its node passed no scheduler."""
        for view in self.views():
            on = self.find("Node", view.node_name) if view.bound else None
            if on is None or view.phase != "Pending" or view.deleting:
                continue
            raw = self.get("Pod", view.name)
            if names.MIRROR_POD_ANNOTATION in raw["metadata"].get("annotations", {}):
                continue
            if not self._plugin_has_room(view, on):
                self.put({**raw, "status": {**raw["status"], "phase": "Failed"}})
            elif all(map(self._allocated, self.claims_of(view))):
                self.prepared[view.uid] = {
                    self.objects["ResourceClaim"][key]["metadata"]["uid"]: self.devices_of(key)
                    for key in self.claims_of(view)
                }
                self.put({**raw, "status": {**raw["status"], "phase": "Running"}})

    def end(self, name: str, phase: str = "Succeeded") -> None:
        """The containers of a pod end; its claims are free again if nobody else has them."""
        raw = self.get("Pod", name)
        self.put({**raw, "status": {**raw["status"], "phase": phase}})
        self.collect()

    def collect(self) -> None:
        """Pods whose grace is over are gone, with what was made for them; claims that nobody uses lose their devices."""
        for view in self.views():
            if view.deleting and view.terminal:
                self.gone(self.get("Pod", view.name))
        used = {key for view in self.views() if not view.terminal for key in self.claims_of(view)}
        alive = {view.uid for view in self.views()}
        for raw in self.all("ResourceClaim"):
            owners = {
                each["uid"] for each in raw["metadata"].get("ownerReferences", ()) if each["kind"] == "Pod"
            }
            if owners - alive or (key_of(raw) not in used and "deletionTimestamp" in raw["metadata"]):
                self.gone(raw)
            elif key_of(raw) not in used and raw.get("status"):
                self.put({**raw, "status": {}})

    # -- what is there -------------------------------------------------------------------------------------------

    def running(self) -> Iterator[Pod]:
        """The pods whose containers run; those too that were forced off the API while they had a long grace."""
        yield from (view for view in self.views() if view.bound and view.phase == "Running")
        yield from map(pod.project, self.forced_off)

    def used_by(self, view: Pod) -> Counter[str]:
        """What a running pod uses, by the keys of quotas: what it occupies, and the devices of its claims."""
        used = self.occupied_by(view)
        for key in self.claims_of(view):
            used.update({f"deviceclass/{name}": count for name, count in self.devices_of(key).items()})
        return used

    def occupied_by(self, view: Pod) -> Counter[str]:
        """The cards of its node that a running pod has, whole or in hundredths."""
        used: Counter[str] = Counter()
        for card, stock in self.inventory.on_node(view.node_name).items():
            used[card] += view.requests.get(stock.resource, 0) // 1000
        used[names.MGPU_CORE] += view.requests.get(names.MGPU_CORE, 0) // 1000
        return +used

    def claims_of(self, view: Pod) -> list[str]:
        """The claims of a pod that are there."""
        by_entry = {entry: name or view.generated_claims.get(entry) or "" for entry, name, _ in view.claims}
        stored = self.objects.get("ResourceClaim", {})
        return [key for name in by_entry.values() if (key := f"{HOME}/{name}") in stored]

    def _allocated(self, key: str) -> bool:
        return "allocation" in self.objects["ResourceClaim"][key].get("status", {})

    def devices_of(self, key: str) -> Counter[str]:
        """The devices of an allocated claim, by class."""
        return _requested(self.objects["ResourceClaim"][key]["spec"]) if self._allocated(key) else Counter()

    def _served_by_driver(self, view: Pod, on: Json) -> Counter[str]:
        """The devices that a pod gets on a node for its extended resources, by class: none that a device plugin serves."""
        plugin = on["status"].get("allocatable", {})
        wanted: Counter[str] = Counter()
        serving = self.context.view.serving
        assert serving is not None
        for resource in view.extended:
            name = None if resource in plugin else serving.serving(resource)
            if name is not None:
                wanted[name] += view.requests[resource] // 1000
        return wanted

    def _has_room(self, view: Pod, on: Json) -> bool:
        """Whether device plugins and drivers of the node offer what the pod asks for."""
        offered, wanted = _plugins(on), self._served_by_driver(view, on)
        asked = (*view.extended, *(each for each in names.MGPU_RESOURCES if view.requests.get(each)))
        if not wanted and any(resource not in offered for resource in asked):
            return False
        for key in self.claims_of(view):
            if not self._allocated(key):
                wanted += _requested(self.objects["ResourceClaim"][key]["spec"])
        drivers = on["metadata"].get("labels", {})
        devices = all(int(drivers.get(DRIVER + name, 0)) >= count for name, count in wanted.items())
        return devices and self._plugin_has_room(view, on)

    def _plugin_has_room(self, view: Pod, on: Json) -> bool:
        """Whether what device plugins of the node offer suffices, beside all that is there and has not ended."""
        others = [
            each
            for each in self.views()
            if each.node_name == on["metadata"]["name"] and not each.terminal and each.uid != view.uid
        ]
        return all(
            view.requests.get(resource, 0) + sum(each.requests.get(resource, 0) for each in others) <= offer
            for resource, offer in _plugins(on).items()
        )


def _plugins(on: Json) -> dict[str, int]:
    """What device plugins offer on a node, in thousandths."""
    return {key: int(text) * 1000 for key, text in on["status"].get("allocatable", {}).items()}


def _requested(spec: Json) -> Counter[str]:
    """The devices that a claim asks for, by class."""
    found: Counter[str] = Counter()
    for each in spec["devices"]["requests"]:
        found[each["exactly"]["deviceClassName"]] += each["exactly"].get("count", 1)
    return found


def _allocation(spec: Json) -> Json:
    """The status of a claim that has got what it asks for."""
    requests = spec["devices"]["requests"]
    results = [{"request": r["name"]} for r in requests for _ in range(r["exactly"].get("count", 1))]
    return {"allocation": {"devices": {"results": results}}}
