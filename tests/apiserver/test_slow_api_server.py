"""Two controllers behind a proxy that answers late or loses answers: one leads, work goes on, no card is given twice."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, audit, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import Leaders, leader_index
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.proxy import Proxy
from tests.apiserver.stranger import in_the_way, silent
from tests.apiserver.stream import Stream
from tests.apiserver.watching import Watch, admitted, within

RENEWALS = 6
LATE_S = 1.5
MINUTE_S = 60.0


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    with Proxy(control_plane.url) as running:
        yield running


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, proxy: Proxy) -> Iterator[Installation]:
    with Installation(control_plane, controller=2, controller_api=proxy.url) as installed:
        yield installed


@pytest.fixture(autouse=True)
def sound_again(proxy: Proxy) -> Iterator[None]:
    yield
    proxy.delay_s = 0.0
    proxy.pass_news()


def epoch(cluster: Cluster, installation: Installation) -> int:
    path = cluster.api.path("coordination.k8s.io/v1", "Lease", installation.namespace, "cardquota")
    found: int = cluster.api.get(path).expect()["spec"]["leaseTransitions"]
    return found


def test_lost_answers_cost_nobody_the_leadership_and_let_nobody_in_twice(
    cluster: Cluster, installation: Installation, proxy: Proxy
) -> None:
    """Again and again each connection breaks with the next answer: to lifts and reads, once to watches too, and to each
    renewal of the Lease for longer than a term lasts.
    """
    stream = Stream(cluster)
    leader, term = leader_index(cluster.plane, installation), epoch(cluster, installation)
    with stream.watch() as watch, Leaders(installation) as leaders:
        stream.begin()
        before = proxy.lost
        for _ in range(7):
            proxy.drop_answers("passed")
            stream.move_on()
        proxy.drop_answers()
        stream.move_on()
        for _ in range(RENEWALS):
            proxy.drop_answers("passed")
            wait_renewed(cluster, installation, 1)
        stream.move_on()
        watch.catch_up()
    assert watch.complaints == []
    assert proxy.lost >= before + 8, "answers were lost"
    assert leaders.most == 1
    assert (leader_index(cluster.plane, installation), epoch(cluster, installation)) == (leader, term)


def test_lifts_whose_answers_are_lost_stay_booked_while_the_watch_is_late(
    cluster: Cluster, installation: Installation, proxy: Proxy, tmp_path: Path
) -> None:
    """Two of three pods are lifted, and nobody hears of it. The third one waits in the same queue, and goes on waiting."""
    plane, card, name = cluster.plane, cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 2})))
    offset = plane.audit_log.stat().st_size

    def looked_at() -> set[str]:
        found = audit.read(plane.audit_log, offset)
        return {each.name for each in found if (each.verb, each.resource) == ("get", "pods")}

    with (
        silent(tmp_path) as third_party,
        in_the_way(cluster, third_party.client_config),
        Watch(plane, cluster.path(), within({card: 2})) as watch,
    ):
        cluster.create(*(card_pod(each, card, name) for each in "abc"))
        wait_for("both lifts are under way", lambda: third_party.asked >= {"a", "b"})
        proxy.drop_answers("kept")
        third_party.answer()
        wait_for("both are stored", lambda: {*admitted(cluster.pods())} == {"a", "b"})
        wait_for("the leader looks at both", lambda: looked_at() >= {"a", "b"})
        wait_renewed(cluster, installation, 2)
        assert cluster.gated() == {"c"}
        proxy.pass_news()
        cluster.wait_running("a", "b")
        cluster.finish("a")
        wait_for("the third one gets the card", lambda: cluster.running() == {"b", "c"})
        watch.catch_up()
    assert watch.complaints == []


def wait_renewed(cluster: Cluster, installation: Installation, times: int) -> None:
    """Return once the Lease has been renewed so many times: the leader has had the time for whatever it is about to do."""
    path = cluster.api.path("coordination.k8s.io/v1", "Lease", installation.namespace, "cardquota")
    seen: set[str] = set()

    def often_enough() -> bool:
        seen.add(cluster.api.get(path).expect()["spec"]["renewTime"])
        return len(seen) > times

    wait_for(f"the Lease is renewed {times} times", often_enough)


def test_for_a_minute_each_answer_is_late_and_one_leads_lifts_and_is_followed_by_another_one(
    cluster: Cluster, installation: Installation, proxy: Proxy
) -> None:
    """For half of the time the same one leads and lets in whoever may. Then it is killed, and the other one goes on."""
    stream = Stream(cluster)
    stream.begin()
    leader, term = leader_index(cluster.plane, installation), epoch(cluster, installation)
    proxy.delay_s = LATE_S
    begun = time.monotonic()
    with stream.watch() as watch, Leaders(installation) as leaders:
        while time.monotonic() < begun + MINUTE_S / 2:
            stream.move_on()
        assert (leader_index(cluster.plane, installation), epoch(cluster, installation)) == (leader, term)
        installation.kill_controller(leader)
        stream.move_on()
        while time.monotonic() < begun + MINUTE_S:
            stream.move_on()
        watch.catch_up()
    assert watch.complaints == []
    assert leaders.most == 1
    assert leader_index(cluster.plane, installation) == 1 - leader
    assert epoch(cluster, installation) == term + 1
