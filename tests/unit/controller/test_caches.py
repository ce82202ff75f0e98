"""Claims in the caches: in whatever version they are served, and where they are not served at all."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.caches import Caches
from core.settings import Settings
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.builders import a_pod
from tests.builders.claims import a_claim, a_template, in_old_form
from tests.fakes.apiserver import FakeApiServer, background
from tests.fakes.faults import answer_status

DEVICES = "/apis/resource.k8s.io/"


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with server.client(Metrics(CollectorRegistry())) as connected:
        yield connected


async def follow(stack: AsyncExitStack, client: Client, **settings: Any) -> Caches:
    """Caches that have listed everything."""
    caches = Caches(client, Settings.model_validate(settings))
    task = await stack.enter_async_context(background(caches.run()))
    assert not task.done()
    await caches.wait_synced()
    assert caches.synced
    return caches


def absent(server: FakeApiServer, *versions: str) -> None:
    """These versions are not served."""
    for version in versions:
        server.fail("list", answer_status(404, "NotFound"), path=f"{DEVICES}{version}/", times=100)


async def test_claims_of_an_older_server_are_charged_alike(server: FakeApiServer, client: Client) -> None:
    absent(server, "v1", "v1beta2")
    claim = in_old_form(a_claim("c").exactly("r", "gpu", count=2).build())
    template = in_old_form(a_template("t").exactly("r", "gpu").build(), "spec")
    server.put(replace(RESOURCE_CLAIMS, version="v1beta1"), claim)
    server.put(replace(RESOURCE_CLAIM_TEMPLATES, version="v1beta1"), template)
    pod = a_pod("p").claim("a", name="c").claim("b", template="t").in_queue("q").bound_to("n")
    server.put(PODS, pod.build())
    async with AsyncExitStack() as stack:
        caches = await follow(stack, client)
        assert caches.ledger.devices.allocated("q") == {"deviceclass/gpu": 3000}
        server.remove(replace(RESOURCE_CLAIMS, version="v1beta1"), "c", "ml")
        await server.wait_for(lambda: caches.ledger.devices.allocated("q") == {"deviceclass/gpu": 1000})


async def test_where_claims_are_not_served_the_rest_is_ready_and_nobody_waits_for_one(
    server: FakeApiServer, client: Client
) -> None:
    absent(server, "v1", "v1beta2", "v1beta1")
    pod = a_pod("p").claim("a", name="c").in_queue("q").gated()
    server.put(PODS, pod.build())
    async with AsyncExitStack() as stack:
        caches = await follow(stack, client)
        assert caches.ledger.devices.obstacle(pod.view(), "q") is None


async def test_with_the_feature_off_nobody_asks_for_claims(server: FakeApiServer, client: Client) -> None:
    """There are no rights to read them then."""
    server.fail("list", answer_status(403, "Forbidden"), path=DEVICES, times=100)
    async with AsyncExitStack() as stack:
        await follow(stack, client, features={"dra": False})
    assert not [request for request in server.seen("list") if request.path.startswith(DEVICES)]
