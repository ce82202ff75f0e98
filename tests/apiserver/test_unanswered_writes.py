"""What a leader has sent before it is lost, and what hangs in the API server: the next leader's decisions stand beside it."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core import reasons
from hack.controlplane import Answer, ControlPlane, audit, wait_for
from hack.controlplane.components import OTHER_KUBELET
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import hook_entry, leader_index
from tests.apiserver.manifests import binding, card_pod, queue, share_pod
from tests.apiserver.proxy import Proxy
from tests.apiserver.stranger import BINDS, Stranger, in_the_way, silent
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused
from tests.apiserver.watching import Watch, admitted, within

_LONGEST_S = 30
"""So long the API server waits for a webhook at most, ..."""
_ANSWERED_S = 60.0
"""... so long we wait for the answer of the request about which it was asked, ..."""
_TAKE_OVER_S = 60.0
"""... and so long for the next leader's decisions, which as a rule come earlier."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


@pytest.fixture
def third_party(tmp_path: Path) -> Iterator[Stranger]:
    with silent(tmp_path) as there:
        yield there


def ended(plane: ControlPlane, offset: int, verb: str, name: str) -> list[int]:
    """How the requests about a pod were answered that have come to their end."""
    found = audit.read(plane.audit_log, offset)
    return [each.code for each in found if (each.verb, each.name) == (verb, name)]


def test_a_lift_that_hangs_when_its_leader_is_lost_is_not_stored_once_the_next_one_has_decided(
    cluster: Cluster, installation: Installation, third_party: Stranger
) -> None:
    """There is one card. The leader stops while somebody's webhook thinks about its lift; its connections stay open, so the
    API server goes on with the request. Its successor gives the card to a more urgent pod, and then the webhook says yes.
    """
    plane, card, name = cluster.plane, cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    offset = plane.audit_log.stat().st_size
    with (
        in_the_way(cluster, third_party.client_config, timeout_s=_LONGEST_S, only="slow"),
        Watch(plane, cluster.path(), within({card: 1})) as watch,
    ):
        leader = installation.controller_processes[leader_index(plane, installation)]
        cluster.create(card_pod("slow", card, name))
        wait_for("the lift hangs", lambda: "slow" in third_party.asked)
        assert leader.pid is not None
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            cluster.create(card_pod("urgent", card, name, priorityClassName="system-cluster-critical"))
            wait_for("the successor decides", lambda: admitted(cluster.pods()) == ["urgent"], _TAKE_OVER_S)
            third_party.answer()
            wait_for("the first lift has ended", lambda: ended(plane, offset, "patch", "slow"), _TAKE_OVER_S)
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        watch.catch_up()
    assert watch.complaints == []
    assert cluster.gated() == {"slow"}
    cluster.wait_running("urgent")
    cluster.finish("urgent")
    wait_for("the card goes to the one that waits", lambda: cluster.running() == {"slow"})


@contextmanager
def through(plane: ControlPlane, proxy: Proxy, failure_policy: str) -> Iterator[None]:
    """Meanwhile the API server asks about binds through the proxy."""
    entry = hook_entry(plane)
    webhook = f"/webhooks/{entry.place}"
    address = urlsplit(entry.client["url"])
    led = address._replace(netloc=f"localhost:{urlsplit(proxy.url).port}").geturl()

    def lead(url: str, policy: str) -> None:
        values = {f"{webhook}/clientConfig/url": url, f"{webhook}/failurePolicy": policy}
        patch = [{"op": "replace", "path": path, "value": value} for path, value in values.items()]
        plane.api.patch(entry.path, patch, "json").expect()

    lead(led, failure_policy)
    try:
        yield
    finally:
        lead(entry.client["url"], "Ignore")


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_a_grant_whose_answer_is_lost_gives_no_card_twice(
    cluster: Cluster, installation: Installation, failure_policy: str
) -> None:
    """Either nothing is stored, and the repetition gets the same card; or the pod is bound without it, and gets it then.
    In between nobody else does.
    """
    plane, node = cluster.plane, unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    for each in (share_pod(name, 100, schedulerName=NOBODY) for name in ("a", "b")):
        each["metadata"]["annotations"][OTHER_KUBELET] = ""
        cluster.create(each)
    leader = installation.controller_url(leader_index(plane, installation))
    with Proxy(leader) as proxy, through(plane, proxy, failure_policy):

        def asked_through_here() -> bool:
            return cluster.bind(binding("a", node), dryRun="All").status == 201 and proxy.open > 0

        wait_for("the hook is asked through the proxy", asked_through_here)
        proxy.drop_answers()
        assert cluster.bind(binding("a", node)).status == (500 if failure_policy == "Fail" else 201)
        assert proxy.lost == 1
        refused(cluster.bind(binding("b", node)), 409, reasons.MGPU_NO_ROOM)
        if failure_policy == "Fail":
            assert records(cluster.pod("a")) == {}
            cluster.bind(binding("a", node)).expect(201)
            assert records(cluster.pod("a")) == record(0)
        wait_for("the pod has its card", lambda: records(cluster.pod("a")) == record(0))
        refused(cluster.bind(binding("b", node)), 409, reasons.MGPU_NO_ROOM)


def test_a_card_whose_bind_hangs_when_its_leader_is_lost_is_granted_to_nobody_else(
    cluster: Cluster, installation: Installation, third_party: Stranger
) -> None:
    """There is one card. The leader has granted it and is killed while somebody's webhook thinks about the bind. Its
    successor is asked for the card of that node by another pod, again and again, until the webhook has said yes.
    """
    plane, node = cluster.plane, unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    with (
        in_the_way(cluster, third_party.client_config, BINDS, timeout_s=_LONGEST_S, only="slow"),
        ThreadPoolExecutor(1) as pool,
    ):
        cluster.create(*(share_pod(name, 100, schedulerName=NOBODY) for name in ("slow", "other")))
        former = leader_index(plane, installation)
        path = f"{cluster.path('slow')}/binding"
        slow = pool.submit(plane.api.request, "POST", path, binding("slow", node), timeout_s=_ANSWERED_S)
        wait_for("the bind hangs", lambda: "slow" in third_party.asked)
        # At once: the successor has to decide before the API server gives the bind up.
        installation.kill_controller(former)

        def denied() -> Answer:
            answer = cluster.bind(binding("other", node))
            assert answer.status != 201, "there is one card"
            return answer

        def successor_answers() -> bool:
            return "that the former leader allowed" in denied().body["message"]

        wait_for("the successor answers", successor_answers, _TAKE_OVER_S)
        third_party.answer()
        assert slow.result().status == 201
        assert records(cluster.pod("slow")) == record(0)
        wait_for("it is seen", lambda: f"[{reasons.MGPU_NO_ROOM}]" in denied().body["message"])
    installation.start_controller()
