"""mGPU pods are lifted only while some node has room for them, everything that is under way counted."""

import pytest

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.shares import NODE, books, bound, of_containers, run, share


def test_only_as_many_are_lifted_as_cards_take() -> None:
    ledger = books(NODE)
    pods = [share(f"p{i}", second=i) for i in range(4)]
    assert run(ledger, Planner(ledger), *pods) == {"p0": True, "p1": True, "p2": False, "p3": False}


def test_the_sum_of_free_shares_is_not_room() -> None:
    ledger = books(NODE)
    ledger.put_pod(bound("a", 0).view())
    ledger.put_pod(bound("b", 1).view())
    assert run(ledger, Planner(ledger), share("p", 60)) == {"p": False}


def test_room_comes_back_when_a_pod_ends_and_wakes_the_queue() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, bound("a", 0), bound("b", 1), share("p")) == {"p": False}
    ledger.wakeups.take_queues()
    ledger.put_pod(bound("a", 0).phase("Succeeded").view())
    assert set(ledger.wakeups.pending) == {"default"}
    assert run(ledger, planner) == {"p": True}


def test_a_terminating_pod_still_has_its_cards() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, bound("a", 0).terminating(), bound("b", 1), share("p")) == {"p": False}


def test_a_lifted_pod_that_goes_gives_its_tentative_room_back() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", second=1), share("b", second=2), share("c", second=3)) == {
        "a": True,
        "b": True,
        "c": False,
    }
    ledger.drop_pod("uid-ml-a")
    assert run(ledger, planner) == {"c": True}


def test_a_lifted_pod_counts_on_its_node_once_it_is_bound() -> None:
    ledger = books(NODE, a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a")) == {"a": True}
    ledger.put_pod(bound("a", 0, node="m2").view())
    assert run(ledger, planner, share("b", 100 - 60), share("c", 60, second=1), share("d", 60, second=2)) == {
        "b": True,
        "c": True,
        "d": True,
    }


@pytest.mark.parametrize(
    ("node", "pod", "words"),
    [
        (a_node("cpu"), share("p"), "no node serves"),
        (NODE.cordoned(), share("p"), "no node serves"),
        (NODE.not_ready(), share("p"), "no node serves"),
        (NODE, share("p").selects("zone", "moon"), "no node serves"),
        (a_node("m1").mgpu(2, memory=16384, policy="native-burst-share"), share("p"), "compute policy"),
        (NODE, a_pod("p").mgpu(core=300).gated(), "asks for 3 cards"),
        (NODE, a_pod("p").mgpu(core=10, memory=20000).gated(), "no room for container"),
        (
            NODE,
            of_containers("p", 1000),
            "no open node could hold it, were it empty; node m1: not enough mGPU",
        ),
        (
            NODE,
            of_containers("p", 1000),
            "with those before it that makes 33 places on cards, the node has 32",
        ),
    ],
)
def test_the_reason_is_that_of_the_node_that_comes_closest(
    node: NodeBuilder, pod: PodBuilder, words: str
) -> None:
    ledger = books(node)
    ledger.put_pod(pod.view())
    (decision,) = Planner(ledger).decide("default")
    assert isinstance(decision, Hold)
    assert decision.why.code == reasons.NO_FREE_CARD
    assert words in decision.why.message


def test_it_is_told_for_whom_the_room_is_booked_at_most_three_by_name() -> None:
    ledger = books(NODE)
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", 25)) == {"a": True}
    assert run(ledger, planner, *(share(f"b{n}", 5, second=n) for n in range(3))) == dict.fromkeys(
        ("b0", "b1", "b2"), True
    )
    late = a_pod("late").mgpu(core=200).gated().created("2024-01-01T00:00:09Z").view()
    ledger.put_pod(late)
    (hold,) = planner.decide("default")
    assert isinstance(hold, Hold)
    end = "; room there is booked for ml/a, ml/b0, ml/b1 and 1 more, on the way to a node"
    assert hold.why.message.endswith(end)
    assert "node m1" in hold.why.message
    ledger.put_pod(bound("a", 0, 25, node="m1").view())
    (hold,) = planner.decide("default")
    assert isinstance(hold, Hold)
    assert hold.why.message.endswith("; room there is booked for ml/b0, ml/b1, ml/b2, on the way to a node")


def test_members_of_a_gang_are_not_told_that_room_is_booked_for_each_other() -> None:
    ledger = books(NODE)
    ledger.put_group(a_group("g").min_member(3).view())
    for number in range(3):
        ledger.put_pod(share(f"g{number}", 60).in_group("g").view())
    holds = Planner(ledger).decide("default")
    assert len(holds) == 3
    assert all(isinstance(hold, Hold) and "booked" not in hold.why.message for hold in holds)


def test_the_closest_of_several_nodes_is_told() -> None:
    ledger = books(a_node("cpu"), a_node("full").mgpu(1, memory=16384), a_node("zz"))
    ledger.put_pod(bound("a", 0, 90, node="full").view())
    ledger.put_pod(share("p").view())
    (decision,) = Planner(ledger).decide("default")
    assert isinstance(decision, Hold)
    assert "node full" in decision.why.message


def test_a_new_node_lets_the_pod_in() -> None:
    ledger = books()
    planner = Planner(ledger)
    assert run(ledger, planner, share("p")) == {"p": False}
    ledger.wakeups.take_queues()
    ledger.put_node(NODE.view())
    assert set(ledger.wakeups.pending) == {"default"}
    assert run(ledger, planner) == {"p": True}
    ledger.drop_node("m1")
    assert run(ledger, planner, share("q")) == {"q": False}


def test_share_limits_of_the_queue_come_before_room() -> None:
    ledger = books(NODE)
    ledger.put_queue(a_queue("default").shares(core=100).view())
    ledger.put_pod(share("a", second=1).view())
    ledger.put_pod(share("b", second=2).view())
    first, second = Planner(ledger).decide("default")
    assert isinstance(first, Lift)
    assert isinstance(second, Hold)
    assert second.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA


def test_a_lifted_mgpu_pod_is_narrowed_to_nodes_of_its_kind() -> None:
    ledger = books(NODE)
    ledger.put_pod(share("fresh").view())
    ledger.put_pod(share("termed", 20).needs_node("zone", "a").selects("x", "y").view())
    ledger.put_node(NODE.label("zone", "a").label("x", "y").view())
    patches = {d.pod.name: d.patch for d in Planner(ledger).decide("default") if isinstance(d, Lift)}
    (fresh,) = [op["value"] for op in patches["fresh"] if op["path"] == "/spec/affinity"]
    terms = fresh["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [[e["operator"] for e in term["matchExpressions"]] for term in terms] == [
        ["In", "In"],
        ["In", "DoesNotExist"],
    ]
    added = [op["value"] for op in patches["termed"] if op["path"].endswith("/matchExpressions/-")]
    assert [(e["key"], e["operator"]) for e in added] == [
        ("vke.node.gpu.schedule", "In"),
        ("vke.volcengine.com/mgpu-compute-policy", "NotIn"),
    ]


def test_a_bind_that_was_assumed_and_taken_back_gives_its_room_back() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a")) == {"a": True}
    ledger.put_pod(a_pod("a").mgpu(core=60, memory=2048).view())
    ledger.assume(bound("a", 0).view())
    assert run(ledger, planner, share("b")) == {"b": False}
    ledger.forget("uid-ml-a")
    ledger.drop_pod("uid-ml-a")
    assert run(ledger, planner) == {"b": True}


def test_the_node_of_a_bind_taken_back_is_counted_anew_while_the_pod_still_waits_for_one() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384), a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a", 100 - 1)) == {"a": True}
    ledger.put_pod(a_pod("a").mgpu(core=99, memory=2048).view())
    ledger.assume(bound("a", 0, 99, node="m2").view())
    assert run(ledger, planner, share("b", 99)) == {"b": True}
    ledger.forget("uid-ml-a")
    assert run(ledger, planner, share("c", 99, second=1)) == {"c": False}, "a and b need both nodes"


def test_a_lifted_pod_whose_node_vanishes_is_expected_on_another_one() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384))
    planner = Planner(ledger)
    assert run(ledger, planner, share("a").host_port(80), share("b", second=1)) == {"a": True, "b": False}
    ledger.put_node(a_node("m2").mgpu(1, memory=16384).view())
    ledger.drop_node("m1")
    assert run(ledger, planner) == {"b": False}


def test_a_cordoned_node_gives_up_the_pods_that_were_expected_there() -> None:
    ledger = books(a_node("m1").mgpu(1, memory=16384), a_node("m2").mgpu(1, memory=16384))
    planner = Planner(ledger)
    huge = a_pod("huge").mgpu(core=10, memory=20000).gated()
    assert run(ledger, planner, share("a").host_port(80), huge) == {"a": True, "huge": False}
    ledger.put_node(a_node("m1").mgpu(1, memory=16384).cordoned().view())
    assert run(ledger, planner, share("b", second=1)) == {"b": False, "huge": False}, "a needs m2"


def test_a_pod_is_not_expected_any_more_on_a_node_that_its_rules_do_not_admit() -> None:
    ledger = books(NODE.label("zone", "a"), a_node("m2").mgpu(1, memory=16384).label("zone", "a"))
    planner = Planner(ledger)
    huge = share("huge", 99).selects("zone", "a")
    assert run(ledger, planner, huge) == {"huge": True}
    assert run(ledger, planner, share("b", 99, second=1).selects("zone", "b")) == {"b": False}
    ledger.put_node(NODE.label("zone", "b").view())
    assert run(ledger, planner) == {"b": True}
    ledger.put_node(a_node("m3").mgpu(1, memory=16384).label("zone", "b").view())
    more = [share(f"c{n}", 99, second=2 + n).selects("zone", "b") for n in range(3)]
    assert list(run(ledger, planner, *more).values()) == [True, True, False], "huge is expected on m2 now"
