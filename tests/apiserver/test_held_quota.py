"""Who holds quota on a real control plane, whatever a tenant writes: gates of others, schedulers that are none, long graces."""

import json
from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.components import DELETE_AFTER
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, charged, gates, unique
from tests.apiserver.manifests import binding, card_pod, queue, share_pod
from tests.apiserver.test_binding import NOBODY, refused

FOREIGN = "example.com/licence"
AFTER_US = "example.com/after-quota"
YEAR_S = 31_536_000


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """One gate of others waits for ours."""
    with Installation(control_plane, values={"gates": {"waitForUs": [AFTER_US]}}) as installed:
        yield installed


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    return cluster.add_card()


@pytest.fixture
def one(cluster: Cluster, card: str) -> str:
    """The name of a queue with quota for one card."""
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    return name


def with_gates(pod: Object, *others: str) -> Object:
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": gate} for gate in others]}}


def remove_gate(cluster: Cluster, pod: str, gate: str) -> None:
    """As whoever put it there does, in the end."""
    index = gates(cluster.pod(pod)).index(gate)
    cluster.api.patch(
        cluster.path(pod), [{"op": "remove", "path": f"/spec/schedulingGates/{index}"}], "json"
    ).expect()


class TestGates:
    """Ours is the last."""

    @pytest.mark.parametrize("foreign_first", [True, False])
    def test_a_pod_with_another_gate_holds_nothing_and_is_lifted_after_that_one_goes(
        self, cluster: Cluster, card: str, one: str, *, foreign_first: bool
    ) -> None:
        order = [FOREIGN] if foreign_first else [names.GATE, FOREIGN]
        cluster.create(with_gates(card_pod("a", card, one), *order))
        assert f"<{FOREIGN}>" in cluster.wait_said("a", reasons.OTHER_GATES)
        cluster.create(card_pod("b", card, one))
        cluster.wait_running("b")
        cluster.api.delete(cluster.path("b")).expect()
        remove_gate(cluster, "a", FOREIGN)
        cluster.wait_running("a")
        assert charged(cluster.pod("a")) == one

    def test_after_it_has_gone_the_pod_waits_for_quota_like_any_other(
        self, cluster: Cluster, card: str, one: str
    ) -> None:
        cluster.create(with_gates(card_pod("a", card, one), FOREIGN))
        cluster.wait_said("a", reasons.OTHER_GATES)
        cluster.create(card_pod("b", card, one))
        cluster.wait_running("b")
        remove_gate(cluster, "a", FOREIGN)
        cluster.wait_said("a", reasons.INSUFFICIENT_SCALAR_QUOTA)
        assert gates(cluster.pod("a")) == [names.GATE]

    def test_a_gate_that_waits_for_ours_stays_and_the_quota_is_held_meanwhile(
        self, cluster: Cluster, card: str, one: str
    ) -> None:
        cluster.create(with_gates(card_pod("a", card, one), AFTER_US))
        wait_for("our gate is gone", lambda: gates(cluster.pod("a")) == [AFTER_US])
        cluster.create(card_pod("b", card, one))
        cluster.wait_said("b", reasons.INSUFFICIENT_SCALAR_QUOTA)
        remove_gate(cluster, "a", AFTER_US)
        cluster.wait_running("a")


class TestSchedulers:
    """Pods of a scheduler that nobody has named to us have no gate."""

    def test_a_pod_of_a_scheduler_that_does_not_exist_holds_nothing(
        self, cluster: Cluster, card: str, one: str
    ) -> None:
        ghosts = [card_pod(name, card, one, schedulerName=NOBODY) for name in ("ghost", "other")]
        cluster.create(*ghosts)
        assert gates(cluster.pod("ghost")) == []
        cluster.create(card_pod("next", card, one))
        cluster.wait_running("next")
        node = cluster.pod("next")["spec"]["nodeName"]
        refused(cluster.bind(binding("ghost", node)), 409, reasons.INSUFFICIENT_SCALAR_QUOTA)
        cluster.api.delete(cluster.path("next")).expect()
        wait_for("its bind is let through", lambda: cluster.bind(binding("ghost", node)).status == 201)
        assert charged(cluster.pod("ghost")) == one
        refused(cluster.bind(binding("other", node)), 409, reasons.INSUFFICIENT_SCALAR_QUOTA)

    def test_its_shares_are_asked_for_their_quota_at_the_bind(self, cluster: Cluster) -> None:
        node, name = unique("mgpu"), unique("q")
        cluster.add_nodes(mgpu_node(node, cards=4, memory_mib=16384))
        limited = queue(name, "{}")
        limited["spec"]["capability"] = {names.MGPU_CORE: "50"}
        cluster.create_queue(limited)
        pods = [share_pod(pod, 30, 1024, schedulerName=NOBODY) for pod in ("a", "b")]
        for pod in pods:
            pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] = name
        cluster.create(*pods)
        wait_for("node and queue are known", lambda: cluster.bind(binding("a", node)).status == 201)
        refused(cluster.bind(binding("b", node)), 409, reasons.INSUFFICIENT_SCALAR_QUOTA)


class TestDeletion:
    """`b` waits for the card of `a`, which lingers on its node however it is deleted."""

    @pytest.fixture(autouse=True)
    def two(self, cluster: Cluster, card: str, one: str) -> None:
        slow = card_pod("a", card, one, terminationGracePeriodSeconds=YEAR_S)
        slow["metadata"]["annotations"][DELETE_AFTER] = "1h"
        cluster.create(slow)
        cluster.wait_running("a")
        cluster.create(card_pod("b", card, one))
        cluster.wait_said("b", reasons.INSUFFICIENT_SCALAR_QUOTA)

    def test_a_long_grace_keeps_the_next_one_waiting_and_a_shorter_one_lets_it_in(
        self, cluster: Cluster, card: str, one: str
    ) -> None:
        """The grace of the pod's own spec counts as that of the deletion. A later pod shows that the first was seen."""
        cluster.api.delete(cluster.path("a")).expect()
        assert cluster.pod("a")["metadata"]["deletionGracePeriodSeconds"] == YEAR_S
        cluster.create(card_pod("c", card, one))
        cluster.wait_said("c", reasons.INSUFFICIENT_SCALAR_QUOTA)
        assert cluster.gated() == {"b", "c"}
        cluster.api.delete(cluster.path("a"), gracePeriodSeconds=30).expect()
        wait_for("the next one runs", lambda: "b" in cluster.running())
        assert cluster.pod("a")["metadata"]["deletionGracePeriodSeconds"] == 30
        assert cluster.gated() == {"c"}

    def test_a_short_grace_lets_the_next_one_in_at_once(self, cluster: Cluster) -> None:
        cluster.api.delete(cluster.path("a"), gracePeriodSeconds=300).expect()
        wait_for("the next one runs", lambda: "b" in cluster.running())
        assert "deletionTimestamp" in cluster.pod("a")["metadata"]

    def test_the_end_of_a_pod_that_was_given_a_year_lets_the_next_one_in(self, cluster: Cluster) -> None:
        """What its kubelet says counts, not that it is gone: something may keep it stored."""
        cluster.api.delete(cluster.path("a")).expect()
        cluster.api.patch(f"{cluster.path('a')}/status", {"status": {"phase": "Failed"}}).expect()
        wait_for("the next one runs", lambda: "b" in cluster.running())
        assert "deletionTimestamp" in cluster.pod("a")["metadata"]
