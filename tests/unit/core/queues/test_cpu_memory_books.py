"""CPU and memory of a queue: every pod uses them, only pods with cards are kept back for them."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.queues.check import balance_of
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

MI = 1000 * 2**20
CPU_POD = a_pod("web").container("main").request("cpu", "500m").request("memory", "1Mi").in_queue("q")
CARD_POD = a_pod("train").gpu(1).request("cpu", 2).request("memory", "2Mi").card("H200").in_queue("q")
NODE = a_node("n1").card("H200", 8).allocatable("cpu", 10).allocatable("memory", "100Mi")


def books(**cards: Any) -> Ledger:
    ledger = Ledger(Settings.model_validate({"cards": cards}))
    ledger.put_node(NODE.view())
    ledger.put_queue(a_queue("q").cards({"H200": 8}).view())
    return ledger


def used(ledger: Ledger, queue: str = "q") -> tuple[int, int]:
    return ledger.cpu_memory.used(queue, "cpu"), ledger.cpu_memory.used(queue, "memory") // MI


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(CPU_POD.bound_to("n1"), (500, 1), id="a running CPU pod counts"),
        pytest.param(CPU_POD.bound_to("n1", phase="Pending"), (500, 1), id="a bound CPU pod counts"),
        pytest.param(CPU_POD, (0, 0), id="a CPU pod without node may never get one"),
        pytest.param(CPU_POD.bound_to("n1", phase="Succeeded"), (0, 0), id="one that has ended does not"),
        pytest.param(CPU_POD.bound_to("n1").terminating(), (0, 0), id="one on its way out does not"),
        pytest.param(CARD_POD.gated(), (0, 0), id="a waiting card pod does not"),
        pytest.param(CARD_POD, (2000, 2), id="a lifted one may be bound any moment"),
        pytest.param(CARD_POD.bound_to("n1"), (2000, 2), id="a running one"),
        pytest.param(
            a_pod("m").mgpu(core=10, memory=1024).request("cpu", 1).in_queue("q"), (1000, 0), id="mGPU"
        ),
    ],
)
def test_a_pod_uses_cpu_and_memory_from_the_moment_it_may_run(
    pod: PodBuilder, expected: tuple[int, int]
) -> None:
    ledger = books()
    ledger.put_pod(pod.view())
    assert used(ledger) == expected
    ledger.drop_pod(pod.view().uid)
    assert used(ledger) == (0, 0)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(CARD_POD.bound_to("n1"), (0, 0), id="a card pod is free"),
        pytest.param(CPU_POD.bound_to("n1"), (500, 1), id="a CPU pod is not"),
        pytest.param(CPU_POD.gpu(1).bound_to("n1"), (0, 0), id="nor is a card's resource without its name"),
    ],
)
def test_unlimited_card_pods_use_nothing(pod: PodBuilder, expected: tuple[int, int]) -> None:
    ledger = books(unlimitedCpuMemory=True)
    ledger.put_pod(pod.view())
    assert used(ledger) == expected


def test_a_resource_that_becomes_a_cards_frees_the_pods_that_ask_for_it_and_back_again() -> None:
    ledger = books(unlimitedCpuMemory=True)
    ledger.put_pod(CPU_POD.limit("amd.com/gpu", 1).request("amd.com/gpu", 1).bound_to("n1").view())
    assert used(ledger) == (500, 1)
    ledger.put_node(a_node("n2").card("MI300X", 8, prefix="amd.com/gpu").view())
    assert used(ledger) == (0, 0)
    ledger.drop_node("n2")
    assert used(ledger) == (500, 1)


MOVES: dict[str, Callable[[Ledger], None]] = {
    "its PodGroup": lambda ledger: ledger.put_group(a_group("g").in_queue("other").view()),
    "its Job": lambda ledger: ledger.put_job(a_job("j").uid("j").in_queue("other").view()),
    "its namespace": lambda ledger: ledger.put_namespace(a_namespace().in_queue("other").view()),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_cpu_pod_moves_to_another_queue_with(move: str) -> None:
    ledger = books()
    pod = a_pod("web").container("main").request("cpu", "500m").in_group("g").bound_to("n1")
    pod = pod.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1", uid="j")
    ledger.put_pod(pod.view())
    assert used(ledger, "default") == (500, 0)
    MOVES[move](ledger)
    assert (used(ledger, "default"), used(ledger, "other")) == ((0, 0), (500, 0))


def limits(ledger: Ledger, queue: str = "q") -> dict[str, int]:
    balance = balance_of(ledger, queue)
    assert balance is not None
    return dict(balance.cpu_memory)


def test_an_unset_limit_is_what_the_cluster_has_left_of_the_guarantees_of_others() -> None:
    ledger = books()
    assert limits(ledger) == {"cpu": 10_000, "memory": 100 * MI}
    ledger.put_queue(a_queue("other").guarantee(cpu=4).view())
    assert limits(ledger) == {"cpu": 6_000, "memory": 100 * MI}
    assert limits(ledger, "other")["cpu"] == 10_000
    ledger.put_node(a_node("n2").allocatable("cpu", 1).view())
    assert limits(ledger)["cpu"] == 7_000
    ledger.drop_node("n2")
    ledger.drop_queue("other")
    assert limits(ledger)["cpu"] == 10_000
    ledger.put_queue(a_queue("q").capability(cpu=3).view())
    assert limits(ledger) == {"cpu": 3_000, "memory": 100 * MI}


def test_an_unset_limit_is_nothing_where_the_setting_says_so() -> None:
    ledger = books(unsetCpuMemory="zero")
    ledger.put_queue(a_queue("q").capability(cpu=3).view())
    assert limits(ledger) == {"cpu": 3_000, "memory": 0}


def test_a_dimension_that_no_node_tells_does_not_limit() -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n1").allocatable("cpu", 1).view())
    ledger.put_queue(a_queue("q").view())
    assert limits(ledger) == {"cpu": 1_000}
    ledger.drop_node("n1")
    assert limits(ledger) == {}


def test_the_end_of_a_cpu_pod_wakes_only_a_queue_in_which_somebody_waits_for_cpu() -> None:
    ledger = books()
    for queue in ("q", "r"):
        ledger.put_pod(CPU_POD.uid(queue).in_queue(queue).bound_to("n1").view())
    ledger.wakeups.take_queues()
    ledger.wakeups.await_cpu_memory("q")
    for queue in ("q", "r"):
        ledger.drop_pod(queue)
    assert set(ledger.wakeups.take_queues()) == {"q"}
    ledger.wakeups.take_queues()
    ledger.wakeups.cpu_memory_freed("q")
    assert not ledger.wakeups.pending, "once woken, it says so again when it is still short"


def test_a_terminating_cpu_pod_gives_its_quota_back_but_stays_on_its_node_until_it_ends() -> None:
    """Schedulers subtract what it requests as long as its containers may run."""
    ledger, pod = books(), CPU_POD.bound_to("n1")
    ledger.put_pod(pod.view())
    ledger.put_pod(pod.terminating(grace_s=300).view())
    assert (used(ledger), [each.name for each in ledger.bystanders_on("n1")]) == ((0, 0), ["web"])
    ledger.put_pod(pod.terminating(grace_s=300).phase("Failed").view())
    assert ledger.bystanders_on("n1") == []
    assert ledger.pod(pod.view().uid) is None


def test_a_cpu_pod_whose_node_is_not_heard_of_stays_on_it() -> None:
    ledger = books()
    ledger.put_pod(CPU_POD.bound_to("n1", phase="Unknown").view())
    assert (used(ledger), [each.name for each in ledger.bystanders_on("n1")]) == ((0, 0), ["web"])


def test_a_changed_guarantee_wakes_everybody_who_waits_for_cpu() -> None:
    ledger = books()
    ledger.wakeups.take_queues()
    ledger.wakeups.await_cpu_memory("q")
    ledger.put_queue(a_queue("other").guarantee(cpu=4).view())
    assert "q" in ledger.wakeups.take_queues()


weights = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 2**70))
bookings = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("qr"), weights | st.none()))


@given(bookings)
def test_the_sums_are_those_of_the_last_booking_of_each_pod(steps: list[tuple[str, str, Any]]) -> None:
    book = CpuMemoryBook()
    last: dict[str, tuple[str, dict[str, int]]] = {}
    for uid, queue, weight in steps:
        before = {each: total(last, each) for each in "qr"}
        freed = book.drop(uid) if weight is None else book.put(uid, queue, weight)
        if weight is None:
            last.pop(uid, None)
        else:
            last[uid] = (queue, weight)
        for each in "qr":
            assert (book.used(each, "cpu"), book.used(each, "memory")) == total(last, each)
            less = any(now < then for now, then in zip(total(last, each), before[each], strict=True))
            assert not less or freed == each, "what is given back is told"


def total(last: dict[str, tuple[str, dict[str, int]]], queue: str) -> tuple[int, int]:
    mine = [weight for name, weight in last.values() if name == queue]
    return sum(w.get("cpu", 0) for w in mine), sum(w.get("memory", 0) for w in mine)


EVENTS: list[Callable[[Ledger], None]] = [
    lambda ledger: ledger.put_pod(CPU_POD.bound_to("n1").view()),
    lambda ledger: ledger.put_pod(CPU_POD.uid("in g").in_group("g").bound_to("n1").view()),
    lambda ledger: ledger.put_pod(CARD_POD.view()),
    lambda ledger: ledger.put_pod(CARD_POD.uid("in g too").in_group("g").bound_to("n1").view()),
    lambda ledger: ledger.put_group(a_group("g").in_queue("other").view()),
    lambda ledger: ledger.put_namespace(a_namespace().in_queue("third").view()),
    lambda ledger: ledger.put_node(NODE.view()),
    lambda ledger: ledger.put_pod(CPU_POD.uid("gpu").gpu(1).bound_to("n1").view()),
]


@given(st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_events_does_not_matter(order: random.Random, unlimited: bool) -> None:
    def after(events: list[Callable[[Ledger], None]]) -> dict[str, tuple[int, int]]:
        ledger = Ledger(Settings.model_validate({"cards": {"unlimitedCpuMemory": unlimited}}))
        for event in events:
            event(ledger)
        return {queue: used(ledger, queue) for queue in ("q", "other", "third")}

    shuffled = list(EVENTS)
    order.shuffle(shuffled)
    assert after(shuffled) == after(EVENTS)
