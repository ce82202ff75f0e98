"""What is stored, with two controllers over it: one that leads and is killed, one that stands by, hears late, and takes over."""

import asyncio
from collections import deque
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.auditing import Auditor
from controller.binding import BindingHook
from controller.caches import Caches
from controller.discovery import NodeWatch
from controller.leading import Leader
from controller.lifting import Lifter
from controller.metrics import Metrics, QueueSeries
from controller.nominations import Nominations
from controller.publishing import Publisher
from controller.queue_definition import QueueDefinitionKeeper
from controller.queue_records import QueueRecords
from controller.repair import Repairer
from controller.reservations import ReservationWatch
from controller.stranded import StrandedPods
from controller.usage_following import UsageFollower
from controller.usage_keeping import UsageKeeper
from core.admission.request import AdmissionRequest, Decision
from core.names import FIELD_MANAGER
from core.queues.rollouts import Rollouts
from core.settings import Settings
from kube import errors
from kube.client import Json, PatchType
from kube.lease import Term
from kube.resources import Resource
from tests.builders.raw import Builder
from tests.fakes.patches import applied, merged
from tests.unit.controller.cluster import NoUsage, NoWrites, caches, show
from tests.unit.controller.fakes import Recorder

SETTINGS = Settings.model_validate(
    {
        "dra": {"queueCRD": "leave"},
        "cards": {"unlimitedCpuMemory": True},
        "reservation": {"warnAfter": "3s", "evictAfter": "8s"},
    }
)
FAILURES: list[errors.KubeError] = [
    errors.ConnectionFailed("cut"),
    errors.Throttled(429, "TooManyRequests", "later", None, 3.0),
    errors.ServerError(500, "InternalError", "etcd", None, None),
    errors.Forbidden(403, "Forbidden", "no", None, None),
    errors.Invalid(422, "Invalid", "no", None, None),
    errors.Conflict(409, "Conflict", "changed", None, None),
]
INFORMERS = {"pods": "pods", "nodes": "nodes", "queues": "queues", "podgroups": "groups"}
_Key = tuple[str, str]
"""The plural of a resource, and the key of an object."""


class Stored:
    """The objects, and who follows them. `stormy` is the part of the requests that fail, hang, or lose their answer."""

    def __init__(self, seed: int, stormy: float) -> None:
        self.rng, self.stormy = Random(seed), stormy
        self.objects: dict[_Key, Builder] = {}
        self.followers: list[Replica] = []
        self.version = 0

    def all(self, plural: str) -> list[str]:
        """The keys of what there is of a resource."""
        return [key for found, key in self.objects if found == plural]

    def put(self, plural: str, key: str, built: Builder) -> None:
        """Stores an object; one that was not there is another one than all before."""
        self.version += 1
        old = self.objects.get((plural, key))
        uid = old.raw["metadata"]["uid"] if old is not None else f"uid-{self.version}"
        built = built.put("metadata", "resourceVersion", value=str(self.version))
        self.objects[plural, key] = built.put("metadata", "uid", value=uid)
        self._tell(plural, key)

    def drop(self, plural: str, key: str) -> None:
        """Deletes an object, if it is there."""
        if self.objects.pop((plural, key), None) is not None:
            self.version += 1
            self._tell(plural, key)

    def _tell(self, plural: str, key: str) -> None:
        for follower in self.followers:
            follower.happened(plural, key, self.objects.get((plural, key)))

    def change(self, plural: str, key: str, body: Any, patch_type: PatchType) -> Json:
        """Carries out a patch as an API server does."""
        stored = self.matching(plural, key, {} if patch_type is PatchType.JSON else body.get("metadata", {}))
        raw = deepcopy(stored.raw)
        if patch_type is PatchType.MERGE:
            raw = merged(raw, body)
        elif not applied(raw, body):
            raise errors.Invalid(422, "Invalid", "a test failed", None, None)
        moment = datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)
        written = {
            "manager": FIELD_MANAGER,
            "time": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        self.put(plural, key, type(stored)(raw).add("metadata", "managedFields", item=written))
        return self.objects[plural, key].build()

    def matching(self, plural: str, key: str, wanted: Json) -> Builder:
        """The object, if it has the uid and the resourceVersion that are wanted."""
        if (plural, key) not in self.objects:
            raise errors.NotFound(404, "NotFound", key, None, None)
        stored = self.objects[plural, key]
        for field in ("uid", "resourceVersion"):
            if wanted.get(field) not in (None, stored.raw["metadata"][field]):
                raise errors.Conflict(409, "Conflict", key, None, None)
        return stored


class Api:
    """The calls of one process, of which none is answered, nor carried out, once it is dead."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self.dead = False

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        timeout_s: float = 10.0,
        **_: Any,
    ) -> Json:
        await self._sent(timeout_s)
        answer = self._stored.change(resource.plural, _key(name, namespace), body, patch_type)
        await self._answered()
        return answer

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        await self._sent(timeout_s)
        return self._stored.matching(resource.plural, _key(name, namespace), {}).build()

    async def serves(self, resource: Resource, *, timeout_s: float = 10.0) -> bool:
        await self._sent(timeout_s)
        return resource.plural in INFORMERS

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        await self._sent(timeout_s)
        self._stored.matching(
            resource.plural, _key(name, namespace), {"uid": uid, "resourceVersion": resource_version}
        )
        self._stored.drop(resource.plural, _key(name, namespace))
        await self._answered()
        return {}

    async def _sent(self, timeout_s: float) -> None:
        rng = self._stored.rng
        await asyncio.sleep(rng.choice((0.001, 0.01, 0.1)))
        if self.dead:
            await asyncio.Event().wait()
        if rng.random() < self._stored.stormy:
            if rng.random() < 0.2:
                await asyncio.sleep(timeout_s)
                raise errors.ConnectionFailed("timed out")
            raise rng.choice(FAILURES)

    async def _answered(self) -> None:
        rng = self._stored.rng
        await asyncio.sleep(rng.choice((0.001, 0.01)))
        if rng.random() < self._stored.stormy / 2:
            raise errors.ConnectionFailed("the answer is lost")


class Replica:
    """Everything of a controller that decides; it hears of what is stored when it is told to."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.api = stored, Api(stored)
        self.unheard: deque[tuple[str, str, Builder | None]] = deque()
        self.caches = self._follow()
        metrics, recorder = Metrics(CollectorRegistry()), Recorder()
        announcements = Announcements(recorder, Rollouts(self.caches.ledger))
        parts = (self.api, self.caches, announcements, metrics)
        self.hook = BindingHook(self.api, self.caches, SETTINGS, metrics)
        nominations = Nominations(self.api, self.caches)
        reservations = ReservationWatch(*parts, SETTINGS, _now)
        self.leader = Leader(
            self.caches,
            Lifter(*parts),
            nominations,
            Publisher(*parts),
            Repairer(self.api, self.caches, recorder, metrics, SETTINGS),
            reservations,
            StrandedPods(self.caches, announcements, nominations.move),
            QueueDefinitionKeeper(NoWrites(), self.caches, recorder, metrics, SETTINGS),
            QueueRecords(self.api, self.caches),
            self.hook,
            QueueSeries(self.caches.ledger, reservations.late),
            Auditor(self.caches, metrics),
            NodeWatch(self.caches, announcements),
            UsageKeeper(NoUsage(), self.caches, UsageFollower(self.caches, _now), metrics, "ns"),
        )
        for (plural, key), built in stored.objects.items():
            self._show(plural, key, built)
        stored.followers.append(self)

    def _follow(self) -> Caches:
        """Its view of the cluster."""
        result = caches(settings=SETTINGS)
        result.catch_up = self._catch_up  # type: ignore[method-assign]  # nothing here is listed
        return result

    def happened(self, plural: str, key: str, built: Builder | None) -> None:
        """Is told of one change, when it happens."""
        self.unheard.append((plural, key, built))

    def hear(self, most: int) -> None:
        """Takes in so many of the changes that it has not heard of, in their order."""
        while most > 0 and self.unheard:
            self._show(*self.unheard.popleft())
            most -= 1

    async def lead(self, epoch: int) -> None:
        """Leads until cancelled, all but the usage over time, which nobody follows here."""
        await self.leader.lead(Term(epoch, asyncio.get_running_loop().time, float("inf")))

    async def review(self, request: AdmissionRequest) -> Decision:
        """The answer of this replica to a bind."""
        return await self.hook.review(request)

    def kill(self) -> None:
        """From now on it neither hears nor says anything."""
        self.api.dead = True
        self.stored.followers.remove(self)

    async def _catch_up(self) -> None:
        await asyncio.sleep(0.1)
        self.hear(len(self.unheard))

    def _show(self, plural: str, key: str, built: Builder | None) -> None:
        informer = getattr(self.caches, INFORMERS[plural])
        old = informer.get(key)
        view: Any = built.view() if built is not None else None  # type: ignore[attr-defined]  # all builders here have one
        if old is not None and view is not None and old.uid != view.uid:
            show(informer, key, None)
        show(informer, key, view)


def fresh(stored: Stored) -> Caches:
    """The caches of a process that has listed everything, and knows nothing else."""
    replica = Replica(stored)
    stored.followers.remove(replica)
    return replica.caches


def _key(name: str, namespace: str | None) -> str:
    return f"{namespace}/{name}" if namespace else name


def _now() -> int:
    return round(asyncio.get_running_loop().time() * 1e6)
