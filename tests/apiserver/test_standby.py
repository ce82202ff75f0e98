"""Two controllers: whichever the API server asks, the leader's cards are the answer."""

import base64
import json
import ssl
import urllib.request
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import TAKE_OVER_S, hook_entry, leader_index
from tests.apiserver.manifests import binding, pod, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused

HEADERS = {"Content-Type": "application/json"}

_TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


class Caller:
    """Asks a controller as the API server does."""

    def __init__(self, cluster: Cluster, installation: Installation) -> None:
        authority = base64.b64decode(hook_entry(cluster.plane).client["caBundle"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        # No proxy from the environment: the controllers are on loopback.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        )
        self._cluster = cluster
        self._installation = installation

    def ask(self, index: int, pod: str, node: str, path: str = "") -> Any:
        """The response to the review of a Binding, posted to a controller's own port, where the API server would."""
        url = self._installation.controller_url(index) + (path or hook_entry(self._cluster.plane).url_path)
        http = urllib.request.Request(url, self.review(pod, node), HEADERS)
        with self._opener.open(http, timeout=_TIMEOUT_S) as response:
            return json.load(response)["response"]

    def line(self, index: int, pod: str, node: str) -> HTTPSConnection:
        """A connection to a controller's own port that is kept: who has asked nothing that is served is sent away."""
        address = urlsplit(self._installation.controller_url(index))
        line = HTTPSConnection(address.hostname or "", address.port, context=self._tls, timeout=_TIMEOUT_S)
        line.request("POST", hook_entry(self._cluster.plane).url_path, self.review(pod, node), HEADERS)
        line.getresponse().read()
        return line

    def review(self, pod: str, node: str) -> bytes:
        """What the API server posts about a Binding."""
        stored = self._cluster.pod(pod)["metadata"]
        request = {
            "uid": "11111111-2222-3333-4444-555555555555",
            "kind": {"group": "", "version": "v1", "kind": "Binding"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": "binding",
            "name": pod,
            "namespace": stored["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "system:kube-scheduler"},
            "object": binding(pod, node, uid=stored["uid"]),
            "dryRun": False,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return json.dumps(review).encode()


def cards(response: Any) -> dict[str, str]:
    """The records of cards that the response adds to the Binding."""
    assert response["allowed"], response
    (operation,) = json.loads(base64.b64decode(response["patch"]))
    assert operation["path"] == "/metadata/annotations"
    found: dict[str, str] = operation["value"]
    assert found.pop(names.CHARGED_QUEUE_ANNOTATION) == "default"
    return found


def test_a_standby_answers_with_the_cards_that_the_leader_books(
    cluster: Cluster, installation: Installation
) -> None:
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=2, memory_mib=CARD_MIB))
    cluster.create(*[share_pod(name, 100, schedulerName=NOBODY) for name in ("a", "b", "c")])
    leader = leader_index(cluster.plane, installation)
    standby = 1 - leader
    caller = Caller(cluster, installation)
    wait_for("the standby has seen the Lease", lambda: caller.ask(standby, "a", node)["allowed"])
    assert cards(caller.ask(standby, "a", node)) == record(0)
    assert cards(caller.ask(leader, "a", node)) == record(0)
    cluster.bind(binding("b", node)).expect(201)
    assert records(cluster.pod("b")) == record(1)
    for index in (leader, standby):
        response = caller.ask(index, "c", node)
        assert not response["allowed"]
        assert f"[{reasons.MGPU_NO_ROOM}]" in response["status"]["message"]
        assert response["status"]["code"] == 409
    refused(cluster.bind(binding("c", node)), 409, reasons.MGPU_NO_ROOM)


@pytest.mark.parametrize("index", [0, 1])
def test_the_way_from_replica_to_replica_is_closed_to_others(
    cluster: Cluster, installation: Installation, index: int
) -> None:
    """Whoever could use it would book cards for pods that are never bound."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    with pytest.raises(HTTPError, match="403") as caught:
        Caller(cluster, installation).ask(index, "a", "n", "/leader/bindings")
    caught.value.close()


def test_without_a_leader_pods_of_ours_are_refused_for_now_and_others_pass(
    cluster: Cluster, installation: Installation
) -> None:
    """The leader is killed; its Lease stays. Once the standby may take over it answers by itself."""
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=2, memory_mib=CARD_MIB))
    cluster.create(share_pod("a", 100, schedulerName=NOBODY), pod("cpu", schedulerName=NOBODY))
    leader = leader_index(cluster.plane, installation)
    standby = 1 - leader
    caller = Caller(cluster, installation)
    wait_for("the standby has seen the Lease", lambda: caller.ask(standby, "a", node)["allowed"])
    installation.kill_controller(leader)
    response = caller.ask(standby, "a", node)
    assert not response["allowed"]
    assert f"[{reasons.NO_LEADER}]" in response["status"]["message"]
    assert caller.ask(standby, "cpu", node)["allowed"]
    wait_for("the standby leads", lambda: caller.ask(standby, "a", node)["allowed"], TAKE_OVER_S)
    assert leader_index(cluster.plane, installation) == standby
    assert cards(caller.ask(standby, "a", node)) == record(0)
