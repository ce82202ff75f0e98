"""The Volcano Queue: quota in, usage out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core import names
from core.objects import raw as read


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue. Resource lists in thousandths; annotation texts and `status.allocated` as they stand."""

    name: str
    uid: str
    resource_version: str
    created: int
    deleting: bool
    card_quota: str
    dra_quota: str
    namespaces: str | None
    """The annotations that say who may use the queue; None where there is none, which is not the same as an empty one."""
    namespace_selector: str | None
    spec_dra: object
    """`spec.dra` as it stands, whatever its type: one that cannot be read must not count as none. None where there is none."""
    sent_dra: bool
    """Whether kubectl last sent a `spec.dra`, stored or not."""
    capability: Mapping[str, int]
    deserved: Mapping[str, int]
    guarantee: Mapping[str, int]
    has_capability: bool
    parent: str
    priority: int
    fifo: bool
    state: str
    allocated: Mapping[str, str]
    foreign_allocated: frozenset[str]
    """Keys of `status.allocated` that a manager other than ours owns."""

    def says_the_same(self, other: "Queue | None") -> bool:
        """Whether nothing has been written since but what it shows of its use."""
        if other is None:
            return False
        as_shown = replace(other, allocated=self.allocated, foreign_allocated=self.foreign_allocated)
        return self == replace(as_shown, resource_version=self.resource_version)

    @property
    def open(self) -> bool:
        """Whether pods may be lifted. No state at all counts as open: without Volcano nobody writes it."""
        return self.state in ("", "Open")


def project(raw: Mapping[str, Any]) -> Queue:
    """The view of a scheduling.volcano.sh/v1beta1 Queue."""
    metadata, spec, status = (read.mapping(raw, part) for part in ("metadata", "spec", "status"))
    annotations = read.texts(metadata, "annotations")
    return Queue(
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        resource_version=read.text(metadata, "resourceVersion"),
        created=read.timestamp(metadata.get("creationTimestamp")),
        deleting=metadata.get("deletionTimestamp") is not None,
        card_quota=annotations.get(names.CARD_QUOTA_ANNOTATION, ""),
        dra_quota=annotations.get(names.DRA_QUOTA_ANNOTATION, ""),
        namespaces=annotations.get(names.NAMESPACES_ANNOTATION),
        namespace_selector=annotations.get(names.NAMESPACE_SELECTOR_ANNOTATION),
        spec_dra=spec.get("dra"),
        sent_dra=sent_dra(annotations),
        capability=read.resources(spec, "capability"),
        deserved=read.resources(spec, "deserved"),
        guarantee=read.resources(spec, "guarantee", "resource"),
        has_capability=bool(read.mapping(spec, "capability")),
        parent=read.text(spec, "parent"),
        priority=read.integer(spec, "priority"),
        fifo=spec.get("dequeueStrategy") == "fifo",
        state=read.text(status, "state"),
        allocated=_usage(status),
        foreign_allocated=foreign_keys(metadata),
    )


def _usage(status: Mapping[str, Any]) -> dict[str, str]:
    """`status.allocated` as text; an amount may be written as a bare number."""
    return {
        key: str(value)
        for key, value in read.entries(status, "allocated")
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def sent_dra(annotations: Mapping[str, str]) -> bool:
    """Whether the object that kubectl last applied holds a `spec.dra` that is not empty."""
    applied = annotations.get(names.LAST_APPLIED_ANNOTATION, "")
    if '"dra"' not in applied:
        return False
    try:
        return bool(read.mapping(json.loads(applied), "spec").get("dra"))
    except (ValueError, RecursionError):
        return False


def foreign_keys(metadata: Mapping[str, Any]) -> frozenset[str]:
    """The keys of `status.allocated` that `metadata.managedFields` gives to a manager other than ours."""
    return frozenset(
        key[2:]
        for entry in read.sequence(metadata, "managedFields")
        if isinstance(entry, dict) and entry.get("manager") != names.FIELD_MANAGER
        for key, _ in read.entries(entry, "fieldsV1", "f:status", "f:allocated")
        if key.startswith("f:")
    )
