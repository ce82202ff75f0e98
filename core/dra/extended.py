"""Extended resources that a DeviceClass serves: then a scheduler makes the claim, and only while it binds the pod.

The rules are those of Kubernetes 1.36 (KEP-5004). A class serves `deviceclass.resource.kubernetes.io/<its name>`, and the
resource that its `spec.extendedResourceName` names; of several classes with one resource the newest, then the first by name.
On a node whose device plugin offers the resource no claim is made, and nobody knows before the bind which node it will be:
until the claim is in view, or the pod runs without any, it is charged for what it may get.

A driver that is reinstalled, or whose resource moves from one class to another, leaves its resource without a class for a
moment. Whoever was let in then for nothing would have its devices in the next, so the class that served it last goes on doing
so until somebody says that it is gone for good.
"""

from collections.abc import Collection, Iterable, Mapping

from core import names
from core.dra.amounts import DeviceKey, nano
from core.index import Index
from core.objects import DeviceClass, Pod
from core.sharded import Sharded
from core.stage import Stage


class DeviceClasses:
    """The DeviceClasses by name, and which of them serves which resource. Changes cost what they touch."""

    def __init__(self) -> None:
        self._by_name: dict[str, DeviceClass] = {}
        self._by_resource = Index()
        self._orphaned: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Whether any resource may be served."""
        return bool(self._by_name or self._orphaned)

    def __contains__(self, name: object) -> bool:
        """Whether a class exists."""
        return name in self._by_name

    @property
    def orphaned(self) -> Mapping[str, str]:
        """The resources that no class serves any more, with the one that did last; live. It goes on doing so, see `release`."""
        return self._orphaned

    def values(self) -> Iterable[DeviceClass]:
        """All of them, by name."""
        return (self._by_name[name] for name in sorted(self._by_name))

    def put(self, new: DeviceClass) -> frozenset[str]:
        """Takes in a class. Returns the resources that another class serves now, or that one serves only now."""
        return self._replace(new.name, new)

    def drop(self, name: str) -> frozenset[str]:
        """Takes out a class; returns what `put` does. What no other class serves goes on being served by it, see `orphaned`."""
        return self._replace(name, None)

    def release(self, resource: str) -> frozenset[str]:
        """No class serves a resource any more, unless one does; returns what `put` does."""
        return frozenset() if self._orphaned.pop(resource, None) is None else frozenset({resource})

    def serving(self, resource: str) -> str | None:
        """The class whose devices a pod gets for a resource; None where only device plugins offer it."""
        return self._existing(resource) or self._orphaned.get(resource)

    def _existing(self, resource: str) -> str | None:
        """The class that serves a resource, of those that exist."""
        implicit = resource.removeprefix(names.DEVICE_CLASS_RESOURCE_PREFIX)
        if implicit != resource:
            return implicit if implicit in self._by_name else None
        found = (self._by_name[name] for name in self._by_resource.get(resource))
        return min(((-view.created, view.name) for view in found), default=(0, None))[1]

    def _replace(self, name: str, new: DeviceClass | None) -> frozenset[str]:
        old = self._by_name.get(name)
        if old == new:
            return frozenset()
        views = [view for view in (old, new) if view is not None]
        concerned = {f"{names.DEVICE_CLASS_RESOURCE_PREFIX}{name}", *(view.extended for view in views)} - {""}
        before = {resource: self.serving(resource) for resource in concerned}
        if new is None:
            del self._by_name[name]
            self._by_resource.put(name)
        else:
            self._by_name[name] = new
            self._by_resource.put(name, new.extended or None)
        for resource, last in before.items():
            self._orphaned.pop(resource, None)
            if last is not None and self._existing(resource) is None:
                self._orphaned[resource] = last
        return frozenset(resource for resource in concerned if self.serving(resource) != before[resource])


def claimable(pod: Pod) -> Collection[str]:
    """The resources of a pod for which a scheduler may make a claim, or has made the one that the status names.

    None any more once it runs on its node without a claim: then the node's device plugin serves it. Until then nobody knows:
    the claim, the status that names it and the bind come to us one by one, in whatever order.
    """
    return () if _runs_without_claim(pod) else pod.extended


def _runs_without_claim(pod: Pod) -> bool:
    return pod.bound and pod.phase == "Running" and implicit_claim(pod) is None


def implicit_claim(pod: Pod) -> str | None:
    """The claim that a scheduler has made for extended resources, `namespace/name`, as the status names it; None without one."""
    return next((f"{pod.namespace}/{claim}" for entry, claim, _ in pod.claims if not entry and claim), None)


def charged_for(amounts: Mapping[str, int], resource: str, device_class: str) -> dict[DeviceKey, int]:
    """What a resource of a pod with these amounts, in thousandths, costs when a class serves it: one device for each."""
    return {DeviceKey(device_class): nano(-(-amounts[resource] // 1000))}


class Candidates:
    """The pods whose resources a class may come to serve, and where they were booked last."""

    def __init__(self) -> None:
        self._booked = Sharded[tuple[Pod, Stage, str]]()
        self._by_resource = Index()

    def put(self, pod: Pod, stage: Stage, queue: str) -> bool:
        """Takes in a pod as it is booked; returns whether any class might serve it."""
        known = self._booked.get(pod.uid)
        as_before = known is not None and known[0].requests == pod.requests and not _runs_without_claim(pod)
        # It is by what it requests that it is listed.
        resources = () if as_before else claimable(pod)
        if stage is Stage.IGNORED or not (as_before or resources):
            self.drop(pod.uid)
            return False
        if as_before:
            self._booked[pod.uid] = pod, stage, queue
        else:
            self._booked.add(pod.uid, (pod, stage, queue))
            self._by_resource.put(pod.uid, *resources)
        return True

    def drop(self, uid: str) -> None:
        """Takes out a pod; unknown UIDs are fine."""
        if self._booked.pop(uid, None) is not None:
            self._by_resource.put(uid)

    def asking(self, resources: Iterable[str]) -> Collection[str]:
        """The UIDs of the pods that ask for any of these resources, each once."""
        return dict.fromkeys(uid for resource in resources for uid in self._by_resource.get(resource)).keys()

    def booked(self, uids: Iterable[str]) -> list[tuple[Pod, Stage, str]]:
        """Some of them, with stage and queue."""
        return [self._booked[uid] for uid in uids]
