"""Pods that have quota and that no node takes: deleted where that is set, so that their quota goes to who waits for it."""

import json
from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, gates, samples, unique
from tests.apiserver.manifests import card_pod, deployment, queue

NOWHERE = {"no.such/node": "at-all"}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.fixture(scope="class")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart with a controller that does not wait long for a node."""
    with Installation(control_plane, values={"reservation": {"evictAfter": "1s"}}) as installed:
        yield installed


def rights(plane: ControlPlane, namespace: str) -> dict[str, bool]:
    """What the controller of the chart in `namespace` may do to pods anywhere, as RBAC sees it."""
    return {verb: _may(plane, namespace, verb) for verb in ("patch", "delete")}


def _may(plane: ControlPlane, namespace: str, verb: str) -> bool:
    user = f"system:serviceaccount:{namespace}:cardquota-controller"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {"verb": verb, "resource": "pods"}},
    }
    return bool(plane.api.request("POST", REVIEWS, review).expect(201)["status"]["allowed"])


@pytest.mark.usefixtures("installation")
class TestEviction:
    """`reservation.evictAfter` is set."""

    def test_a_pod_that_no_node_takes_is_made_anew_and_waits_its_turn(
        self, cluster: Cluster, installation: Installation
    ) -> None:
        """The real ReplicaSet makes another one; it comes after the pod that has been waiting for the card meanwhile."""
        card, name = cluster.add_card(), unique("q")
        cluster.create_queue(queue(name, json.dumps({card: 1})))
        cluster.create(deployment("web", card_pod("x", card, name, nodeSelector=NOWHERE), replicas=1))

        def lifted() -> str:
            return next((pod for pod, stored in cluster.pods().items() if not gates(stored)), "")

        stuck = wait_for("the pod is lifted", lifted)
        cluster.create(card_pod("next", card, name))
        told = cluster.wait_said(stuck, reasons.RESERVATION_EVICTED)
        assert told.startswith(f"Queue <{name}>: deleted")
        cluster.wait_running("next")
        wait_for("the new pod waits alone", lambda: len(cluster.pods()) == 2)
        (anew,) = cluster.pods().keys() - {"next"}
        assert anew != stuck
        assert gates(cluster.pod(anew)) == [names.GATE]
        assert samples(
            installation.metrics("controller"), "cardquota_reservation_evictions_total", outcome="done"
        )

    def test_a_pod_without_an_owner_is_left_alone(self, cluster: Cluster) -> None:
        """Nobody would make it anew. A pod with an owner that is lifted after it is deleted before anything happens to it."""
        card, name = cluster.add_card(), unique("q")
        cluster.create_queue(queue(name, json.dumps({card: 2})))
        bare = card_pod("bare", card, name, nodeSelector=NOWHERE)
        cluster.create(bare)
        wait_for("the pod is lifted", lambda: not gates(cluster.pod("bare")))
        before = cluster.pod("bare")["metadata"]["uid"]
        cluster.create(deployment("web", bare, replicas=1))

        def owned() -> str:
            return next(
                (pod for pod, stored in cluster.pods().items() if pod != "bare" and not gates(stored)), ""
            )

        cluster.wait_said(wait_for("the owned pod is lifted", owned), reasons.RESERVATION_EVICTED)
        metadata = cluster.pod("bare")["metadata"]
        assert metadata["uid"] == before
        assert "deletionTimestamp" not in metadata

    def test_the_right_to_delete_comes_with_the_setting(
        self, control_plane: ControlPlane, installation: Installation
    ) -> None:
        assert rights(control_plane, installation.namespace) == {"patch": True, "delete": True}


def test_by_default_the_controller_cannot_delete_pods(control_plane: ControlPlane) -> None:
    with Installation(control_plane, webhook=False, controller=0) as installed:
        wanted = {"patch": True, "delete": False}
        wait_for("RBAC is in force", lambda: rights(control_plane, installed.namespace) == wanted)
