"""Two controllers and a Lease that somebody deletes, or whose holder is stopped: one leads, and the quota holds."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from core import reasons
from hack.controlplane import ControlPlane, ManagedProcess, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube.lease import Durations
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.leaders import hook_entry, leader_index
from tests.apiserver.manifests import Object, card_pod, queue, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY
from tests.apiserver.test_standby import HEADERS, Caller
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


def test_a_leader_that_is_stopped_while_its_lease_is_deleted_is_waited_for_and_grants_nothing_when_it_wakes(
    cluster: Cluster, installation: Installation
) -> None:
    """It may be writing still, for all that is known. What it was asked about binds is the first that it hears of when it
    wakes, on connections that it has, before anything has told it that its time is over.
    """
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    leader = leader_index(cluster.plane, installation)
    caller = Caller(cluster, installation)
    wait_for("the leader knows the node", lambda: caller.ask(leader, "a", node)["allowed"])
    path = hook_entry(cluster.plane).url_path
    with ExitStack() as stack:
        lines = [stack.enter_context(closing(caller.line(leader, "a", node))) for _ in range(8)]
        granted = granted_by(installation, leader)
        with stopped(installation.controller_processes[leader]):
            deleted = time.monotonic()
            cluster.api.delete(the_lease(cluster, installation)).expect()
            for line in lines:
                line.request("POST", path, caller.review("a", node), HEADERS)
            wait_for(
                "the successor holds the Lease",
                lambda: held_by(cluster, installation, 1 - leader),
                TAKE_OVER_S,
            )
            assert time.monotonic() - deleted >= Durations().lease_s
        answers = [json.load(line.getresponse())["response"] for line in lines]
    assert granted_by(installation, leader) == granted
    refused = [answer["status"]["message"] for answer in answers if not answer["allowed"]]
    assert refused, "it did not know of another leader when it woke"
    assert all(f"[{reasons.NO_LEADER}]" in message for message in refused)
    wait_for("one leads", lambda: leading(installation) == [1 - leader], TAKE_OVER_S)


def held_by(cluster: Cluster, installation: Installation, index: int) -> bool:
    """Whether a controller holds the Lease."""
    stored = cluster.api.get(the_lease(cluster, installation)).expect(200, 404)
    holder = str(stored.get("spec", {}).get("holderIdentity") or "")
    return holder.startswith(installation.controller_processes[index].name)


def granted_by(installation: Installation, index: int) -> float:
    """How many binds a controller has granted by itself."""
    exposition = installation.metrics("controller", index)
    return samples(exposition, "cardquota_binds_total", verdict="granted")
