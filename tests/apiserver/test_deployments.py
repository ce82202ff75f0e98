"""Deployments and their autoscalers under a quota: who is too many waits, nobody is refused, quota comes back at once."""

import json

import pytest

from hack.controlplane import wait_for
from hack.controlplane.components import DELETE_AFTER
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.manifests import card_pod, deployment, queue
from tests.apiserver.watching import Watch, admitted, within

QUOTA = 4


class Service:
    """A queue of four cards and the pods of Deployments in it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card = cluster.add_card(cards=16)
        self.queue = unique("q")
        self.path = cluster.create_queue(queue(self.queue, json.dumps({self.card: QUOTA})))

    def deploy(self, name: str, replicas: int, *, lingering: bool = False) -> None:
        """A Deployment of pods with one card each; lingering ones take their time to end."""
        template = card_pod("x", self.card, self.queue)
        if lingering:
            template["metadata"]["annotations"][DELETE_AFTER] = "1h"
        self.cluster.create(deployment(name, template, replicas))

    def pods_of(self, name: str) -> dict[str, Object]:
        """The pods of a Deployment that nobody has told to end."""
        return {
            pod: stored
            for pod, stored in self.cluster.pods().items()
            if stored["metadata"]["labels"]["app"] == name and "deletionTimestamp" not in stored["metadata"]
        }

    def waits_for(self, name: str, *, running: int, gated: int) -> None:
        """Return once so many pods of a Deployment run, so many are at the gate, and there are no others."""

        def settled() -> bool:
            pods = self.pods_of(name)
            run = [pod for pod in pods.values() if pod["status"].get("phase") == "Running"]
            return (len(run), len(self.cluster.gated() & pods.keys())) == (running, gated) and len(
                pods
            ) == running + gated

        wait_for(f"{name}: {running} run and {gated} wait", settled)

    def waits_for_replicas(self, name: str, replicas: int) -> None:
        """Return once a Deployment has so many pods, whether they run or not."""
        wait_for(f"{name} has {replicas} pods", lambda: len(self.pods_of(name)) == replicas)

    def refusals(self) -> list[str]:
        """What the ReplicaSets say about pods that they could not create."""
        path = f"/api/v1/namespaces/{self.cluster.namespace}/events"
        found = self.cluster.api.get(path, fieldSelector="reason=FailedCreate").expect()["items"]
        return [event["message"] for event in found]


@pytest.fixture
def service(cluster: Cluster) -> Service:
    return Service(cluster)


def test_replicas_beyond_the_quota_wait_and_go_first_when_it_is_scaled_in(service: Service) -> None:
    """From two to six and back with a quota of four; nothing is refused, so nothing backs off."""
    service.deploy("web", 2)
    service.waits_for("web", running=2, gated=0)
    before = set(service.pods_of("web"))
    service.cluster.scale("web", 6)
    service.waits_for("web", running=4, gated=2)
    assert before <= admitted_of(service, "web")
    service.cluster.wait_allocated(service.path, {service.card: QUOTA})
    service.cluster.scale("web", 2)
    service.waits_for("web", running=2, gated=0)
    service.cluster.wait_allocated(service.path, {service.card: 2})
    assert service.refusals() == []


def admitted_of(service: Service, name: str) -> set[str]:
    return set(admitted(service.pods_of(name)))


def test_scaling_in_lets_another_deployment_grow_before_the_old_pods_are_gone(service: Service) -> None:
    """A terminating pod has given its quota back, however long its containers take to end."""
    service.deploy("web", 6, lingering=True)
    service.waits_for("web", running=4, gated=2)
    service.deploy("batch", 2)
    service.waits_for("batch", running=0, gated=2)
    service.cluster.scale("web", 2)
    service.waits_for("batch", running=2, gated=0)
    service.waits_for("web", running=2, gated=0)
    ending = [pod for pod in service.cluster.pods().values() if "deletionTimestamp" in pod["metadata"]]
    assert len(ending) == 2, "of the four that ran, two are still ending"
    service.cluster.wait_allocated(service.path, {service.card: QUOTA})
    assert service.refusals() == []


def test_an_autoscaler_that_cannot_make_up_its_mind(service: Service) -> None:
    """Up and down as fast as the ReplicaSet follows: never more than the quota, and in the end what fits runs."""
    with Watch(service.cluster.plane, service.cluster.path(), within({service.card: QUOTA})) as watch:
        service.deploy("web", 2)
        service.deploy("steady", 1)
        for replicas in (6, 1, 5, 2, 8, 3, 7, 0, 6):
            service.cluster.scale("web", replicas)
            service.waits_for_replicas("web", replicas)
        service.waits_for("web", running=3, gated=3)
        service.waits_for("steady", running=1, gated=0)
        watch.catch_up()
    assert watch.complaints == []
    service.cluster.wait_allocated(service.path, {service.card: QUOTA})
    assert service.refusals() == []
