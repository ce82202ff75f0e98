"""What all pods of a workload need beside the quota: some wait for others, or none of a gang ever starts."""

from typing import Any

import pytest

from core import names
from core.admission import outlook
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.settings import Settings
from tests.builders import a_job, a_node, a_pod, a_queue

Json = dict[str, Any]

NAME, SIZE = names.GANG_KEYS
POD = a_pod().card("A").gpu(1).in_queue("q")
OTHER = a_pod().card("B").gpu(1).in_queue("q")
SOME = 'all pods together ask for {} of "A", the quota of queue q is 4: some of them wait for others to end'
NONE = (
    'the {} pods that start together ask for {} of "A", the quota of queue q is 4: none of them ever starts'
)


def said(raw: Json) -> list[str]:
    inventory = Inventory({})
    for name in "AB":
        inventory.put(a_node(f"n{name}").card(name, 8).view())
    queue = a_queue("q").cards({"A": 4, "B": 100}).view()
    context = Context(ClusterView(inventory=inventory, queues={"q": queue}), Settings(), frozenset())
    group, _, _ = raw["apiVersion"].partition("/")
    return [hint.detail for hint in outlook.workload_hints(group, raw["kind"], raw, context)]


def batch(parallelism: int, size: int | None = None, cards: int = 1) -> Json:
    pod = a_pod().card("A").gpu(cards).in_queue("q")
    if size is not None:
        pod = pod.annotation(NAME, "g").annotation(SIZE, str(size))
    spec = {"parallelism": parallelism, "template": pod.template()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (batch(4), []),
        (batch(5), [SOME.format(5)]),
        (batch(5, size=4), [SOME.format(5)]),
        (batch(5, size=5), [NONE.format(5, 5)]),
        (batch(9, size=3, cards=2), [NONE.format(3, 6)]),
        (batch(9, size=2, cards=2), [SOME.format(18)]),
        (batch(4, size=4), []),
    ],
)
def test_a_gang_by_annotations_that_is_above_the_quota_never_starts(raw: Json, told: list[str]) -> None:
    assert said(raw) == told


@pytest.mark.parametrize(
    ("least", "told"),
    [
        (None, [NONE.format(5, 5)]),
        (5, [NONE.format(5, 5)]),
        (4, [SOME.format(5)]),
        (9, [NONE.format(5, 5)]),
    ],
)
def test_a_volcano_job_starts_with_its_min_available_which_is_all_of_it_by_default(
    least: int | None, told: list[str]
) -> None:
    job = a_job().in_queue("q").task("w", POD, replicas=5)
    assert said((job if least is None else job.put("spec", "minAvailable", value=least)).build()) == told


def test_members_that_ask_for_less_may_be_those_that_start() -> None:
    """Four of B and one of A start; nobody knows that it will be those, so nothing worse is told than that some wait."""
    job = a_job().in_queue("q").task("b", OTHER, replicas=4).task("a", POD, replicas=5)
    assert said(job.put("spec", "minAvailable", value=5).build()) == [SOME.format(5)]
    assert said(job.put("spec", "minAvailable", value=9).build()) == [NONE.format(9, 5)]


def test_each_replica_of_a_set_is_a_gang_of_its_own() -> None:
    pod = POD.annotation(NAME, "g").annotation(SIZE, "3").template()
    inner = {"spec": {"parallelism": 3, "template": pod}}
    raw = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "j", "namespace": "ml"},
        "spec": {"replicatedJobs": [{"name": "a", "replicas": 2, "template": inner}]},
    }
    assert said(raw) == [SOME.format(6)]
