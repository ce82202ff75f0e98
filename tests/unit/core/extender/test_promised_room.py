"""Filter and `place` leave alone what is booked for pods on their way to a node."""

from core.crossquota.book import guest_book
from core.extender.cluster import Cluster
from core.extender.pipeline import question, refusals
from core.plan.place import place
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder


def books(*pods: PodBuilder) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n1").mgpu(2, memory=16384).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def share(name: str, core: int = 60) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048)


def fits(ledger: Ledger, pod: PodBuilder) -> bool:
    """What the filter says, and with it `place`."""
    asked, cluster = (
        question(pod.view(), ledger.settings),
        Cluster(ledger, guest_book((), (), ledger.settings)),
    )
    refused = refusals(asked, cluster.standing(ledger.nodes["n1"], asked), ledger.settings)
    placed = place(ledger, guest_book((), (), ledger.settings), pod.view())["n1"]
    assert {placed.unfits == (), placed.share is not None} == {not refused}
    return not refused


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
