"""What a controller sees of an API server, in its own process: lists, watches, and writes answered after a moment.

It costs little beside what is measured: texts are kept as JSON and read only where a reader of the wire would read them.
"""

import asyncio
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from types import TracebackType
from typing import Any, Final, Self

import orjson

from core import names
from hack.bench.pages import in_pages
from kube import errors
from kube.client import Json, PatchType
from kube.listing import Page, WatchEvent, Watching
from kube.reading import PAGE_BYTES, Reader
from kube.resources import ALL, EVENTS, LEASES, PODS, SECRETS, Resource, Scope

LATENCY_S: Final = 0.001
_BOOKMARK_S: Final = 2.0
"""So long before the end of a watch the API server says how far it has come."""
_NOW: Final = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

Prepared = Sequence[tuple[Resource, str, str, bytes]]
"""Events to come: resource, type, key and text of each."""


class Crowd:
    """Many objects alike, made when they are read: `text(number)` is the JSON of the one called `<prefix><number>`."""

    def __init__(self, namespace: str, prefix: str, count: int, text: Callable[[int], bytes]) -> None:
        self._start = f"{namespace}/{prefix}"
        self.keys = range(count)
        self.text = text

    def find(self, key: str) -> bytes | None:
        """The text of the object of that key."""
        number = key.removeprefix(self._start)
        return self.text(int(number)) if number != key and int(number) in self.keys else None


class _Collection:
    def __init__(self) -> None:
        self.texts: dict[str, bytes | None] = {}
        """None: gone, or changed in a crowd."""
        self.crowd: Crowd | None = None
        self.log: list[tuple[int, str, bytes]] = []
        self.changed = asyncio.Event()

    def find(self, key: str) -> bytes | None:
        if key in self.texts or self.crowd is None:
            return self.texts.get(key)
        return self.crowd.find(key)

    def listed(self) -> Iterable[bytes]:
        if self.crowd is not None:
            yield from (self.crowd.text(number) for number in self.crowd.keys)
        # A list shows one moment, however long it takes to read it.
        yield from [text for text in self.texts.values() if text is not None]


class Store:
    """Stands in for kube.client.Client: the calls that a controller makes of it, for any resource.

    With `rival` the Lease is somebody else's, and renewed: the controller stays a standby.
    """

    def __init__(self, *, rival: bool = False) -> None:
        self._rival = rival
        self._reader = Reader()
        self._collections: dict[str, _Collection] = defaultdict(_Collection)
        self._others: dict[tuple[str, str], Json] = {}
        self._version = 1
        self.lifted: dict[str, float] = {}
        """When each pod was lifted, by key."""
        self.changed = asyncio.Event()
        """Set by every request, and by the end of every list."""
        self.requests: Counter[str] = Counter()
        self.listing = 0
        """Lists that have been begun and are not read to their end."""
        self.terms: set[tuple[str, int]] = set()
        """Who has held the Lease, and the number of each such time; nobody where it was given back."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def apart(self) -> Self:
        """See Client.apart: there are no connections here."""
        return self

    # -- what happens in the cluster ---------------------------------------------------------------------------

    def fill(self, resource: Resource, raws: Iterable[Json]) -> None:
        """Objects that are there from the beginning."""
        texts = self._collections[resource.plural].texts
        for raw in raws:
            texts[_key(raw)] = orjson.dumps(_versioned(raw, 1))

    def crowd(self, resource: Resource, crowd: Crowd) -> None:
        """Very many objects that are there from the beginning, and that nobody changes."""
        self._collections[resource.plural].crowd = crowd

    def prepare(self, resource: Resource, kind: str, raws: Iterable[Json]) -> Prepared:
        """Makes the texts of events that are told later, all of them before anything else is prepared."""
        return [(resource, kind, _key(raw), orjson.dumps(self._next(raw))) for raw in raws]

    def tell(self, events: Prepared) -> None:
        """The events happen now, and all at once."""
        for resource, kind, key, text in events:
            self._tell(resource, kind, key, text)

    def patched(self, resource: Resource, key: str, body: Any, patch_type: PatchType) -> Json:
        """The object as it is stored after a patch, whoever writes it; raises NotFound and Invalid."""
        raw = self._with(resource, key, body, patch_type)
        stored = self._next(raw)
        self._tell(resource, "MODIFIED", key, orjson.dumps(stored))
        gates = raw["spec"].get("schedulingGates") or () if resource is PODS else ()
        if resource is PODS and all(gate["name"] != names.GATE for gate in gates):
            self.lifted.setdefault(key, asyncio.get_running_loop().time())
            self.changed.set()
        return stored

    def _with(self, resource: Resource, key: str, body: Any, patch_type: PatchType) -> Json:
        text = self._collections[resource.plural].find(key)
        if text is None:
            raise errors.NotFound(404, "NotFound", f"{resource} {key}")
        raw: Json = orjson.loads(text)
        if patch_type is PatchType.JSON:
            if not _applied(raw, body):
                raise errors.Invalid(422, "Invalid", "the server rejected our request")
            return raw
        merged: Json = _merged(raw, body)
        return merged

    def texts(self) -> Iterable[bytes]:
        """Every text that was listed or told, or can be."""
        for collection in self._collections.values():
            yield from collection.listed()
            yield from (text for _, _, text in collection.log)

    def _tell(self, resource: Resource, kind: str, key: str, text: bytes) -> None:
        collection = self._collections[resource.plural]
        collection.texts[key] = None if kind == "DELETED" else text
        # Later than every list that did not show it, whenever the text was made.
        self._version += 1
        collection.log.append((self._version, kind, text))
        collection.changed.set()

    def _next(self, raw: Json) -> Json:
        self._version += 1
        return _versioned(raw, self._version)

    # -- the calls of the client -------------------------------------------------------------------------------

    async def list(
        self, resource: Resource, scope: Scope = ALL, *, limit: int = 500, **_options: Any
    ) -> AsyncGenerator[Page]:
        """See Client.list."""
        self.requests[f"list {resource.plural}"] += 1
        version = str(self._version)
        collection = self._collections[resource.plural]
        self.listing += 1
        try:
            for page in in_pages(
                collection.listed() if scope.namespace is None or resource is SECRETS else (), limit
            ):
                await asyncio.sleep(LATENCY_S)
                yield Page((await self._reader.value(page, PAGE_BYTES))["items"], version)
            yield Page([], version)
        finally:
            self.listing -= 1
            self.changed.set()

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        """See Client.watch."""
        collection = self._collections[resource.plural]
        since = int(asked.resource_version)
        position = bisect_right(collection.log, since, key=itemgetter(0))
        ends = asyncio.get_running_loop().time() + asked.timeout_s
        yield _bookmark(since)
        for until in (ends - _BOOKMARK_S, ends):
            while True:
                collection.changed.clear()
                while position < len(collection.log):
                    _, kind, text = collection.log[position]
                    position += 1
                    yield WatchEvent(kind, await self._reader.value(text))
                if not await _set_before(collection.changed, until):
                    break
            yield _bookmark(self._version)

    async def get(self, resource: Resource, name: str, namespace: str | None = None, **_options: Any) -> Json:
        """See Client.get."""
        await self._answered("get", resource)
        if resource is LEASES and self._rival:
            return self._renewed(name)
        text = self._collections[resource.plural].find(_joined(namespace, name))
        found = self._others.get((resource.plural, name)) if text is None else orjson.loads(text)
        if found is None:
            raise errors.NotFound(404, "NotFound", f"{resource} {name}")
        return found

    async def create(
        self, resource: Resource, body: Json, _namespace: str | None = None, **_options: Any
    ) -> Json:
        """See Client.create."""
        await self._answered("create", resource)
        return self._kept(resource, body)

    async def replace(
        self, resource: Resource, body: Json, _namespace: str | None = None, **_options: Any
    ) -> Json:
        """See Client.replace."""
        await self._answered("update", resource)
        return self._kept(resource, body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        dry_run: bool = False,
        **_options: Any,
    ) -> Json:
        """See Client.patch."""
        await self._answered("patch", resource)
        if resource is EVENTS:
            return dict(body)
        if dry_run:
            return self._with(resource, _joined(namespace, name), body, patch_type)
        return self.patched(resource, _joined(namespace, name), body, patch_type)

    async def delete(
        self, resource: Resource, name: str, _namespace: str | None = None, **_options: Any
    ) -> Json:
        """See Client.delete."""
        await self._answered("delete", resource)
        raise errors.NotFound(404, "NotFound", f"{resource} {name}")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns when the requests that came have made this so."""
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def _answered(self, verb: str, resource: Resource) -> None:
        self.requests[f"{verb} {resource.plural}"] += 1
        self.changed.set()
        await asyncio.sleep(LATENCY_S)

    def _kept(self, resource: Resource, body: Json) -> Json:
        raw = self._next(body)
        if resource is SECRETS:
            # Those who wait for one hear of it.
            raw["metadata"].setdefault("uid", _key(raw))
            self._tell(resource, "MODIFIED", _key(raw), orjson.dumps(raw))
        elif resource is not EVENTS:
            self._others[resource.plural, raw["metadata"]["name"]] = raw
        if resource is LEASES:
            self.terms.add((raw["spec"]["holderIdentity"], raw["spec"]["leaseTransitions"]))
        return raw

    def _renewed(self, name: str) -> Json:
        spec = {"holderIdentity": "another", "leaseDurationSeconds": 15, "leaseTransitions": 1}
        return self._next({"metadata": {"name": name}, "spec": spec})


def _bookmark(version: int) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


async def _set_before(event: asyncio.Event, until: float) -> bool:
    try:
        async with asyncio.timeout_at(until):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _versioned(raw: Json, version: int) -> Json:
    """As the server would keep it: of now, for what is old is told."""
    made = {"creationTimestamp": _NOW} if "creationTimestamp" in raw["metadata"] else {}
    return {**raw, "metadata": {**raw["metadata"], **made, "resourceVersion": str(version)}}


def _key(raw: Json) -> str:
    return _joined(raw["metadata"].get("namespace"), raw["metadata"]["name"])


def _joined(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _applied(raw: Json, patch: Iterable[Mapping[str, Any]]) -> bool:
    """RFC 6902 as far as it is used: test, remove and add."""
    for operation in patch:
        *parents, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        target: Any = raw
        for token in parents:
            target = target[int(token)] if isinstance(target, list) else target[token]
        key: Any = int(last) if isinstance(target, list) and last != "-" else last
        match operation["op"]:
            case "test":
                if target[key] != operation["value"]:
                    return False
            case "remove":
                del target[key]
            case _ if isinstance(target, list):
                target.insert(len(target) if key == "-" else key, operation["value"])
            case _:
                target[key] = operation["value"]
    return True
