"""The rights of both processes are those that they use: what they asked for in the main stories, compared with their roles.

The same is asked of all installations of a whole test run at its end: `tests/rights_of_the_run.py`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final

import pytest
from prometheus_client import CollectorRegistry

from core import reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube.client import Client
from kube.events import EventRecorder, Reference
from kube.metrics import Metrics
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import (
    binding,
    card_pod,
    in_group,
    pod,
    podgroup,
    queue,
    share_pod,
)
from tests.apiserver.test_binding import CARD_MIB, NOBODY
from tests.apiserver.test_informer import until
from tests.apiserver.trusting import CERTIFICATES, Kept
from tests.fakes.apiserver import background
from tests.rights import Right, Usage

PROCESSES = ("cardquota-webhook", "cardquota-controller")
_WATCH_S = 90.0
"""A watch is in the audit log once it ends, after some seconds in which nothing happened."""


Key = tuple[str, str, str]

EVENTS_COUNTED: Final[Key] = ("cardquota-controller", "patch", "events.events.k8s.io")
UNUSED: Final[Mapping[Key, str]] = {
    (
        "cardquota-controller",
        "patch",
        "customresourcedefinitions.apiextensions.k8s.io",
    ): "the definition of Queue is mended where the webhook was away: test_queue_definition",
    (
        "cardquota-controller",
        "create",
        "tokenreviews.authentication.k8s.io",
    ): "somebody asks why a pod waits: test_answers",
    (
        "cardquota-controller",
        "create",
        "subjectaccessreviews.authorization.k8s.io",
    ): "the same: test_answers",
    **{
        (
            "cardquota-controller",
            verb,
            "podgroups.scheduling.k8s.io",
        ): "Kubernetes' own PodGroups are not served here, so their list is all that is asked for: test_kubernetes_groups"
        for verb in ("get", "watch")
    },
    EVENTS_COUNTED: "an event that repeats is counted up after minutes: see below",
    (
        "cardquota-controller",
        "watch",
        "jobs.batch.volcano.sh",
    ): "Volcano's Jobs are not served here, so their list is all that is asked for: test_volcano_jobs",
}
"""What is granted and not asked for here, each with the reason and the test that needs it. In a whole run nothing is excepted."""


def key(right: Right) -> Key:
    return right.account, right.verb, right.resource


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def live_through_the_main_stories(cluster: Cluster, installation: Installation) -> None:
    """Cards, a gang, a pod with a PodGroup of its own, shares, claims, refusals, certificates, and a change of the leader."""
    card, name = cluster.add_card(), unique("q")
    path = cluster.create_queue(queue(name, f'{{"{card}": 3}}'))
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    cluster.create(podgroup("g", name, 2))
    cluster.create(*in_group("g", *[card_pod(f"g{number}", card, name) for number in range(2)]))
    cluster.create(podgroup("alone", name, 1))
    cluster.create(*in_group("alone", card_pod("one", card, name)))
    cluster.wait_running("g0", "g1", "one")
    cluster.wait_allocated(path, {card: 3})
    cluster.create(card_pod("waits", card, name))
    cluster.wait_said("waits", reasons.INSUFFICIENT_SCALAR_QUOTA)
    cluster.create(share_pod("share", 30, 1024, schedulerName=NOBODY))
    cluster.bind(binding("share", node)).expect(201)
    assert cluster.bind(binding("nobody", node)).status == HTTPStatus.NOT_FOUND
    be_nominated(cluster, name, node)
    cluster.try_create(pod("cpu", limits={"cpu": "1"})).expect(201)
    kept = Kept(cluster.plane, installation)
    kept.distrust()
    wait_for("all entries trust us again", lambda: b"" not in kept.trusted(), 30.0)
    kept.write(CERTIFICATES, {"tls.key": None})
    wait_for("the webhook's pair is whole again", lambda: "tls.key" in kept.data(CERTIFICATES), 60.0)
    installation.stop_controller(leader_index(cluster.plane, installation))
    leader_index(cluster.plane, installation)
    cluster.finish("one")
    wait_for("the next one runs", lambda: "waits" in cluster.running(), 60.0)


def be_nominated(cluster: Cluster, queue_name: str, node: str) -> None:
    """A task of Volcano's scheduler that takes a second node besides."""
    cluster.add_nodes(mgpu_node(unique("mgpu"), cards=1, memory_mib=CARD_MIB))
    cluster.create(podgroup("apart", queue_name, 2))
    members = [share_pod(f"apart-{number}", 60, 1024, schedulerName="volcano") for number in range(2)]
    cluster.create(*in_group("apart", *members))

    def nominated() -> bool:
        return all(cluster.pod(f"apart-{number}")["status"].get("nominatedNodeName") for number in range(2))

    wait_for(f"both are nominated, one of them for {node}", nominated)


def test_what_is_used_is_granted_and_what_is_granted_is_used(
    cluster: Cluster, installation: Installation
) -> None:
    live_through_the_main_stories(cluster, installation)
    seen = [Usage.of(installation)]
    assert {right.account for right in seen[0].granted} == set(PROCESSES)

    def unused() -> set[Right]:
        seen[0] = Usage.of(installation)
        return {right for right in seen[0].unused if key(right) not in UNUSED}

    try:
        wait_for("every right has been used", lambda: not unused(), _WATCH_S)
    finally:
        assert sorted(unused()) == [], "granted and never used"
    assert sorted(seen[0].beyond) == []
    assert {*UNUSED} <= set(map(key, seen[0].granted)), "not granted"


def has_written(metrics: Metrics, operation: str) -> bool:
    labels = {"operation": operation}
    return metrics.registry.get_sample_value("cardquota_events_written_total", labels) == 1.0


async def test_the_controllers_account_may_count_an_event_up(
    control_plane: ControlPlane, namespace: str, installation: Installation
) -> None:
    """It does so after ten minutes of the same words, for which no test waits."""
    account = control_plane.service_account_kubeconfig(installation.namespace, "cardquota-controller")
    metrics = Metrics(CollectorRegistry())
    about = Reference("v1", "Pod", "p", namespace, "uid-1")

    async with await Client.connect(account) as client:
        recorder = EventRecorder(client, "cardquota.io/test", "host", metrics=metrics, repeat_s=0.0)
        async with background(recorder.run()):
            for operation in ("create", "series"):
                recorder.emit(about, "Normal", "TestReason", "note", "Test")
                await until(partial(has_written, metrics, operation))
    (right,) = {each for each in Usage.of(installation).used if key(each) == EVENTS_COUNTED}
    assert right.account == "cardquota-controller"
