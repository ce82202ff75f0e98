"""What becomes of a gang with choices in Volcano's scheduler, which takes one pod of a task for all: a stand-in for it.

What is lifted is what the planner lifts, with the very patch; what is bound is what the stand-in binds in any number of cycles.
"""

from typing import Any

import pytest

from core.objects import pod as pods
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, PodBuilder
from tests.fakes.volcano_cycle import VolcanoCycle
from tests.unit.core.plan.patching import patched

SINGLE = Settings.model_validate({"cards": {"multiCardTask": "single"}})
CYCLES = 10


def member(number: int, task: str = "w", card: str = "A|B") -> PodBuilder:
    return a_pod(f"m{number}").gpu(1).card(card).in_group("g").task(task).scheduler("volcano").gated()


def gang(minimum: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(minimum)


class Cluster:
    """Objects as they are stored: two A on one node, eight B on the other one."""

    def __init__(
        self, group: GroupBuilder, *members: PodBuilder, settings: Settings | None = None, b: int = 8
    ) -> None:
        self.nodes = [a_node("a").card("A", 2), a_node("b").card("B", b)]
        self.group = group
        self.pods: dict[str, dict[str, Any]] = {}
        for builder in members:
            built = builder.build()
            self.pods[built["metadata"]["name"]] = built
        self.ledger = Ledger(settings or Settings())
        for node in self.nodes:
            self.ledger.put_node(node.view())
        self.ledger.put_queue(a_queue("q").cards({"A": 2, "B": 8}).view())
        self.ledger.put_group(group.view())

    def lift(self) -> int:
        """One pass, and its writes; returns how many were lifted."""
        for stored in self.pods.values():
            self.ledger.put_pod(pods.project(stored))
        lifts = [each for each in Planner(self.ledger).decide("q") if isinstance(each, Lift)]
        for each in lifts:
            self.pods[each.pod.name] = patched(self.pods[each.pod.name], each.patch)
        return len(lifts)

    def bound_by(self, scheduler: VolcanoCycle) -> int:
        """How many have a node after some cycles."""
        for _ in range(CYCLES):
            nodes = [node.build() for node in self.nodes]
            for name, node in scheduler.run(nodes, [self.group.build()], list(self.pods.values())).items():
                self.pods[name]["spec"]["nodeName"] = node
        return sum(1 for stored in self.pods.values() if stored["spec"].get("nodeName"))


FOUR = tuple(member(number) for number in range(4))


def test_a_task_that_is_spread_never_starts_with_the_cache() -> None:
    """Four have to start together; two A and two B are there, so each card serves two."""
    cluster = Cluster(gang(4), *FOUR, b=2)
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle()) == 0


def test_without_the_cache_it_starts() -> None:
    cluster = Cluster(gang(4), *FOUR, b=2)
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle(predicate_error_cache=False)) == 4


def test_with_single_it_holds_nothing_instead_and_starts_when_one_card_serves_it() -> None:
    cluster = Cluster(gang(4), *FOUR, settings=SINGLE, b=2)
    assert cluster.lift() == 0
    cluster.nodes[1] = a_node("b").card("B", 4)
    cluster.ledger.put_node(cluster.nodes[1].view())
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle()) == 4


@pytest.mark.parametrize("settings", [Settings(), SINGLE], ids=["spread", "single"])
def test_where_one_card_serves_the_gang_it_starts_with_the_cache(settings: Settings) -> None:
    """Left to right without that rule, two would get A and the others B."""
    cluster = Cluster(gang(4), *FOUR, settings=settings)
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle()) == 4


@pytest.mark.parametrize("settings", [Settings(), SINGLE], ids=["spread", "single"])
def test_an_elastic_gang_starts_whole_since_those_above_the_minimum_follow(settings: Settings) -> None:
    """Three of five, of which A serves two."""
    cluster = Cluster(gang(3), *(member(number) for number in range(5)), settings=settings)
    assert cluster.lift() == 5
    assert cluster.bound_by(VolcanoCycle()) == 5


def test_tasks_of_their_own_start_by_different_cards() -> None:
    tasks = [member(number, task=f"t{number % 2}") for number in range(4)]
    cluster = Cluster(gang(4), *tasks, b=2)
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle()) == 4


def test_pods_that_start_one_by_one_are_only_delayed() -> None:
    """With a minimum of one each that can go goes, and in the next cycle it is the other ones' turn."""
    cluster = Cluster(gang(1), *FOUR, b=2)
    assert cluster.lift() == 4
    assert cluster.bound_by(VolcanoCycle()) == 4


def test_a_gang_is_bound_whole_or_not_at_all() -> None:
    cluster = Cluster(gang(4), *FOUR[:3])
    for stored in cluster.pods.values():
        del stored["spec"]["schedulingGates"]
    assert cluster.bound_by(VolcanoCycle()) == 0
