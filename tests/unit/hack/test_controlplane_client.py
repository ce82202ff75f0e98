"""The test bed's client on connections that the server closes: what may be sent again is, what may not is an error."""

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hack.controlplane.client import ApiClient
from hack.controlplane.credentials import Credentials

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
HALF = ANSWER[:-1]
PATH = "/api/v1/namespaces/a/pods/p"


class Server:
    """Answers on each connection by its own script, a word for each request; then it closes, in order.

    `answer`, `half` (an answer that breaks off), or `nothing` (the request is read, and the connection closed).
    """

    def __init__(self, credentials: Credentials, scripts: Sequence[Sequence[str]]) -> None:
        self.requests: list[tuple[int, str]] = []
        """The connection and the method of each request that arrived as a whole."""
        self.closed = threading.Semaphore(0)
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(5)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(credentials.server_certificate, credentials.server_key)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with self._listener, suppress(TimeoutError):
            for number, script in enumerate(self._scripts):
                raw, _ = self._listener.accept()
                raw.settimeout(10)
                with self._tls.wrap_socket(raw, server_side=True) as connection, suppress(OSError):
                    for word in script:
                        self.requests.append((number, read_request(connection)))
                        connection.sendall({"answer": ANSWER, "half": HALF, "nothing": b""}[word])
                self.closed.release()


def read_request(connection: ssl.SSLSocket) -> str:
    text = b""
    while b"\r\n\r\n" not in text:
        text += received(connection)
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += received(connection)
    return head.split(b" ")[0].decode()


def received(connection: ssl.SSLSocket) -> bytes:
    chunk = connection.recv(65536)
    if not chunk:
        raise ConnectionError("the client has gone")
    return chunk


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    return Credentials(tmp_path_factory.mktemp("pki"))


@contextmanager
def serving(credentials: Credentials, *scripts: Sequence[str]) -> Iterator[tuple[Server, ApiClient]]:
    server = Server(credentials, scripts)
    thread = threading.Thread(target=server.run)
    thread.start()
    client = ApiClient(server.url, Path(credentials.ca_file))
    try:
        yield server, client
    finally:
        client.close()
        thread.join(timeout=20)


def test_a_connection_is_kept(credentials: Credentials) -> None:
    with serving(credentials, ["answer"] * 3) as (server, client):
        for _ in range(3):
            assert client.get(PATH).status == 200
    assert server.requests == [(0, "GET")] * 3


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_one_that_was_closed_while_idle_is_not_used(credentials: Credentials, method: str) -> None:
    with serving(credentials, ["answer"], ["answer"]) as (server, client):
        client.get(PATH).expect()
        assert server.closed.acquire(timeout=10)
        assert client.request(method, PATH, {"a": 1}).status == 200
    assert server.requests == [(0, "GET"), (1, method)]


@pytest.mark.parametrize(
    ("method", "content_type"),
    [
        ("GET", "application/json"),
        ("PUT", "application/json"),
        ("DELETE", "application/json"),
        ("PATCH", "application/apply-patch+yaml"),
    ],
)
def test_one_that_is_closed_under_a_request_is_opened_anew_once(
    credentials: Credentials, method: str, content_type: str
) -> None:
    with serving(credentials, ["answer", "nothing"], ["answer"]) as (server, client):
        client.get(PATH).expect()
        assert client.request(method, PATH, {"a": 1}, content_type=content_type).status == 200
    assert server.requests == [(0, "GET"), (0, method), (1, method)]


@pytest.mark.parametrize(
    ("method", "content_type"),
    [
        ("POST", "application/json"),
        ("PATCH", "application/json-patch+json"),
        ("PATCH", "application/merge-patch+json"),
    ],
)
def test_what_might_be_done_twice_is_not_sent_again(
    credentials: Credentials, method: str, content_type: str
) -> None:
    with serving(credentials, ["answer", "nothing"]) as (server, client):
        client.get(PATH).expect()
        with pytest.raises(OSError, match=r"."):
            client.request(method, PATH, {"a": 1}, content_type=content_type)
    assert server.requests == [(0, "GET"), (0, method)]


@pytest.mark.parametrize(
    "scripts",
    [
        [["nothing"]],
        [["answer", "nothing"], ["nothing"]],
        [["answer", "half"]],
    ],
    ids=["the first on its connection", "the second try", "an answer that breaks off"],
)
def test_other_failures_are_the_callers(credentials: Credentials, scripts: list[list[str]]) -> None:
    with serving(credentials, *scripts) as (server, client):
        for word in scripts[0]:
            if word == "answer":
                client.get(PATH).expect()
            else:
                with pytest.raises(OSError, match=r"."):
                    client.get(PATH)
    assert len(server.requests) == sum(map(len, scripts))
