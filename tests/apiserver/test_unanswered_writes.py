"""What a leader has sent before it is lost, and what hangs in the API server: the next leader's decisions stand beside it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, audit, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.stranger import Stranger, in_the_way, silent
from tests.apiserver.watching import Watch, admitted, within

_LONGEST_S = 30
"""So long the API server waits for a webhook at most ..."""
_TAKE_OVER_S = 60.0
"""... and so long we wait for the next leader's decisions, which as a rule come earlier."""


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
