"""An audit that goes on in steps while the books change: it takes no change for a fault, and misses no fault for a change."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.objects import Pod
from core.queues import audit as auditing
from core.queues import recount
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from tests.builders import a_node, a_pod, a_queue

QUEUES = ("a", "b", "c", "no-such-queue")
Change = Callable[["Cluster"], None]


@pytest.fixture(autouse=True, scope="module")
def steps_of_one() -> Iterator[None]:
    """Each pod and each queue is a step, as a hundred of them are where there are very many."""
    with ExitStack() as stack:
        for name in ("_QUEUES", "_ANEW", "_LOOKED_AT"):
            stack.enter_context(patch.object(auditing, name, 1))
        stack.enter_context(patch.object(recount, "_STEP", 1))
        yield


class Cluster:
    """Some pods, what the books have of them, and what the cluster shows."""

    def __init__(self, *, tree: bool) -> None:
        self.ledger = Ledger(Settings.model_validate({"cards": {"hierarchy": tree}}))
        self.shown: dict[str, Pod] = {}
        self.lifted: dict[str, Pod] = {}
        self.ledger.put_node(a_node("n").card("A", 8).view())
        for name in QUEUES[:3]:
            self.ledger.put_queue(a_queue(name).cards({"A": 100}).view())

    def put(self, number: int, queue: str, count: int, state: str) -> None:
        asking = a_pod(f"p{number}").gpu(count).card("A").in_queue(queue)
        lifted = asking.charged(queue).assigned({"A": count})
        pods = {"waits": asking.gated(), "lifted": lifted, "runs": lifted.bound_to("n")}
        pod = pods[state].view()
        self.shown[pod.key] = pod
        self.lifted[pod.key] = lifted.view()
        self.ledger.put_pod(pod)

    def drop(self, number: int) -> None:
        pod = self.shown.pop(f"ml/p{number}", None)
        if pod is not None:
            self.ledger.drop_pod(pod.uid)

    def let_in(self, number: int) -> None:
        pod = self.shown.get(f"ml/p{number}")
        entry = None if pod is None else self.ledger.entry(pod.uid)
        if pod is not None and entry is not None and entry.stage is Stage.WAITING:
            lifted = self.lifted[pod.key]
            (self.ledger.let_in if entry.queue in self.ledger.queues else self.ledger.assume)(lifted)

    def take_back(self, number: int) -> None:
        pod = self.shown.get(f"ml/p{number}")
        if pod is not None:
            self.ledger.forget(pod.uid)

    def move(self, queue: str, parent: str) -> None:
        self.ledger.put_queue(a_queue(queue).child_of(parent).cards({"A": 100}).view())


numbers = st.integers(0, 4)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(
        lambda number, queue, count, state: lambda cluster: cluster.put(number, queue, count, state),
        numbers,
        st.sampled_from(QUEUES),
        st.integers(1, 3),
        st.sampled_from(("waits", "lifted", "runs")),
    ),
    st.builds(lambda number: lambda cluster: cluster.drop(number), numbers),
    st.builds(lambda number: lambda cluster: cluster.let_in(number), numbers),
    st.builds(lambda number: lambda cluster: cluster.take_back(number), numbers),
)
moves: st.SearchStrategy[Change] = st.builds(
    lambda queue, parent: lambda cluster: cluster.move(queue, parent),
    st.sampled_from(("b", "c")),
    st.sampled_from(("a", "b", "root")),
)


def audited(cluster: Cluster, meanwhile: list[Change]) -> list[str]:
    """What an audit finds that is paused for each of these changes, and after them goes on."""
    steps = audit(cluster.ledger, cluster.shown)
    left = iter(meanwhile)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return [str(drift) for drift in end.value]
        change = next(left, None)
        if change is not None:
            change(cluster)


@given(
    tree=st.booleans(),
    before=st.lists(changes | moves, min_size=4, max_size=12),
    meanwhile=st.lists(changes | moves, min_size=1, max_size=12),
)
def test_whatever_changes_in_the_middle_of_an_audit_is_no_drift(
    tree: bool, before: list[Change], meanwhile: list[Change]
) -> None:
    cluster = Cluster(tree=tree)
    for change in before:
        change(cluster)
    assert audited(cluster, meanwhile) == []
    assert audited(cluster, []) == []


@given(
    tree=st.booleans(),
    before=st.lists(changes | moves, min_size=1, max_size=12),
    meanwhile=st.lists(changes, min_size=1, max_size=12),
)
def test_a_sum_that_is_wrong_is_found_however_often_its_queue_changes_in_the_middle(
    tree: bool, before: list[Change], meanwhile: list[Change]
) -> None:
    cluster = Cluster(tree=tree)
    cluster.put(0, "a", 1, "runs")
    for change in before:
        change(cluster)
    cluster.put(0, "a", 1, "runs")
    sums = cluster.ledger.accounts["a"].allocated
    sums["A"] += 1_000_000
    found = audited(cluster, meanwhile)
    assert [drift.partition(" allocated")[0] for drift in found if drift.startswith("Queue a,")] == [
        "Queue a, A"
    ]
