"""What is stored, and the way of one process to it: requests take their time, fail, hang, and lose their answers."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from core.names import FIELD_MANAGER
from core.settings import Settings
from kube import errors
from kube.client import Json, PatchType
from kube.listing import Page
from kube.resources import ALL, CONFIG_MAPS, EVENTS, Resource, Scope
from tests.builders.raw import Builder, metadata
from tests.fakes.livesource import FIRST_VERSION
from tests.fakes.patches import applied, merged

if TYPE_CHECKING:
    from tests.property.takeover_replica import Replica

SETTINGS = Settings.model_validate(
    {
        "dra": {"queueCRD": "leave"},
        "cards": {"unlimitedCpuMemory": True},
        "reservation": {"warnAfter": "3s", "evictAfter": "8s"},
        "features": {"dra": True},
        "crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "quota": {"cpu": "4"}},
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
INFORMERS = {
    "pods": "pods",
    "nodes": "nodes",
    "queues": "queues",
    "podgroups": "groups",
    "jobs": "jobs",
    "namespaces": "namespaces",
    "deviceclasses": "device_classes",
    "resourceclaims": "claims",
    "resourceclaimtemplates": "templates",
}
"""By plural, the informer of what processes follow; nobody follows anything else that is stored."""
USAGE = "cardquota-system/cardquota-usage"
_Key = tuple[str, str]
"""The plural of a resource, and the key of an object."""


class Stored:
    """The objects, and who follows them. `stormy` is the part of the requests that fail, hang, or lose their answer."""

    def __init__(self, seed: int, stormy: float) -> None:
        self.rng, self.stormy = Random(seed), stormy
        self.objects: dict[_Key, Builder] = {}
        self.followers: list[Replica] = []
        self.version = FIRST_VERSION
        self.put(
            CONFIG_MAPS.plural, USAGE, Builder({"metadata": metadata("cardquota-usage", "cardquota-system")})
        )

    def followed(self) -> Iterator[tuple[str, str, Builder]]:
        """What processes follow."""
        for (plural, key), built in self.objects.items():
            if plural in INFORMERS:
                yield plural, key, built

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
        for follower in self.followers if plural in INFORMERS else ():
            follower.happened(plural, key, self.objects.get((plural, key)))

    def change(
        self, plural: str, key: str, body: Any, patch_type: PatchType, *, dry_run: bool = False
    ) -> Json:
        """Carries out a patch as an API server does; nothing is stored by a dry run."""
        stored = self.matching(plural, key, {} if patch_type is PatchType.JSON else body.get("metadata", {}))
        raw = deepcopy(stored.raw)
        if patch_type is PatchType.MERGE:
            raw = merged(raw, body)
        elif not applied(raw, body):
            raise errors.Invalid(422, "Invalid", "a test failed", None, None)
        if dry_run:
            return type(stored)(raw).build()
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
        dry_run: bool = False,
        timeout_s: float = 10.0,
        **_: Any,
    ) -> Json:
        await self._sent(timeout_s)
        key = _key(name, namespace)
        answer = self._stored.change(resource.plural, key, body, patch_type, dry_run=dry_run)
        await self._answered()
        return answer

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        await self._sent(timeout_s)
        return self._stored.matching(resource.plural, _key(name, namespace), {}).build()

    async def create(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        await self._sent(timeout_s)
        key = _key(body["metadata"]["name"], namespace)
        if key in self._stored.all(resource.plural):
            raise errors.AlreadyExists(409, "AlreadyExists", key, None, None)
        moment = datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)
        self._stored.put(resource.plural, key, Builder(body).created(moment.strftime("%Y-%m-%dT%H:%M:%SZ")))
        await self._answered()
        return self._stored.objects[resource.plural, key].build()

    async def replace(
        self, resource: Resource, body: Json, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        await self._sent(timeout_s)
        key = _key(body["metadata"]["name"], namespace)
        self._stored.matching(resource.plural, key, body["metadata"])
        self._stored.put(resource.plural, key, Builder(body))
        await self._answered()
        return self._stored.objects[resource.plural, key].build()

    async def list(
        self, resource: Resource, scope: Scope = ALL, *, limit: int = 500, timeout_s: float = 10.0
    ) -> AsyncGenerator[Page]:
        """Events alone are listed past the informers."""
        assert (resource, scope.namespace) == (EVENTS, None)
        await self._sent(timeout_s)
        found = [self._stored.objects[EVENTS.plural, key].build() for key in self._stored.all(EVENTS.plural)]
        for first in range(0, len(found) or 1, limit):
            yield Page(found[first : first + limit], str(self._stored.version))
            await self._answered()

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
        await asyncio.sleep(rng.choice((0.001, 0.01, 0.1)) * rng.uniform(1.0, 1.1))
        if self.dead:
            await asyncio.Event().wait()
        if rng.random() < self._stored.stormy:
            if rng.random() < 0.2:
                await asyncio.sleep(timeout_s)
                raise errors.ConnectionFailed("timed out")
            raise rng.choice(FAILURES)

    async def _answered(self) -> None:
        rng = self._stored.rng
        await asyncio.sleep(rng.choice((0.001, 0.01)) * rng.uniform(1.0, 1.1))
        if rng.random() < self._stored.stormy / 2:
            raise errors.ConnectionFailed("the answer is lost")


def _key(name: str, namespace: str | None) -> str:
    return f"{namespace}/{name}" if namespace else name
