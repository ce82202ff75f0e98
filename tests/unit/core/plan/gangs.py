"""Gangs of PodGroups in the queue `q`, in a cluster with eight cards of each of two kinds."""

from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod
from tests.builders.objects import GroupBuilder, QueueBuilder
from tests.builders.pods import PodBuilder


def books(
    *queues: QueueBuilder, groups: tuple[GroupBuilder, ...] = (), settings: Settings | None = None
) -> Ledger:
    ledger = Ledger(settings or Settings())
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    for queue in queues:
        ledger.put_queue(queue.view())
    for group in groups:
        ledger.put_group(group.uid(f"uid-{group.raw['metadata']['name']}").view())
    return ledger


def member(name: str, group: str = "g", card: str = "A", *, second: int = 0, count: int = 1) -> PodBuilder:
    pod = a_pod(name).gpu(count).card(card).in_group(group).gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z")


def lifted(ledger: Ledger, planner: Planner, *pods: PodBuilder, queue: str = "q") -> list[str]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return sorted(decision.pod.name for decision in planner.decide(queue) if isinstance(decision, Lift))


def group(name: str = "g", minimum: int = 4) -> GroupBuilder:
    return a_group(name).in_queue("q").min_member(minimum)


FOUR = [member(f"m{i}", second=i) for i in range(4)]
