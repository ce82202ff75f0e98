"""The first thing that `explain` says would help is what lets the pod in; what would not is not told as if it did."""

import json
from typing import Any

import pytest

from core.answers.explain import explain
from core.answers.remedy import Remedy
from core.objects import Pod, Queue
from core.plan import offline
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.books import books_of
from tests.builders.objects import NodeBuilder
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Run

CARD = "NVIDIA-H200"
GPU = "nvidia.com/gpu"
WHOLE = a_node("whole").card(CARD, 8)
NO_RESOURCE = a_node("mute").product(CARD, count=8)
NO_MEMORY = a_node("mute").label("nvidia.com/gpu.product", CARD).allocatable(GPU, 8)
NO_REPLICAS = (
    a_node("mute")
    .label("nvidia.com/gpu.product", CARD)
    .label("nvidia.com/gpu.memory", "81920")
    .allocatable("nvidia.com/gpu.shared", 16)
)
FOREIGN = a_node("mute").label("huawei.com/npu.product", CARD)
QUEUE = a_queue("q").cards({CARD: 8, f"{CARD}/mps-80g*1/8": 4})


def waiting(cards: str = CARD, count: int = 1, resource: str = GPU) -> PodBuilder:
    return a_pod("p").limit(resource, count).card(cards).in_queue("q").gated()


def running(count: int) -> PodBuilder:
    return a_pod("r").gpu(count).card(CARD).charged("q").assigned({CARD: count}).bound_to("whole")


EITHER = f"{CARD}|NVIDIA-A100"
FULL = a_node("full").card("NVIDIA-A100", 4)
BOTH = a_queue("q").cards({CARD: 8, "NVIDIA-A100": 8})
HOLDS = a_pod("r").gpu(4).card("NVIDIA-A100").charged("q").assigned({"NVIDIA-A100": 4}).bound_to("full")


def a_state(*objects: Any) -> str:
    items = [one.build() for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def explained(run: Run, *objects: Any) -> dict[str, Any]:
    outcome = run("explain", "ml/p", "--state", "-", "-o", "json", stdin=a_state(*objects))
    assert outcome.status == 0, outcome.err
    report: dict[str, Any] = json.loads(outcome.out)
    return report


def helping(report: dict[str, Any]) -> list[list[str]]:
    return [[step["action"] for step in remedy["steps"]] for remedy in report["help"]]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([NO_RESOURCE, QUEUE, waiting()], [["node"]]),
        ([NO_MEMORY, QUEUE, waiting()], [["node"]]),
        ([NO_REPLICAS, QUEUE, waiting(f"{CARD}/mps-80g*1/8", 1, f"{GPU}.shared")], [["node"]]),
        ([WHOLE, NO_RESOURCE, QUEUE, running(8), waiting()], [["raise"], ["end"]]),
        ([FULL, NO_RESOURCE, BOTH, HOLDS, waiting(EITHER)], [["node"], ["end"]]),
        ([NO_RESOURCE, QUEUE.cards({}), waiting()], [["node", "raise"]]),
        ([WHOLE, NO_RESOURCE, QUEUE, waiting(count=12)], []),
        ([NO_RESOURCE.cordoned(), QUEUE, waiting()], []),
        ([WHOLE, NO_RESOURCE, QUEUE, waiting().in_queue("root"), a_queue("root")], []),
        ([WHOLE, NO_RESOURCE, QUEUE, waiting("NVIDIA-H2O0")], [["card"]]),
        ([FOREIGN, QUEUE, waiting()], []),
    ],
    ids=[
        "the resource",
        "the memory label",
        "the labels of a share",
        "quota is short, not cards",
        "cards are short",
        "cards and quota",
        "more than any node has",
        "a node that takes no pods",
        "a queue that takes no pods",
        "a misspelt card",
        "the card would be another resource",
    ],
)
def test_a_node_is_to_be_mended_where_that_lets_the_pod_in_and_not_else(
    run: Run, objects: list[Any], expected: list[list[str]]
) -> None:
    report = explained(run, *objects)
    assert helping(report) == expected
    text = run("explain", "ml/p", "--state", "-", stdin=a_state(*objects)).out
    told = text.partition("What would help")[2]
    assert told, text
    assert ("mend 1 node" in told) == any("node" in actions for actions in expected)
    assert "mend what is said" not in text


def test_what_is_to_be_mended_is_told_with_the_node_and_how_many_cards_that_gives(run: Run) -> None:
    (remedy,) = explained(run, NO_RESOURCE, QUEUE, waiting())["help"]
    (step,) = remedy["steps"]
    assert step["object"] == "Node mute"
    assert step["key"] == CARD
    begin = f"mend 1 node, mute, so that 8 {CARD} ({GPU}) are there: labels contradict status.allocatable"
    assert step["text"].startswith(begin)


def test_several_nodes_where_one_is_not_enough(run: Run) -> None:
    nodes: list[NodeBuilder] = [
        a_node(name).product(CARD, count=4) for name in ("a", "b", "c", "d", "e", "f")
    ]
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
        "spec": {"queue": "q", "minMember": 2},
    }
    members = [a_pod(name).gpu(4).card(EITHER).in_group("g").gated().build() for name in ("p", "p2")]
    others = [one.build() for one in (FULL, HOLDS, BOTH)]
    items = [*(node.build() for node in nodes), *others, group, *members]
    state = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    report = json.loads(run("explain", "ml/p", "--state", "-", "-o", "json", stdin=state).out)
    assert [step["text"].partition(":")[0] for step in report["help"][0]["steps"]] == [
        f"mend 2 nodes, a, b, so that 4 {CARD} ({GPU}) are there each"
    ]


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (
            waiting("UNHEARD-OF"),
            "name a card that the nodes carry (`cardquota cards` lists them), or wait for",
        ),
        (waiting(CARD, 1, "amd.com/gpu"), f"make the pod anew, with limits for {GPU}"),
        (waiting("|".join(f"C{n}" for n in range(17))), "make the pod anew, without what the message names"),
    ],
    ids=["unknown", "without its resource", "too many"],
)
def test_where_nothing_helps_the_way_out_is_that_of_the_pod_and_said_to_be_no_more(
    run: Run, pod: PodBuilder, told: str
) -> None:
    objects = (a_node("n").card(CARD, 8), QUEUE.cards({"OTHER": 1}), pod)
    report = explained(run, *objects)
    assert report["help"] == []
    assert report["remedy"].startswith(told)
    text = run("explain", "ml/p", "--state", "-", stdin=a_state(*objects)).out
    ending = text.partition("What would help: ")[2].splitlines()
    assert ending[0].startswith(told[:60])
    assert ending[-1].strip().endswith("nothing that was tried lifts the pod by itself)")


def applied(remedy: Remedy, objects: list[Any]) -> list[Any]:
    """The cluster for which somebody has done what is advised."""
    change = remedy.change
    kept = []
    for one in objects:
        found = one
        if isinstance(one, Pod):
            found = change.pods.get(one.uid, one)
        elif isinstance(one, Queue):
            found = change.queues.get(one.name, one)
        else:
            found = change.nodes.get(one.name, one)
        if not (isinstance(one, Pod) and one.uid in change.gone):
            kept.append(found)
    return kept


@pytest.mark.parametrize("node", [NO_RESOURCE, NO_MEMORY], ids=["resource", "memory"])
@pytest.mark.parametrize("quota", [0, 4, 8, 9, 20])
@pytest.mark.parametrize("asked", [1, 4, 8])
@pytest.mark.parametrize("held", [0, 5, 8])
@pytest.mark.parametrize("cards", [CARD, EITHER])
def test_each_remedy_lifts_the_pod_on_books_that_never_saw_the_search(
    node: NodeBuilder, quota: int, asked: int, held: int, cards: str
) -> None:
    queue = QUEUE.cards({CARD: quota, "NVIDIA-A100": 2})
    carried = WHOLE if held else FULL
    builders: list[Any] = [carried, node, queue, waiting(cards, asked)]
    objects = [one.view() for one in (*builders, *([running(held)] if held else []))]
    pod = objects[3]
    books = books_of(Settings(), objects)
    before = offline.plan(books_of(Settings(), objects), [pod]).pods
    found = explain(books, pod.uid, {})
    assert found is not None
    if found.decision != "hold":
        return
    assert found.remedies or cards != CARD, found.hold
    for remedy in found.remedies:
        changed = applied(remedy, objects)
        pods = [one for one in changed if isinstance(one, Pod)]
        told = [step.text for step in remedy.steps]
        assert offline.plan(books_of(Settings(), changed), pods).pods["ml/p"].decision == "lift", told
    assert offline.plan(books, [pod]).pods == before
    assert found.remedies == tuple(sorted(found.remedies, key=lambda one: one.weight))
