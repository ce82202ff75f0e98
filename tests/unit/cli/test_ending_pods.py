"""`cardquota explain`: whose end would let a waiting pod in, no more of them than it takes."""

import json
from itertools import permutations

import pytest

from core.mgpu import records
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.builders.raw import Builder
from tests.unit.cli.conftest import Run

TEAM = a_queue("team")
WHOLE_CARD = a_pod("p").mgpu(core=100).in_queue("team").gated()


def on(card: int, name: str, core: int) -> PodBuilder:
    pod = a_pod(name).mgpu(core=core, memory=1024).in_queue("team").charged("team")
    return pod.recorded(records.annotations({"main": (card,)})).bound_to("n1").started()


def remedies(run: Run, *objects: Builder) -> list[list[tuple[str, list[str]]]]:
    """Action and pods of each step."""
    state = "\n---\n".join(json.dumps(each.build()) for each in objects)
    outcome = run("explain", "ml/p", "--state", "-", "-o", "json", stdin=state)
    assert outcome.err == ""
    report = json.loads(outcome.out)
    assert report["allTried"]
    return [[(step["action"], step.get("pods", [])) for step in each["steps"]] for each in report["help"]]


@pytest.mark.parametrize("order", list(permutations(("p1", "p2", "q"))))
def test_of_shares_of_one_size_it_is_the_one_that_is_alone_on_its_card(
    run: Run, order: tuple[str, ...]
) -> None:
    made = {"p1": on(0, "p1", 60), "p2": on(1, "p2", 60), "q": on(1, "q", 30)}
    there = [made[name] for name in order]
    node = a_node("n1").mgpu(2, memory=16384)
    assert remedies(run, node, TEAM, *there, WHOLE_CARD) == [[("end", ["ml/p1"])]]


def test_one_pod_is_found_among_many_that_are_all_of_another_size(run: Run) -> None:
    """The largest, which is alone on its card; two share each of the others."""
    pairs = [on(card, f"s{card}-{core}", core) for card in range(7) for core in (10 + card, 30 + card)]
    node, large = a_node("n1").mgpu(8, memory=16384), on(7, "large", 90)
    assert remedies(run, node, TEAM, large, *pairs, WHOLE_CARD) == [[("end", ["ml/large"])]]


def test_nothing_is_told_to_be_done_beside_what_does_by_itself(run: Run) -> None:
    """A raised quota helps only if the card comes back as well, and with that comes the quota for it."""
    queue, node = TEAM.shares(core=100), a_node("n1").mgpu(1, memory=16384)
    assert remedies(run, node, queue, on(0, "h", 60), WHOLE_CARD) == [[("end", ["ml/h"])]]
