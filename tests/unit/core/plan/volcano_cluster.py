"""A gang of mGPU pods in a cluster with Volcano's scheduler.

What is lifted is what the planner lifts, with the very patch; a stand-in for the scheduler chooses nodes by sums, and the bind
is decided as the hook does.
"""

from collections import Counter
from typing import Any

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.objects import pod as pods
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder
from tests.fakes.volcano_cycle import VolcanoCycle
from tests.unit.core.plan.patching import patched

RECORD = "vke.volcengine.com/gpu-index-container-main"


def host(name: str, cards: int = 2) -> NodeBuilder:
    return a_node(name).mgpu(cards, memory=16384).label(names.HOSTNAME_LABEL, name)


def taken(name: str, node: str, card: int, core: int) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=1024).bound_to(node).annotation(RECORD, str(card))


def member(name: str, core: int, task: str = "w") -> PodBuilder:
    built = a_pod(name).mgpu(core=core, memory=1024).in_group("g").task(task).scheduler("volcano")
    return built.created(f"2024-01-01T00:00:{int(name[1:]):02}Z").gated()


class Cluster:
    """Objects as they are stored, and a ledger that sees every change."""

    def __init__(self, minimum: int, *nodes: NodeBuilder) -> None:
        self.ledger, self.nodes, self.stored = Ledger(Settings()), nodes, dict[str, dict[str, Any]]()
        self.group = a_group("g").in_queue("q").min_member(minimum)
        self.ledger.put_queue(a_queue("q").view())
        self.ledger.put_group(self.group.view())
        for node in nodes:
            self.ledger.put_node(node.view())
        self.planner = Planner(self.ledger)
        self.binder = Binder(
            self.ledger, guest_book((), (), self.ledger.settings), self.ledger.settings, lambda: None
        )
        self.denied = Counter[str]()
        self.held: dict[str, Hold] = {}

    def put(self, *built: PodBuilder) -> None:
        for each in built:
            self.store(each.view().name, each.build())

    def store(self, name: str, raw: dict[str, Any]) -> None:
        self.stored[name] = raw
        self.ledger.put_pod(pods.project(raw))

    def lift(self) -> dict[str, str]:
        """One pass, and its writes: to which node each pod is led that is lifted."""
        decisions = self.planner.decide("q")
        lifts = [each for each in decisions if isinstance(each, Lift)]
        self.held = {each.pod.name: each for each in decisions if isinstance(each, Hold)}
        for each in lifts:
            raw = patched(self.stored[each.pod.name], each.patch)
            if names.NOMINATED_ANNOTATION in each.records:
                node = each.records[names.NOMINATED_ANNOTATION]
                raw = {**raw, "status": {**raw.get("status", {}), "nominatedNodeName": node}}
            self.store(each.pod.name, raw)
        return {each.pod.name: each.records.get(names.NODE_ANNOTATION, "") for each in lifts}

    def nominated(self) -> dict[str, str]:
        """For which node each pod is nominated."""
        return {
            name: node
            for name, raw in self.stored.items()
            if (node := raw.get("status", {}).get("nominatedNodeName"))
        }

    def cycles(self, count: int = 5, *, nominations: bool = True) -> dict[str, str]:
        """Who has which node after some cycles."""
        scheduler = VolcanoCycle(nominations=nominations)
        for _ in range(count):
            nodes = [node.build() for node in self.nodes]
            for name, node in scheduler.run(nodes, [self.group.build()], list(self.stored.values())).items():
                pod = pods.project(self.stored[name])
                answer = self.binder.decide(pod, node)
                if isinstance(answer, Refusal):
                    self.denied[name] += 1
                    continue
                booked = self.binder.book(pod, node, answer)
                self.stored[name]["spec"]["nodeName"] = node
                self.stored[name]["metadata"]["annotations"] |= booked.annotations
                self.ledger.put_pod(pods.project(self.stored[name]))
        return {
            name: raw["spec"]["nodeName"] for name, raw in self.stored.items() if raw["spec"].get("nodeName")
        }
