"""Claims that very many pods refer to, as a server lists them."""

from prometheus_client import CollectorRegistry

from controller.caches import Caches
from core.queues.backlog import AT_ONCE
from core.settings import Settings
from kube.metrics import Metrics
from kube.resources import PODS, QUEUES, RESOURCE_CLAIMS
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim
from tests.fakes.apiserver import FakeApiServer, background
from tests.fakes.faults import answer_status

MANY = AT_ONCE + 1


def stored(server: FakeApiServer, count: int) -> None:
    """Four claims of so many devices, each of them shared by many who came with their node."""
    server.put(QUEUES, a_queue("q").build())
    for number in range(4):
        claim = a_claim(f"c{number}").exactly("r", "gpu", count=count).uid(f"uid-{number}-{count}")
        server.put(RESOURCE_CLAIMS, claim.build())
        for each in range(MANY):
            pod = a_pod(f"p{number}-{each}").claim("dev", name=f"c{number}").in_queue("q")
            server.put(PODS, pod.bound_to("n").build())


def in_use(found: Caches) -> int:
    return found.ledger.devices.allocated("q").get("deviceclass/gpu", 0) // 1000


async def test_what_is_listed_at_first_and_what_is_caught_up_with_is_in_the_books_at_once() -> None:
    """Also where the pods are listed before their claims: whoever begins to lead decides by that."""
    async with (
        FakeApiServer() as server,
        server.client(Metrics(CollectorRegistry())) as client,
    ):
        stored(server, 2)
        server.fail("list", answer_status(500, "InternalError"), path="/resourceclaims")
        found = Caches(client, Settings())
        async with background(found.run()):
            await found.pods.wait_synced()
            assert not found.synced, "claims are asked for once more, a moment later"
            await found.wait_synced()
            await found.settled()
            assert in_use(found) == 8
            for count in (3, 4):
                stored(server, count)
                await found.catch_up()
                await found.settled()
                assert in_use(found) == 4 * count
