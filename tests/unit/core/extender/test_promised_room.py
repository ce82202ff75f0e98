"""Filter and `place` leave alone what is booked for pods on their way to a node."""

from random import Random

from core.crossquota.book import guest_book
from core.extender.cluster import Cluster
from core.extender.pipeline import question, refusals
from core.mgpu.ask import FIXED_SHARE, NATIVE_BURST_SHARE
from core.objects import Pod
from core.plan.place import place
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.unit.core.binding.deciding import binder
from tests.unit.core.binding.led_crowd import ANY, Crowd


def books(*pods: PodBuilder, policy: str = FIXED_SHARE) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n1").mgpu(2, memory=16384, policy=policy).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def share(name: str, core: int = 60) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048)


def fits(ledger: Ledger, pod: PodBuilder) -> bool:
    """What the filter says, and with it `place`."""
    passes = filtered(ledger, pod.view())
    placed = place(ledger, guest_book((), (), ledger.settings), pod.view())["n1"]
    assert {placed.unfits == (), placed.share is not None} == {passes}
    return passes


def filtered(ledger: Ledger, pod: Pod) -> bool:
    asked, guests = question(pod, ledger.settings), guest_book((), (), ledger.settings)
    standing = Cluster(ledger, guests).standing(ledger.nodes["n1"], asked)
    return not refusals(asked, standing, ledger.settings)


def test_room_that_is_booked_is_no_room_for_others() -> None:
    ledger = books(share("a").led_to("n1"), share("b").led_to("n1"))
    assert not fits(ledger, share("late"))
    assert fits(ledger, share("small", 40))
    assert fits(ledger, share("a").led_to("n1")), "its own room is there for it"
    ledger.drop_pod("uid-ml-b")
    assert fits(ledger, share("late"))


def test_who_is_on_the_way_to_another_node_takes_none() -> None:
    assert fits(books(share("a").led_to("n2"), share("b").led_to("n2")), share("late", 100).mgpu(core=60))


def mate(name: str, node: str, task: str = "w") -> PodBuilder:
    return share(name).in_group("g").task(task).nominated_for(node)


def test_members_of_a_task_find_room_where_others_of_it_were_nominated_and_nobody_else_does() -> None:
    """Their scheduler would take the refusal of one for that of all."""
    ledger = books(mate("a", "n1"), mate("b", "n1"))
    assert fits(ledger, mate("c", "n2"))
    assert not fits(ledger, mate("v", "n2", task="v"))
    assert not fits(ledger, share("late"))


def test_who_can_not_be_served_there_any_more_keeps_nobody_out() -> None:
    led = share("a").led_to("n1"), share("b").led_to("n1")
    late = share("late").mgpu_policy(NATIVE_BURST_SHARE)
    assert fits(books(*led, policy=NATIVE_BURST_SHARE), late)


def test_room_stays_booked_beside_a_pod_that_asks_for_more_cards_than_there_are() -> None:
    """Its node has lost some; those for whom there is room still come."""
    large = a_pod("large").mgpu(core=150, memory=3000).cards_per_container(3).mgpu_policy(NATIVE_BURST_SHARE)
    whole = a_pod("a").mgpu(core=100).led_to("n1")
    ledger = books(large.led_to("n1"), whole, policy=NATIVE_BURST_SHARE)
    assert not fits(ledger, a_pod("late").mgpu(core=200))
    assert fits(ledger, a_pod("late").mgpu(core=100))


def test_a_pod_finds_the_room_beside_a_crowd_that_its_bind_would_find() -> None:
    crowd = Crowd(8, ANY, Random(12))
    crowd.come(64)
    crowd.bind(1)
    assert len(crowd.under_way) > 20
    answers = {}
    for core, memory in ((10, 1000), (20, 2000), (40, 4000)):
        late = a_pod("late").mgpu(core=core, memory=memory).charged("default").view()
        grant = binder(crowd.ledger).decide(late, "n1")
        answers[core] = (filtered(crowd.ledger, late), not isinstance(grant, Refusal))
    assert answers == {10: (True, True), 20: (True, True), 40: (False, False)}
