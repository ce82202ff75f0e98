"""Never over CrossQuota's limit when schedulers that know nothing of it race, with stale watches, lost binds, a standby."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.metrics import Metrics
from core.admission.request import AdmissionRequest, Decision
from core.objects import Pod
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import SETTLED_S, binding
from tests.unit.core.crossquota.ruling import gpu_node, ruled

LIMIT = 4
SETTINGS = ruled(quota={"cpu": LIMIT}, guardBind=True)
GPU_NODES = ("g1", "g2")
NODES = (*GPU_NODES, "cpu")


class Replica:
    """A controller: caches that lag behind what is stored, and the binding hook over them.

    So many pods as `early` says are listed before the first node, and one more before each other node.
    """

    def __init__(
        self, stored: Mapping[str, PodBuilder], versions: Mapping[str, int], api: Pods, early: int = 0
    ) -> None:
        pods = deque(view(stored[name], versions[name]) for name in stored)
        self.caches = caches((), [pods.popleft() for _ in range(min(early, len(pods)))], SETTINGS)
        for node in (*map(gpu_node, GPU_NODES), a_node("cpu")):
            show(self.caches.nodes, node.view().name, node.view())
            if early and pods:
                show(self.caches.pods, pods[0].key, pods.popleft())
        for pod in pods:
            show(self.caches.pods, pod.key, pod)
        self.hook = BindingHook(api, self.caches, SETTINGS, Metrics(CollectorRegistry()), self.ask)
        self.unseen: list[str] = []
        self.leader: Replica | None = None

    async def ask(self, request: AdmissionRequest) -> Decision:
        assert self.leader is not None
        return await self.leader.hook.review_here(request)


def view(pod: PodBuilder, version: int) -> Pod:
    return replace(pod.view(), resource_version=str(version))


class Cluster(RuleBasedStateMachine):
    """Two GPU nodes whose limits stay as they are, and one node without GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        setattr(self.loop, "time", lambda: self.now)  # noqa: B010  not assignable for a type checker
        self.stored: dict[str, PodBuilder] = {}
        self.versions: dict[str, int] = {}
        self.api = Pods()
        self.under_way: list[tuple[str, str]] = []
        self.serial = 0
        self.start()

    def teardown(self) -> None:
        self.loop.close()

    def start(self, early: int = 0) -> None:
        """A new leader and a standby that have listed everything."""
        self.replicas = [Replica(self.stored, self.versions, self.api, early) for _ in range(2)]
        leader, standby = self.replicas
        standby.leader = leader
        leader.hook.start(term())

    # -- what is stored ------------------------------------------------------------------------------------------

    def store(self, name: str, pod: PodBuilder | None) -> None:
        if pod is None:
            del self.stored[name]
            self.api.stored.pop(f"ml/{name}")
        else:
            self.stored[name] = pod
            self.versions[name] = self.versions.get(name, 0) + 1
            self.api.stored[f"ml/{name}"] = pod.build()
        for replica in self.replicas:
            replica.unseen.append(name)

    @rule(sizes=st.lists(st.integers(1, LIMIT), min_size=1, max_size=3))
    def create(self, sizes: list[int]) -> None:
        for cpu in sizes:
            self.serial += 1
            self.store(f"p{self.serial}", a_pod(f"p{self.serial}").request("cpu", cpu))

    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """Somebody writes a condition: the pod is seen again, still without a node."""
        if self.stored:
            name = data.draw(st.sampled_from(sorted(self.stored)))
            self.store(name, self.stored[name])

    @rule(data=st.data(), how=st.sampled_from(("finish", "terminate", "vanish")))
    def end(self, data: st.DataObject, how: str) -> None:
        if self.stored:
            name = data.draw(st.sampled_from(sorted(self.stored)))
            pod = self.stored[name]
            ended = {"finish": pod.phase("Succeeded"), "terminate": pod.terminating()}
            self.store(name, ended.get(how))

    @rule(data=st.data(), index=st.sampled_from((0, 1)))
    def watch(self, data: st.DataObject, index: int) -> None:
        """A watch shows the first of what happened."""
        replica = self.replicas[index]
        if replica.unseen:
            self.show(replica, data.draw(st.integers(1, len(replica.unseen))))

    def show(self, replica: Replica, count: int) -> None:
        for name in replica.unseen[:count]:
            pod = self.stored.get(name)
            show(replica.caches.pods, f"ml/{name}", None if pod is None else view(pod, self.versions[name]))
        del replica.unseen[:count]

    # -- binds ---------------------------------------------------------------------------------------------------

    @rule(data=st.data(), node=st.sampled_from(NODES), index=st.sampled_from((0, 1)), wait=st.booleans())
    def bind(self, data: st.DataObject, node: str, index: int, wait: bool) -> None:
        """Any scheduler binds any pod to any node, and asks any replica; what is granted is stored, or under way."""
        free = sorted(name for name, pod in self.stored.items() if not pod.view().bound)
        if not free:
            return
        name = data.draw(st.sampled_from(free))
        answer = self.loop.run_until_complete(self.replicas[index].hook.review(binding(name, node=node)))
        if answer.allowed and wait:
            self.under_way.append((name, node))
        elif answer.allowed:
            self.settle_one(name, node, stored=True)

    @rule(data=st.data(), stored=st.booleans())
    def settle(self, data: st.DataObject, stored: bool) -> None:
        """A bind under way is stored, if the pod still lets it, or lost for good."""
        if self.under_way:
            index = data.draw(st.integers(0, len(self.under_way) - 1))
            self.settle_one(*self.under_way.pop(index), stored=stored)

    def settle_one(self, name: str, node: str, *, stored: bool) -> None:
        pod = self.stored.get(name)
        if not stored or pod is None or pod.view().bound or pod.view().deleting or pod.view().terminal:
            return
        self.store(name, pod.bound_to(node, phase="Pending"))

    @rule(data=st.data())
    def a_minute_passes(self, data: st.DataObject) -> None:
        """Nothing that was granted is under way any more, but the watches may not have shown it."""
        self.settle_binds(data)
        self.now += SETTLED_S + 1
        self.loop.run_until_complete(self.look_after_grants())

    async def look_after_grants(self) -> None:
        """The leader reads what became of them; a read takes no time here."""
        async with background(self.replicas[0].hook.run()):
            for _ in range(20):
                await asyncio.sleep(0)

    @rule(data=st.data(), early=st.integers(0, 3))
    def another_leader(self, data: st.DataObject, early: int) -> None:
        """It waits until what its predecessor granted is stored or lost."""
        self.settle_all(data)
        self.start(early)

    def settle_all(self, data: st.DataObject) -> None:
        """Every bind is stored or lost, and every watch has shown the outcome."""
        self.settle_binds(data)
        for replica in self.replicas:
            self.show(replica, len(replica.unseen))

    def settle_binds(self, data: st.DataObject) -> None:
        for each in self.under_way:
            self.settle_one(*each, stored=data.draw(st.booleans()))
        self.under_way.clear()

    # -- what must hold ------------------------------------------------------------------------------------------

    @invariant()
    def no_gpu_node_is_over_its_limit(self) -> None:
        for node in GPU_NODES:
            assert self.cores(node) <= LIMIT, node

    def cores(self, node: str) -> int:
        there = (pod.view() for pod in self.stored.values())
        return sum(pod.requests["cpu"] for pod in there if pod.node_name == node and not pod.terminal) // 1000

    @invariant()
    def the_leader_holds_nothing_once_all_is_seen(self) -> None:
        """With nothing under way and everything seen, its book is that of the stored pods alone."""
        leader = self.replicas[0]
        if leader.unseen or self.under_way or leader.hook._grants:
            return
        for node in GPU_NODES:
            assert leader.caches.guests.used(node).get("cpu", 0) // 1000 == self.cores(node)


TestCluster = Cluster.TestCase
