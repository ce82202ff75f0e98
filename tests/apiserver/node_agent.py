"""The node's side of an mGPU pod: what kubelet, device plugin and driver do with the record, and what they cannot forgive.

A kubelet admits a pod once, when it first sees it with its node. The device plugin is asked for devices then, finds
the pod by its marker and reads the cards from the record. What is missing at that moment comes too late: the pod fails
for good. Everything here is read from the annotations alone, and nothing is shared with the code under test.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from hack.controlplane import ControlPlane
from hack.controlplane.components import OTHER_KUBELET
from hack.controlplane.nodes import MGPU_CORE, MGPU_MEMORY
from tests.apiserver.watching import Watch

Object = dict[str, Any]
Card = tuple[str, int]

ASSUMED = "vke.volcengine.com/assumed"
INDEX = "vke.volcengine.com/gpu-index-container-"
COUNTS = "vke.volcengine.com/container-multiple-gpu"
FAILURE = "UnexpectedAdmissionError"


class RecordError(Exception):
    """Why a pod cannot be given its cards."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one container takes of one card; `memory` None means all of it."""

    node: str
    card: int
    core: int
    memory: int | None


def tended(pod: Object) -> Object:
    """The pod, left to the agent by the simulated kubelets."""
    metadata = pod["metadata"]
    annotations = {**metadata.get("annotations", {}), OTHER_KUBELET: "node-agent"}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


class NodeAgent:
    """Admits the pods at `path` on these nodes, each at the first change that shows it with its node.

    Pods made by `tended` are started, or failed when their record is wrong. `failed` has why, by name; `complaints` what
    happened to records after the pod was admitted; `admitted` counts the pods that got their cards.
    """

    def __init__(self, plane: ControlPlane, path: str, nodes: Iterable[Mapping[str, Any]]) -> None:
        self._api = plane.api
        self._path = path
        self._cards = {node["metadata"]["name"]: _cards(node) for node in nodes}
        self._watch = Watch(plane, path, self._see)
        self._records: dict[str, dict[str, str]] = {}
        self._shares: dict[str, tuple[Share, ...]] = {}
        self.failed: dict[str, str] = {}
        self.admitted = 0

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    @property
    def complaints(self) -> list[str]:
        """What was seen that must not be."""
        return self._watch.complaints

    def catch_up(self) -> None:
        """Return once the agent has seen everything that has happened up to now."""
        self._watch.catch_up()

    def _see(self, present: dict[str, Object], pod: Object) -> str:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        current = present.get(name)
        if current is None or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self._shares.pop(uid, None)
            return ""
        if pod["spec"].get("nodeName") not in self._cards:
            return ""
        record = _record(pod)
        if uid in self._records:
            before = self._records[uid]
            return "" if record == before else f"the record of {name} went from {before} to {record}"
        self._records[uid] = record
        try:
            self._shares[uid] = self._allocate(pod)
        except RecordError as error:
            self.failed[name] = str(error)
            self._report(pod, {"phase": "Failed", "reason": FAILURE, "message": str(error)})
        else:
            self.admitted += 1
            self._report(pod, {"phase": "Running", "containerStatuses": [*_running(pod)]})
        return ""

    def _allocate(self, pod: Object) -> tuple[Share, ...]:
        """What the containers take; RecordError for a record that is missing, wrong, or names a card that is full."""
        node = pod["spec"]["nodeName"]
        shares = shares_of(pod, cards=len(self._cards[node]))
        core: defaultdict[Card, int] = defaultdict(int)
        memory: defaultdict[Card, int] = defaultdict(int)
        for share in (*(taken for pods in self._shares.values() for taken in pods), *shares):
            size = self._cards[share.node][share.card]
            core[share.node, share.card] += share.core
            memory[share.node, share.card] += size if share.memory is None else share.memory
        for share in shares:
            place = node, share.card
            if core[place] > 100 or memory[place] > self._cards[node][share.card]:
                raise RecordError(
                    f"card {share.card} of {node} would have core {core[place]}, memory {memory[place]}"
                )
        return shares

    def _report(self, pod: Object, status: Object) -> None:
        if OTHER_KUBELET in pod["metadata"].get("annotations", {}):
            name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
            patch = {"metadata": {"uid": uid}, "status": status}
            # The pod may have been deleted, and even created anew, in the meantime.
            self._api.patch(f"{self._path}/{name}/status", patch).expect(200, 404, 409, 422)


def shares_of(pod: Object, *, cards: int) -> tuple[Share, ...]:
    """What the record of a pod gives its containers on a node of `cards` cards; RecordError when it does not add up."""
    annotations = pod["metadata"].get("annotations", {})
    if annotations.get(ASSUMED) != "true":
        raise RecordError(f"{ASSUMED} is {annotations.get(ASSUMED)!r}")
    counts = annotations[COUNTS].split(",") if COUNTS in annotations else None
    shares: list[Share] = []
    for position, container in enumerate(pod["spec"]["containers"]):
        limits = container.get("resources", {}).get("limits", {})
        if MGPU_CORE not in limits:
            continue
        core, memory = int(limits[MGPU_CORE]), int(limits[MGPU_MEMORY]) if MGPU_MEMORY in limits else None
        wanted = int(counts[position]) if counts else max(core // 100, 1)
        indexes = _indexes(container["name"], annotations.get(INDEX + container["name"]), wanted, cards)
        each = None if memory is None else memory // wanted
        shares += [Share(pod["spec"]["nodeName"], card, core // wanted, each) for card in indexes]
    return tuple(shares)


def _indexes(container: str, text: str | None, wanted: int, cards: int) -> list[int]:
    if text is None or not re.fullmatch(r"[0-9]+(,[0-9]+)*", text, re.ASCII):
        raise RecordError(f"container {container}: the record is {text!r}")
    indexes = [int(entry) for entry in text.split(",")]
    if len(indexes) != wanted or len(set(indexes)) != wanted:
        raise RecordError(
            f"container {container}: the record {text} names {len(indexes)} cards, not {wanted}"
        )
    if max(indexes) >= cards:
        raise RecordError(f"container {container}: the record {text} names a card beyond {cards - 1}")
    return indexes


def _cards(node: Mapping[str, Any]) -> tuple[int, ...]:
    """The memory of each card of a node."""
    allocatable = node["status"]["allocatable"]
    count = int(allocatable[MGPU_CORE]) // 100
    return (int(allocatable[MGPU_MEMORY]) // count,) * count


def _record(pod: Object) -> dict[str, str]:
    annotations = pod["metadata"].get("annotations", {})
    return {key: text for key, text in annotations.items() if key == ASSUMED or key.startswith(INDEX)}


def _running(pod: Object) -> Iterator[Object]:
    for container in pod["spec"]["containers"]:
        yield {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {}},
        }
