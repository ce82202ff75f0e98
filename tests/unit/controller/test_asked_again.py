"""The same pod asked for again before its first bind is settled: by the same records if they are still right, or not at all."""

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.caches import Caches
from controller.metrics import Metrics
from core import names, reasons
from core.admission.request import Decision
from core.objects import DeviceClass
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import INDEX, binding, code, records

QUEUE = a_queue("q").cards({"A": 1}).devices({"capability": {"gpu": {"count": 1}}})
NODES = (a_node("n1").allocatable("example.com/gpu", 4), a_node("n2"))
LIFTED_WITH_ONE = '{"dev":{"uid":"first","deviceclass/gpu":"1"}}'
RECORD = {INDEX: "0", names.ASSUMED_ANNOTATION: "true"}


class World:
    """A leading hook over these nodes and pods, and a queue of one device."""

    def __init__(self, *pods: PodBuilder, nodes: tuple[NodeBuilder, ...] = NODES) -> None:
        self.caches: Caches = caches([node.view() for node in nodes], [pod.view() for pod in pods])
        show(self.caches.queues, "q", QUEUE.view())
        reader = Pods(*(pod.build() for pod in pods))
        self.hook = BindingHook(reader, self.caches, Settings(), Metrics(CollectorRegistry()))
        self.hook.start(term())

    def show_node(self, node: NodeBuilder) -> None:
        show(self.caches.nodes, node.view().name, node.view())

    def make_claim(self, uid: str, count: int = 1) -> None:
        view = a_claim("mine").uid(uid).exactly("r", "gpu", count=count).view()
        show(self.caches.claims, "ml/mine", view)

    async def bind(self, node: str = "n1", *, dry_run: bool = False) -> Decision:
        return await self.hook.review(binding("p", node=node, dry_run=dry_run))

    def booked_on(self, node: str) -> list[str]:
        return [pod.name for pod in self.caches.ledger.pods_on(node)]


class TestClaims:
    """Lifted with one device; the first bind comes to nothing, or hangs."""

    POD = (
        a_pod("p").claim("dev", name="mine").charged("q").annotation(names.CLAIMS_ANNOTATION, LIFTED_WITH_ONE)
    )

    async def test_one_that_is_made_anew_between_two_binds_is_asked_for(self) -> None:
        world = World(self.POD)
        world.make_claim("second")
        assert (await world.bind()).allowed
        world.make_claim("third", count=100)
        for node in ("n1", "n2"):
            assert code(await world.bind(node)) == reasons.INSUFFICIENT_DEVICE_QUOTA

    @pytest.mark.parametrize("node", ["n1", "n2"])
    async def test_one_that_is_made_anew_with_no_more_waits_for_the_first_bind(self, node: str) -> None:
        """The record of the first bind is not its own."""
        world = World(self.POD)
        world.make_claim("second")
        assert (await world.bind()).allowed
        world.make_claim("third")
        assert code(await world.bind(node)) == reasons.POD_ALREADY_BOUND

    async def test_one_that_is_gone_is_not_answered_for(self) -> None:
        world = World(self.POD)
        world.make_claim("second")
        assert (await world.bind()).allowed
        show(world.caches.claims, "ml/mine", None)
        assert code(await world.bind()) == reasons.CLAIM_NOT_FOUND

    async def test_by_the_same_one_the_answer_stays(self) -> None:
        for pod in (self.POD, a_pod("p").claim("dev", name="mine").in_queue("q")):
            world = World(pod)
            world.make_claim("second")
            first = await world.bind()
            assert first.allowed
            assert await world.bind() == await world.bind("n2") == first


class TestExtendedResources:
    """A device plugin serves them on the first node; on the other a scheduler makes a claim."""

    @staticmethod
    def world(count: int) -> World:
        world = World(a_pod("p").limit("example.com/gpu", count).in_queue("q"))
        show(world.caches.device_classes, "gpu", DeviceClass("gpu", extended="example.com/gpu"))
        return world

    async def test_on_another_node_they_are_devices_of_the_quota(self) -> None:
        world = self.world(4)
        assert code(await world.bind("n2", dry_run=True)) == reasons.INSUFFICIENT_DEVICE_QUOTA
        first = await world.bind("n1")
        assert code(await world.bind("n2")) == reasons.INSUFFICIENT_DEVICE_QUOTA
        assert await world.bind("n1") == first

    async def test_so_they_are_when_the_device_plugin_serves_them_no_more(self) -> None:
        world = self.world(4)
        assert (await world.bind("n1")).allowed
        world.show_node(a_node("n1"))
        assert code(await world.bind("n1")) == reasons.INSUFFICIENT_DEVICE_QUOTA

    async def test_where_there_is_quota_for_them_either_node_will_do(self) -> None:
        world = self.world(1)
        assert (await world.bind("n1")).allowed
        assert (await world.bind("n2")).allowed
        assert world.caches.ledger.devices.allocated("q") == {"deviceclass/gpu": 1000}


class TestMgpuCards:
    """One of the two cards of the node is in use."""

    RUNNING = a_pod("r").mgpu(core=100).bound_to("n1")

    def world(self, *others: PodBuilder) -> World:
        node = a_node("n1").mgpu(2, memory=16384)
        return World(a_pod("p").mgpu(core=100), self.RUNNING.recorded(RECORD), *others, nodes=(node,))

    async def test_one_that_the_node_has_lost_is_not_answered_again(self) -> None:
        world = self.world()
        assert records(await world.bind())[INDEX] == "1"
        world.show_node(a_node("n1").mgpu(1, memory=16384))
        refused = await world.bind()
        assert code(refused) == reasons.MGPU_NO_ROOM
        assert refused.denial is not None
        assert "beyond the 1 of the node" in refused.denial.message
        assert world.booked_on("n1") == ["r", "p"], "the first bind may still be stored"

    async def test_one_that_another_pod_runs_on_by_now_is_not_answered_again(self) -> None:
        world = self.world()
        assert (await world.bind()).allowed
        intruder = a_pod("i").mgpu(core=100).bound_to("n1").recorded({**RECORD, INDEX: "1"})
        show(world.caches.pods, "ml/i", intruder.view())
        assert code(await world.bind()) == reasons.MGPU_NO_ROOM

    async def test_they_stay_although_lower_ones_are_free_by_now(self) -> None:
        world = self.world()
        first = await world.bind()
        show(world.caches.pods, "ml/r", None)
        assert await world.bind() == first

    async def test_they_stay_although_a_pod_without_a_record_runs_there_by_now(self) -> None:
        world = self.world()
        first = await world.bind()
        show(world.caches.pods, "ml/r", self.RUNNING.view())
        assert await world.bind() == first


class TestCards:
    """The pod was never lifted: its placement is not narrowed to its card."""

    NODES = (a_node("n1").card("A", 8), a_node("n2").card("A", 8), a_node("bare"))

    @pytest.mark.parametrize("node", ["bare", "unknown"])
    async def test_on_a_node_without_the_card_nothing_is_granted(self, node: str) -> None:
        world = World(a_pod("p").gpu(1).card("A").in_queue("q"), nodes=self.NODES)
        assert records(await world.bind())[names.ASSIGNED_ANNOTATION] == '{"A":1}'
        refused = await world.bind(node)
        assert code(refused) == reasons.POD_ALREADY_BOUND
        assert refused.denial is not None
        assert f"to node n1 is under way, and node {node} carries no <A>" in refused.denial.message

    async def test_nor_on_its_own_node_once_that_shows_the_card_no_more(self) -> None:
        world = World(a_pod("p").gpu(1).card("A").in_queue("q"), nodes=self.NODES)
        first = await world.bind()
        world.show_node(a_node("n1"))
        assert not (await world.bind()).allowed
        world.show_node(self.NODES[0])
        assert await world.bind() == await world.bind("n2") == first
