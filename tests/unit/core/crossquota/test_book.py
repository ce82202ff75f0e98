"""What is in use on GPU nodes, whatever order events come in."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.crossquota.book import GuestBook
from core.objects import Node, Pod
from core.settings import Settings
from tests.builders.objects import GPU, a_node, a_pod
from tests.builders.pods import PodBuilder
from tests.fakes.counted import calls_of
from tests.unit.core.crossquota.ruling import gpu_node, ruled

SETTINGS = ruled(quotaResources=["cpu", "memory"])


class World:
    """A book, and the pods that there are."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.pods: dict[str, Pod] = {}
        self.book = GuestBook(settings)

    def put(self, *things: Pod | Node) -> "World":
        for thing in things:
            if isinstance(thing, Node):
                self.book.put_node(thing)
            else:
                self.pods[thing.uid] = thing
                self.book.put_pod(thing)
        return self

    def drop(self, pod: Pod) -> None:
        del self.pods[pod.uid]
        self.book.drop_pod(pod.uid)

    def cpu(self, node: str = "gpu", *, but: str = "") -> int:
        return self.book.used(node, but=but).get("cpu", 0)


def running(name: str, cpu: int, node: str = "gpu") -> PodBuilder:
    return a_pod(name).request("cpu", f"{cpu}m").bound_to(node)


GPU_NODE = gpu_node().view()


def test_pods_that_are_there_before_their_node_are_found() -> None:
    world = World().put(running("a", 100).view(), GPU_NODE, running("b", 10).view())
    assert world.cpu() == 110


def test_of_several_nodes_that_are_new_each_has_its_own_pods() -> None:
    world = World().put(running("a", 100, "n1").view(), running("b", 10, "n2").view())
    world.put(gpu_node("n1").view(), gpu_node("n2").view())
    assert (world.cpu("n1"), world.cpu("n2"), world.cpu("n1")) == (100, 10, 100)


def test_a_node_that_gets_its_first_gpu_has_the_pods_it_had() -> None:
    world = World().put(a_node("gpu").view(), running("a", 100).view())
    assert world.cpu() == 0
    assert world.put(GPU_NODE, running("b", 10).view()).cpu() == 110


def first_question(there: int, elsewhere: int) -> int:
    """The calls for a node that comes, and for the first question about it, with so many pods there and on another one."""
    world = World().put(gpu_node("other").view())
    for number in range(there + elsewhere):
        world.put(running(f"p{number}", 1, "gpu" if number < there else "other").view())

    def joins() -> None:
        world.put(GPU_NODE)
        assert world.cpu() == there
        assert len(world.book.guests("gpu")) == there

    return calls_of(joins)


def test_a_node_that_comes_costs_the_same_however_many_pods_there_are_and_wherever() -> None:
    few = first_question(10, 10)
    assert first_question(10, 1_000) == few
    assert first_question(1_000, 10) == few


def test_a_pod_costs_the_same_however_many_others_there_are_and_wherever() -> None:
    """While pods and nodes are listed, whichever come first."""

    def calls(others: int, node: str) -> int:
        world = World().put(GPU_NODE)
        for number in range(others):
            world.put(running(f"p{number}", 1, "gpu" if number % 2 else "unknown").view())
        coming, gone = running("a", 1, node).view(), running("a", 1, node).phase("Failed").view()
        return calls_of(lambda: world.put(coming, gone, coming).drop(coming))

    for node in ("gpu", "unknown"):
        assert calls(1_000, node) == calls(10, node)


def test_pods_that_ask_for_the_same_share_what_is_kept_of_them() -> None:
    """The book has all pods of the cluster."""
    world = World().put(GPU_NODE, running("a", 100).view(), running("b", 100).view(), running("c", 10).view())
    first, second, other = world.book.guests("gpu").values()
    assert first is second
    assert other != first


def test_where_there_is_no_rule_pods_are_not_looked_at() -> None:
    book, pod = GuestBook(ruled(gpuResourceNames=[])), running("a", 100).view()
    assert calls_of(lambda: book.put_pod(pod)) == calls_of(lambda: None) + 1


def test_nothing_is_left_of_pods_that_are_gone_whether_or_not_their_nodes_were_ever_there() -> None:
    pods = [running(f"p{number}", 1, f"n{number % 7}").view() for number in range(50)]
    world = World().put(gpu_node("n1").view(), *pods)
    for pod in pods:
        world.drop(pod)
    assert (len(world.book._sites), len(world.book._places)) == (0, 0)


def test_every_pod_on_the_node_counts_until_it_has_ended() -> None:
    world = World().put(GPU_NODE)
    system = a_pod("s", namespace="kube-system").request("cpu", "1m").bound_to("gpu").scheduler("other")
    world.put(system.view(), running("t", 10).terminating().view(), running("c", 100).phase("Pending").view())
    assert world.cpu() == 111
    world.put(running("t", 10).phase("Succeeded").view(), running("c", 100).phase("Failed").view())
    assert world.cpu() == 1


def test_gpu_pods_and_pods_elsewhere_do_not_count() -> None:
    world = World().put(GPU_NODE, a_node("cpu").view())
    world.put(
        running("g", 100).gpu(1).view(), running("e", 100, "cpu").view(), a_pod("w").request("cpu", 1).view()
    )
    assert world.cpu() == 0
    assert world.cpu("cpu") == 0
    assert world.cpu("nobody") == 0


def test_the_pod_that_is_asked_about_does_not_count() -> None:
    world = World().put(GPU_NODE, running("a", 100).view(), running("b", 10).view())
    assert world.cpu(but="uid-ml-a") == 10
    assert world.cpu(but="uid-ml-x") == 110


def test_a_changed_pod_counts_with_its_new_amounts_and_a_gone_one_no_more() -> None:
    pod = running("a", 100).view()
    world = World().put(GPU_NODE, pod, running("a", 250).view())
    assert world.cpu() == 250
    world.drop(pod)
    assert world.cpu() == 0
    world.book.drop_pod(pod.uid)


def test_a_node_keeps_its_guests_while_its_device_plugin_restarts() -> None:
    world = World().put(GPU_NODE, running("a", 100).view())
    world.put(gpu_node().allocatable(GPU, 0).view())
    assert world.book.quota("gpu") is None
    world.put(running("b", 10).view(), GPU_NODE)
    assert world.book.quota("gpu") is not None
    assert world.cpu() == 110


def test_a_node_that_comes_back_has_the_pods_it_had() -> None:
    world = World().put(GPU_NODE, running("a", 100).view())
    world.book.drop_node("gpu")
    assert world.cpu() == 0
    world.put(running("b", 10).view(), GPU_NODE)
    assert world.cpu() == 110


def test_pods_that_are_not_selected_are_not_in_use() -> None:
    settings = ruled(labelSelector={"matchLabels": {"tier": "batch"}})
    world = World(settings).put(GPU_NODE, running("a", 100).view())
    assert world.cpu() == 0


class TestGrants:
    """A bind that was granted, from then until the watch shows what became of it."""

    def granted(self, *nodes: str) -> World:
        """A pod of 100, known to be nowhere, with a bind under way to each of these nodes."""
        world = World().put(gpu_node("n1").view(), gpu_node("n2").view(), a_pod("a").request("cpu", 1).view())
        for node in nodes:
            world.book.grant(running("a", 100, node).view())
        return world

    def used(self, world: World) -> tuple[int, int]:
        return world.cpu("n1"), world.cpu("n2")

    def test_it_counts_once_and_not_for_the_pod_itself(self) -> None:
        world = self.granted("n1", "n1")
        assert self.used(world) == (100, 0)
        assert world.cpu("n1", but="uid-ml-a") == 0
        assert list(world.book.guests("n1")) == ["uid-ml-a"]

    def test_with_binds_to_two_nodes_under_way_it_counts_on_both(self) -> None:
        world = self.granted("n1", "n2")
        assert self.used(world) == (100, 100)
        world.book.take_back("uid-ml-a")
        assert self.used(world) == (0, 0)

    @pytest.mark.parametrize(
        ("seen", "used"),
        [
            (running("a", 100, "n1"), (100, 0)),
            (running("a", 100, "n2"), (0, 100)),
            (running("a", 250, "n1"), (250, 0)),
            (running("a", 100, "cpu"), (0, 0)),
            (running("a", 100, "n1").phase("Failed"), (0, 0)),
            (a_pod("a").request("cpu", 1).annotation("x", "y"), (100, 100)),
            (a_pod("a").request("cpu", 1).terminating(), (0, 0)),
            (a_pod("a").request("cpu", 1).phase("Failed"), (0, 0)),
        ],
    )
    def test_the_watch_settles_it_with_a_node_or_the_end_and_with_nothing_else(
        self, seen: PodBuilder, used: tuple[int, int]
    ) -> None:
        assert self.used(self.granted("n1", "n2").put(seen.view())) == used

    def test_a_pod_that_is_gone_holds_nothing(self) -> None:
        world = self.granted("n1", "n2")
        world.drop(world.pods["uid-ml-a"])
        assert self.used(world) == (0, 0)

    def test_a_pod_that_the_watch_has_shown_bound_is_granted_nothing_more(self) -> None:
        world = self.granted().put(running("a", 100, "n1").view())
        world.book.grant(running("a", 100, "n2").view())
        world.book.grant(running("a", 100, "n1").view())
        assert self.used(world) == (100, 0)
        world.book.take_back("uid-ml-a")
        assert self.used(world) == (100, 0)

    def test_a_node_that_goes_takes_its_grants_along(self) -> None:
        world = self.granted("n1", "n2")
        world.book.drop_node("n1")
        assert self.used(world) == (0, 100)
        world.put(gpu_node("n1").view())
        assert self.used(world) == (0, 100)
        world.book.take_back("uid-ml-a")
        assert self.used(world) == (0, 0)

    def test_gpu_pods_and_nodes_without_gpus_are_not_booked(self) -> None:
        world = self.granted("cpu", "who")
        world.book.grant(running("g", 100, "n1").gpu(1).view())
        assert self.used(world) == (0, 0)


class TestPodsBeforeTheirNode:
    """What happens after `a` (100) and `b` (10), both on a node that has come after them."""

    @pytest.fixture
    def world(self) -> World:
        return World().put(running("a", 100).view(), running("b", 10).view(), GPU_NODE)

    @pytest.mark.parametrize(
        ("event", "used"),
        [
            (lambda world: world.drop(world.pods["uid-ml-a"]), 10),
            (lambda world: world.drop(world.pods["uid-ml-b"]), 100),
            (lambda world: world.put(running("b", 25).view()), 125),
            (lambda world: world.put(running("b", 10).phase("Failed").view()), 100),
            (lambda world: world.put(running("b", 10, "elsewhere").view()), 100),
            (lambda world: world.put(running("c", 1).view()), 111),
            (lambda world: world.book.drop_node("gpu"), 0),
            (lambda world: (world.book.drop_node("gpu"), world.put(GPU_NODE)), 110),
            (lambda world: (world.cpu(), world.drop(world.pods["uid-ml-b"])), 100),
        ],
    )
    def test_is_kept(self, world: World, event: Callable[[World], object], used: int) -> None:
        event(world)
        assert world.cpu() == used

    def test_and_another_node_that_comes_has_its_own(self, world: World) -> None:
        world.put(gpu_node("late").view())
        assert (world.cpu("gpu"), world.cpu("late")) == (110, 0)
        assert world.put(running("c", 1, "late").view()).cpu("late") == 1


NAMES = ("a", "b", "c")
NODES = ("n1", "n2")


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_after_each_event_the_sums_are_those_of_the_pods(seed: int, steps: int) -> None:
    happen(Random(seed), steps)


def happen(random: Random, steps: int) -> None:
    world = World()
    nodes: set[str] = set()
    granted: dict[str, set[str]] = {name: set() for name in NAMES}
    for _ in range(steps):
        name, node = random.choice(NAMES), random.choice(NODES)
        match random.randrange(8):
            case 0:
                nodes.add(node)
                world.put(gpu_node(node).view())
            case 1:
                nodes.discard(node)
                world.book.drop_node(node)
                for places in granted.values():
                    places.discard(node)
            case 2 if f"uid-ml-{name}" in world.pods:
                world.drop(world.pods[f"uid-ml-{name}"])
            case 3:
                world.put(a_node(node).view())
            case 4 if f"uid-ml-{name}" not in world.pods:
                world.book.grant(running(name, 7, node).view())
                granted[name] |= nodes & {node}
            case 5:
                world.book.take_back(f"uid-ml-{name}")
                granted[name].clear()
            case _:
                phase = random.choice(("Running", "Succeeded"))
                world.put(running(name, random.randrange(1, 9), node).phase(phase).view())
                granted[name].clear()
        check(world, nodes, granted)


def check(world: World, nodes: set[str], granted: dict[str, set[str]]) -> None:
    for node in NODES:
        live = [pod for pod in world.pods.values() if pod.node_name == node and not pod.terminal]
        coming = [name for name, places in granted.items() if node in places]
        expected = sum(pod.requests["cpu"] for pod in live) + 7 * len(coming) if node in nodes else 0
        assert world.cpu(node) == expected
        assert len(world.book.guests(node)) == (len(live) + len(coming) if node in nodes else 0)
