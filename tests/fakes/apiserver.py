"""A small API server over real sockets, for faults that a real one cannot be made to show at will.

It stores objects of any resource, lists in pages, watches with history, bookmarks and compaction, checks
resourceVersions, and knows merge and JSON patches. Every request is recorded; any can be answered by a fault instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from kube import connection
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import Resource
from tests.fakes import patches
from tests.fakes.answers import json_response, status, status_object
from tests.fakes.faults import Fault

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived; the names of headers are in lower case."""

    verb: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class _Change:
    version: int
    type: str
    path: str
    raw: Json


@dataclass(slots=True)
class _Planned:
    verb: str
    path: str
    fault: Fault
    times: int


@dataclass(slots=True)
class _Watch:
    collection: str
    named: str = ""
    outbox: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)


class FakeApiServer:
    """Use as an async context manager. Objects are addressed by the URL paths of kube.resources."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.requests: list[Recorded] = []
        self.url = ""
        self._version = 100
        self._uids = 0
        self._history: list[_Change] = []
        self._compacted = 0
        self._snapshots: dict[str, tuple[list[Json], int]] = {}
        self._tokens = 0
        self._planned: list[_Planned] = []
        self._watches: list[_Watch] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    def client(self, metrics: Metrics | None = None) -> Client:
        link = connection.plain(self.url)
        return Client(link) if metrics is None else Client(link, metrics=metrics)

    # What a test does to the cluster.

    def put(self, resource: Resource, raw: Json) -> Json:
        """Stores an object (metadata.name given) and tells the watches; returns it as stored."""
        head = raw["metadata"]
        return self._store(resource.path(head.get("namespace"), head["name"]), raw)

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        self._delete(resource.path(namespace, name))

    def compact(self) -> None:
        """Forgets the history: older resourceVersions and continue tokens are gone."""
        self._compacted = self._version
        self._history.clear()
        self._snapshots.clear()

    def bookmark(self) -> None:
        """Sends a bookmark to every watch, with a version of its own."""
        self._version += 1
        head = {"resourceVersion": str(self._version)}
        self.send({"type": "BOOKMARK", "object": {"kind": "Bookmark", "metadata": head}})

    def send(self, event: Json | bytes) -> None:
        """Sends one event, or any bytes, to every watch."""
        for watch in self._watches:
            watch.outbox.put_nowait(event if isinstance(event, bytes) else orjson.dumps(event) + b"\n")

    def end_watches(self) -> None:
        """Ends every watch the orderly way."""
        for watch in self._watches:
            watch.outbox.put_nowait(None)

    @property
    def watching(self) -> int:
        return len(self._watches)

    def fail(self, verb: str, fault: Fault, *, path: str = "", times: int = 1) -> None:
        """Answers the next `times` requests of that verb, whose path holds `path`, by the fault."""
        self._planned.append(_Planned(verb, path, fault, times))

    def seen(self, verb: str) -> list[Recorded]:
        return [request for request in self.requests if request.verb == verb]

    async def wait_for(self, holds: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Returns when `holds` is true, looked at every few milliseconds. Raises TimeoutError."""
        for _ in range(round(timeout_s / 0.005)):
            if holds():
                return
            await asyncio.sleep(0.005)
        raise TimeoutError("it did not happen")

    # The protocol.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        verb = self._verb(request)
        body: Any = orjson.loads(content) if content else None
        path = request.raw_path.partition("?")[0]
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.requests.append(Recorded(verb, path, dict(request.query), headers, body))
        for planned in self._planned:
            if planned.verb == verb and planned.path in path:
                planned.times -= 1
                if planned.times == 0:
                    self._planned.remove(planned)
                return await planned.fault(request)
        match verb:
            case "list":
                return self._list(request, path)
            case "watch":
                return await self._watch(request, path)
            case "get":
                return self._get(path)
            case "create":
                return self._create(path, body)
            case "update":
                return self._update(path, body)
            case "patch":
                return self._patch(path, body, request.content_type)
            case _:
                return self._remove(path, body)

    def _verb(self, request: web.Request) -> str:
        if request.method == "GET":
            if "watch" in request.query:
                return "watch"
            return "list" if "limit" in request.query else "get"
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]

    def _in_collection(self, collection: str) -> list[Json]:
        found = []
        for path, raw in sorted(self.objects.items()):
            if _belongs(path, collection):
                found.append(raw)
        return found

    def _list(self, request: web.Request, path: str) -> web.Response:
        limit, token = int(request.query["limit"]), request.query.get("continue")
        if token is None:
            named = _named(request)
            items = [raw for raw in self._in_collection(path) if named in ("", raw["metadata"]["name"])]
            version = self._version
        elif token in self._snapshots:
            items, version = self._snapshots.pop(token)
        else:
            return status(410, "Expired", "The provided continue parameter is too old")
        head: Json = {"resourceVersion": str(version)}
        if len(items) > limit:
            self._tokens += 1
            head["continue"] = f"token-{self._tokens}"
            self._snapshots[head["continue"]] = (items[limit:], version)
        return json_response({"kind": "List", "metadata": head, "items": items[:limit]})

    async def _watch(self, request: web.Request, path: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"] or "0")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if since < self._compacted:
            gone = status_object(410, "Expired", "too old resource version")
            await response.write(orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")
            return response
        watch = _Watch(path, named=_named(request))
        for change in self._history:
            if change.version > since:
                self._tell(watch, change)
        self._watches.append(watch)
        try:
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while (line := await watch.outbox.get()) is not None:
                    await response.write(line)
        except (TimeoutError, ConnectionResetError):
            pass
        finally:
            self._watches.remove(watch)
        return response

    def _get(self, path: str) -> web.Response:
        raw = self.objects.get(path)
        return status(404, "NotFound", f"{path} not found") if raw is None else json_response(raw)

    def _create(self, collection: str, raw: Json) -> web.Response:
        path = f"{collection}/{raw['metadata']['name']}"
        if path in self.objects:
            return status(409, "AlreadyExists", f"{path} already exists")
        parts = collection.split("/")
        if "namespaces" in parts:
            raw["metadata"]["namespace"] = parts[parts.index("namespaces") + 1]
        return json_response(self._store(path, raw), 201)

    def _update(self, path: str, raw: Json) -> web.Response:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound", f"{path} not found")
        version = raw["metadata"].get("resourceVersion")
        if version not in {None, stored["metadata"]["resourceVersion"]}:
            return status(409, "Conflict", "the object has been modified")
        return json_response(self._store(path, raw))

    def _patch(self, path: str, patch: Any, content_type: str) -> web.Response:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound", f"{path} not found")
        raw = orjson.loads(orjson.dumps(stored))
        if content_type == "application/json-patch+json":
            if not patches.applied(raw, patch):
                return status(422, "Invalid", "the server rejected our request")
        else:
            raw = patches.merged(raw, patch)
        return json_response(self._store(path, raw))

    def _remove(self, path: str, options: Json | None) -> web.Response:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound", f"{path} not found")
        for key, value in ((options or {}).get("preconditions") or {}).items():
            if stored["metadata"][key] != value:
                return status(409, "Conflict", "precondition failed")
        self._delete(path)
        return json_response(stored)

    def _store(self, path: str, raw: Json) -> Json:
        old = self.objects.get(path)
        self._version += 1
        if old is None:
            self._uids += 1
        uid = f"uid-{self._uids}" if old is None else old["metadata"]["uid"]
        head = {"uid": uid, **raw["metadata"], "resourceVersion": str(self._version)}
        stored = orjson.loads(orjson.dumps({**raw, "metadata": head}))
        self.objects[path] = stored
        self._record(_Change(self._version, "ADDED" if old is None else "MODIFIED", path, stored))
        return dict(stored)

    def _delete(self, path: str) -> None:
        raw = self.objects.pop(path)
        self._version += 1
        last = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
        self._record(_Change(self._version, "DELETED", path, last))

    def _record(self, change: _Change) -> None:
        self._history.append(change)
        for watch in self._watches:
            self._tell(watch, change)

    def _tell(self, watch: _Watch, change: _Change) -> None:
        if _belongs(change.path, watch.collection) and watch.named in (
            "",
            change.raw["metadata"]["name"],
        ):
            line = orjson.dumps({"type": change.type, "object": change.raw}) + b"\n"
            watch.outbox.put_nowait(line)


def _named(request: web.Request) -> str:
    """The one name that is asked for; no other field selector is understood, and pods here have no nodes."""
    selector = request.query.get("fieldSelector", "")
    return "" if selector == "spec.nodeName=" else selector.removeprefix("metadata.name=")


def _belongs(path: str, collection: str) -> bool:
    """Whether an object's path is in a collection: that of its namespace, or of all namespaces."""
    owner = path.rpartition("/")[0]
    if owner == collection:
        return True
    head, _, tail = owner.partition("/namespaces/")
    return bool(tail) and f"{head}/{tail.partition('/')[2]}" == collection


@asynccontextmanager
async def background(work: Coroutine[Any, Any, Any]) -> AsyncIterator["asyncio.Task[Any]"]:
    """Runs `work` beside the block, then cancels and awaits it; an error of its own comes out."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
