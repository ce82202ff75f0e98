"""Two controllers and a Lease that somebody deletes, or whose holder is stopped: one leads, and the quota holds."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import Object, card_pod, queue
from tests.apiserver.watching import Watch, admitted, within

QUOTA = 3
# The lease has to run out, the last bind it allowed has to be stored or lost, and everything is listed anew.
TAKE_OVER_S = 60.0


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


class Crowd:
    """A queue of three cards and six pods that want one each; three of them run when it is there."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card, self.queue = cluster.add_card(16), unique("q")
        cluster.create_queue(queue(self.queue, json.dumps({self.card: QUOTA})))

    def watch(self) -> Watch:
        """Complains of every moment in which more are let in than the quota allows."""
        return Watch(self.cluster.plane, self.cluster.path(), within({self.card: QUOTA}))

    def come(self) -> None:
        self.cluster.create(*(card_pod(f"p{number}", self.card, self.queue) for number in range(6)))
        self.wait_full()

    def urgent(self, *names: str) -> None:
        """Pods that come before all others."""
        self.cluster.create(
            *(
                card_pod(name, self.card, self.queue, priorityClassName="system-cluster-critical")
                for name in names
            )
        )

    def finish(self, count: int) -> None:
        """Return once so many of those that run have ended."""
        ending = {*sorted(self.cluster.running())[:count]}
        self.cluster.finish(*ending)
        wait_for(f"{ending} have ended", lambda: ending.isdisjoint(self.cluster.running()))

    def wait_full(self) -> None:
        def full() -> bool:
            return len(admitted(self.cluster.pods())) == len(self.cluster.running()) == QUOTA

        wait_for("the quota is used up by pods that run", full, TAKE_OVER_S)


def the_lease(cluster: Cluster, installation: Installation) -> str:
    return cluster.api.path("coordination.k8s.io/v1", "Lease", installation.namespace, "cardquota")


def leading(installation: Installation) -> list[int]:
    """The places of the controllers that show themselves as the leader."""
    return [
        index
        for index in range(len(installation.controller_processes))
        if samples(installation.metrics("controller", index), "cardquota_leader", lease="cardquota")
    ]


def lists_of_pods(installation: Installation, index: int) -> float:
    exposition = installation.metrics("controller", index)
    return samples(exposition, "cardquota_informer_lists_total", resource="pods")


def test_a_lease_that_is_deleted_under_its_leader_makes_no_second_one(
    cluster: Cluster, installation: Installation
) -> None:
    """Its holder begins a new term, with a later epoch, and not before it has listed everything anew."""
    crowd, path = Crowd(cluster), the_lease(cluster, installation)
    with crowd.watch() as watch:
        crowd.come()
        leader = leader_index(cluster.plane, installation)
        epoch = cluster.api.get(path).expect()["spec"]["leaseTransitions"]
        lists = lists_of_pods(installation, leader)
        cluster.api.delete(path).expect()
        crowd.finish(2)

        def again() -> Object:
            assert len(leading(installation)) <= 1
            stored = cluster.api.get(path).expect(200, 404)
            return stored if stored.get("spec", {}).get("holderIdentity") else {}

        spec = wait_for("the Lease is held again", again, TAKE_OVER_S)["spec"]
        assert spec["leaseTransitions"] == epoch + 1
        assert leader_index(cluster.plane, installation) == leader
        # What ended first may have been followed by what the old term let in; this is the new one's.
        crowd.finish(1)
        crowd.wait_full()
        assert lists_of_pods(installation, leader) > lists
        assert leading(installation) == [leader]
        watch.catch_up()
    assert watch.complaints == []


@contextmanager
def stopped(process: ManagedProcess) -> Iterator[None]:
    """Meanwhile the process does nothing, as on a machine that hangs; its connections stay."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_a_leader_that_is_stopped_for_longer_than_its_lease_lifts_nothing_when_it_wakes(
    cluster: Cluster, installation: Installation
) -> None:
    """Its successor has let in others than it would. What ended meanwhile is the first that it hears of."""
    crowd = Crowd(cluster)
    with crowd.watch() as watch:
        crowd.come()
        leader = leader_index(cluster.plane, installation)
        lifts = lifts_of(installation, leader)
        with stopped(installation.controller_processes[leader]):
            crowd.urgent("urgent-0", "urgent-1")
            crowd.finish(2)

            def urgent_ones_are_in() -> bool:
                return {"urgent-0", "urgent-1"} <= {*admitted(cluster.pods())}

            wait_for("the successor lets the urgent ones in", urgent_ones_are_in, TAKE_OVER_S)
        wait_for("one leads", lambda: leading(installation) == [1 - leader])
        crowd.wait_full()
        crowd.finish(1)
        crowd.wait_full()
        watch.catch_up()
        assert lifts_of(installation, leader) == lifts
        assert leading(installation) == [1 - leader]
        assert leader_index(cluster.plane, installation) == 1 - leader
    assert watch.complaints == []


def lifts_of(installation: Installation, index: int) -> float:
    """How many lifts a controller has had stored, or tried to."""
    return samples(installation.metrics("controller", index), "cardquota_lifts_total")
