"""For how long nothing else is heard while the leader answers why a pod waits: counted in calls, whatever else there is."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from controller.announcements import Announcements
from controller.caches import Caches
from controller.knowledge import Knowledge
from controller.metrics import Metrics
from core import reasons
from core.objects import Pod
from core.plan.decision import Hold
from core.refusal import Refusal
from kube.callers import Caller, Callers, Right
from tests.builders import a_node, a_pod, a_queue
from tests.fakes.counted import CountedLoop, run
from tests.unit.controller.cluster import caches, show
from tests.unit.controller.fakes import Recorder

IN_ONE_GO = 15_000
"""Calls: a slice, and a step that ends it late."""
PODS = 6_000


class Rights:
    """Everybody may do everything but see the pods of other namespaces."""

    async def may(self, _caller: Caller, right: Right) -> bool:
        return right.resource != "pods" or right.namespace == "ml"


def many(pod: Pod) -> list[Pod]:
    """Each in a namespace of its own, the last one the oldest."""
    return [
        replace(pod, namespace=f"ns{n}", name=f"{pod.name}{n}", uid=f"{pod.name}{n}", created=PODS - n)
        for n in range(PODS)
    ]


def full_queue() -> Caches:
    """As many pods use its quota as wait for it."""
    waiting = a_pod("waits").gpu(1).card("A").in_queue("q").gated().view()
    holding = a_pod("holds").gpu(1).card("A").in_queue("q").assigned({"A": 1}).bound_to("n").view()
    last = replace(waiting, name="asked", uid="asked", created=PODS + 1)
    spread = [replace(pod, node_name=f"n{n // 8}") for n, pod in enumerate(many(holding))]
    nodes = [a_node(f"n{n}").card("A", 8).view() for n in range(PODS // 8)]
    cluster = caches(nodes, [*spread, *many(waiting), last])
    show(cluster.queues, "q", a_queue("q").cards({"A": PODS}).view())
    return cluster


def test_the_leader_hears_others_while_it_says_why_a_pod_waits() -> None:
    cluster, told = full_queue(), Announcements(Recorder())
    waiting = cluster.pods.get("ml/asked")
    assert waiting is not None
    told.holds["asked"] = Hold(waiting, "q", Refusal(reasons.INSUFFICIENT_SCALAR_QUOTA, "short"))
    metrics = Metrics(CollectorRegistry())
    knowledge = Knowledge(cluster, told, cast("Callers", Rights()), metrics, "leader")

    async def ask(loop: CountedLoop) -> tuple[dict[str, Any], int]:
        await cluster.settled()
        await asyncio.sleep(0)
        loop.longest = 0
        answer = await knowledge.of_pod(Caller("ann"), "ml", "asked")
        assert isinstance(answer, dict)
        return answer, loop.longest

    answer, longest = run(ask)
    assert (answer["position"]["number"], answer["position"]["of"]) == (PODS + 1, PODS + 1)
    assert answer["heldByOthers"]["pods"] == PODS
    assert longest < IN_ONE_GO
