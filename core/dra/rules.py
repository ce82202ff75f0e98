"""What is said when a queue with a device quota is written: refusals about the object alone, warnings about the rest.

Only a write that changes the quota is judged, so that an object stored before a rule existed can still be edited, closed and
deleted. Whatever other queues, DeviceClasses or the present usage have to do with it is a warning: they may change.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core import names, quantity, reasons
from core.dra.amounts import DeviceKey, nano, render
from core.dra.carriers import (
    ANNOTATION_PATH,
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    SPEC_PATH,
    Bound,
    Carrier,
    device_keys,
    device_limits_of,
    read_carriers,
)
from core.hierarchy import Chain, chain_of
from core.objects import Queue
from core.objects import raw as read
from core.objects.queue import sent_dra
from core.violations import Findings, Hint, Violation, show

_ORDER = ((DESERVED, CAPABILITY), (GUARANTEE, DESERVED), (GUARANTEE, CAPABILITY))
"""What must not be greater than what."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A queue as it is written, raw."""

    name: str
    parent: str
    spec_dra: object
    annotation: str
    keys: Mapping[str, int]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "_Written":
        spec = read.mapping(raw, "spec")
        return cls(
            name=read.text(read.mapping(raw, "metadata"), "name"),
            parent=read.text(spec, "parent"),
            spec_dra=spec.get("dra"),
            annotation=read.texts(raw, "metadata", "annotations").get(names.DRA_QUOTA_ANNOTATION, ""),
            keys=device_keys(read.resources(spec, "capability")),
        )

    @property
    def quota(self) -> tuple[object, ...]:
        """All that the quota is made of."""
        return self.spec_dra, self.annotation, self.keys

    @property
    def has_quota(self) -> bool:
        """Whether there is any."""
        return self.spec_dra is not None or bool(self.annotation or self.keys)


def judge(
    raw: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    queues: Mapping[str, Queue] | None,
    device_classes: Container[str] | None,
    hierarchy: bool,
) -> Findings:
    """What is wrong with the device quota of a queue, and what is worth a hint.

    `old` is what is stored now, empty for a new queue. `queues` and `device_classes` are None where they are not known;
    what needs them is left out then. Without `hierarchy` parents have no say.
    """
    now, was = _Written.of(raw), _Written.of(old)
    findings = Findings()
    if now.quota != was.quota:
        carriers = read_carriers(now.spec_dra, now.annotation, now.keys)
        chain = _chain(now, queues) if hierarchy and queues is not None else Chain(())
        above = [queues[name] for name in chain.queues[1:] if queues and name in queues]
        violations = [violation for carrier in carriers for violation in carrier.violations]
        findings += Findings(
            [*violations, *_order(carriers), *_differences(carriers)],
            [*_hints(carriers, device_classes), *_above(carriers, above), *_below_usage(carriers, old)],
        )
    findings.hints += _pruned(raw, old, now)
    return findings


# -- the chain of parents ------------------------------------------------------------------------------------


def _chain(now: _Written, queues: Mapping[str, Queue]) -> Chain:
    """The chain that the queue would have."""

    def parent_of(name: str) -> str | None:
        if name == now.name:
            return now.parent
        return queues[name].parent if name in queues else None

    return chain_of(now.name, parent_of)


# -- contradictions ------------------------------------------------------------------------------------------


def _order(carriers: Sequence[Carrier]) -> Iterator[Violation]:
    """Guarantee, deserved and capability in rising order, wherever two of them name the same."""
    for lesser, greater in _ORDER:
        ceilings = _bounds(carriers, greater)
        for carrier in carriers:
            for key, bound in carrier.bounds[lesser].items():
                ceiling = ceilings.get(key)
                if ceiling is not None and bound.amount > ceiling.amount:
                    detail = f"must be at most {render(ceiling.amount)}, which is the {greater}"
                    value = render(bound.amount)
                    yield Violation(reasons.DEVICE_QUOTA_CONTRADICTORY, bound.path, detail, value=value)


def _bounds(carriers: Sequence[Carrier], kind: str) -> dict[DeviceKey, Bound]:
    """The amounts of one kind, the smaller one where two places name the same."""
    found: dict[DeviceKey, Bound] = {}
    for carrier in carriers:
        for key, bound in carrier.bounds[kind].items():
            if key not in found or bound.amount < found[key].amount:
                found[key] = bound
    return found


def _differences(carriers: Sequence[Carrier]) -> Iterator[Violation]:
    """One class with different limits in two places."""
    first: dict[str, Carrier] = {}
    limits = {carrier.path: carrier.limits() for carrier in carriers}
    for carrier in carriers:
        for device_class, path in carrier.classes.items():
            other = first.setdefault(device_class, carrier)
            if device_class in other.closed or device_class in carrier.closed:
                continue  # what cannot be read is told already
            if limits[carrier.path].get(device_class) != limits[other.path].get(device_class):
                detail = f"DeviceClass {device_class} has other limits in {other.path}"
                yield Violation(reasons.DEVICE_QUOTA_CONTRADICTORY, path, detail)


# -- warnings ------------------------------------------------------------------------------------------------


def _hints(carriers: Sequence[Carrier], device_classes: Container[str] | None) -> Iterator[Hint]:
    """What is worth a hint about the quota itself."""
    for carrier in carriers:
        yield from carrier.hints
        for device_class, path in carrier.classes.items():
            if device_class in carrier.closed:
                continue
            if device_classes is not None and device_class not in device_classes:
                text = f"there is no DeviceClass {show(device_class)} now"
                yield Hint(reasons.DEVICE_CLASS_UNKNOWN, path, text)
            count = carrier.bounds[CAPABILITY].get(DeviceKey(device_class))
            if count is not None and count.amount == 0:
                text = f"count 0: no pod of the queue may use DeviceClass {device_class}"
                yield Hint(reasons.DEVICE_CLASS_CLOSED, path, text)
        for kind in (DESERVED, GUARANTEE):
            if carrier.bounds[kind]:
                text = f"{kind} is stored, but not enforced"
                yield Hint(reasons.DEVICE_QUOTA_INERT, f"{carrier.path}.{kind}", text)
    deserved = {key.device_class for key in _bounds(carriers, DESERVED)}
    guaranteed = {key.device_class: bound for key, bound in _bounds(carriers, GUARANTEE).items()}
    for device_class, bound in guaranteed.items():
        if device_class not in deserved:
            text = f"DeviceClass {device_class} has a guarantee and nothing deserved"
            yield Hint(reasons.DEVICE_QUOTA_INERT, bound.path, text)


def _above(carriers: Sequence[Carrier], above: Sequence[Queue]) -> Iterator[Hint]:
    """Limits beyond what the nearest queue above allows that limits the same."""
    limits = [(queue.name, device_limits_of(queue).bounds) for queue in above]
    for key, bound in _bounds(carriers, CAPABILITY).items():
        name, limit = next(
            ((name, bounds[key]) for name, bounds in limits if key in bounds), ("", bound.amount)
        )
        if bound.amount > limit:
            text = f"{render(bound.amount)} is more than the {render(limit)} of queue {name} above; the smaller limit holds"
            yield Hint(reasons.DEVICE_QUOTA_ABOVE_PARENT, bound.path, text)


def _below_usage(carriers: Sequence[Carrier], old: Mapping[str, Any]) -> Iterator[Hint]:
    """Limits below what the status of the stored queue says is in use."""
    used = _published(old)
    for key, bound in _bounds(carriers, CAPABILITY).items():
        if used.get(key, 0) > bound.amount:
            text = (
                f"{render(used[key])} of {key.display} are in use, more than {render(bound.amount)}; "
                "nothing is evicted, new pods wait"
            )
            yield Hint(reasons.QUOTA_BELOW_USE, bound.path, text)


def _published(raw: Mapping[str, Any]) -> dict[DeviceKey, int]:
    """What `status.allocated` says of devices."""
    used: dict[DeviceKey, int] = {}
    for name, value in read.entries(raw, "status", "allocated"):
        key = DeviceKey.parse(name)
        try:
            amount = nano(quantity.parse(value))
        except quantity.QuantityError:
            continue
        if key is not None:
            used[key] = amount
    return used


def _pruned(raw: Mapping[str, Any], old: Mapping[str, Any], now: _Written) -> Iterator[Hint]:
    """A quota that kubectl sent and that the API server dropped before anybody saw it."""
    annotations, before = (read.texts(each, "metadata", "annotations") for each in (raw, old))
    applied = annotations.get(names.LAST_APPLIED_ANNOTATION)
    if now.has_quota or applied == before.get(names.LAST_APPLIED_ANNOTATION):
        return
    if sent_dra(annotations):
        text = (
            "was dropped, as the cluster's definition of Queue lacks it; "
            f"use {ANNOTATION_PATH}, or extend the definition (dra.queueCRD) and apply again"
        )
        yield Hint(reasons.DEVICE_QUOTA_PRUNED, SPEC_PATH, text)
