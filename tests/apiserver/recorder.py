"""A webhook server that allows everything and remembers what it was asked, for tests of what is sent at all."""

import base64
import copy
import datetime as dt
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kube import pki

_TIMEOUT_S = 10.0


class Recorder:
    """The reviews that arrived, by the `<configuration kind>/<entry>` that sent them."""

    def __init__(self, port: int, ca: bytes) -> None:
        self._port = port
        self._ca = base64.b64encode(ca).decode()
        self._lock = threading.Lock()
        self._reviews: list[tuple[str, dict[str, Any]]] = []

    def redirected(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """The webhook configuration with every entry calling this server, each under a path of its own."""
        local = copy.deepcopy(dict(configuration))
        kind = local["kind"].removesuffix("WebhookConfiguration").lower()
        for entry in local["webhooks"]:
            url = f"https://localhost:{self._port}/{kind}/{entry['name']}"
            entry["clientConfig"] = {"url": url, "caBundle": self._ca}
        return local

    def add(self, path: str, request: dict[str, Any]) -> None:
        with self._lock:
            self._reviews.append((path.partition("?")[0].strip("/"), request))

    def entries_for(self, name: str) -> list[str]:
        """Which entries were called for objects of that name, in alphabetical order."""
        with self._lock:
            return sorted(path for path, request in self._reviews if request["name"] == name)

    def clear(self) -> None:
        with self._lock:
            self._reviews.clear()


@contextmanager
def recording(folder: Path) -> Iterator[Recorder]:
    """Serve on loopback until the end of `with`."""
    now = dt.datetime.now(dt.UTC)
    authority = pki.issue_ca(now)
    leaf = pki.issue_leaf(authority, ["localhost"], now)
    pair = folder / "pair.pem"
    pair.write_bytes(leaf.certificate + b"\n" + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        recorder = Recorder(server.server_port, authority.certificate)
        server.RequestHandlerClass = type("Handler", (_Handler,), {"recorder": recorder})
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield recorder
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    recorder: Recorder

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.recorder.add(self.path, review["request"])
        review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in the base class
        """Say nothing: pytest's output is for failures."""
