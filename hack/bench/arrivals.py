"""Pods of Kueue's shape on a real control plane: each is created when it is due, and the last of them is waited for."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from core import names
from hack.bench.shape import CLASSES, Birth, Class
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.components import COMPLETE_AFTER

CARD: Final = "NVIDIA-H200"
RESOURCE: Final = "nvidia.com/gpu"

_NAMESPACE: Final = "cohort"
_CREATORS: Final = 8
_LOOK_S: Final = 0.5
"""Each look has the API server go through the pods that are left, and takes processor time from all that is measured."""

Json = dict[str, Any]


def recorded(*users: str) -> tuple[Json, ...]:
    """Rules of an audit policy by which requests of these users alone are written down: all others are many, and ask nothing of us."""
    ours: tuple[Json, ...] = ({"level": "Metadata", "users": list(users)},) if users else ()
    return (*ours, {"level": "None"})


class Arrivals:
    """The pods of one run, in a namespace of their own; `made` is what is created of a pod that is due."""

    def __init__(self, plane: ControlPlane, made: Callable[[Birth], Json]) -> None:
        self._plane = plane
        self._made = made

    def prepare(self) -> None:
        """Creates namespace and priorities, and runs one pod, so that starting up and being elected are over."""
        self._plane.create_namespace(_NAMESPACE)
        for kind in CLASSES:
            self._plane.api.create(_priority(kind)).expect()
        with ThreadPoolExecutor(1) as warming:
            warming.submit(self._plane.api.create, self._made(Birth(0, 0, 0, -1))).result().expect()
        wait_for("a first pod has run", self._ended, 60)

    def play(
        self, born: list[Birth], limit_s: float, progress: Callable[[str], None]
    ) -> tuple[float, dict[str, float]]:
        """Creates each pod when it is due, or as soon as the API server lets it, and waits for the end of the last.

        How many seconds that took, and when each was there (seconds since 1970), by name. Raises WaitError after `limit_s`.
        """
        started = time.time()

        def create(birth: Birth) -> tuple[str, float]:
            time.sleep(max(0.0, started + birth.at_s - time.time()))
            self._plane.api.create(self._made(birth)).expect(201)
            return birth.name, time.time()

        with ThreadPoolExecutor(_CREATORS) as creators:
            created = dict(creators.map(create, born))
        progress(f"{len(born)} pods created in {time.time() - started:.0f} s")
        wait_for("all pods have finished", self._ended, limit_s, every_s=_LOOK_S)
        return time.time() - started, created

    def read(self, name: str) -> Json:
        """A pod as it is stored."""
        return dict(self._plane.api.get(self._path(name)).expect())

    def _ended(self) -> bool:
        query = {"fieldSelector": "status.phase!=Succeeded", "limit": "1"}
        return not self._plane.api.get(self._path(), **query).expect()["items"]

    def _path(self, name: str | None = None) -> str:
        return self._plane.api.path("v1", "Pod", _NAMESPACE, name)


def pod(birth: Birth) -> Json:
    """The pod without anything that says which queue it belongs to."""
    kind = birth.kind
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": birth.name,
            "namespace": _NAMESPACE,
            "annotations": {COMPLETE_AFTER: f"{kind.runs_s * 1000:.0f}ms"},
        },
        "spec": {
            "restartPolicy": "Never",
            "priorityClassName": kind.name,
            "containers": [
                {"name": "main", "image": "none", "resources": {"limits": {RESOURCE: str(kind.cards)}}}
            ],
        },
    }


def in_queue(birth: Birth) -> Json:
    """The pod as it asks its queue for cards."""
    asking = pod(birth)
    asking["metadata"]["annotations"] |= {
        names.CARD_NAME_ANNOTATION: CARD,
        names.QUEUE_NAME_ANNOTATION: f"cohort-{birth.queue}",
    }
    return asking


def _priority(kind: Class) -> Json:
    """Nobody is ended for those of a higher priority: all have to run."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": kind.name},
        "value": kind.priority,
        "preemptionPolicy": "Never",
    }
