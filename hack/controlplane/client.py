"""A small synchronous JSON client for tests, demo and benchmarks; the product has its own asynchronous one."""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import yaml

from hack.controlplane.exchange import Unanswered, exchange, has_ended, is_idempotent
from hack.controlplane.processes import check_processes

FIELD_MANAGER = "hack"

_TIMEOUT_S = 30.0
_POLL_S = 0.05
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

T = TypeVar("T")
Object = Mapping[str, Any]
PatchKind = Literal["json", "merge", "strategic", "apply"]


class Answer(NamedTuple):
    """Status code and parsed body; the body is text where the server did not send JSON."""

    status: int
    body: Any

    def expect(self, *statuses: int) -> Any:
        """Return the body; `ApiError` unless the status is one of `statuses` (by default any 2xx)."""
        if self.status in statuses or (not statuses and self.status // 100 == 2):
            return self.body
        raise ApiError(self)


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, answer: Answer) -> None:
        message = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
        super().__init__(f"{answer.status}: {message}")
        self.answer = answer


class WaitError(Exception):
    """What was waited for did not come about in time."""


class ApiClient:
    """Speaks JSON to one API server as one user; one kept-alive connection per thread.

    Every method that sends returns an `Answer` whatever the status; connection errors and time-outs are raised as the
    standard library's `OSError`. A request on a kept connection that turns out to be closed is sent once more, on a new
    one, where that cannot do anything twice.
    """

    def __init__(
        self,
        url: str,
        ca_file: Path,
        *,
        token: str | None = None,
        client_pair: tuple[Path, Path] | None = None,
    ) -> None:
        self._address = urlsplit(url)
        self._tls = ssl.create_default_context(cafile=ca_file)
        if client_pair is not None:
            self._tls.load_cert_chain(*client_pair)
        self._headers = {"Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._local = threading.local()
        self._connections: set[http.client.HTTPSConnection] = set()
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = _TIMEOUT_S,
    ) -> Answer:
        """Send one request; `timeout_s` bounds the connect and each read. A body of bytes is sent as it is."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connection(timeout_s)
        reused = connection.sock is not None
        try:
            response, text = exchange(connection, method, path, payload, headers)
        except Unanswered as error:
            # Most likely the server had given up an idle connection while the request was on its way.
            if not reused or not (error.unsent or is_idempotent(method, content_type)):
                raise
            response, text = exchange(self._connection(timeout_s), method, path, payload, headers)
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return Answer(response.status, json.loads(text) if is_json else text.decode(errors="replace"))

    def get(self, path: str, **query: str) -> Answer:
        """Read an object or a list; `query` becomes the query string."""
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def create(self, thing: Object) -> Answer:
        """Create an object in the namespace that it names (`default` if none)."""
        return self.request("POST", self.path_of(thing, collection=True), thing)

    def replace(self, thing: Object, subresource: str = "") -> Answer:
        """Replace an object (PUT)."""
        return self.request("PUT", self.path_of(thing, subresource=subresource), thing)

    def patch(self, path: str, patch: Any, kind: PatchKind = "merge", **query: str) -> Answer:
        """Patch the object at `path`."""
        target = f"{path}?{urlencode(query)}" if query else path
        return self.request("PATCH", target, patch, content_type=_PATCHES[kind])

    def delete(self, path: str, **options: Any) -> Answer:
        """Delete the object at `path`; `options` are the fields of DeleteOptions."""
        return self.request("DELETE", path, options or None)

    def apply(self, things: str | Object | Iterable[Object]) -> list[Any]:
        """Server-side apply objects or YAML text in the given order and return what is stored.

        A CustomResourceDefinition is served when this returns. Raises `ApiError` at the first refusal.
        """
        stored = []
        for thing in _objects(things):
            path = self.path_of(thing)
            stored.append(self.patch(path, thing, "apply", fieldManager=FIELD_MANAGER, force="true").expect())
            if thing["kind"] == "CustomResourceDefinition":
                self._wait_established(path)
        return stored

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of a collection, or of the object called `name`; `namespace` None means all or none."""
        plural, namespaced = self._plural(api_version, kind)
        parts = ["/api" if "/" not in api_version else "/apis", api_version]
        if namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace)]
        parts.append(plural)
        if name is not None:
            parts.append(quote(name))
        return "/".join(parts)

    def path_of(self, thing: Object, *, collection: bool = False, subresource: str = "") -> str:
        """Return the path of an object, of one of its subresources, or of the collection that it belongs to."""
        metadata = thing["metadata"]
        name = None if collection else metadata["name"]
        path = self.path(thing["apiVersion"], thing["kind"], metadata.get("namespace") or "default", name)
        return f"{path}/{subresource}" if subresource else path

    def close(self) -> None:
        """Close every connection; the client can be used again."""
        for connection in list(self._connections):
            connection.close()

    def _connection(self, timeout_s: float) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(
                self._address.hostname or "", self._address.port, context=self._tls, timeout=timeout_s
            )
            self._local.connection = connection
            self._connections.add(connection)
        connection.timeout = timeout_s
        if connection.sock is not None and has_ended(connection.sock):
            connection.close()
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection

    def _plural(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._plurals:
            root = "/api/" if "/" not in api_version else "/apis/"
            for entry in self.get(root + api_version).expect()["resources"]:
                if "/" not in entry["name"]:
                    self._plurals[api_version, entry["kind"]] = (entry["name"], entry["namespaced"])
        try:
            return self._plurals[api_version, kind]
        except KeyError:
            raise LookupError(f"the API server does not serve {kind} in {api_version}") from None

    def _wait_established(self, path: str) -> None:
        def established() -> bool:
            conditions = self.get(path).expect().get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        wait_for(f"{path} is served", established)


def wait_for(
    what: str, check: Callable[[], T], timeout_s: float = _TIMEOUT_S, *, every_s: float = _POLL_S
) -> T:
    """Call `check` until it returns something true and return that; `WaitError` names `what` after `timeout_s`.

    A program that ends by itself meanwhile ends the waiting at once, see `check_processes`.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := check()):
        check_processes()
        if time.monotonic() > deadline:
            raise WaitError(f"not within {timeout_s:.0f} s: {what} (last seen: {value!r})")
        time.sleep(every_s)
    return value


def _objects(things: str | Object | Iterable[Object]) -> Sequence[Object]:
    if isinstance(things, str):
        return [thing for thing in yaml.safe_load_all(things) if thing]
    return [things] if isinstance(things, Mapping) else list(things)
