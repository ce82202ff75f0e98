"""The ResourceClaim and its template: which devices it asks for, whatever version of the API wrote it down; and a pod's claims.

resource.k8s.io is served as v1, v1beta2 and v1beta1. The first two keep a single request in `exactly`, the last one flat in
the request itself; a server never stores both forms, so the form tells the version, and behind this file there is one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from core import quantity
from core.objects import raw as read
from core.objects.owner import Owner, controlling_owner
from core.violations import show

EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"
_MODES: Final = (EXACT_COUNT, ALL_DEVICES)
_SCHEDULING: Final = "scheduling.k8s.io/"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to serve a request. `capacity` is what is asked of each single device, exact.

    `name` is empty where it is the only way; `count` says nothing in the mode that takes all devices.
    """

    name: str
    device_class: str
    mode: str
    count: int
    capacity: Mapping[str, Fraction]
    admin_access: bool
    problem: str
    """Why it cannot be counted; empty when it can."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a claim: its alternatives in the order of preference; none when the request is of no known form."""

    name: str
    alternatives: tuple[Alternative, ...]

    def result_name(self, alternative: Alternative) -> str:
        """What the results of an allocation call this way to serve the request."""
        return f"{self.name}/{alternative.name}" if alternative.name else self.name


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim. `owners` are the UIDs of its owner references.

    `group` is the name of the PodGroup of Kubernetes that controls it, empty for any other claim: one claim for all the
    members, and a pod knows its group by name only.
    """

    namespace: str
    name: str
    uid: str
    owners: tuple[str, ...]
    group: str
    requests: tuple[DeviceRequest, ...]
    allocated: Mapping[str, int] | None
    """Devices by the name of the request (or `request/alternative`) that they serve; None while not allocated."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def project(raw: Mapping[str, Any]) -> Claim:
    """The view of a resource.k8s.io ResourceClaim of any served version."""
    metadata = read.mapping(raw, "metadata")
    return Claim(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        owners=tuple(
            read.text(reference, "uid")
            for reference in read.sequence(metadata, "ownerReferences")
            if isinstance(reference, dict)
        ),
        group=_group(controlling_owner(metadata)),
        requests=requests_of(read.mapping(raw, "spec")),
        allocated=_allocated(read.mapping(raw, "status").get("allocation")),
    )


def _group(owner: Owner | None) -> str:
    found = owner is not None and owner.kind == "PodGroup" and owner.api_version.startswith(_SCHEDULING)
    return owner.name if owner is not None and found else ""


def requests_of(spec: Mapping[str, Any]) -> tuple[DeviceRequest, ...]:
    """The device requests of a claim's spec. What cannot be read is kept as a request that cannot be counted."""
    requests = read.mapping(spec, "devices").get("requests")
    if requests is None:
        return ()
    return tuple(map(_request, requests)) if isinstance(requests, list) else (DeviceRequest("", ()),)


def _request(raw: object) -> DeviceRequest:
    fields = read.mapping({"request": raw}, "request")
    exactly, prioritized = fields.get("exactly"), fields.get("firstAvailable")
    name = read.text(fields, "name")
    if isinstance(prioritized, list) and prioritized:
        # Exclusive with a single request, in either form.
        single = exactly is not None or read.text(fields, "deviceClassName")
        return DeviceRequest(name, () if single else tuple(map(_alternative, prioritized)))
    if isinstance(exactly, dict):
        return DeviceRequest(name, (_alternative({**exactly, "name": ""}),))
    if exactly is None and read.text(fields, "deviceClassName"):
        return DeviceRequest(name, (_alternative({**fields, "name": ""}),))
    return DeviceRequest(name, ())


def _alternative(raw: object) -> Alternative:
    fields = read.mapping({"alternative": raw}, "alternative")
    capacity, unreadable = _capacity(fields)
    count = fields.get("count")
    mode = fields.get("allocationMode") or EXACT_COUNT
    problems = [
        "names no DeviceClass" if not read.text(fields, "deviceClassName") else "",
        f"has the allocation mode {show(mode)}, which is not known" if mode not in _MODES else "",
        "" if _is_count(count) else f"has the count {show(count)}, which is no number of devices",
        unreadable,
    ]
    return Alternative(
        name=read.text(fields, "name"),
        device_class=read.text(fields, "deviceClassName"),
        mode=mode if isinstance(mode, str) else "",
        count=count if _is_count(count) and count else 1,
        capacity=capacity,
        admin_access=fields.get("adminAccess") is True,
        problem=next(filter(None, problems), ""),
    )


def _is_count(value: object) -> bool:
    """Whether a count is one, or is not given at all; then, as with 0, the API server takes it for 1."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _capacity(fields: Mapping[str, Any]) -> tuple[dict[str, Fraction], str]:
    """The readable amounts, and what is wrong with another one."""
    amounts: dict[str, Fraction] = {}
    problem = ""
    for dimension, value in read.entries(fields, "capacity", "requests"):
        try:
            amount = quantity.parse(value)
        except quantity.QuantityError:
            amount = Fraction(-1)
        if amount < 0:
            problem = f"asks for {show(value)} of {show(dimension)}, which is no amount"
        else:
            amounts[dimension] = amount
    return amounts, problem


def _allocated(allocation: object) -> dict[str, int] | None:
    if not isinstance(allocation, dict):
        return None
    results = read.sequence(allocation, "devices", "results")
    return dict(Counter(read.text(result, "request") for result in results if isinstance(result, dict)))


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A ResourceClaimTemplate and the requests of the claims that are made from it."""

    namespace: str
    name: str
    uid: str
    requests: tuple[DeviceRequest, ...]

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def project_template(raw: Mapping[str, Any]) -> ClaimTemplate:
    """The view of a resource.k8s.io ResourceClaimTemplate of any served version."""
    metadata = read.mapping(raw, "metadata")
    return ClaimTemplate(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        requests=requests_of(read.mapping(raw, "spec", "spec")),
    )


def claims_of(spec: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """(entry name, claim name, template name) of `spec.resourceClaims`; one of the last two is empty."""
    return tuple(
        [
            (
                read.text(entry, "name"),
                read.text(entry, "resourceClaimName"),
                read.text(entry, "resourceClaimTemplateName"),
            )
            for entry in read.listed(spec, "resourceClaims")
            if isinstance(entry, dict)
        ]
    )


def implicit_claims(status: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """The claim that a scheduler has made for extended resources which a DeviceClass serves; known only at the bind."""
    name = read.text(read.part(status, "extendedResourceClaimStatus"), "resourceClaimName")
    return (("", name, ""),) if name else ()


def generated_claims(status: Mapping[str, Any]) -> dict[str, str | None]:
    """Entry name -> name of the generated claim, None where no claim was needed."""
    return {
        read.text(entry, "name"): read.text(entry, "resourceClaimName") or None
        for entry in read.listed(status, "resourceClaimStatuses")
        if isinstance(entry, dict)
    }
