"""The control plane goes away and comes back: ours wait without ending, and go on by what they find."""

import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster
from tests.apiserver.leaders import Leaders, leading
from tests.apiserver.stream import QUOTA, TAKE_OVER_S, Stream
from tests.apiserver.watching import admitted
from tests.own_plane import own_plane

API_SERVER, ETCD = "kube-apiserver", "etcd"
OUTAGE_S = 60.0
"""Four terms of a leader, and longer than any pause between two attempts."""


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest, progress: Callable[[str], None]) -> Iterator[ControlPlane]:
    """One of its own: what else runs on that of the others is not made for this."""
    with own_plane(request, progress=progress) as plane:
        yield plane


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def pids(installation: Installation) -> list[int | None]:
    return [process.pid for process in (*installation.controller_processes, *installation.webhook_processes)]


def wait_for_the_database(cluster: Cluster) -> None:
    """Return once the API server reads pods from etcd again: it tries a lost connection more and more seldom."""
    wait_for("pods are read", lambda: cluster.api.get(cluster.path()).status == HTTPStatus.OK, OUTAGE_S)


def assert_goes_on(cluster: Cluster, installation: Installation, stream: Stream) -> None:
    """Those that were in are in, nobody came beside them, one leads, and pods go on passing through the queue."""
    assert len(admitted(cluster.pods())) == QUOTA
    with stream.watch() as watch, Leaders(installation) as leaders:
        wait_for("one leads again", lambda: len(leading(installation)) == 1, TAKE_OVER_S)
        for _ in range(3):
            stream.move_on()
        watch.catch_up()
    assert watch.complaints == []
    assert leaders.most == 1


def test_an_api_server_that_is_away_for_a_minute_ends_nobody(
    cluster: Cluster, installation: Installation
) -> None:
    """Nobody leads meanwhile, and all are there when it is back: the same processes."""
    stream = Stream(cluster)
    stream.begin()
    before = pids(installation)
    cluster.plane.stop_process(API_SERVER)
    wait_for("nobody leads", lambda: leading(installation) == [], OUTAGE_S)
    threading.Event().wait(OUTAGE_S)  # what is tested is the length of it
    assert pids(installation) == before
    assert leading(installation) == []
    cluster.plane.start_process(API_SERVER)
    cluster.api.close()
    assert_goes_on(cluster, installation, stream)
    assert pids(installation) == before


def test_an_etcd_that_is_killed_and_comes_back_costs_nothing(
    cluster: Cluster, installation: Installation
) -> None:
    stream = Stream(cluster)
    stream.begin()
    before = pids(installation)
    cluster.plane.kill_process(ETCD)
    wait_for("nobody leads", lambda: leading(installation) == [], OUTAGE_S)
    cluster.plane.start_process(ETCD)
    wait_for_the_database(cluster)
    assert_goes_on(cluster, installation, stream)
    assert pids(installation) == before
