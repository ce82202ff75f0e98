"""`cardquota page`: a real process, asked as a browser asks, and as others on the machine might."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from cli.page_server import add_page
from core.page.view import View, Wish
from tests.unit.cli.conftest import ROOT, Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE
from tests.unit.core.page.views import filled, parsed

STATE = (
    NODE % ("n1", 8)
    + QUEUE % ("team", '{"NVIDIA-H200": 0}')
    + QUEUE % ("other", '{"NVIDIA-H200": 4}')
    + POD % ("waiting", "NVIDIA-H200", "team", GATED)
)


class Served:
    """A page and what serves it."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process = process
        found = urlsplit(url)
        self.path = found.path
        self.host = found.netloc
        self.address = (found.hostname or "", found.port or 0)

    def get(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), dict(response.headers)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state = tmp_path_factory.mktemp("page") / "state.yaml"
    state.write_text(STATE)
    command = [sys.executable, "-m", "cli", "page", "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("Page: http://127.0.0.1:"), first
            yield Served(process, first.removeprefix("Page: ").strip())
        finally:
            process.kill()


def test_it_shows_queues_and_who_waits_and_why(served: Served) -> None:
    status, text, headers = served.get(served.path)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    queues, waiting, nodes = (
        {row.all("th")[0].text for row in table.all("tbody")[0].all("tr")}
        for table in parsed(text).all("table")[:3]
    )
    assert (queues, waiting, nodes) == ({"other"}, {"default/waiting"}, {"n1"})
    assert "InsufficientScalarQuota" in text
    assert "state.yaml" in text


def test_what_is_looked_for_is_in_the_address(served: Served) -> None:
    _, text, _ = served.get(served.path + "?find=other")
    waiting = next(one for one in parsed(text).all("section") if one.attributes["id"] == "waiting")
    assert "No such pod waits." in waiting.text
    assert "default/waiting" not in waiting.text


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/x/", "/../"])
def test_whoever_does_not_know_the_path_finds_nothing(served: Served, path: str) -> None:
    status, text, _ = served.get(path)
    assert status == 404
    assert "waiting" not in text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_under_another_name_it_is_not_served(served: Served, host: str) -> None:
    """A page of another site may have its own name point to this machine; its reader's browser then asks under that."""
    status, text, headers = served.get(served.path, Host=host)
    assert status == 403 if host else status in (400, 403)
    assert "waiting" not in text
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(("port", "status"), [(80, 200), (8080, 403)])
async def test_browsers_leave_the_port_of_http_out(port: int, status: int) -> None:
    async def pages(_: Wish) -> View:
        return filled()

    app = web.Application()
    path = add_page(app, pages, lambda: port)
    async with TestClient(TestServer(app)) as client:
        for host in ("127.0.0.1", "localhost"):
            answer = await client.get(path, headers={"Host": host})
            assert answer.status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_can_be_done_but_looking(served: Served, method: str) -> None:
    assert served.get(served.path, method=method)[0] == 405


def test_every_start_has_a_path_of_its_own_that_nobody_guesses(served: Served) -> None:
    assert len(served.path.strip("/")) >= 32


def test_it_listens_on_this_machine_alone(served: Served) -> None:
    assert served.address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_an_error_with_a_way_out(served: Served, run: Run, tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(STATE)
    outcome = run("page", "--state", state, "--port", served.address[1])
    assert (outcome.status, outcome.out) == (1, "")
    assert "--port" in outcome.err


def test_sigterm_ends_it(tmp_path: Path) -> None:
    state = tmp_path / "state.yaml"
    state.write_text(STATE)
    command = [sys.executable, "-m", "cli", "page", "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Page: ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
