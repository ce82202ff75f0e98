"""The pod, as far as quota, placement and admission look at it."""

import sys
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import repeat
from operator import attrgetter, call
from types import MappingProxyType
from typing import Any, Final

from core import names, quantity
from core.objects import group_key as group_keys
from core.objects import raw as read
from core.objects.claim import claims_of, generated_claims, implicit_claims
from core.objects.group import Gang, gang_of, pod_group_title, starts_with
from core.objects.node_rules import ANYWHERE, NodeRules, read_rules, ruled_elsewhere
from core.objects.owner import Owner, controlling_owner, without_hash
from core.objects.pod_annotations import kept_annotations
from core.objects.pod_resources import aggregate, extended, granted_by
from core.objects.pod_times import ended_at, has_started, released_at, scheduled_at
from core.objects.taints import Tolerations, tolerations_of

_HELD: Final = names.LET_IN | {names.CARD_NAME_ANNOTATION}
"""Annotations of which a pod that waits at our gate, or has passed it, has one, unless it asks for something else."""
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
"""One for all pods: there are as many as pods."""
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_MGPU: Final = frozenset(names.MGPU_RESOURCES)

LOWEST_PRIORITY: Final = -(2**31)
"""No pod has a lower one."""


@dataclass(frozen=True, slots=True)
class ContainerShare:
    """What one container of `spec.containers` asks of mGPU.

    `core` (100 = one card) and `memory` (MiB) are whole units rounded up; None means that the key is absent.
    """

    index: int
    name: str
    core: int | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. Resource amounts are thousandths, aggregated over all containers as kubectl does it."""

    namespace: str
    name: str
    uid: str
    resource_version: str = field(compare=False)
    revision: str
    """The version while the pod waits for a node: each state counts, for a lift names it. Empty afterwards, so that a state
    is no other one which differs in nothing that is read here, as most do that a kubelet writes."""
    created: int
    deleting: bool
    grace_s: int
    """How many seconds it was given to end when it was deleted; 0 where that is not said."""
    deadline: int
    """When it has to have ended, in microseconds since 1970; 0 unless it is being deleted."""
    annotations: Mapping[str, str]
    annotated: bool
    """Whether there is any annotation, kept here or not."""
    owner: Owner | None
    node_name: str
    scheduler_name: str
    priority: int
    gates: tuple[str, ...]
    phase: str
    started: bool
    requests: Mapping[str, int]
    limits: Mapping[str, int]
    container_count: int
    shares: tuple[ContainerShare, ...]
    share_in_init: bool
    claims: tuple[tuple[str, str, str], ...]
    """(entry name, claim name, template name) of `spec.resourceClaims`; one of the last two is empty.

    A claim that the scheduler made for extended resources is among them, once there is one.
    """
    generated_claims: Mapping[str, str | None]
    """Entry name -> name of the generated claim, None where no claim was needed."""
    scheduling_group: str
    """The PodGroup of Kubernetes (not that of Volcano) that the pod belongs to; empty when there is none."""
    node_selector: Mapping[str, str]
    affinity: Mapping[str, Any]
    """`spec.affinity` as it stands; kept only while the pod waits, empty afterwards."""
    deployment: str
    """The name of the Deployment whose ReplicaSet controls the pod; empty for every other pod."""
    released: int
    """Since when the pod waits for a node alone, in microseconds since 1970; 0 at our gate and once it has a node."""
    labels: Mapping[str, str]
    """Those that `project` was told to keep."""
    node_rules: NodeRules = field(default=ANYWHERE, compare=False)
    """`node_selector` and the required node affinity, the same object for all pods that are alike in both."""
    tolerations: Tolerations = ()
    """Kept only while a pod with mGPU shares waits for a node."""
    ruled_elsewhere: bool = False
    """Of such a pod: whether a scheduler may rule nodes out by what is not followed here."""
    scheduled: int = 0
    """When it got its node, in microseconds since 1970; 0 without one."""
    ended: int = 0
    """When it ended, in microseconds since 1970; 0 unless it has, and where nobody says so."""
    preempts: bool = True
    """Whether its scheduler may displace pods of a lower priority for it; looked at only while the pod waits for a node."""
    gang: Gang | None = None
    """The gang that its own annotations name, of a pod that asks for something of ours; None where a PodGroup decides, or none
    is named."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def gated(self) -> bool:
        """Whether the pod carries our gate."""
        return names.GATE in self.gates

    @property
    def let_in(self) -> bool:
        """Whether the pod has passed our gate. Only the controller writes records, so no tenant can pretend that."""
        return let_in(self.gates, self.annotations)

    @property
    def bound(self) -> bool:
        """Whether the pod has a node."""
        return self.node_name != ""

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended."""
        return self.phase in _TERMINAL

    @property
    def displaces_below(self) -> int:
        """Pods of a lower priority than this its scheduler may displace for it."""
        return self.priority if self.preempts else LOWEST_PRIORITY

    @property
    def task(self) -> str:
        """The task of its group that the pod belongs to; empty where nobody names one."""
        return self.annotations.get(names.TASK_SPEC_ANNOTATION, "")

    @property
    def card_name(self) -> str:
        """The card expression; empty for a pod without cards."""
        return self.annotations.get(names.CARD_NAME_ANNOTATION, "")

    @property
    def group_name(self) -> str:
        """The name of the pod's PodGroup of Volcano; empty when there is none."""
        return self.annotations.get(names.GROUP_NAME_ANNOTATION, "")

    @property
    def group_key(self) -> str:
        """Those with whom the pod starts: the key of its gang or its PodGroup; empty when it starts alone."""
        if self.gang is not None:
            return "" if self.gang.problem else self.gang.key
        if self.scheduling_group and self._in_scheduling_group:
            return group_keys.kubernetes(self.namespace, self.scheduling_group)
        name = self.group_name
        return group_keys.volcano(self.namespace, name) if name else ""

    @property
    def group_title(self) -> str:
        """What people call that."""
        if self.gang is not None:
            return f"gang {self.namespace}/{self.gang.name}"
        return pod_group_title(self.group_key)

    @property
    def pod_groups(self) -> tuple[str, ...]:
        """The keys of the PodGroups that it names and that count: for whom it starts with, for its queue, or for its scheduler."""
        volcano = (group_keys.volcano(self.namespace, self.group_name),) if self.group_name else ()
        if self.scheduling_group and (self.gang is not None or self._in_scheduling_group):
            return *volcano, group_keys.kubernetes(self.namespace, self.scheduling_group)
        return volcano

    @property
    def _in_scheduling_group(self) -> bool:
        key = group_keys.kubernetes(self.namespace, self.scheduling_group)
        return starts_with(key, self.annotations, self.uid, self.owner, let_in=self.let_in)

    @property
    def asks(self) -> bool:
        """Whether the pod asks for anything of ours: cards, mGPU or claims."""
        return bool(self.card_name or self.asks_mgpu or self.claims)

    @property
    def extended(self) -> list[str]:
        """The resources it asks for that a DeviceClass may serve; whether one does is not in the pod."""
        return extended(self.requests)

    def ungated(self, annotations: Mapping[str, str]) -> "Pod":
        """The pod without our gate and with these annotations; as `replace` would make it, in a fifth of the time."""
        new = object.__new__(Pod)
        deque(map(call, _SLOTS, repeat(new), _OTHER_VALUES(self)), maxlen=0)
        _PUT_ANNOTATIONS(new, annotations)
        _PUT_GATES(new, () if self.gates == _OURS_ALONE else tuple(g for g in self.gates if g != names.GATE))
        return new

    def restates(self, before: "Pod") -> bool:
        """Whether it is the same but for its version, its affinity, since when it waits for a node alone, and whether it runs."""
        return {self.phase, before.phase} <= _GOING_ON and _RESTATED(self) == _RESTATED(before)

    @property
    def asks_mgpu(self) -> bool:
        """Whether any container, init containers included, has an mGPU key in limits or requests."""
        return bool(self.shares) or self.share_in_init


_OURS_ALONE: Final = (names.GATE,)
_GOING_ON: Final = frozenset({"", "Pending", "Running"})
_CHANGING: Final = frozenset({"revision", "phase", "started", "released", "affinity"})
_RESTATED: Final = attrgetter(
    *(field.name for field in fields(Pod) if field.compare and field.name not in _CHANGING)
)
_OTHERS: Final = tuple(field.name for field in fields(Pod) if field.name not in {"gates", "annotations"})
_OTHER_VALUES: Final = attrgetter(*_OTHERS)
_SLOTS: Final = tuple(vars(Pod)[name].__set__ for name in _OTHERS)
"""What puts a value into a pod that is being made: past the `__setattr__` that keeps everybody from changing one."""
_PUT_ANNOTATIONS: Final = vars(Pod)["annotations"].__set__
_PUT_GATES: Final = vars(Pod)["gates"].__set__


def project(raw: Mapping[str, Any], labels_kept: Collection[str] = ()) -> Pod:
    """The view of a v1 Pod. A missing namespace is `default`, as for kubectl."""
    metadata, spec, status = (
        read.mapping(raw, "metadata"),
        read.mapping(raw, "spec"),
        read.mapping(raw, "status"),
    )
    containers, inits = read.listed(spec, "containers"), read.listed(spec, "initContainers")
    node_name = read.text(spec, "nodeName")
    phase = read.text(status, "phase")
    waiting = not node_name and phase not in _TERMINAL
    labels, owner = read.texts(metadata, "labels"), controlling_owner(metadata)
    gates = tuple(
        [read.text(gate, "name") for gate in read.listed(spec, "schedulingGates") if isinstance(gate, dict)]
    )
    rules, affinity = read_rules(spec) if waiting else (ANYWHERE, {})
    shares, share_in_init = _shares(containers), bool(_shares(inits))
    annotations, claims = kept_annotations(metadata), (*claims_of(spec), *implicit_claims(status))
    held = bool(shares or share_in_init or claims) or names.GATE in gates or not _HELD.isdisjoint(annotations)
    return Pod(
        namespace=read.text(metadata, "namespace") or "default",
        name=read.text(metadata, "name"),
        uid=read.text(metadata, "uid"),
        resource_version=(version := read.text(metadata, "resourceVersion")),
        revision=version if waiting else "",
        created=read.timestamp(metadata.get("creationTimestamp")),
        deleting=(deadline := metadata.get("deletionTimestamp")) is not None,
        grace_s=read.integer(metadata, "deletionGracePeriodSeconds"),
        deadline=read.timestamp(deadline),
        annotations=annotations,
        annotated=isinstance(metadata.get("annotations"), dict),
        owner=owner,
        node_name=node_name,
        scheduler_name=read.text(spec, "schedulerName") or names.DEFAULT_SCHEDULER,
        priority=read.integer(spec, "priority"),
        gates=gates,
        phase=phase,
        started=has_started(status),
        requests=aggregate(spec, "requests", granted_by(status)),
        limits=aggregate(spec, "limits"),
        container_count=len(containers),
        shares=shares,
        share_in_init=share_in_init,
        claims=claims,
        generated_claims=generated_claims(status),
        scheduling_group=read.text(read.part(spec, "schedulingGroup"), "podGroupName"),
        node_selector=rules.selector,
        affinity=affinity,
        deployment=_deployment(owner, labels),
        released=released_at(metadata) if waiting and names.GATE not in gates else 0,
        labels={key: labels[key] for key in labels_kept if key in labels} if labels_kept else _NO_LABELS,
        node_rules=rules,
        tolerations=tolerations_of(spec) if waiting and shares else (),
        ruled_elsewhere=waiting and bool(shares) and ruled_elsewhere(spec, affinity),
        scheduled=scheduled_at(metadata, status) if node_name else 0,
        ended=ended_at(status) if phase in _TERMINAL else 0,
        # Admission has written there what its priority class says.
        preempts=not waiting or read.text(spec, "preemptionPolicy") != "Never",
        # Whom no gate ever held is no member: nobody waits for it, and it waits for nobody.
        gang=gang_of(metadata, annotations, labels, owner, let_in=let_in(gates, annotations))
        if held
        else None,
    )


def let_in(gates: Collection[str], annotations: Mapping[str, str]) -> bool:
    """Whether a pod with these has passed our gate, see `Pod.let_in`."""
    return names.GATE not in gates and not names.LET_IN.isdisjoint(annotations)


def _deployment(owner: Owner | None, labels: Mapping[str, str]) -> str:
    """A ReplicaSet of a Deployment is named after it and after the hash of its template, which its pods are labelled with."""
    if owner is None or owner.kind != "ReplicaSet":
        return ""
    # One text for all pods of a Deployment.
    return sys.intern(without_hash(owner, labels.get(names.TEMPLATE_HASH_LABEL, "")))


def _shares(containers: Iterable[Any]) -> tuple[ContainerShare, ...]:
    shares = []
    for index, container in enumerate(containers):
        resources = read.mapping(container, "resources")
        limits, requests = read.part(resources, "limits"), read.part(resources, "requests")
        if not (_MGPU.isdisjoint(limits) and _MGPU.isdisjoint(requests)):
            asked = {**limits, **requests}
            shares.append(
                ContainerShare(
                    index=index,
                    name=read.text(container, "name"),
                    core=_units(asked, names.MGPU_CORE),
                    memory=_units(asked, names.MGPU_MEMORY),
                )
            )
    return tuple(shares)


def _units(asked: Mapping[str, Any], key: str) -> int | None:
    if key not in asked:
        return None
    try:
        return quantity.units(asked[key])
    except quantity.QuantityError:
        return None
