"""Claims in the caches: in whatever version they are served, and where they are not served at all."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.caches import Caches
from core.queues.account import Account
from core.queues.backlog import AT_ONCE
from core.settings import Settings
from kube.client import Client
from kube.metrics import Metrics
from kube.resources import NAMESPACES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.builders import a_namespace, a_pod
from tests.builders.claims import a_claim, a_template, in_old_form
from tests.builders.pods import PodBuilder
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


def follow_their_namespace(server: FakeApiServer, pod: Callable[[PodBuilder], PodBuilder]) -> int:
    """Puts more pods with a card than are booked at once into a namespace of queue `q`. Returns how many."""
    count = 2 * AT_ONCE
    server.put(NAMESPACES, a_namespace("ml").in_queue("q").build())
    for number in range(count):
        server.put(PODS, pod(a_pod(f"p{number}").card("A").gpu(1)).build())
    return count


async def test_those_that_a_change_has_left_behind_are_booked_anew_though_nobody_asks(
    server: FakeApiServer, client: Client
) -> None:
    """As on a standby: where many pods follow their namespace to another queue, they are in it soon."""
    count = follow_their_namespace(server, lambda pod: pod.gated())
    async with AsyncExitStack() as stack:
        ledger = (await follow(stack, client)).ledger
        await server.wait_for(lambda: len(ledger.accounts.get("q", Account()).waiting_pods) == count)
        server.put(NAMESPACES, a_namespace("ml").in_queue("r").build())
        await server.wait_for(lambda: len(ledger.accounts.get("r", Account()).waiting_pods) == count)
        assert ledger.settled


async def test_those_that_lose_their_queue_with_the_end_of_a_term_are_booked_anew(
    server: FakeApiServer, client: Client
) -> None:
    """Pods without record, which the leader had fixed to the queue that their namespace named before."""
    count = follow_their_namespace(server, lambda pod: pod.bound_to("n"))
    async with AsyncExitStack() as stack:
        caches = await follow(stack, client)
        ledger = caches.ledger
        for pod in caches.pods.values():
            assert ledger.fix_queue(pod) == "q"
        server.put(NAMESPACES, a_namespace("ml").in_queue("r").build())
        await server.wait_for(lambda: [each.queue for each in caches.namespaces.values()] == ["r"])
        assert ledger.accounts["q"].allocated == {"A": count * 1000}
        caches.give_back()
        ledger.release_queues()
        await server.wait_for(lambda: ledger.accounts.get("r", Account()).allocated == {"A": count * 1000})
        assert ledger.settled
