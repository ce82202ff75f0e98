"""What is said of a pod that was let in for shares and finds no node."""

from itertools import pairwise

import pytest

from core import affinity, names, reasons
from core.objects import Pod
from core.plan.admitted import EVALUATED_IN_A_STEP, AdmittedNodes
from core.plan.stuck import NAMED, node_full_notice, nodes_with_room, room_gone_notice
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.unit.core.plan.stepping import stepped
from tests.unit.core.plan.stuck_now import place_gone, room_gone
from tests.unit.core.plan.test_admitted import EXPRESSIONS, TERMS, with_hostile_rules

INDEX = names.GPU_INDEX_PREFIX + "main"
NODE = a_node("m1").mgpu(1, memory=16384)
POD = a_pod("p").mgpu(core=60, memory=2048).led_to("m1")
TAINT = {"key": "x", "value": "y", "effect": "NoExecute"}


def books(*nodes: NodeBuilder, pods: tuple[PodBuilder, ...] = ()) -> Ledger:
    ledger = Ledger(Settings())
    for node in nodes:
        ledger.put_node(node.view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def with_room(ledger: Ledger, pod: Pod, but: str) -> list[str]:
    return finish(nodes_with_room(ledger, pod, but, AdmittedNodes(ledger)))


def bound(name: str, node: str) -> PodBuilder:
    return a_pod(name).mgpu(core=60, memory=2048).bound_to(node).annotation(INDEX, "0")


@pytest.mark.parametrize(
    ("nodes", "pods", "words"),
    [
        ((NODE,), (), ""),
        ((), (), "node m1 is gone"),
        ((NODE.cordoned(),), (), "node m1 is cordoned"),
        ((NODE.not_ready(),), (), "node m1 is not ready"),
        ((NODE.put("spec", "taints", value=[TAINT]),), (), "node m1 has the taint x=y:NoExecute"),
        (
            (a_node("m1").mgpu(1, memory=16384, policy="other"),),
            (),
            "node m1 serves it no more (compute policy",
        ),
        ((a_node("m1"),), (), "node m1 serves it no more (node type"),
        ((NODE,), (bound("b", "m1"),), "node m1 has no room on its cards"),
    ],
)
def test_why_none_of_its_nodes_takes_a_pod(
    nodes: tuple[NodeBuilder, ...], pods: tuple[PodBuilder, ...], words: str
) -> None:
    found = room_gone(books(*nodes, pods=(*pods, POD)), POD.view())
    assert found.startswith(words)
    assert bool(found) is bool(words)


def test_rules_that_the_node_does_not_meet_any_more_are_named() -> None:
    pod = POD.needs_node("zone", "a")
    assert (
        room_gone(books(NODE.label("zone", "b")), pod.view())
        == "node m1 has other labels than the pod asks for"
    )


def test_a_pod_that_was_led_nowhere_lacks_no_node() -> None:
    ledger = books(NODE.cordoned(), a_node("m2").mgpu(1, memory=16384))
    assert room_gone(ledger, POD.led_to("m2").view()) == ""
    assert room_gone(ledger, a_pod("p").mgpu(core=60, memory=2048).view()) == ""
    assert room_gone(ledger, POD.led_to("m3").view()) == "node m3 is gone"
    assert room_gone(ledger, a_pod("p").led_to("m1").view()) == "", "it asks for no shares"


def test_only_nodes_that_take_the_pod_now_are_named() -> None:
    free = a_pod("free").mgpu(core=60, memory=2048)
    ledger = books(
        NODE,
        *(a_node(f"m{n}").mgpu(1, memory=16384) for n in range(2, 6)),
        a_node("cpu"),
        a_node("m6").mgpu(1, memory=16384).cordoned(),
        pods=(bound("b", "m2"), POD.led_to("m3"), free),
    )
    assert with_room(ledger, free.view(), but="m1") == ["m4", "m5"], "m3 is booked for p"
    assert with_room(ledger, a_pod("cpu").view(), but="") == []


def test_rules_of_a_megabyte_are_asked_of_each_node_once_and_in_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a pass, and for all pods alike: as they stand they would be gone through for each pod and node in one piece."""
    compared: list[object] = []
    monkeypatch.setattr(affinity, "matches", lambda *asked: compared.append(asked))
    zoned = [a_node(f"m{n}").mgpu(1, memory=16384).label("zone", "ab"[n % 2]) for n in range(30)]
    ledger = books(*zoned, a_node("cpu").label("zone", "a"))
    admitted, total = AdmittedNodes(ledger), 31 + TERMS * EXPRESSIONS
    seen = [0]
    for number in range(4):
        pod = with_hostile_rules(a_pod(f"p{number}").mgpu(core=60, memory=2048)).view()
        # What comes next is counted already.
        looked_for = nodes_with_room(ledger, pod, "", admitted)
        assert stepped(looked_for, lambda: seen.append(max(0, admitted.evaluations - 1))) == []
    assert admitted.evaluations == total
    assert max(now - before for before, now in pairwise([*seen, total])) <= EVALUATED_IN_A_STEP
    assert compared == []


def host(name: str, cpu: int = 8, places: int = 10) -> NodeBuilder:
    return a_node(name).mgpu(2, memory=16384).allocatable("cpu", cpu).allocatable("pods", places)


def cpu_pod(name: str, node: str, cpu: int = 7, priority: int = 0) -> PodBuilder:
    return a_pod(name).request("cpu", cpu).put("spec", "priority", value=priority).bound_to(node)


def test_a_node_without_cpu_places_or_another_device_for_the_pod_has_no_room() -> None:
    """A scheduler places no pod there, whatever its cards have left. Who is expected takes of it too."""
    pod = a_pod("p").mgpu(core=60, memory=2048).request("cpu", 2)
    expected = a_pod("e").mgpu(core=60, memory=2048).request("cpu", 7).led_to("m3")
    ledger = books(
        *(host(f"m{n}") for n in range(1, 4)), host("m4", places=1), pods=(cpu_pod("c", "m2"), expected)
    )
    ledger.put_pod(cpu_pod("d", "m4", cpu=1).view())
    assert with_room(ledger, pod.view(), but="") == ["m1"]
    for number, disks in ((5, 1), (6, 0)):
        ledger.put_node(host(f"m{number}").allocatable("example.com/disk", disks).view())
    assert with_room(ledger, pod.view(), but="") == ["m1", "m5", "m6"]
    assert with_room(ledger, pod.request("example.com/disk", 1).view(), but="") == ["m5"]


def test_the_place_of_a_nominated_pod_goes_with_its_cpu() -> None:
    """Those with whom it shares the place had theirs when it was booked."""
    pod = a_pod("p").mgpu(core=60, memory=2048).request("cpu", 4).nominated_for("m1")
    mate = a_pod("e").mgpu(core=60, memory=2048).request("cpu", 4).nominated_for("m1")
    ledger = books(host("m1"), pods=(pod, mate))
    assert not place_gone(ledger, pod.view())
    ledger.put_pod(cpu_pod("c", "m1").view())
    assert place_gone(ledger, pod.view())


def test_a_led_pod_lacks_the_cpu_that_others_of_its_priority_have() -> None:
    """Lower ones may be displaced for it: it may have been led there for that."""
    pod = POD.request("cpu", 2).put("spec", "priority", value=5)
    assert room_gone(books(host("m1"), pods=(pod, cpu_pod("c", "m1", priority=4))), pod.view()) == ""
    ledger = books(host("m1"), pods=(pod, cpu_pod("c", "m1", priority=5)))
    assert room_gone(ledger, pod.view()) == "node m1 has not enough cpu left"


def test_a_led_pod_that_preempts_nobody_lacks_the_cpu_that_lower_ones_have() -> None:
    pod = POD.request("cpu", 2).priority(5).preempting_nobody()
    ledger = books(host("m1"), pods=(pod, cpu_pod("c", "m1", priority=4)))
    assert room_gone(ledger, pod.view()) == "node m1 has not enough cpu left"


def test_the_words_name_nodes_and_the_way_out() -> None:
    reason, note = node_full_notice("q", "m1", 3, [f"n{n}" for n in range(NAMED + 1)])
    assert reason == reasons.MGPU_NODE_FULL
    assert note.startswith("Queue <q>: node m1 has no room for the pod, its bind there was refused 3 times; ")
    assert "room is on n0, n1, n2, n3, n4 and others. " in note
    assert "ask the extender, or delete the pod" in note
    reason, note = room_gone_notice("q", "node m1 is gone")
    assert reason == reasons.MGPU_ROOM_GONE
    assert "node m1 is gone. " in note
    assert "reservation.evictAfter" in note
    assert all(len(text) < 1024 for text in (note, node_full_notice("q", "n" * 63, 3, ["n" * 63] * 6)[1]))
