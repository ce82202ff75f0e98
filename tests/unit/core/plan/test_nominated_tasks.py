"""Members of a task that takes several nodes are led to none: each is nominated for the node where its room is."""

from collections import Counter

from core import names
from core.objects import pod as pods
from core.refusal import Refusal
from tests.builders import a_pod
from tests.builders.objects import NodeBuilder
from tests.unit.core.plan.volcano_cluster import Cluster, host, member, taken


def test_a_task_that_takes_several_nodes_is_not_led_and_starts() -> None:
    cluster = Cluster(4, *(host(f"m{n}", 1) for n in range(4)))
    cluster.put(*(member(f"p{n}", 80) for n in range(4)))
    assert cluster.lift() == {f"p{n}": "" for n in range(4)}
    assert all(names.HOSTNAME_LABEL not in str(raw["spec"]) for raw in cluster.stored.values())
    assert {*cluster.nominated().values()} == {"m0", "m1", "m2", "m3"}
    assert cluster.cycles() == cluster.nominated()
    assert cluster.denied == Counter()


def in_parts(*others: NodeBuilder) -> Cluster:
    """By sums the first node has room for one pod of 80, by cards for none."""
    cluster = Cluster(2, host("m0"), *others)
    cluster.put(taken("x", "m0", 0, 40), taken("y", "m0", 1, 40))
    return cluster


def test_members_of_a_task_that_takes_several_nodes_go_each_where_its_room_is() -> None:
    """Without a word about it the scheduler would send one of them to the first node again and again."""
    cluster = in_parts(host("m1", 1), host("m2", 1))
    cluster.put(member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "", "p1": ""}
    assert {*cluster.nominated().values()} == {"m1", "m2"}
    assert {*cluster.cycles(1).items()} >= {*cluster.nominated().items()}
    assert cluster.denied == Counter()


def test_pods_of_unlike_sizes_go_each_where_its_room_is() -> None:
    """By sums the little one could go to either node, and would take from the others what they need."""
    cluster = Cluster(3, host("m0", 1), host("m1", 2))
    cluster.put(taken("x", "m1", 0, 60))
    cluster.put(member("p0", 30), member("p1", 95), member("p2", 80))
    assert [*cluster.lift()] == ["p0", "p1", "p2"]
    assert {*cluster.cycles(1).items()} >= {*cluster.nominated().items()}
    assert len(cluster.nominated()) == 3
    assert cluster.denied == Counter()


def test_who_is_nominated_may_go_elsewhere_when_the_node_does_not_take_it() -> None:
    cluster = Cluster(2, host("m1", 1), host("m2", 1), host("m3", 1))
    cluster.put(member("p0", 80), member("p1", 80))
    cluster.lift()
    gone = cluster.nominated()["p0"]
    cluster.nodes = tuple(node for node in cluster.nodes if node.view().name != gone)
    cluster.ledger.drop_node(gone)
    bound = cluster.cycles(1)
    assert {*bound.values()} == {"m1", "m2", "m3"} - {gone}
    assert cluster.denied == Counter()


def test_a_scheduler_that_looks_at_no_nomination_may_change_the_places_of_a_task() -> None:
    """Whoever of the task comes first may have the place of another one, so nobody waits for his own."""
    cluster = Cluster(4, *(host(f"m{n}", 1) for n in range(4)))
    cluster.put(*(member(f"p{n}", 80) for n in range(4)))
    cluster.lift()
    cluster.nodes = cluster.nodes[::-1]
    bound = cluster.cycles(1, nominations=False)
    assert len(bound) == 4
    assert bound != cluster.nominated()
    assert cluster.denied == Counter()


def test_where_somebody_has_to_be_displaced_nobody_of_the_gang_is_nominated() -> None:
    """Of a gang with nominations Volcano's scheduler has no pod displace others whose own node has room."""
    hosts = [host(name, 1).allocatable("cpu", 8).allocatable("pods", 10) for name in ("m0", "m1")]
    members = [member(f"p{n}", 80).limit("cpu", 2).put("spec", "priority", value=6) for n in range(2)]
    cluster = Cluster(2, *hosts)
    cluster.put(a_pod("cpu").request("cpu", 7).put("spec", "priority", value=5).bound_to("m0"), *members)
    assert cluster.lift() == {"p0": "", "p1": ""}
    assert cluster.nominated() == {}


def test_nobody_else_gets_the_place_of_a_task() -> None:
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(2)))
    cluster.lift()
    cluster.put(a_pod("forced").mgpu(core=30, memory=1024).in_queue("q"))
    answer = cluster.binder.decide(pods.project(cluster.stored["forced"]), "m0")
    assert isinstance(answer, Refusal)
    assert "booked for a pod" in answer.message


def test_room_is_counted_for_those_who_are_not_led_too() -> None:
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(2)))
    assert cluster.lift() == {"p0": "", "p1": ""}
    cluster.put(a_pod("alone").mgpu(core=30, memory=1024).in_queue("q").gated())
    assert cluster.lift() == {}
    assert "alone" in cluster.held


def test_nobody_is_led_beside_members_that_are_not() -> None:
    cluster = Cluster(3, host("m0", 1), host("m1", 1), host("m2", 1))
    cluster.put(*(member(f"p{n}", 80) for n in range(3)))
    assert cluster.lift() == dict.fromkeys(("p0", "p1", "p2"), "")
    del cluster.stored["p2"]
    cluster.ledger.drop_pod("uid-ml-p2")
    cluster.put(member("p3", 80))
    assert cluster.lift() == {"p3": ""}
    assert len(cluster.cycles()) == 3
