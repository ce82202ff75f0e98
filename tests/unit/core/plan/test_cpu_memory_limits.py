"""Card pods wait for the CPU and memory of their queue; nobody else does."""

from typing import Any

import pytest

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder, QueueBuilder

NODE = a_node("n1").card("H200", 8).allocatable("cpu", 64).allocatable("memory", "64Gi").mgpu(4, memory=8192)


def books(queue: QueueBuilder, **cards: Any) -> Ledger:
    ledger = Ledger(Settings.model_validate({"cards": cards}))
    ledger.put_node(NODE.view())
    ledger.put_queue(queue.view())
    return ledger


def queue(**capability: Any) -> QueueBuilder:
    return a_queue("q").cards({"H200": 4}).capability(**capability)


def one(name: str, *, cpu: Any = 1, memory: Any = "1Gi", cards: int = 1) -> PodBuilder:
    pod = a_pod(name).gpu(cards).request("cpu", cpu).request("memory", memory).card("H200")
    return pod.in_queue("q").gated()


def cpu_pod(name: str, cpu: Any) -> PodBuilder:
    return a_pod(name).container("main").request("cpu", cpu).in_queue("q").bound_to("n1")


def decide(ledger: Ledger, *pods: PodBuilder) -> list[Decision]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return Planner(ledger).decide("q")


def only_hold(decisions: list[Decision]) -> Hold:
    (hold,) = [decision for decision in decisions if isinstance(decision, Hold)]
    return hold


def test_cpu_is_looked_at_first_then_memory_then_cards() -> None:
    small = queue(cpu=1, memory="1Gi")
    asked = one("p", cpu="1500m", memory="2Gi", cards=5)
    hold = only_hold(decide(books(small), asked))
    assert hold.why.message == (
        "Queue <q> has insufficient CPU quota: requested <1500>, total would be <1500>, but capability is <1000>. "
        "In cores: asks for 1.5, more than the whole capability (1); ask for less, or raise spec.capability.cpu."
    )
    assert hold.why.code == reasons.INSUFFICIENT_CPU_QUOTA
    hold = only_hold(decide(books(queue(cpu=2, memory="1Gi")), asked))
    assert hold.why.message == (
        "Queue <q> has insufficient memory quota: requested <2048 Mi>, total would be <2048 Mi>, "
        "but capability is <1024 Mi>. "
        "In Gi: asks for 2, more than the whole capability (1); ask for less, or raise spec.capability.memory."
    )
    assert hold.why.code == reasons.INSUFFICIENT_MEMORY_QUOTA
    hold = only_hold(decide(books(queue(cpu=2, memory="2Gi")), asked))
    assert hold.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA


@pytest.mark.parametrize(("running", "lifted"), [("999m", True), (1, True), ("1001m", False), (64, False)])
def test_running_pods_without_cards_use_the_cpu_too_and_reaching_the_limit_fits(
    running: Any, lifted: bool
) -> None:
    decisions = decide(books(queue(cpu=2)), cpu_pod("web", running), one("p"))
    assert isinstance(decisions[0], Lift) is lifted


def test_what_is_lifted_uses_up_the_cpu_for_the_next() -> None:
    decisions = decide(books(queue(cpu=2)), one("a"), one("b"), one("c"))
    assert [isinstance(decision, Lift) for decision in decisions] == [True, True, False]


def test_a_card_pod_that_asks_for_no_cpu_passes_a_queue_that_has_none_left() -> None:
    pod = a_pod("p").gpu(1).card("H200").in_queue("q").gated()
    assert isinstance(decide(books(queue(cpu=1)), cpu_pod("web", 5), pod)[0], Lift)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("m").mgpu(core=10, memory=1024).request("cpu", 50).in_queue("q").gated(),
        a_pod("c").claim("dev", name="dev").request("cpu", 50).in_queue("q").gated(),
    ],
    ids=["mGPU", "claim"],
)
def test_pods_gated_for_something_else_than_cards_are_not_kept_back_for_cpu(pod: PodBuilder) -> None:
    ledger = books(queue(cpu=1))
    ledger.devices.put_claim(a_claim("dev").view())
    assert isinstance(decide(ledger, pod)[0], Lift)


def test_unlimited_card_pods_run_although_the_cpu_is_used_up() -> None:
    ledger = books(queue(cpu=2, memory="2Gi"), unlimitedCpuMemory=True)
    decisions = decide(ledger, cpu_pod("web", 2), one("p", cards=2))
    assert isinstance(decisions[0], Lift)
    assert ledger.cpu_memory.used("q", "cpu") == 2000


@pytest.mark.parametrize(("unset", "lifted"), [("cluster", True), ("zero", False)])
def test_a_queue_without_capability_has_what_the_cluster_has_or_nothing(unset: str, lifted: bool) -> None:
    ledger = books(a_queue("q").cards({"H200": 4}), unsetCpuMemory=unset)
    assert isinstance(decide(ledger, one("p"))[0], Lift) is lifted


def test_a_gang_that_fits_by_its_cards_waits_as_a_whole_for_cpu_and_goes_when_there_is_some() -> None:
    ledger = books(queue(cpu=3))
    ledger.put_group(a_group("g").in_queue("q").min_member(3).view())
    ledger.put_pod(cpu_pod("web", 1).view())
    held = decide(ledger, *(one(f"m{i}").in_group("g") for i in range(3)))
    assert [decision.why.code for decision in held if isinstance(decision, Hold)] == [
        reasons.INSUFFICIENT_CPU_QUOTA
    ] * 3
    ledger.wakeups.take_queues()
    ledger.drop_pod(cpu_pod("web", 1).view().uid)
    assert set(ledger.wakeups.take_queues()) == {"q"}
    assert [isinstance(decision, Lift) for decision in Planner(ledger).decide("q")] == [True] * 3


def test_members_that_differ_in_cpu_alone_do_not_stand_for_each_other_in_a_gang() -> None:
    ledger = books(queue(cpu=2))
    ledger.put_group(a_group("g").in_queue("q").min_member(2).view())
    decisions = decide(ledger, *(one(f"m{i}", cpu=cpu).in_group("g") for i, cpu in enumerate((4, 1, 1))))
    assert {decision.pod.name for decision in decisions if isinstance(decision, Lift)} == {"m1", "m2"}


def test_a_pod_that_waits_for_cpu_is_looked_at_again_when_a_cpu_pod_ends() -> None:
    ledger = books(queue(cpu=1))
    decide(ledger, cpu_pod("web", 1), one("p"))
    ledger.wakeups.take_queues()
    ledger.put_pod(cpu_pod("web", 1).phase("Succeeded").view())
    assert set(ledger.wakeups.take_queues()) == {"q"}
    assert isinstance(Planner(ledger).decide("q")[0], Lift)


def test_pods_that_differ_in_cpu_alone_are_judged_each_by_itself() -> None:
    decisions = decide(books(queue(cpu=2)), one("big", cpu=3), one("small", cpu=2))
    assert [isinstance(decision, Lift) for decision in decisions] == [False, True]


def test_a_queue_that_uses_more_of_what_it_deserves_in_cpu_comes_later() -> None:
    ledger = books(a_queue("q").cards({"H200": 4}).deserved(cpu=2))
    ledger.put_queue(a_queue("a-q").cards({"H200": 4}).deserved(cpu=4).view())
    ledger.put_pod(cpu_pod("web", 1).view())
    ledger.put_pod(cpu_pod("web2", 1).in_queue("a-q").view())
    assert Planner(ledger).order(["q", "a-q"]) == ["a-q", "q"]
    ledger.put_pod(cpu_pod("web3", 3).in_queue("a-q").view())
    assert Planner(ledger).order(["q", "a-q"]) == ["q", "a-q"]
