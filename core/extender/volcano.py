"""Volcano's `extender` plugin: predicate and prioritize.

A request carries the session: each node with its tasks, those included that the running session has only just allocated
and of which the API server knows nothing yet. So what is used is counted from the request and not from the caches. The
types have no JSON names, hence Go's; any field may be null or missing, and which there are changes by release.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, Final

from core import names, reasons
from core.crossquota.guest import guest_of
from core.crossquota.quota import node_quota
from core.extender.cluster import Cluster
from core.extender.pipeline import (
    Question,
    Standing,
    looked_at,
    question_of,
    refusals,
    scores,
    told,
    unresolvable,
    volcano_score,
)
from core.extender.shapes import Raw, ShapeError, part
from core.mgpu.node import NodeModel, NodeState, model_of
from core.mgpu.pieces import in_steps
from core.objects import Node, Pod, node, pod
from core.objects import raw as read
from core.refusal import Refusal
from core.steps import Steps

SUCCESS: Final = 0
UNSCHEDULABLE: Final = 2
UNRESOLVABLE: Final = 3

_ALLOCATED, _BINDING, _BOUND, _RUNNING, _RELEASING, _UNKNOWN = 2, 8, 16, 32, 64, 512
_USING: Final = frozenset({_ALLOCATED, _BINDING, _BOUND, _RUNNING})
"""The states of a task that uses its node's quota."""
_THERE: Final = _USING | {_RELEASING, _UNKNOWN}
"""The states of a task whose containers may be on the node's cards."""
_PODS: Final = "pods"


def predicate(body: object, cluster: Cluster) -> Steps[tuple[Refusal, ...]]:
    """Everything that rules the node out for the task. Raises ShapeError."""
    task, site = part(body, "task"), part(body, "node")
    about = _question(task, cluster)
    if about.idle:
        return ()
    return (yield from _against(_Session.of(site, cluster), about, cluster))


def predicate_answer(found: tuple[Refusal, ...]) -> dict[str, Any]:
    """The text, under a key called status, is empty for a node that fits."""
    if not found:
        return {"status": "", "code": SUCCESS}
    return {"status": told(found), "code": UNRESOLVABLE if unresolvable(found) else UNSCHEDULABLE}


def scored(body: object, cluster: Cluster) -> Steps[list[tuple[str, float]]]:
    """The score of each node by its name; 0 for a node that is not known. Raises ShapeError."""
    task, nodes = part(body, "task"), read.mapping({"body": body}, "body").get("nodes")
    if not isinstance(nodes, list | None):
        raise ShapeError("nodes must be a list")
    about = _question(task, cluster)
    found: list[tuple[str, float]] = []
    for raw in nodes or ():
        yield
        session = _Session.of(raw, cluster)
        if not session.name:
            continue
        score = 0.0
        if session.node is not None and not about.idle:
            standing = yield from session.standing(about, cluster)
            score = yield from looked_at(about, partial(_score, about, standing, cluster))
        found.append((session.name, score))
    return found


def prioritize_answer(found: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """The answer of all scores. Never without `nodeScore`: the task would not be placed, and nobody would say why."""
    return {"nodeScore": dict(found), "errorMessage": ""}


def _against(session: "_Session", about: Question, cluster: Cluster) -> Steps[tuple[Refusal, ...]]:
    if session.node is None:
        text = f"node {session.name} is not known here"
        return (Refusal(reasons.NODE_NOT_FOUND, text),)
    standing = yield from session.standing(about, cluster)
    return (yield from looked_at(about, partial(refusals, about, standing, cluster.settings)))


def _score(about: Question, standing: Standing, cluster: Cluster) -> float:
    return volcano_score(scores(about, standing, cluster.settings), cluster.settings)


def _question(task: Raw, cluster: Cluster) -> Question:
    view = pod.project(read.mapping(task, "Pod"), cluster.labels_kept)
    annotations = view.annotations or read.texts(task, "PodAnnotations")
    visitor = guest_of(_requests(task, view), view.labels, annotations, cluster.settings)
    asked = question_of(view, visitor, cluster.settings)
    return asked if asked.uid else replace(asked, uid=read.text(task, "UID"))


@dataclass(frozen=True, slots=True)
class _Session:
    """One node of the running session. `node` is None where the request leaves it out and the caches have none."""

    name: str
    node: Node | None
    tasks: Mapping[str, Any]

    @classmethod
    def of(cls, raw: object, cluster: Cluster) -> "_Session":
        entry = read.mapping({"node": raw}, "node")
        inner = read.mapping(entry, "Node")
        view = node.project(inner) if inner else cluster.node(read.text(entry, "Name"))
        name = read.text(entry, "Name") or (view.name if view is not None else "")
        return cls(name, view, read.mapping(entry, "Tasks"))

    def standing(self, about: Question, cluster: Cluster) -> Steps[Standing]:
        """What of the node bears on the question; its tasks are looked at one by one."""
        assert self.node is not None, "only asked for a node that is known"
        quota = used = shares = None
        if about.guest is not None:
            quota = node_quota(self.node, cluster.settings)
        if quota is not None:
            used = yield from self._used(about.uid, cluster)
        if about.shares is not None:
            shares = yield from self._shares(self.node, about, cluster)
        return Standing(
            quota=quota,
            used=used,
            shares=shares,
            cards=cluster.cards_of(self.node) if about.cards else (),
        )

    def _others(self, uid: str, states: frozenset[int]) -> Iterator[Raw]:
        """The tasks in one of these states, without the one that is asked about."""
        for task in self.tasks.values():
            if (
                isinstance(task, dict)
                and read.integer(task, "Status") in states
                and read.text(task, "UID") != uid
            ):
                yield task

    def _used(self, uid: str, cluster: Cluster) -> Steps[dict[str, int]]:
        used: dict[str, int] = {}
        for task in self._others(uid, _USING):
            yield
            labels = read.texts(task, "Pod", "metadata", "labels") if cluster.labels_kept else {}
            visitor = guest_of(_requests(task), labels, {}, cluster.settings)
            for resource, milli in visitor.amounts.items() if visitor is not None else ():
                used[resource] = used.get(resource, 0) + milli
        return used

    def _shares(self, view: Node, about: Question, cluster: Cluster) -> Steps[tuple[NodeModel, NodeState]]:
        model, occupants = model_of(view), list[Pod]()
        for task in self._others(about.uid, _THERE) if model.serves else ():
            if _shares(task):
                occupants.append(self._occupant(task, cluster))
            yield
        counted = {each.uid for each in occupants}

        def left() -> NodeState:
            return cluster.beside_promises(self.name, model, cluster.free(model, occupants), about, counted)

        return model, (yield from in_steps(left))

    def _occupant(self, task: Raw, cluster: Cluster) -> Pod:
        """The pod of a task; as it is known here when it is bound, since only then its cards are."""
        known = cluster.ledger.pod(read.text(task, "UID"))
        if known is not None and known.node_name == self.name:
            return known
        return replace(pod.project(read.mapping(task, "Pod")), node_name=self.name)


def _shares(task: Raw) -> bool:
    """Whether the task may ask for mGPU; a task without amounts may."""
    amounts = task.get("Resreq")
    if not isinstance(amounts, dict):
        return True
    scalars = read.mapping(amounts, "ScalarResources")
    return any(resource in scalars for resource in names.MGPU_RESOURCES)


def _requests(task: Raw, view: Pod | None = None) -> Mapping[str, int]:
    """What a task asks for in thousandths; counted from its pod where the scheduler does not say."""
    amounts = task.get("Resreq")
    if not isinstance(amounts, dict):
        return (view or pod.project(read.mapping(task, "Pod"))).requests
    found = {"cpu": _milli(amounts.get("MilliCPU"), 1), "memory": _milli(amounts.get("Memory"), 1000)}
    for resource, amount in read.entries(amounts, "ScalarResources"):
        found[resource] = _milli(amount, 1000 if resource == _PODS else 1)
    return found


def _milli(amount: object, scale: int) -> int:
    """Exact, rounded up: the scheduler's numbers are floats. What is no number is nothing."""
    if isinstance(amount, float):
        # Nearly all are whole numbers, and there are three for every task of a node.
        return int(amount) * scale if amount.is_integer() else ceil(Fraction(amount) * scale)
    return amount * scale if isinstance(amount, int) else 0
