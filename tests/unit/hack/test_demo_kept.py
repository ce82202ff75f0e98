"""The demo that was kept for long: at Ctrl-C it cleans up, though the API server has given up its connections by then."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from types import SimpleNamespace
from typing import Any, Self

import pytest

from hack.controlplane.client import ApiClient
from hack.controlplane.credentials import Credentials
from hack.demo import __main__ as demo
from hack.demo import story
from hack.demo.kept import NAMESPACE, Kept
from hack.installation.release import Release
from tests.unit.hack.conftest import executable

ANSWER = json.dumps({"spec": {"template": {}}, "items": []}).encode()
"""A Deployment to the one, and no pods of Jobs to the other."""


class Server(ThreadingTCPServer):
    """Answers whatever is asked, and keeps connections until it is told otherwise."""

    daemon_threads = False

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(credentials.server_certificate, credentials.server_key)
        self.answering = threading.Lock()
        self.kept: set[ssl.SSLSocket] = set()
        self.refused: set[ssl.SSLSocket] = set()
        self.deletions: list[tuple[str, bool]] = []
        """Path, and whether it came on a connection from before the server gave them up."""

    def get_request(self) -> tuple[ssl.SSLSocket, Any]:
        raw, address = super().get_request()
        return self._tls.wrap_socket(raw, server_side=True, do_handshake_on_connect=False), address

    def close_idle(self) -> None:
        """Closes every connection that is kept."""
        with self.answering:
            self.refused |= self.kept
            for connection in self.kept:
                # Not that of ssl: another thread reads there.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close_under_the_next_request(self) -> None:
        """Closes every connection that is kept once something is asked there, without an answer."""
        with self.answering:
            self.refused |= self.kept


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        connection = self.connection
        assert isinstance(connection, ssl.SSLSocket)
        with self.server.answering:
            refused = connection in self.server.refused
            if self.command == "DELETE":
                self.server.deletions.append((self.path, refused))
            if refused:
                self.close_connection = True
                return
            self.server.kept.add(connection)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(ANSWER)))
            self.end_headers()
            self.wfile.write(ANSWER)

    do_DELETE = do_GET  # noqa: N815  as http.server wants it

    def finish(self) -> None:
        with self.server.answering:
            self.server.kept.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        pass


class Plane:
    """A control plane of which there is nothing but its API server, and a helm that does nothing."""

    def __init__(self, server: Server, credentials: Credentials, folder: Path) -> None:
        url = f"https://127.0.0.1:{server.server_address[1]}"
        self.api = ApiClient(url, Path(credentials.ca_file))
        self.directory = folder
        self.admin_kubeconfig = folder / "kubeconfig"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()

    def add_nodes(self, *_: object) -> None:
        pass

    def create_namespace(self, name: str) -> None:
        assert name == NAMESPACE

    def log_folder(self, name: str) -> Path:
        return self.directory / name

    def binary(self, name: str) -> Path:
        return executable(self.directory / name)


@contextmanager
def serving(credentials: Credentials) -> Iterator[Server]:
    with Server(credentials) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("give_up", "times"),
    [(Server.close_idle, 1), (Server.close_under_the_next_request, 2)],
    ids=["while it was idle", "under the request"],
)
def test_ctrl_c_cleans_up_though_connections_were_given_up(
    give_up: Callable[[Server], None],
    times: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    credentials = Credentials(tmp_path / "pki")
    process = SimpleNamespace(name="process", running=False, wait_ready=lambda: None)
    with serving(credentials) as server:

        def long_after(_: Kept) -> None:
            assert server.kept
            give_up(server)
            raise KeyboardInterrupt

        plane = Plane(server, credentials, tmp_path)
        monkeypatch.setattr(demo, "Store", lambda: SimpleNamespace(ensure=lambda *_: None))
        monkeypatch.setattr(demo, "ControlPlane", lambda **_: plane)
        monkeypatch.setattr(story, "tell", lambda _: None)
        monkeypatch.setattr(Release, "launch", lambda *_: process)
        monkeypatch.setattr(Release, "wait_in_force", lambda _: None)
        monkeypatch.setattr(Release, "metrics_address", lambda *_: "")
        monkeypatch.setattr(Kept, "stay", long_after)
        assert demo.main(["--keep"]) == 0, capsys.readouterr().out
    assert "everything is gone again" in capsys.readouterr().out
    before = [True] * (times - 1)
    assert server.deletions == [(f"/api/v1/namespaces/{NAMESPACE}", each) for each in (*before, False)]
