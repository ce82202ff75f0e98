"""Queues with cards, and decisions on single pods there."""

from typing import Any

from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder, QueueBuilder

MPS_NODE = a_node("mps").card("A100", 4).mps(32, replicas=8)


def books(*queues: QueueBuilder, nodes: tuple[Any, ...] = (), settings: Settings | None = None) -> Ledger:
    ledger = Ledger(settings or Settings())
    for node in nodes or (a_node("h1").card("H200", 8), a_node("h2").card("H100", 8)):
        ledger.put_node(node.view())
    for queue in queues:
        ledger.put_queue(queue.view())
    return ledger


def one(name: str, card: str = "H200", *, count: int = 1, second: int = 0) -> PodBuilder:
    pod = a_pod(name).gpu(count).card(card).in_queue("q").gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z").put("metadata", "resourceVersion", value="7")


def decide(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> dict[str, Lift | Hold]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide(queue)}


def lifted(decisions: dict[str, Lift | Hold]) -> list[str]:
    return [name for name, decision in decisions.items() if isinstance(decision, Lift)]


def held(decision: Lift | Hold) -> Hold:
    assert isinstance(decision, Hold)
    return decision
