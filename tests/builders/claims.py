"""The builders of ResourceClaims and their templates: `a_claim("c").exactly("gpu", "nvidia-h100", count=2).build()`.

They write the form of resource.k8s.io/v1.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from core.objects import Claim, ClaimTemplate, DeviceClass, claim, device_class
from tests.builders.raw import Builder, Json, metadata

Amount = int | str


def a_way(
    device_class: str, *, count: Any = None, capacity: Mapping[str, Amount] | None = None, **more: Any
) -> Json:
    """One way to serve a request; `mode`, `admin` and `name` as far as they are given."""
    names = {"mode": "allocationMode", "admin": "adminAccess", "name": "name"}
    way: Json = {"deviceClassName": device_class, **{names[key]: value for key, value in more.items()}}
    way |= {} if count is None else {"count": count}
    return way | ({} if capacity is None else {"capacity": {"requests": dict(capacity)}})


class _Requesting(Builder):
    """What claim and template have in common."""

    __slots__ = ()
    _SPEC: tuple[str, ...] = ("spec",)

    def request(self, raw: Any) -> Self:
        """A request as it stands."""
        return self.add(*self._SPEC, "devices", "requests", item=raw)

    def exactly(self, name: str, device_class: str, **way: Any) -> Self:
        """A single request, see `a_way`."""
        return self.request({"name": name, "exactly": a_way(device_class, **way)})

    def first_available(self, name: str, *ways: Json) -> Self:
        """A prioritized list of ways, each with a name."""
        return self.request({"name": name, "firstAvailable": list(ways)})


class ClaimBuilder(_Requesting):
    """A ResourceClaim."""

    __slots__ = ()

    def made_for(self, pod: str, *, uid: str = "") -> Self:
        """Generated for a pod of the builders' namespace."""
        return self.owned_by("Pod", pod, api_version="v1", uid=uid or f"uid-ml-{pod}")

    def allocated(self, *requests: str) -> Self:
        """One device for each of these names of requests; a name may come more than once."""
        results = [{"request": name, "driver": "d", "pool": "p", "device": "x"} for name in requests]
        return self.put("status", "allocation", "devices", "results", value=results)

    def view(self) -> Claim:
        return claim.project(self.build())


class TemplateBuilder(_Requesting):
    """A ResourceClaimTemplate."""

    __slots__ = ()
    _SPEC = ("spec", "spec")

    def view(self) -> ClaimTemplate:
        return claim.project_template(self.build())


class DeviceClassBuilder(Builder):
    """A DeviceClass."""

    __slots__ = ()

    def serving(self, resource: str) -> Self:
        """Pods get its devices for an extended resource too."""
        return self.put("spec", "extendedResourceName", value=resource)

    def view(self) -> DeviceClass:
        return device_class.project(self.build())


def a_device_class(name: str = "gpu") -> DeviceClassBuilder:
    """A class of any device."""
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata(name), "spec": {}}
    return DeviceClassBuilder(raw)


def a_claim(name: str = "claim", *, namespace: str = "ml") -> ClaimBuilder:
    """A claim without requests."""
    return ClaimBuilder(_resource("ResourceClaim", name, namespace, {}))


def a_template(name: str = "template", *, namespace: str = "ml") -> TemplateBuilder:
    """A template of claims without requests."""
    return TemplateBuilder(_resource("ResourceClaimTemplate", name, namespace, {"spec": {}}))


def _resource(kind: str, name: str, namespace: str, spec: Json) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(name, namespace),
        "spec": spec,
    }


def in_old_form(raw: Json, *path: str) -> Json:
    """The claim (or, with path `spec`, the template) as resource.k8s.io/v1beta1 serves it: single requests are flat."""
    spec = raw["spec"]
    for key in path:
        spec = spec[key]
    requests: Sequence[Json] = spec.get("devices", {}).get("requests", [])
    flat = [{**request, **request.get("exactly", {})} for request in requests]
    devices = {"requests": [{key: value for key, value in each.items() if key != "exactly"} for each in flat]}
    spec = {**spec, "devices": devices}
    for key in reversed(path):
        spec = {key: spec}
    return {**raw, "apiVersion": "resource.k8s.io/v1beta1", "spec": spec}
