"""Somebody's webhook refuses or hangs, so that no lift of a namespace is stored: nobody else feels it, and it passes."""

import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core import reasons
from core.objects.node_rules import REQUIRED
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.stranger import Stranger, in_the_way, stranger
from tests.apiserver.watching import Watch, admitted, within

FEW, MANY = 16, 200
"""As many as there are slots for lifts, and many times that."""
QUOTA = 150
SHARED = 4
MENDED_S = 90.0
"""A lift that was given up is tried anew after half a minute."""

FREED_S = 150.0
"""Until the first of those whose lifts hang have given their quota back, twice half a minute, and a busy machine besides."""

SLOW_S = 1.0
"""Less than any try of a lift that hangs takes, and many times what one takes as a rule."""
STUCK_S = 10.0
"""Longer than a busy machine takes for a lift, and less than a few tries of one that hangs."""


@pytest.fixture
def third_party(tmp_path: Path) -> Iterator[Stranger]:
    with stranger(tmp_path) as there:
        yield there


@pytest.fixture
def elsewhere(control_plane: ControlPlane, installation: Installation) -> Iterator[Cluster]:
    """A namespace that has nothing to do with the third party."""
    name = unique("elsewhere")
    control_plane.create_namespace(name)
    made = Cluster(control_plane, name)
    yield made
    made.close()
    control_plane.api.delete(control_plane.api.path("v1", "Namespace", name=name)).expect()


class Crowd:
    """Pods of a namespace that cannot be lifted for now, and others who use cards of the same name."""

    def __init__(self, cluster: Cluster, elsewhere: Cluster, installation: Installation) -> None:
        self.cluster, self.elsewhere = cluster, elsewhere
        self._installation = installation
        self.card = cluster.add_card(128)
        self.queue, self.other = unique("q"), unique("q")
        self.queue_path = cluster.create_queue(queue(self.queue, json.dumps({self.card: QUOTA})))
        elsewhere.create_queue(queue(self.other, json.dumps({self.card: 64})))
        self._number = 0

    def come(self, count: int) -> None:
        """So many pods are there that want a card each, and the leader tries to lift them."""
        before = self.failures()
        names = [f"p{number:03}" for number in range(len(self.cluster.pods()), count)]
        with ThreadPoolExecutor(4) as pool:
            made = pool.map(
                lambda name: self.cluster.try_create(card_pod(name, self.card, self.queue)), names
            )
            assert {answer.status for answer in made} == {201}
        wait_for("lifts fail", lambda: self.failures() > before)
        assert len(self.cluster.gated()) == count

    def failures(self) -> float:
        """Lifts that were not answered, or refused, at the first try or when they were asked about before a further one."""
        exposition = self._installation.metrics("controller", -1)
        outcomes = ("retried", "refused")
        return sum(samples(exposition, "cardquota_lifts_total", outcome=each) for each in outcomes)

    def others_are_lifted(self) -> None:
        """One after the other, as quickly as ever, and then ten at once."""
        took = [self._lift_elsewhere(1) for _ in range(9)]
        assert statistics.median(took) < SLOW_S, took
        assert max(took) < STUCK_S, took
        assert self._lift_elsewhere(10) < 2 * SLOW_S

    def _lift_elsewhere(self, count: int) -> float:
        """How many seconds after the last of so many pods of the other namespace was stored all of them are lifted.

        To store them, one after the other, takes as long as it takes: it is no part of a lift.
        """
        names = [f"p{self._number + number:03}" for number in range(count)]
        self._number += count
        self.elsewhere.create(*(card_pod(name, self.card, self.other) for name in names))
        begun = time.monotonic()
        wait_for(f"{names} are lifted", lambda: {*names} <= {*admitted(self.elsewhere.pods())})
        return time.monotonic() - begun

    def wait_lifted(self, count: int) -> None:
        wait_for(f"{count} are lifted", lambda: len(admitted(self.cluster.pods())) == count, MENDED_S)


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_a_namespace_whose_lifts_are_not_stored_holds_up_nobody_and_gets_its_own_once_they_are(
    cluster: Cluster, elsewhere: Cluster, installation: Installation, third_party: Stranger, *, hangs: bool
) -> None:
    """First as many pods as there are slots, then two hundred; their queue has room for three quarters of them.

    What refuses is mended, what hangs is removed: either way those are let in that the quota allows, and no more.
    """
    crowd = Crowd(cluster, elsewhere, installation)
    if hangs:
        third_party.listen()
        third_party.hold()
    with (
        in_the_way(cluster, third_party.client_config) as webhook,
        Watch(cluster.plane, cluster.path(), within({crowd.card: QUOTA})) as watch,
    ):
        for count in (FEW, MANY):
            crowd.come(count)
            crowd.others_are_lifted()
        assert len(cluster.gated()) == MANY
        if hangs:
            cluster.api.delete(webhook).expect()
        else:
            third_party.listen()
        crowd.wait_lifted(QUOTA)
        watch.catch_up()
    assert watch.complaints == []
    cluster.set_quota(crowd.queue_path, json.dumps({crowd.card: MANY}))
    crowd.wait_lifted(MANY)


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_older_pods_whose_lifts_are_not_stored_keep_the_quota_that_they_share_from_nobody(
    cluster: Cluster, elsewhere: Cluster, third_party: Stranger, *, hangs: bool
) -> None:
    """Ten times as many as there is quota for: when the last had tried in vain the first were tried again, and so for ever."""
    card, name = cluster.add_card(16), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: SHARED})))
    if hangs:
        third_party.listen()
        third_party.hold()
    with in_the_way(cluster, third_party.client_config):
        cluster.create(*(card_pod(f"p{number:03}", card, name) for number in range(10 * SHARED)))
        for number in range(3):
            elsewhere.create(card_pod(f"p{number}", card, name))
            within_s = FREED_S if number == 0 else STUCK_S
            wait_for("it is lifted", lambda: len(admitted(elsewhere.pods())) == 1, within_s)
            elsewhere.api.delete(elsewhere.path(f"p{number}"), gracePeriodSeconds=0).expect()
            wait_for("it is gone", lambda: not elsewhere.pods(), MENDED_S)
        assert len(cluster.gated()) == 10 * SHARED


def test_a_gate_that_is_put_back_on_the_way_in_gives_its_quota_to_the_next_and_is_taken_off_once_it_stays_off(
    cluster: Cluster, third_party: Stranger
) -> None:
    """The API server answers such a lift as any other. However often it is tried, the pod is narrowed to its card once."""
    card = cluster.add_card(1)
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    mutating = in_the_way(
        cluster, third_party.client_config, only="undone", kind="MutatingWebhookConfiguration"
    )
    with mutating as webhook:
        third_party.undo()
        third_party.listen()
        cluster.create(card_pod("undone", card, name))
        said = cluster.wait_said("undone", reasons.LIFT_REFUSED)
        assert "the gate is still there" in said
        cluster.create(card_pod("next", card, name))
        wait_for("the next one is lifted", lambda: {*admitted(cluster.pods())} == {"next"})
        tried = third_party.times("undone")
        cluster.api.delete(cluster.path("next"), gracePeriodSeconds=0).expect()
        wait_for("it is tried once more", lambda: third_party.times("undone") > tried, MENDED_S)
        assert cluster.gated() == {"undone"}
        cluster.api.delete(webhook).expect()
    wait_for("it is lifted", lambda: {*admitted(cluster.pods())} == {"undone"}, 2 * MENDED_S)
    required = cluster.pod("undone")["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    (term,) = required["nodeSelectorTerms"]
    assert len(term["matchExpressions"]) == 1
