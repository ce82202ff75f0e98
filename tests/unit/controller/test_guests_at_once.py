"""What a GPU node costs that joins while very many pods run elsewhere: counted in calls, for the first question and bind about it."""

import asyncio
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.caches import Caches
from controller.extender import Extender
from controller.extender_metrics import ExtenderMetrics
from controller.metrics import Metrics
from core import reasons
from core.admission.request import Decision
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.counted import CountedLoop, calls_of, longest_step, run
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term
from tests.unit.controller.test_binding import binding, code
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import by_name

GUARDED = ruled(quota={"cpu": 4}, guardBind=True)
PODS = 500
NEW = gpu_node("new").view()


def running(name: str, node: str) -> PodBuilder:
    return a_pod(name).request("cpu", 1).bound_to(node)


def crowd(pods: int) -> Caches:
    """So many pods on a GPU node and on one without GPUs, and three on a node that nobody has heard of yet."""
    elsewhere = [running(f"p{number}", ("cpu", "gpu")[number % 2]) for number in range(pods)]
    early = [running(f"early{number}", "new") for number in range(3)]
    nodes = [gpu_node("gpu"), a_node("cpu")]
    return caches([node.view() for node in nodes], [pod.view() for pod in (*elsewhere, *early)], GUARDED)


@dataclass(frozen=True, slots=True)
class Joined:
    """The calls for the node itself, and the most between two pauses of the first filter and of the first scores."""

    event: int
    verdicts: int
    scores: int


def joined(pods: int) -> Joined:
    held = crowd(pods)
    extender = Extender(held, ExtenderMetrics(CollectorRegistry()))
    question = by_name(a_pod("asks").request("cpu", 1), "new")
    event = calls_of(lambda: show(held.nodes, "new", NEW))
    return Joined(event, longest_step(extender._verdicts(question)), longest_step(extender._scores(question)))


def test_a_node_that_joins_and_the_first_questions_cost_the_same_however_many_run_elsewhere() -> None:
    joined(1)  # what is computed once and remembered
    assert joined(10 * PODS) == joined(PODS)


def first_bind(pods: int) -> tuple[Decision, Decision, int]:
    """Two binds to a node that has just joined and has room for one, and the most calls in one round of the loop."""
    coming = [a_pod(name).request("cpu", 1) for name in ("p", "q")]
    held = crowd(pods)
    for pod in coming:
        show(held.pods, pod.view().key, pod.view())
    reader = Pods(*(pod.build() for pod in coming))
    hook = BindingHook(reader, held, GUARDED, Metrics(CollectorRegistry()))
    hook.start(term())

    async def bind(loop: CountedLoop) -> tuple[Decision, Decision, int]:
        await asyncio.sleep(0)
        loop.longest = 0
        show(held.nodes, "new", NEW)
        answers = [await hook.review(binding(name, node="new")) for name in ("p", "q")]
        await asyncio.sleep(0)
        return answers[0], answers[1], loop.longest

    return run(bind)


def test_the_first_bind_to_it_costs_the_same_and_knows_who_was_there_before() -> None:
    first_bind(1)
    (first, second, few), (*_, many) = first_bind(PODS), first_bind(10 * PODS)
    assert first.allowed, "three run there of four that may"
    assert code(second) == reasons.CROSS_QUOTA_EXCEEDED
    assert many == few


def test_pods_and_nodes_are_booked_one_at_a_time_while_they_are_listed() -> None:
    """Nothing is left to be done for all of them by whoever asks first, whichever are listed first."""
    gpu, views = gpu_node("gpu").view(), [running(f"p{number}", "gpu").view() for number in range(PODS)]

    def most(held: Caches) -> int:
        """The calls for a pod, for the node, or for the first question."""
        found = [calls_of(partial(show, held.pods, pod.key, pod)) for pod in views]
        found.append(calls_of(partial(show, held.nodes, "gpu", gpu)))
        found.append(calls_of(partial(held.guests.used, "gpu")))
        assert held.guests.used("gpu")["cpu"] == PODS * 1000
        return max(found)

    assert most(caches((), (), GUARDED)) < PODS
    assert most(caches([gpu], (), GUARDED)) < PODS
