import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from yarl import URL

from kube import connection, pki, tls
from kube.client import Client
from kube.connection import ConfigurationError
from kube.serving import Server, application


@pytest.fixture(autouse=True)
def no_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def kubeconfig(path: Path, server: str, token: str, ca: bytes = b"") -> Path:
    cluster = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return path


async def test_a_kubeconfig_is_followed_and_read_again_when_its_token_expires(tmp_path: Path) -> None:
    """Over TLS with the file's own authority; a 401 makes the client look whether the file has a newer token."""
    now = datetime.now(UTC)
    ca = pki.issue_ca(now)
    pair = pki.issue_leaf(ca, ("127.0.0.1",), now)
    certificate = tls.ServingCertificate()
    assert certificate.load(pair.certificate, pair.key)
    tokens = []

    async def answer(request: web.Request) -> web.Response:
        tokens.append(request.headers["Authorization"])
        return web.json_response({"token": tokens[-1]}, status=200 if tokens[-1] == "Bearer new" else 401)

    app = application()
    app.router.add_get("/version", answer)
    server = Server(app, "127.0.0.1", 0, certificate.context)
    await server.start()
    url = f"https://127.0.0.1:{server.port}"
    path = kubeconfig(tmp_path / "config", url + "/", "old", ca.certificate)
    async with await Client.connect(path) as client:
        assert client.host == url
        kubeconfig(path, url, "new", ca.certificate)
        assert json.loads(await client.read_text("/version")) == {"token": "Bearer new"}
    assert tokens == ["Bearer old", "Bearer new"]
    await server.stop()


async def test_the_default_kubeconfig_is_kubectls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$KUBECONFIG may name several files, some of which do not exist."""
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", "t")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{path}")
    async with await Client.connect() as client:
        assert client.host == "http://127.0.0.1:1"


@pytest.fixture
def in_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its service account cannot be used: whoever tries to does not come far."""
    token = tmp_path / "token"
    token.write_text("of the pod")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "no.such.host.example")
    monkeypatch.setattr(connection, "SERVICE_TOKEN_FILENAME", str(token))


@pytest.mark.usefixtures("in_pod")
async def test_in_a_pod_what_is_named_comes_before_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", "t")
    async with await Client.connect(path) as client:
        assert client.host == "http://127.0.0.1:1"
    monkeypatch.setenv("KUBECONFIG", str(path))
    async with await Client.connect(context="x") as client:
        assert client.host == "http://127.0.0.1:1"
    with pytest.raises(ConfigurationError, match="service account"):
        await connection.connect()


@pytest.mark.parametrize("half", ["a token without an API server's address", "an address without a token"])
@pytest.mark.usefixtures("in_pod")
async def test_whoever_has_half_of_a_pods_account_is_in_no_pod(
    half: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that somebody has mounted, and an environment that is a pod's where no account is mounted."""
    if half.startswith("a token"):
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    else:
        (tmp_path / "token").unlink()
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", "http://127.0.0.1:1", "t")))
    async with await Client.connect() as client:
        assert client.host == "http://127.0.0.1:1"


@pytest.mark.parametrize("content", ["", "{", "[]", "clusters: 3", "current-context: x", "\0"])
async def test_a_file_that_is_no_kubeconfig_is_one_kind_of_error(tmp_path: Path, content: str) -> None:
    """With the file's name, whatever the library made of it."""
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="config"):
        await connection.connect(path)


async def test_a_missing_file_or_context_is_named(tmp_path: Path) -> None:
    """The user sees which one."""
    with pytest.raises(ConfigurationError, match="nowhere"):
        await connection.connect(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="none"):
        await connection.connect()
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", "t")
    with pytest.raises(ConfigurationError, match="other"):
        await connection.connect(path, "other")


@pytest.mark.parametrize("exempt", [False, True])
async def test_the_environment_is_asked_for_a_proxy_once(
    exempt: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that looks into it at each request costs more than half of what the request does."""
    heard: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append((str(request.url.host), request.headers.get("Proxy-Authorization")))
        return web.json_response({})

    app = application()
    app.router.add_get("/version", answer)
    server = Server(app, "127.0.0.1", 0)
    await server.start()
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1" if exempt else "")
    asked: list[URL] = []

    def found(url: URL) -> None:
        asked.append(url)
        raise LookupError

    monkeypatch.setattr("aiohttp.client.get_env_proxy_for_url", found)
    host = f"http://127.0.0.1:{server.port}" if exempt else "http://api.example"
    async with Client(connection.plain(host)) as client:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        for _ in range(2):
            assert json.loads(await client.read_text("/version")) == {}
    await server.stop()
    credentials = None if exempt else "Basic " + base64.b64encode(b"me:secret").decode()
    assert heard == [("127.0.0.1" if exempt else "api.example", credentials)] * 2
    assert not asked
