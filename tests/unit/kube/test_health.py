import pytest
from aiohttp.test_utils import TestClient, TestServer

from kube.health import Health, condition
from kube.serving import application


async def probe(health: Health, path: str) -> tuple[int, str]:
    app = application()
    health.add_routes(app)
    async with TestClient(TestServer(app)) as client, client.get(path) as response:
        return response.status, await response.text()


async def test_a_failing_probe_says_what_it_waits_for() -> None:
    """Readiness lists every condition; liveness only those that a restart would mend."""
    health = Health()
    state = {"cache": False}
    health.require_live("loop", lambda: None)
    health.require_ready("cache", condition(lambda: state["cache"], "nodes are not listed yet"))
    assert await probe(health, "/healthz") == (200, "ok\n")
    status, text = await probe(health, "/readyz")
    assert status == 503
    assert text == ("[+]shutdown ok\n[+]loop ok\n[-]cache nodes are not listed yet\nreadyz check failed\n")
    state["cache"] = True
    assert await probe(health, "/readyz") == (200, "ok\n")
    assert "[+]cache ok" in (await probe(health, "/readyz?verbose"))[1]


async def test_a_dead_process_is_not_ready_either() -> None:
    """A live condition that fails shows in both probes."""
    health = Health()
    health.require_live("loop", lambda: "stuck")
    assert (await probe(health, "/healthz"))[0] == 503
    assert health.ready_failures() == {"loop": "stuck"}


async def test_draining_ends_readiness_but_not_life() -> None:
    """Kubelet must not kill a process that finishes its requests."""
    health = Health()
    health.drain()
    assert (await probe(health, "/healthz"))[0] == 200
    assert (await probe(health, "/readyz"))[0] == 503


def test_a_name_is_given_once() -> None:
    """Two conditions under one name would hide each other."""
    health = Health()
    health.require_ready("cache", lambda: None)
    with pytest.raises(ValueError, match="cache"):
        health.require_ready("cache", lambda: None)
