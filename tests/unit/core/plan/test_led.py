"""A lifted mGPU pod is led to nodes with room, and its room is booked on each of them until it is bound."""

from collections.abc import Iterable

import pytest

from core import names
from core.mgpu.destination import led_to
from core.objects import Pod
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import MgpuSettings, Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

SPREAD = Settings(mgpu=MgpuSettings(policy="spread"))
RECORD = "vke.volcengine.com/gpu-index-container-main"


def host(name: str, cards: int = 2) -> NodeBuilder:
    node = a_node(name).mgpu(cards, memory=16384).label(names.HOSTNAME_LABEL, name)
    return node.allocatable("cpu", 8).allocatable("pods", 10)


def share(name: str, core: int = 60, *, second: int = 0) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048).gated().created(f"2024-01-01T00:00:{second:02}Z")


def bound(name: str, node: str, card: int = 0, core: int = 60) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048).bound_to(node).annotation(RECORD, str(card))


class Books:
    """A ledger and its planner; what is lifted is shown to it as the watch would."""

    def __init__(self, *nodes: NodeBuilder, settings: Settings | None = None) -> None:
        self.ledger = Ledger(settings or Settings())
        self.ledger.put_queue(a_queue("default").view())
        for node in nodes:
            self.ledger.put_node(node.view())
        self.planner = Planner(self.ledger)
        self.lifts: dict[str, Lift] = {}
        self.holds: dict[str, Hold] = {}

    def run(self, *pods: PodBuilder) -> dict[str, tuple[str, ...] | None]:
        """Where the pods are led that are lifted now; None for one that is held."""
        for pod in pods:
            self.ledger.put_pod(pod.view())
        found: dict[str, tuple[str, ...] | None] = {}
        for decision in self.planner.decide("default"):
            if isinstance(decision, Lift):
                self.lifts[decision.pod.name] = decision
                found[decision.pod.name] = led_to(decision.lifted)
            else:
                self.holds[decision.pod.name] = decision
                found[decision.pod.name] = None
        return found

    def show(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self.ledger.put_pod(pod)


def test_a_pod_is_led_to_the_node_that_binpack_prefers() -> None:
    books = Books(*(host(f"m{n}") for n in range(5)))
    books.ledger.put_pod(bound("b", "m3").view())
    assert books.run(share("p", 30)) == {"p": ("m3",)}
    lift = books.lifts["p"]
    assert lift.records[names.NODE_ANNOTATION] == "m3"
    (added,) = [operation for operation in lift.patch if operation["path"] == "/spec/affinity"]
    terms = added["value"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    named = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["m3"]}
    assert [term["matchExpressions"][-1] for term in terms] == [named, named]


def test_spread_prefers_the_emptiest() -> None:
    books = Books(host("m0"), host("m1"), settings=SPREAD)
    books.ledger.put_pod(bound("b", "m0").view())
    assert books.run(share("p", 60)) == {"p": ("m1",)}


def test_nobody_has_room_booked_twice() -> None:
    """A queue is charged for one place; what is booked besides would be taken from others for nothing."""
    books = Books(host("m0"), host("m1"), host("m2"))
    assert books.run(*(share(f"p{n}", 60, second=n) for n in range(7))) == {
        "p0": ("m0",), "p1": ("m0",), "p2": ("m1",), "p3": ("m1",), "p4": ("m2",), "p5": ("m2",), "p6": None,
    }  # fmt: skip


def test_a_pod_on_its_way_keeps_its_node_and_no_other() -> None:
    books = Books(host("m0", 1), host("m1", 2))
    assert books.run(share("p", 50)) == {"p": ("m0",)}
    assert books.run(a_pod("large").mgpu(core=200).gated()) == {"large": ("m1",)}
    assert books.run(share("q", 60)) == {"q": None}


def test_a_gang_is_led_to_one_node_for_each_member() -> None:
    """Were room booked twice for its own members the gang would never fit."""
    books = Books(*(host(f"m{n}", 1) for n in range(4)))
    books.ledger.put_group(a_group("g").in_queue("default").min_member(8).view())
    found = books.run(*(share(f"p{n}", 50).in_group("g") for n in range(8)))
    assert sorted(nodes or () for nodes in found.values()) == [(f"m{n // 2}",) for n in range(8)]


def test_members_of_a_task_that_takes_several_nodes_are_nominated_each_for_its_own() -> None:
    """It takes the nodes that one pod of a task may not use for ruled out for all of them: led apart none would start."""
    books = Books(*(host(f"m{n}", 1) for n in range(4)))
    books.ledger.put_group(a_group("g").in_queue("default").min_member(4).view())
    found = books.run(*(share(f"p{n}", 80).in_group("g").scheduler("volcano") for n in range(4)))
    assert found == {f"p{n}": () for n in range(4)}
    assert not any(names.HOSTNAME_LABEL in str(lift.patch) for lift in books.lifts.values())
    nominated = [lift.records[names.NOMINATED_ANNOTATION] for lift in books.lifts.values()]
    assert sorted(nominated) == ["m0", "m1", "m2", "m3"]
    books.ledger.put_group(a_group("one").in_queue("default").min_member(1).view())
    books.ledger.put_node(host("m9", 1).view())
    assert books.run(share("alone", 80).in_group("one").scheduler("volcano")) == {"alone": ("m9",)}


def test_a_card_beside_shares_is_led_by_the_card() -> None:
    """Where the shares have room there may be no such card."""
    books = Books(host("m0"), a_node("a").card("A", 1))
    books.ledger.put_queue(a_queue("default").cards({"A": 1}).view())
    both = (
        a_pod("p").mgpu(core=30, memory=1024).limit("nvidia.com/gpu", 1, container="other").card("A").gated()
    )
    assert books.run(both) == {"p": ()}


@pytest.mark.parametrize(("second", "label"), [(host("m1"), ""), (host("m1"), "m1")])
def test_without_a_label_of_its_own_a_node_is_named_by_its_field(second: NodeBuilder, label: str) -> None:
    """A label that two nodes share would lead to both of them."""
    first = a_node("m0").mgpu(2, memory=16384)
    books = Books(first.label(names.HOSTNAME_LABEL, label) if label else first, second)
    pod = share("p", 30).needs_node("zone", "a")
    for node in (first.label(names.HOSTNAME_LABEL, label) if label else first, second):
        books.ledger.put_node(node.label("zone", "a").view())
    books.run(pod)
    terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
    added = [op for op in books.lifts["p"].patch if op["path"] == f"{terms}/matchFields"]
    assert [op["value"] for op in added] == [[{"key": "metadata.name", "operator": "In", "values": ["m0"]}]]


def test_a_pod_that_schedulers_judge_by_more_is_led_nowhere() -> None:
    books = Books(host("m0"), host("m1"))
    assert books.run(share("p").host_port(80)) == {"p": ()}
    assert not any("hostname" in str(operation) for operation in books.lifts["p"].patch)
    by_kind = Books(host("m0"), settings=Settings(mgpu=MgpuSettings(lead_to="kind")))
    assert by_kind.run(share("p")) == {"p": ()}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (
            host("m0").put("spec", "taints", value=[{"key": "x", "value": "y", "effect": "NoSchedule"}]),
            "x=y:NoSchedule",
        ),
        (host("m0").allocatable("cpu", 1), "not enough cpu"),
        (host("m0").allocatable("pods", 0), "not enough pods"),
    ],
)
def test_a_node_that_no_scheduler_would_choose_is_no_room(node: NodeBuilder, words: str) -> None:
    pod = share("p").limit("cpu", 2)
    books = Books(node)
    assert books.run(pod) == {"p": None}
    assert "node m0 has room on its cards, but " in books.holds["p"].why.message
    assert words in books.holds["p"].why.message
    assert books.run(
        share("tolerant", second=1).put("spec", "tolerations", value=[{"operator": "Exists"}])
    ) == {
        "p": None,
        "tolerant": None if words == "not enough pods" else ("m0",),
    }
    books.ledger.put_node(host("m1").view())
    assert books.run()["p"] == ("m1",)


def test_cpu_that_a_pod_without_gpu_gives_back_lets_the_next_one_in() -> None:
    books = Books(host("m0"))
    cpu = a_pod("cpu").request("cpu", 7).bound_to("m0")
    books.ledger.put_pod(cpu.view())
    assert books.run(share("p").limit("cpu", 2)) == {"p": None}
    books.ledger.wakeups.take_queues()
    books.ledger.put_pod(cpu.phase("Succeeded").view())
    assert set(books.ledger.wakeups.pending) == {"default"}
    assert books.run() == {"p": ("m0",)}


def test_cpu_of_a_pod_that_is_being_deleted_is_free_once_it_is_gone() -> None:
    """Its queue has the quota back before that; schedulers count it until then."""
    books = Books(host("m0"), host("m1"))
    cpu = a_pod("cpu").request("cpu", 7).bound_to("m0").terminating(grace_s=300)
    books.show([bound("b", "m0", 0, 10).view(), cpu.view()])
    wish = share("p", 30).limit("cpu", 2)
    assert books.run(wish) == {"p": ("m1",)}, "binpack would fill up m0"
    books.ledger.drop_node("m1")
    assert books.run(share("q", 30, second=1).limit("cpu", 2)) == {"q": None}
    books.ledger.wakeups.take_queues()
    books.ledger.drop_pod(cpu.view().uid)
    assert set(books.ledger.wakeups.pending) == {"default"}
    assert books.run() == {"q": ("m0",)}


def test_what_a_scheduler_would_displace_is_not_in_the_way() -> None:
    books = Books(host("m0"))
    books.ledger.put_pod(
        a_pod("cpu").request("cpu", 7).put("spec", "priority", value=5).bound_to("m0").view()
    )
    high = share("high").limit("cpu", 2).put("spec", "priority", value=6)
    assert books.run(share("p").limit("cpu", 2), high) == {"high": ("m0",), "p": None}


def test_who_preempts_nobody_waits_until_there_is_room_beside_pods_of_a_lower_priority() -> None:
    """Led there it would have its quota and its cards, and stay without a node."""
    books = Books(host("m0"))
    cpu = a_pod("cpu").request("cpu", 7).bound_to("m0")
    books.ledger.put_pod(cpu.view())
    never = share("never").limit("cpu", 2).priority(6).preempting_nobody()
    assert books.run(never) == {"never": None}
    assert "not enough cpu" in books.holds["never"].why.message
    assert books.run(share("other").limit("cpu", 2).priority(6))["other"] == ("m0",), "its wish is another"
    books.ledger.drop_pod("uid-ml-other")
    books.ledger.drop_pod(cpu.view().uid)
    assert books.run() == {"never": ("m0",)}


def test_a_node_on_which_nobody_has_to_be_displaced_is_better() -> None:
    books = Books(host("m0"), host("m1", 8))
    books.ledger.put_pod(a_pod("cpu").request("cpu", 7).bound_to("m0").view())
    books.ledger.put_pod(bound("b", "m0", 0, 30).view())
    high = share("high", 30).limit("cpu", 2).put("spec", "priority", value=6)
    assert books.run(high) == {"high": ("m1",)}, "binpack would fill up m0"


def test_who_is_on_the_way_takes_cpu_too() -> None:
    books = Books(host("m0"), host("m1"))
    found = books.run(*(share(f"p{n}", 10, second=n).limit("cpu", 5) for n in range(3)))
    assert found == {"p0": ("m0",), "p1": ("m1",), "p2": None}


def test_another_planner_finds_the_same_bookings() -> None:
    """A leader that comes after sees the record and the pod as they are stored, and nothing else."""
    books = Books(host("m0", 1), host("m1", 1))
    found = books.run(share("a", 60), share("b", 60, second=1), share("c", 30, second=2))
    assert found == {"a": ("m0",), "b": ("m1",), "c": ("m0",)}
    after = Books(host("m0", 1), host("m1", 1))
    after.show(lift.lifted for lift in reversed(books.lifts.values()))
    assert after.run(share("d", 10), share("e", 11, second=1)) == {"d": ("m0",), "e": ("m1",)}


def test_pods_that_were_led_to_a_node_have_its_room_before_those_that_may_go_anywhere() -> None:
    books = Books(host("m0", 1))
    lifted = a_pod("free").mgpu(core=60, memory=2048)
    books.show(
        [
            lifted.created("2020-01-01T00:00:00Z").view(),
            a_pod("led").mgpu(core=60, memory=2048).led_to("m0").view(),
        ]
    )
    assert books.run(share("p", 40)) == {"p": ("m0",)}
    assert [key[0] for key in books.planner._choice._room._nodes.expected] == ["uid-ml-led"]


@pytest.mark.parametrize("heard", ["ab", "ba"])
def test_where_a_node_is_too_small_for_those_led_there_their_order_decides_not_who_was_heard_of_first(
    heard: str,
) -> None:
    """Else a leader that has followed what happened lets in whom one that has just listed everything holds."""
    books = Books(host("m0", 1))
    sizes, ages = {"a": 60, "b": 90}, {"a": 0, "b": 1}
    books.show(
        a_pod(name)
        .mgpu(core=sizes[name], memory=2048)
        .led_to("m0")
        .created(f"2024-01-01T00:00:0{ages[name]}Z")
        .view()
        for name in heard
    )
    assert books.run(share("p", 40, second=9), share("q", 10, second=10)) == {"p": ("m0",), "q": None}


def test_a_pod_whose_node_is_away_has_its_room_again_when_it_is_back() -> None:
    books = Books(host("m0", 1))
    assert books.run(share("a", 60)) == {"a": ("m0",)}
    books.ledger.put_node(host("m0", 1).cordoned().view())
    assert books.run(share("b", 60, second=1)) == {"b": None}
    books.ledger.put_node(host("m0", 1).view())
    assert books.run() == {"b": None}
    books.ledger.drop_pod("uid-ml-a")
    assert books.run() == {"b": ("m0",)}


def test_those_who_fit_only_if_they_are_arranged_together_all_keep_their_room() -> None:
    """One after the other 51 would join 40, 60 would come to the second card, and 49 would have none."""
    books = Books(host("m0"))
    sizes = (40, 51, 60, 49)
    books.show(
        a_pod(f"p{core}").mgpu(core=core, memory=100).led_to("m0").created(f"2024-01-01T00:00:0{n}Z").view()
        for n, core in enumerate(sizes)
    )
    assert books.run(share("x", 1, second=9)) == {"x": None}
    books.ledger.drop_pod("uid-ml-p49")
    assert books.run() == {"x": ("m0",)}


def test_a_device_that_no_node_shows_may_be_served_by_a_claim_so_the_scheduler_finds_the_node() -> None:
    books = Books(host("m0"))
    assert books.run(share("p").limit("example.com/disk", 1)) == {"p": ()}
    books.ledger.drop_pod("uid-ml-p")
    books.ledger.put_node(host("m1", 8).allocatable("example.com/disk", 1).view())
    found = books.run(*(share(f"q{n}", second=n).limit("example.com/disk", 1) for n in range(2)))
    assert found == {"q0": ("m1",), "q1": ()}, "one is left, on m1"
