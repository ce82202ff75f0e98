"""kube-scheduler's extender protocol: the shapes of requests and answers.

The scheduler's types have no JSON names of their own, so keys are written as Go writes them and read in any case. A list of
nodes comes either as whole objects, which have to go back as they came, or as names; the answer has the form of the request.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from core import reasons
from core.extender.cluster import Cluster
from core.extender.pipeline import (
    Question,
    kube_score,
    looked_at,
    question,
    refusals,
    scores,
    told,
    unresolvable,
)
from core.extender.shapes import Raw, ShapeError
from core.objects import Node, node, pod
from core.objects import raw as read
from core.refusal import Refusal
from core.steps import Steps

_LONGEST_NAME: Final = len("NodeNames")

Verdict = tuple[str, tuple[Refusal, ...]]
"""A node's name, and everything that rules it out."""


@dataclass(frozen=True, slots=True)
class Request:
    """A pod, and the nodes in one of the two forms, or in both."""

    pod: Raw
    nodes: Sequence[Raw] | None
    names: tuple[str, ...] | None


def request_of(body: object) -> Request:
    """The request in a parsed body. Raises ShapeError."""
    if not isinstance(body, dict):
        raise ShapeError("the body must be a JSON object")
    parts = _lowered(body)
    found, listed, names = parts.get("pod"), parts.get("nodes"), parts.get("nodenames")
    if not isinstance(found, dict):
        raise ShapeError("Pod must be an object")
    if listed is None and names is None:
        raise ShapeError("neither Nodes nor NodeNames is given")
    return Request(found, _items(listed), _names(names))


def _items(listed: object) -> Sequence[Raw] | None:
    if listed is None:
        return None
    items = _lowered(listed).get("items") if isinstance(listed, dict) else listed
    if not isinstance(items, list | None) or not all(isinstance(item, dict) for item in items or ()):
        raise ShapeError("Nodes must be a list of nodes")
    return items or ()


def _names(names: object) -> tuple[str, ...] | None:
    if not isinstance(names, list | None) or not all(isinstance(name, str) for name in names or ()):
        raise ShapeError("NodeNames must be a list of names")
    return None if names is None else tuple(names)


def _lowered(raw: Mapping[str, Any]) -> dict[str, Any]:
    """By names without capitals; none that is too long to be meant, for one of megabytes takes as long as a thousand nodes."""
    return {key.lower(): value for key, value in raw.items() if len(key) <= _LONGEST_NAME}


def verdicts(asked: Request, cluster: Cluster) -> Steps[list[Verdict]]:
    """Each node and what rules it out."""
    about, found = _question(asked, cluster), list[Verdict]()
    for name, view in _candidates(asked, cluster, about):
        found.append((name, (yield from _against(name, view, about, cluster))))
        yield
    return found


def _against(name: str, view: Node | None, about: Question, cluster: Cluster) -> Steps[tuple[Refusal, ...]]:
    if about.idle:
        return ()
    if view is None:
        return (Refusal(reasons.NODE_NOT_FOUND, f"node {name} is not known here"),)
    return (
        yield from looked_at(about, lambda: refusals(about, cluster.standing(view, about), cluster.settings))
    )


def filter_answer(asked: Request, found: Iterable[Verdict]) -> Steps[dict[str, Any]]:
    """The nodes that fit, in the form of the request, and why each of the others does not."""
    fitting: set[str] = set()
    failed: dict[str, str] = {}
    hopeless: dict[str, str] = {}
    for name, against in found:
        if not against:
            fitting.add(name)
        else:
            (hopeless if unresolvable(against) else failed)[name] = told(against)
        yield
    nodes: list[Raw] | None = None if asked.nodes is None else []
    for raw in asked.nodes or ():
        if nodes is not None and _name(raw) in fitting:
            nodes.append(raw)
        yield
    return _answer(
        nodes=nodes,
        names=None if asked.names is None else [name for name in asked.names if name in fitting],
        failed=failed,
        hopeless=hopeless,
    )


def filter_error(text: str) -> dict[str, Any]:
    """The answer of somebody who cannot tell yet: the pod waits, unless the scheduler may do without us."""
    return _answer(error=text)


def scored(asked: Request, cluster: Cluster) -> Steps[list[dict[str, Any]]]:
    """Each node's entry in the answer to prioritize; 0 for one that is not known here."""
    about, found = _question(asked, cluster), list[dict[str, Any]]()
    for name, view in _candidates(asked, cluster, about):
        score = 0 if view is None else (yield from looked_at(about, partial(_score, view, about, cluster)))
        found.append({"Host": name, "Score": score})
        yield
    return found


def _score(view: Node, about: Question, cluster: Cluster) -> int:
    return kube_score(scores(about, cluster.standing(view, about), cluster.settings))


def _question(asked: Request, cluster: Cluster) -> Question:
    return question(pod.project(asked.pod, cluster.labels_kept), cluster.settings)


def _candidates(asked: Request, cluster: Cluster, about: Question) -> Iterator[tuple[str, Node | None]]:
    """Every node by its name, as it was sent, else as it is known here. Nothing is looked at for an idle question."""
    if asked.nodes is None:
        for name in asked.names or ():
            yield name, cluster.node(name)
        return
    for raw in asked.nodes:
        yield _name(raw), None if about.idle else node.project(raw)


def _name(raw: Raw) -> str:
    return read.text(read.mapping(raw, "metadata"), "name")


def _answer(
    *,
    nodes: list[Raw] | None = None,
    names: list[str] | None = None,
    failed: Mapping[str, str] = MappingProxyType({}),
    hopeless: Mapping[str, str] = MappingProxyType({}),
    error: str = "",
) -> dict[str, Any]:
    return {
        "Nodes": None if nodes is None else {"items": nodes},
        "NodeNames": names,
        "FailedNodes": dict(failed),
        "FailedAndUnresolvableNodes": dict(hopeless),
        "Error": error,
    }
