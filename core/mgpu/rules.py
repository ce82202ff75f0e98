"""Admission rules for pods and pod templates that ask for mGPU, on raw JSON.

The verdict is about the object alone. Everything that is wrong is reported at once, container by container.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import Any, Final

from core import names, quantity, reasons, violations
from core.mgpu import ask, shares
from core.mgpu.ask import CardCountsError, parse_counts
from core.objects import raw as read
from core.objects.draft import Draft
from core.settings import MgpuSettings
from core.violations import Findings, Hint, Violation

_TOLD: Final = 100
"""Of more records in one object nobody reads."""
_LARGEST_PLAUSIBLE_MIB: Final = 2**20
"""1 TiB for one container: above it somebody counted bytes."""


class Flaw(Enum):
    """What is wrong with the way an amount is written."""

    NOT_WHOLE = auto()
    NO_LIMIT = auto()
    """Requested without a limit."""
    DIFFERS = auto()
    """Request and limit are two numbers."""


@dataclass(frozen=True, slots=True)
class Amount:
    """One key of one container.

    `path` is that of `written`, or, of an absent key, that of the limit which is missing. `value` is the request
    where there is one, else the limit; None when the key is absent or no whole number.
    """

    key: str
    path: str
    limit_path: str
    written: object = None
    limit: object = None
    present: bool = False
    value: int | None = None
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container, asking or not."""

    index: int
    name: str
    path: str
    core: Amount
    memory: Amount

    @property
    def label(self) -> str:
        """`container "name"`, safe to print."""
        return f"container {violations.show(self.name)}"

    @property
    def amounts(self) -> tuple[Amount, Amount]:
        """Core and memory."""
        return self.core, self.memory

    @property
    def asks(self) -> bool:
        """Whether either key is there, whatever its value."""
        return self.core.present or self.memory.present

    @property
    def readable(self) -> bool:
        """Whether what is there is whole numbers."""
        return all(amount.flaw is not Flaw.NOT_WHOLE for amount in self.amounts)


def containers(spec: Mapping[str, Any], prefix: str, section: str) -> list[Container]:
    """The containers of one list of a pod spec: `section` is `containers` or `initContainers`."""
    result = []
    for index, raw in enumerate(read.sequence(spec, section)):
        path = f"{prefix}spec.{section}[{index}]"
        core, memory = (_amount(f"{path}.resources", raw, key) for key in names.MGPU_RESOURCES)
        result.append(Container(index, read.text(read.mapping(raw), "name"), path, core, memory))
    return result


def _amount(path: str, raw: object, key: str) -> Amount:
    limits, requests = (read.mapping(raw, "resources", kind) for kind in ("limits", "requests"))
    limit_path, request_path = (violations.child(f"{path}.{kind}", key) for kind in ("limits", "requests"))
    if key not in limits and key not in requests:
        return Amount(key, limit_path, limit_path)
    limit, request = _whole(limits, key), _whole(requests, key)
    at_request = key in requests and (key not in limits or (limit is not None and limit != request))
    shown, flaw, value = (requests, None, request) if at_request else (limits, None, limit)
    if value is None:
        flaw = Flaw.NOT_WHOLE
    elif key not in limits:
        flaw = Flaw.NO_LIMIT
    elif at_request:
        flaw = Flaw.DIFFERS
    return Amount(
        key=key,
        path=request_path if at_request else limit_path,
        limit_path=limit_path,
        written=shown[key],
        limit=limits.get(key),
        present=True,
        value=value,
        flaw=flaw,
    )


def _whole(amounts: Mapping[str, Any], key: str) -> int | None:
    if key not in amounts:
        return None
    try:
        value = quantity.parse(amounts[key])
    except quantity.QuantityError:
        return None
    return int(value) if quantity.is_whole(value) else None


def judge(draft: Draft, settings: MgpuSettings, found: Findings) -> None:
    """Adds all findings about a pod at its creation, or about a pod template, that asks for mGPU in any container.

    Which schedulers and features are served is the caller's question.
    """
    if not draft.mgpu:
        return
    mains, inits = (containers(draft.spec, draft.prefix, each) for each in ("containers", "initContainers"))
    at, texts = f"{draft.prefix}metadata.annotations", draft.texts
    found.violations += islice(_record_violations(at, draft.annotations), _TOLD)
    if not draft.prefix:
        found.violations += _node_name_violations(texts, draft.spec)
    found.violations += _init_violations(inits)
    found.violations += _container_violations(at, texts, mains, settings)
    found.hints += _policy_hints(at, texts)
    found.hints += _unit_hints(mains)


def _record_violations(at: str, annotations: Mapping[str, Any]) -> Iterator[Violation]:
    for key, value in annotations.items():
        if key == names.ASSUMED_ANNOTATION or key.startswith(names.GPU_INDEX_GUARD_PREFIX):
            detail = f"pod: {key} is set by the scheduler/controller only"
            yield Violation(reasons.RECORD_PROTECTED, violations.child(at, key), detail, "Forbidden", value)


def _node_name_violations(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> Iterator[Violation]:
    """A pod that comes with its node passes no Binding, and only a Binding can give it its cards."""
    if spec.get("nodeName") and names.MIRROR_POD_ANNOTATION not in annotations:
        detail = "pod: spec.nodeName must not be set on a pod that asks for mGPU: its cards are chosen when it is bound"
        yield Violation(reasons.NODE_NAME_PRESET, "spec.nodeName", detail, "Forbidden", spec["nodeName"])


def _init_violations(inits: Iterable[Container]) -> Iterator[Violation]:
    for container in inits:
        for amount in container.amounts:
            if amount.present:
                detail = f"{container.label}: {amount.key} is not supported in an init container"
                yield Violation(reasons.MGPU_INIT_CONTAINER, amount.path, detail, "Forbidden", amount.written)


def _container_violations(
    at: str, annotations: Mapping[str, str], mains: list[Container], settings: MgpuSettings
) -> Iterator[Violation]:
    """In the order of the containers; a broken list of card counts comes first and silences the rules that use it."""
    text = annotations.get(names.MGPU_MULTIPLE_ANNOTATION)
    path = violations.child(at, names.MGPU_MULTIPLE_ANNOTATION)
    counts: tuple[int, ...] = ()
    if text is not None:
        counts, problem = _counts(text, len(mains))
        if problem:
            yield Violation(reasons.MGPU_CARD_COUNTS, path, f"pod: {problem}", value=text)
    for container in mains:
        if container.asks:
            yield from _shape_violations(container)
        if not container.readable:
            continue
        for fault in _faults(container, counts, settings, multi=text is not None):
            if fault.key == names.MGPU_MULTIPLE_ANNOTATION:
                yield Violation(fault.code, path, f"{container.label}: {fault.detail}", value=text)
            else:
                yield _amount_violation(container, fault)


def _counts(text: str, expected: int) -> tuple[tuple[int, ...], str]:
    """The card counts and, where they are unusable, none and the reason."""
    try:
        counts = parse_counts(text)
    except CardCountsError as error:
        return (), f"{names.MGPU_MULTIPLE_ANNOTATION} {error}"
    return (counts, "") if len(counts) == expected else ((), ask.length_detail(len(counts), expected))


def _faults(
    container: Container, counts: tuple[int, ...], settings: MgpuSettings, *, multi: bool
) -> Iterator[shares.Fault]:
    core, memory = container.core.value, container.memory.value
    if not multi:
        if container.asks:
            yield from shares.normal_faults(core, memory, settings.min_normal_memory)
    elif counts:
        yield from shares.multi_faults(core, memory, counts[container.index], settings.min_multi_memory)


def _amount_violation(container: Container, fault: shares.Fault) -> Violation:
    amount = container.core if fault.key == names.MGPU_CORE else container.memory
    detail = f"{container.label}: {fault.detail}"
    if fault.missing:
        return Violation(fault.code, amount.limit_path, detail, "Required value")
    return Violation(fault.code, amount.path, detail, value=amount.written)


def _shape_violations(container: Container) -> Iterator[Violation]:
    """Faults of an asking container whatever kind of pod it is in: its name, and how the amounts are written."""
    if len(container.name) > names.MGPU_CONTAINER_NAME_MAX:
        detail = (
            f"{container.label}: the name of a container that asks for mGPU has at most"
            f" {names.MGPU_CONTAINER_NAME_MAX} characters, so that its record fits an annotation key;"
            f" this one has {len(container.name)}"
        )
        path = f"{container.path}.name"
        yield Violation(reasons.MGPU_CONTAINER_NAME, path, detail, "Too long", container.name)
    for amount in container.amounts:
        yield from _flaw_violations(container.label, amount)


def _flaw_violations(label: str, amount: Amount) -> Iterator[Violation]:
    match amount.flaw:
        case Flaw.NOT_WHOLE:
            detail = f"{label}: {amount.key} must be a whole number (integer)"
            yield Violation(reasons.MGPU_QUANTITY, amount.path, detail, value=amount.written)
        case Flaw.NO_LIMIT:
            detail = f"{label}: the request of {amount.key} must equal the limit, and there is no limit"
            yield Violation(reasons.MGPU_LIMIT_DIFFERS, amount.limit_path, detail, "Required value")
        case Flaw.DIFFERS:
            limit = violations.show(amount.limit)
            detail = f"{label}: the request of {amount.key} must equal the limit, which is {limit}"
            yield Violation(reasons.MGPU_LIMIT_DIFFERS, amount.path, detail, value=amount.written)
        case None:
            return


def _policy_hints(at: str, annotations: Mapping[str, str]) -> Iterator[Hint]:
    policy = annotations.get(names.MGPU_POLICY_KEY, ask.FIXED_SHARE)
    path = violations.child(at, names.MGPU_POLICY_KEY)
    shown = violations.show(policy)
    if policy not in ask.POLICIES:
        known = ", ".join(ask.POLICIES)
        detail = (
            f"pod: {shown} is none of the compute policies {known}: only a node labelled so can serve the pod"
        )
        yield Hint(reasons.MGPU_POLICY, path, detail)
    if names.MGPU_MULTIPLE_ANNOTATION in annotations and policy != ask.NATIVE_BURST_SHARE:
        detail = (
            f"pod: container-multiple-gpu needs the compute policy {ask.NATIVE_BURST_SHARE}, not {shown}:"
            " no node can serve the pod"
        )
        yield Hint(reasons.MGPU_POLICY, path, detail)


def _unit_hints(mains: Iterable[Container]) -> Iterator[Hint]:
    """The memory resource counts MiB, so a suffix as for bytes asks for a million times too much."""
    for container in mains:
        memory = container.memory
        if memory.value is None:
            continue
        binary = isinstance(memory.written, str) and memory.written.endswith("i")
        if binary or memory.value > _LARGEST_PLAUSIBLE_MIB:
            given = f"{violations.show(memory.written)} is {memory.value} MiB"
            detail = f"{container.label}: mgpu-memory counts MiB: {given}"
            yield Hint(reasons.MGPU_MEMORY, memory.path, detail)
