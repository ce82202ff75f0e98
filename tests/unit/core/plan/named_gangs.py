"""Gangs without PodGroup, which their members name, in the queue `q`."""

from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

JOB = "j"


def books(quota: int = 8, **of_b: int) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    ledger.put_queue(a_queue("q").cards({"A": quota, **of_b}).view())
    return ledger


def member(
    name: str, size: int | str = 4, gang: str = "g", *, owner: str = JOB, card: str = "A", queue: str = "q"
) -> PodBuilder:
    second = int(name[-1]) if name[-1].isdecimal() else 0
    pod = a_pod(name, namespace="ml").gpu(1).card(card).gated().in_queue(queue)
    return pod.in_gang(gang, size, owner=owner).created(f"2024-01-01T00:00:0{second}Z")


def four(
    prefix: str = "m", gang: str = "g", owner: str = JOB, count: int = 4, card: str = "A"
) -> list[PodBuilder]:
    return [member(f"{prefix}{number}", gang=gang, owner=owner, card=card) for number in range(count)]


def decided(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> tuple[set[str], dict[str, Hold]]:
    """Who is lifted, and who is held and why."""
    for pod in pods:
        ledger.put_pod(pod.view())
    found = Planner(ledger).decide(queue)
    lifted = {each.pod.name for each in found if isinstance(each, Lift)}
    return lifted, {each.pod.name: each for each in found if isinstance(each, Hold)}
