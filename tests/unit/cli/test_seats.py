"""`can-run` beside pods that were let in and have no node yet: who may go elsewhere makes way, who may not does not."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import A100, H200, a_node_of, a_state, running

QUEUE: Final = a_queue("research").cards({H200: 99, A100: 99})


def one(name: str = "n1", card: str = H200, count: int = 1) -> NodeBuilder:
    return a_node_of(card, name, count)


def tainted(name: str, card: str = H200) -> dict[str, Any]:
    return one(name, card).put("spec", "taints", value=[{"key": "x", "effect": "NoSchedule"}]).build()


def let_in(name: str, count: int = 1) -> PodBuilder:
    """Without a card name, so any node with devices does."""
    return a_pod(name).gpu(count).charged("research").put("status", "phase", value="Pending")


def carded(name: str, cards: str = H200, count: int = 1) -> PodBuilder:
    return let_in(name, count).card(cards)


def tolerating(pod: PodBuilder) -> PodBuilder:
    return pod.put("spec", "tolerations", value=[{"operator": "Exists"}])


def new(cards: str = H200, count: int = 1) -> PodBuilder:
    return a_pod("new").gpu(count).card(cards).in_queue("research")


FULL: Final = (one("n3"), running("old", 1, node="n3"))
SHARES: Final = (a_node("m1").mgpu(2, memory=8000), a_node("m2").mgpu(1, memory=4000))
RUNS: Final[dict[str, tuple[tuple[Any, ...], PodBuilder]]] = {
    "another node is full": ((one(), one("n2", A100), *FULL, let_in("x")), new()),
    "the other node of its card has a taint": ((one(), one("n2", A100), tainted("n3"), let_in("x")), new()),
    "only the one let in tolerates": ((one(), tainted("n2"), tolerating(carded("x"))), new()),
    "one makes way for one that makes way": (
        (one(), one("n2", A100), one("n3", "B"), let_in("x"), carded("y", f"{H200}|{A100}")),
        new(),
    ),
    "of those narrowed to a card the one that has two nodes": (
        (one(), one("n2"), one("n3", A100), carded("x"), let_in("y")),
        new(),
    ),
    "two small ones make way for a large one": (
        (one(count=4), one("n2", A100, 4), let_in("x", 2), let_in("y", 2)),
        new(count=4),
    ),
    "one that has its own labels to go by": (
        (
            one().label("zone", "a"),
            one("n2").label("zone", "b"),
            one("n3").label("zone", "c"),
            let_in("x").needs_node("zone", "a", "c"),
            let_in("y").needs_node("zone", "a", "b"),
        ),
        new().needs_node("zone", "a"),
    ),
    "one that has a node already": ((one(), one("n2"), running("x", 1, node="n2")), new()),
    "one of a lower priority, which its scheduler may displace": ((*FULL,), new().priority(1)),
    "a share that is booked elsewhere": (
        (*SHARES, a_pod("x").mgpu(core=50, memory=2000).charged("default").led_to("m1")),
        a_pod("new").mgpu(core=80, memory=4000).put("spec", "nodeSelector", value={"zone": "b"}),
    ),
}
WAITS: Final[dict[str, tuple[tuple[Any, ...], PodBuilder]]] = {
    "one narrowed to the same card": ((one(), one("n2", A100), carded("x")), new()),
    "one of a choice that was decided": (
        (one(), one("n2", A100), carded("x", f"{H200}|{A100}").assigned({H200: 1})),
        new(),
    ),
    "one that has no other node for its selector": (
        (one().label("zone", "a"), one("n2", A100), let_in("x").selects("zone", "a")),
        new(),
    ),
    "one of a lower priority that is not to be displaced": ((*FULL,), new().priority(1).preempting_nobody()),
    "one that does not tolerate the other node": ((one(), tainted("n2", A100), let_in("x")), new()),
    "one that finds no device on the other": ((one(), a_node("n2"), let_in("x")), new()),
    "as many as there are nodes": ((one(), one("n2", A100), let_in("x"), let_in("y")), new()),
    "one too large for the other": ((one(count=2), one("n2", A100), let_in("x", 2)), new()),
}


def judged(run: Run, folder: Path, objects: tuple[Any, ...], pod: PodBuilder) -> dict[str, Any]:
    file = folder / "m.json"
    file.write_text(json.dumps(pod.build()), "utf-8")
    nodes = [node.label("zone", "b") if node is SHARES[1] else node for node in objects]
    queue = a_queue("default").shares(core=999, memory=99999)
    outcome = run("can-run", file, "--state", "-", "-o", "json", stdin=a_state(QUEUE, queue, *nodes))
    report: dict[str, Any] = json.loads(outcome.out)
    return report


@pytest.mark.parametrize(("objects", "pod"), RUNS.values(), ids=RUNS)
def test_who_may_go_elsewhere_makes_way(
    run: Run, tmp_path: Path, objects: tuple[Any, ...], pod: PodBuilder
) -> None:
    report = judged(run, tmp_path, objects, pod)
    assert report["verdict"] == "runs", report


@pytest.mark.parametrize(("objects", "pod"), WAITS.values(), ids=WAITS)
def test_who_may_not_keeps_its_node(
    run: Run, tmp_path: Path, objects: tuple[Any, ...], pod: PodBuilder
) -> None:
    report = judged(run, tmp_path, objects, pod)
    assert (report["verdict"], report["objects"][0]["reason"]) == ("waits", "NoFreeCard"), report


def test_the_order_in_which_they_were_let_in_makes_no_difference(run: Run, tmp_path: Path) -> None:
    for anywhere, narrowed in (("x", "y"), ("y", "x")):
        objects = (one(), one("n2"), one("n3", A100), let_in(anywhere), carded(narrowed))
        assert judged(run, tmp_path, objects, new())["verdict"] == "runs"
