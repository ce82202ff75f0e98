"""Somebody else's webhook: it has to allow every update of pods, or every bind, in one namespace, and is away or silent."""

import base64
import datetime as dt
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hack.controlplane import wait_for
from hack.controlplane.exchange import Unanswered
from kube import pki
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.manifests import binding, pod

LOOPBACK = "127.0.0.1"
UPDATES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
BINDS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}

_API_VERSION = "admissionregistration.k8s.io/v1"
_PROBE = "probe-of-the-stranger"


class Stranger:
    """Says yes to whatever it is asked, at once or, while it `holds` its answers back, when it is told to.

    Of updates it may `undo` what they are for.

    Until `listen` was called nobody is there: the API server's connections are refused.
    """

    def __init__(self, server: ThreadingHTTPServer, authority: bytes) -> None:
        self._server = server
        self._listens = threading.Event()
        self._may_answer = threading.Event()
        self._may_answer.set()
        self._lock = threading.Lock()
        self._asked: list[str] = []
        self._undoes = False
        self.client_config = {
            "url": f"https://localhost:{server.server_address[1]}/",
            "caBundle": base64.b64encode(authority).decode(),
        }

    @property
    def asked(self) -> set[str]:
        """The names of the pods that it has been asked about."""
        with self._lock:
            return {*self._asked}

    def times(self, name: str) -> int:
        """How often it has been asked about a pod."""
        with self._lock:
            return self._asked.count(name)

    def listen(self) -> None:
        """From now on it is there."""
        self._server.server_activate()
        self._listens.set()

    def hold(self) -> None:
        """From now on it takes questions and says nothing."""
        self._may_answer.clear()

    def answer(self) -> None:
        """Answers what is held back, and everything else from now on."""
        self._may_answer.set()

    def undo(self) -> None:
        """From now on it puts back the gates that an update takes off; it has to be `mutating`."""
        self._undoes = True

    def decide(self, request: Object) -> Object:
        """The answer to a request, when it may be given."""
        with self._lock:
            self._asked.append(request["name"])
        self._may_answer.wait()
        answer: Object = {"uid": request["uid"], "allowed": True}
        gates = (request["oldObject"] or {}).get("spec", {}).get("schedulingGates")
        if not (self._undoes and gates):
            return answer
        patch = [{"op": "add", "path": "/spec/schedulingGates", "value": gates}]
        return answer | {
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }

    def serve(self) -> None:
        """Takes connections until it is shut down, once it listens."""
        self._listens.wait()
        self._server.serve_forever(poll_interval=0.05)


@contextmanager
def stranger(folder: Path) -> Iterator[Stranger]:
    """On loopback, until the end of `with`. Its port is taken from the beginning, so nobody else listens there."""
    now = dt.datetime.now(dt.UTC)
    authority = pki.issue_ca(now)
    leaf = pki.issue_leaf(authority, ["localhost"], now)
    pair = folder / "stranger.pem"
    pair.write_bytes(leaf.certificate + b"\n" + leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    with _Server((LOOPBACK, 0), _Handler, bind_and_activate=False) as server:
        server.server_bind()
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        there = Stranger(server, authority.certificate)
        server.RequestHandlerClass = type("Handler", (_Handler,), {"stranger": there})
        thread = threading.Thread(target=there.serve, name="stranger")
        thread.start()
        try:
            yield there
        finally:
            there.answer()
            if not there._listens.is_set():
                there.listen()
            server.shutdown()
            thread.join()


@contextmanager
def silent(folder: Path) -> Iterator[Stranger]:
    """One that is there and says nothing for now."""
    with stranger(folder) as there:
        there.listen()
        there.hold()
        yield there


@contextmanager
def in_the_way(
    cluster: Cluster,
    client_config: Object,
    rule: Object = UPDATES,
    *,
    timeout_s: int = 10,
    only: str = "",
    kind: str = "ValidatingWebhookConfiguration",
) -> Iterator[str]:
    """Meanwhile the API server asks there about every such request in the test's namespace, or about `only` one pod.

    It does so from the beginning, where the webhook is away or silent then. Yields the path of the configuration.
    """
    named = {"name": "only", "expression": f"request.name in ['{only}', '{_PROBE}']"}
    webhook = {
        "name": "strangers.example.com",
        "clientConfig": client_config,
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": timeout_s,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}},
        "matchConditions": [named] if only else [],
    }
    configuration = {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": {"name": unique("strangers")},
        "webhooks": [webhook],
    }
    path = cluster.api.path_of(cluster.api.create(configuration).expect(201))
    try:
        _wait_in_force(cluster, rule)
        yield path
    finally:
        cluster.api.delete(path).expect(200, 404)


def _wait_in_force(cluster: Cluster, rule: Object) -> None:
    """The API server's admission plugins notice a new configuration a moment later."""
    cluster.create(pod(_PROBE, schedulerName="nobody"))

    def fails() -> bool:
        try:
            if rule == BINDS:
                answer = cluster.bind(binding(_PROBE, "nowhere"), dryRun="All", timeout="1s")
            else:
                answer = cluster.api.patch(cluster.path(_PROBE), {}, dryRun="All", timeout="1s")
        except Unanswered:
            return False  # a server that is late in giving up a request closes its connection; the next one tells
        return answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    wait_for("the webhook is called", fails)
    cluster.api.delete(cluster.path(_PROBE), gracePeriodSeconds=0).expect()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60.0
    stranger: Stranger

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.pop("request")
        body = json.dumps({**review, "response": self.stranger.decide(request)}).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # nobody waits for the answer any more

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in the base class
        """Say nothing: pytest's output is for failures."""
