"""A thin JSON client for the Kubernetes API: the verbs, raw objects in and out, one error tree.

Raw JSON on purpose: the generated models cost 25 times the memory and the time of projecting what is needed, and
would drop fields that this version of the library does not know.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from enum import Enum
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from core import names
from kube import connection, errors, queries, reading
from kube.bigjson import WHOLE, JsonError
from kube.listing import Page, WatchEvent, Watching, event_of
from kube.metrics import DEFAULT, Metrics
from kube.reading import LineSplitter, Reader
from kube.resources import ALL, Resource, Scope
from kube.stream import Stream
from kube.transport import Request, Transport, within

Json = dict[str, Any]
JsonPatch = list[Json]

_LIST_TIMEOUT_S = 60.0
_WATCH_GRACE_S = 30.0


class PatchType(Enum):
    """The patch formats that every resource knows, custom ones included (strategic merge is not one of them)."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Client:
    """The API of one cluster. Use it as an async context manager; tasks of one event loop may share it.

    Every method raises a subclass of errors.ApiError when the server answers with anything but 2xx, and
    errors.ConnectionFailed when there is no usable answer within the time named. Nothing is retried here, except once
    after a 401, with credentials read again.

    The server is told how long a write is waited for: so long after it has arrived it is stored or never will be, whatever
    hangs on its way, and whether or not anybody is left to hear of it. Else it would be 34 seconds.
    """

    def __init__(
        self,
        link: connection.Connection,
        *,
        user_agent: str | None = None,
        metrics: Metrics = DEFAULT,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        """By `session`, if there is one, go all requests but watches."""
        self._link = link
        self._user_agent = user_agent or _user_agent()
        self._metrics = metrics
        self._transport = Transport(link, user_agent=self._user_agent, metrics=metrics, session=session)
        self._reader = Reader()

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        *,
        user_agent: str | None = None,
        metrics: Metrics = DEFAULT,
    ) -> Self:
        """A client for the given kubeconfig, else for the pod's service account, else for kubectl's default.

        Raises connection.ConfigurationError; the server is not asked yet.
        """
        return cls(await connection.connect(kubeconfig, context), user_agent=user_agent, metrics=metrics)

    def apart(self) -> Self:
        """A client of the same server with the same credentials, whose connections serve nobody else. To be closed first.

        What is kept of many connections may be several that have died without a word, and each is waited for in vain in its
        turn. Whoever makes one request at a time here has one connection at the most, and a new one after a failure.
        """
        session = connection.apart(self._link)
        return type(self)(self._link, user_agent=self._user_agent, metrics=self._metrics, session=session)

    @property
    def host(self) -> str:
        """URL of the API server, without a trailing slash."""
        return self._transport.host

    async def close(self) -> None:
        """Closes every connection; requests and watches under way fail."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, timeout_s: float = 10.0
    ) -> Json:
        """The object as it is now (never from a cache that lags behind). Raises NotFound and others."""
        request = Request("GET", resource.path(namespace, name), "get", str(resource), within(timeout_s))
        return await self._exchange(request)

    async def list(
        self,
        resource: Resource,
        scope: Scope = ALL,
        *,
        limit: int = 500,
        timeout_s: float = _LIST_TIMEOUT_S,
    ) -> AsyncGenerator[Page]:
        """The pages of what is meant, each within `timeout_s`; together one consistent state.

        A page has at most `limit` objects, fewer where they are large. The server makes the next one while the caller works on
        this one. Close the iterator (contextlib.aclosing) to end it early.

        Raises Gone when the server has forgotten that state before the last page was read: what came before is then
        of no use for a watch, list again from the start. NotFound means that there is no such resource: it is raised only
        where discovery says so too, for a server or a proxy that starts up answers 404 as well.
        """
        path, asked = resource.path(scope.namespace), limit

        def begin(token: str) -> tuple[Request, asyncio.Task[bytes]]:
            query = {**scope.query, "limit": str(asked), **({"continue": token} if token else {})}
            request = Request("GET", path, "list", str(resource), within(timeout_s), query=query)
            return request, asyncio.create_task(self._transport.read(request), name=f"list {resource}")

        request, coming = begin("")
        try:
            while True:
                try:
                    body = await coming
                    raw = await self._value(request, body, reading.PAGE_BYTES)
                except errors.NotFound as error:
                    if await self.serves(resource, timeout_s=timeout_s):
                        raise errors.ServerError(
                            503, "ServiceUnavailable", f"{resource} is served, but: {error}"
                        ) from error
                    raise
                head = raw.get("metadata") or {}
                token = str(head.get("continue") or "")
                if token:
                    asked = reading.page_limit(asked, len(body), limit)
                    request, coming = begin(token)
                yield Page(raw.get("items") or [], str(head.get("resourceVersion", "")))
                if not token:
                    return
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def serves(self, resource: Resource, *, timeout_s: float = 10.0) -> bool:
        """Whether discovery lists the resource in its version. Raises KubeError where that cannot be found out."""
        request = Request(
            "GET", resource.discovery_path, "get", f"discovery of {resource}", within(timeout_s)
        )
        try:
            found = await self._exchange(request)
        except (errors.NotFound, errors.Forbidden):
            return False
        listed = found.get("resources")
        return isinstance(listed, list) and any(
            isinstance(one, dict) and one.get("name") == resource.plural for one in listed
        )

    async def watch(self, resource: Resource, asked: Watching) -> AsyncGenerator[WatchEvent]:
        """The changes, bookmarks among them, until the server ends the watch or says nothing.

        The first event is a bookmark of the version that was asked for: the server has answered, over a new connection.
        Silence is no failure; whether anybody is there is seen when the watch is taken up again.
        Raises Gone when the version is too old, ApiError for any other error that the server reports, by status or by
        event, and ConnectionFailed when there is no answer or the stream is cut.
        An event may be of any size. Close the iterator (contextlib.aclosing) to end the watch early.
        """
        query = asked.scope.query | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": asked.resource_version,
            "timeoutSeconds": str(round(asked.timeout_s)),
        }
        timeout = aiohttp.ClientTimeout(total=asked.answer_s + asked.timeout_s + _WATCH_GRACE_S)
        path = resource.path(asked.scope.namespace)
        request = Request(
            "GET", path, "watch", str(resource), timeout, query=query, answer_s=asked.answer_s, unpooled=True
        )
        splitter = LineSplitter()
        with Stream(await self._transport.open(request), asked.inactivity_s) as stream:
            yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": asked.resource_version}})
            try:
                while piece := await stream.next_piece():
                    for line in splitter.feed(piece):
                        yield event_of(await self._reader.value(line))
            except errors.TRANSPORT_ERRORS as error:
                raise request.failed(error) from error
            except JsonError as error:
                raise errors.ConnectionFailed(f"watch {resource}: not JSON") from error
        if splitter.rest and not stream.silent:
            raise errors.ConnectionFailed(f"watch {resource}: ended in the middle of an event")

    async def create(
        self,
        resource: Resource,
        body: Json,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        field_manager: str = names.FIELD_MANAGER,
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        """The object as created. With `name` and `subresource`, POSTs to that (an eviction, a binding).

        Raises AlreadyExists and others.
        """
        path = resource.path(namespace, name, subresource)
        query, data = queries.of_write(timeout_s, field_manager, dry_run), orjson.dumps(body)
        request = Request("POST", path, "create", str(resource), within(timeout_s), query, data)
        return await self._exchange(request)

    async def replace(
        self,
        resource: Resource,
        body: Json,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        field_manager: str = names.FIELD_MANAGER,
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        """The object as stored by a PUT of `body`, which names itself in its metadata.

        With metadata.resourceVersion in the body, a Conflict is raised when the object has changed since.
        """
        path = resource.path(namespace, body["metadata"]["name"], subresource)
        query, data = queries.of_write(timeout_s, field_manager, dry_run), orjson.dumps(body)
        request = Request("PUT", path, "update", str(resource), within(timeout_s), query, data)
        return await self._exchange(request)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Json | JsonPatch,
        namespace: str | None = None,
        *,
        patch_type: PatchType,
        subresource: str | None = None,
        field_manager: str | None = names.FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
        timeout_s: float = 10.0,
    ) -> Json:
        """The object as patched. `force` takes fields over from other managers; it belongs to APPLY alone.

        A failed `test` of a JSON patch and a refused result both raise Invalid, and the server's text does not tell
        which it was: read the object again. An outdated resourceVersion in the patch raises Conflict.
        """
        query = queries.of_write(timeout_s, field_manager, dry_run)
        if patch_type is PatchType.APPLY:
            query["force"] = "true" if force else "false"
        path = resource.path(namespace, name, subresource)
        timeout, data = within(timeout_s), orjson.dumps(body)
        request = Request("PATCH", path, "patch", str(resource), timeout, query, data, patch_type.value)
        return await self._exchange(request)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_s: int | None = None,
        timeout_s: float = 10.0,
    ) -> Json:
        """What the server answers: the object being deleted, or a Status.

        With `uid` or `resource_version` a Conflict is raised, and nothing deleted, when the object is another one.
        """
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value is not None}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        path = resource.path(namespace, name)
        query, body = queries.of_write(timeout_s), orjson.dumps(options)
        request = Request("DELETE", path, "delete", str(resource), within(timeout_s), query, body)
        return await self._exchange(request)

    async def bearer_token(self) -> str:
        """The token by which the API server knows us; empty where it knows us by a certificate. Raises ConnectionFailed."""
        return await self._transport.bearer_token()

    async def read_text(
        self, path: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0
    ) -> str:
        """The answer to a GET of something that is not JSON, such as a page of metrics. What is no UTF-8 is replaced."""
        request = Request("GET", path, "get", "other", within(timeout_s), headers=headers or {})
        return (await self._transport.read(request)).decode("utf-8", errors="replace")

    async def _exchange(self, request: Request) -> Json:
        return await self._value(request, await self._transport.read(request))

    async def _value(self, request: Request, body: bytes, whole: int = WHOLE) -> Json:
        try:
            raw = await self._reader.value(body, whole)
        except JsonError as error:
            raise request.failed(ValueError("the answer is not JSON")) from error
        if not isinstance(raw, dict):
            raise request.failed(ValueError("the answer is not a JSON object"))
        return raw


def _user_agent() -> str:
    try:
        return f"{names.FIELD_MANAGER}/{metadata.version('cardquota')}"
    except metadata.PackageNotFoundError:
        return names.FIELD_MANAGER  # run from a source tree
