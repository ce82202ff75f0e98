"""An organisation with two teams below it, whose card quotas hold through the tree."""

from core.plan.lift import Planner
from core.plan.offline import Plan, plan
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.builders.raw import Builder

THROUGH = Settings.model_validate({"cards": {"hierarchy": True}})
PLENTY = {"A": 8, "B": 8}


def org(**quota: int) -> QueueBuilder:
    return a_queue("org").cards(quota)


def team(name: str, parent: str = "org") -> QueueBuilder:
    """A queue of eight cards of each kind."""
    return a_queue(name).child_of(parent).cards(PLENTY)


TEAMS = (team("red"), team("blue"))


def books(*objects: Builder, settings: Settings = THROUGH) -> Ledger:
    """Sixteen A and sixteen B, on nodes of their own, and these queues and pods."""
    ledger = Ledger(settings)
    for node in (a_node("a").card("A", 16), a_node("b").card("B", 16), a_node("m").mgpu(4, memory=16384)):
        ledger.put_node(node.view())
    for each in objects:
        if isinstance(each, QueueBuilder):
            ledger.put_queue(each.view())
        elif isinstance(each, PodBuilder):
            ledger.put_pod(each.view())
    return ledger


def running(name: str, queue: str, count: int = 1, card: str = "A") -> PodBuilder:
    pod = a_pod(name).gpu(count).card(card).in_queue(queue).assigned({card: count})
    return pod.bound_to(card.lower())


def waiting(name: str, queue: str, count: int = 1, card: str = "A") -> PodBuilder:
    return a_pod(name).gpu(count).card(card).in_queue(queue).gated()


def planned(ledger: Ledger) -> Plan:
    pods = (ledger.observed(entry.pod.uid) for entry in list(ledger.entries()))
    return plan(ledger, [pod for pod in pods if pod is not None])


def lifted(found: Plan) -> dict[str, dict[str, int]]:
    """The pods that are lifted, by name, with their cards."""
    return {
        key.removeprefix("ml/"): dict(one.assigned or {})
        for key, one in found.pods.items()
        if one.decision == "lift"
    }


def told(found: Plan, pod: str) -> Refusal:
    """Why a pod is held."""
    why = found.pods[pod].why
    assert why is not None, found.pods[pod]
    return why


def woken(ledger: Ledger) -> set[str]:
    """The queues that are to be looked at now."""
    return set(ledger.wakeups.take_queues())


def passed(ledger: Ledger) -> None:
    """A pass over all that is to be looked at."""
    planner = Planner(ledger)
    while queues := ledger.wakeups.take_queues():
        for _ in planner.run(queues):
            pass
