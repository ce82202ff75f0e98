"""The binding hook from the pod network: nobody finds it, and whoever may ask finds it always."""

import json
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from http.client import HTTPSConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from controller.forwarding import LEADER_PATH
from core import reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from kube.segments import LENGTH
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import binding, share_pod
from tests.apiserver.test_binding import CARD_MIB, NOBODY, record, records, refused
from tests.apiserver.test_standby import HEADERS, Caller
from tests.apiserver.trusting import AUTHORITY, CERTIFICATES, Kept

PLAIN = "/mutate/bindings"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


@pytest.fixture
def kept(control_plane: ControlPlane, installation: Installation) -> Kept:
    return Kept(control_plane, installation)


def answered(
    cluster: Cluster, installation: Installation, index: int, path: str, method: str = "POST"
) -> int:
    """The status of an answer to a review of a bind, asked at a controller's port by anybody."""
    authority = next(iter(Kept(cluster.plane, installation).trusted())).decode()
    address = urlsplit(installation.controller_url(index))
    tls = ssl.create_default_context(cadata=authority)
    line = HTTPSConnection(address.hostname or "", address.port, context=tls, timeout=10.0)
    try:
        line.request(method, path, Caller(cluster, installation).review("a", "n"), HEADERS)
        return line.getresponse().status
    finally:
        line.close()


def test_the_hook_is_nowhere_but_where_the_api_server_was_told(
    cluster: Cluster, installation: Installation, kept: Kept
) -> None:
    """The attack: a process on the pod network asks in the API server's name, and would book cards by it."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    told = kept.hook_path()
    segment = kept.data(AUTHORITY)["hook.segment"].decode()
    assert told == f"{PLAIN}/{segment}"
    assert len(segment) == LENGTH
    guesses = [PLAIN, PLAIN + "/", f"{PLAIN}/x", f"{PLAIN}/{segment[:-1]}", f"{PLAIN}/{'a' * LENGTH}", "/"]
    for index in range(2):
        assert [answered(cluster, installation, index, guess) for guess in guesses] == [404] * len(guesses)
        assert answered(cluster, installation, index, told) == 200
        assert answered(cluster, installation, index, told, "GET") == 404
        for path in ("/volcano/jobEnqueueable", "/volcano/predicate", "/metrics"):
            assert answered(cluster, installation, index, path) == 404


def test_neither_log_nor_metrics_nor_events_show_the_path(
    cluster: Cluster, installation: Installation, kept: Kept
) -> None:
    segment = kept.data(AUTHORITY)["hook.segment"].decode()
    for index, process in enumerate(installation.controller_processes):
        assert segment not in process.log.read_text("utf-8")
        assert segment not in installation.metrics("controller", index)
    for resource in ("configmaps", "events", "leases"):
        listed = cluster.plane.kubectl("get", resource, "-n", installation.namespace, "-o", "json").stdout
        assert segment not in listed


def test_the_webhooks_account_reads_its_pair_and_nothing_more(
    control_plane: ControlPlane, installation: Installation, kept: Kept
) -> None:
    """As somebody who has taken the webhook over."""
    config = control_plane.service_account_kubeconfig(installation.namespace, "cardquota-webhook")

    def tried(*command: str) -> bool:
        words = [str(control_plane.binary("kubectl")), f"--kubeconfig={config}", *command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60.0)
        assert done.returncode == 0 or "Forbidden" in done.stderr, done.stderr
        return done.returncode == 0

    there = f"--namespace={installation.namespace}"
    assert tried("get", "secrets", there, f"--field-selector=metadata.name={CERTIFICATES}")
    assert not tried("get", "secrets", there, f"--field-selector=metadata.name={AUTHORITY}")
    assert not tried("get", "secrets", there)
    for secret in (CERTIFICATES, AUTHORITY):
        assert not tried("get", "secret", secret, there)
        assert not tried("patch", "secret", secret, there, "--type=merge", "--patch={}")
    for kind in ("mutating", "validating"):
        configuration = (f"{kind}webhookconfiguration", f"cardquota-{kind}")
        assert not tried("get", *configuration)
        assert not tried("patch", *configuration, "--type=merge", "--patch={}")
    assert "ca.key" not in kept.data(CERTIFICATES)


def test_the_webhooks_pair_does_not_open_the_way_from_replica_to_replica(
    cluster: Cluster, installation: Installation, kept: Kept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    for secret, opens in ((CERTIFICATES, False), (AUTHORITY, True)):
        data = kept.data(secret)
        pair = tmp_path_factory.mktemp("pair") / "pair.pem"
        pair.write_bytes(data["tls.crt"] + data["tls.key"])
        tls = ssl.create_default_context(cadata=data["ca.crt"].decode())
        tls.load_cert_chain(pair)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        url = installation.controller_url(leader_index(cluster.plane, installation)) + LEADER_PATH
        request = urllib.request.Request(url, Caller(cluster, installation).review("a", "n"), HEADERS)
        if opens:
            with opener.open(request, timeout=10.0) as response:
                assert json.load(response)["response"]["allowed"] is False
        else:
            with pytest.raises(OSError, match=r"(?i)alert|reset|EOF|closed connection|broken pipe"):
                opener.open(request, timeout=10.0)


def test_who_shows_no_certificate_is_no_replica(cluster: Cluster, installation: Installation) -> None:
    """The port takes connections without one, as API servers make them; at this path the leader would book for anybody."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    assert [answered(cluster, installation, index, LEADER_PATH) for index in range(2)] == [403, 403]


def test_a_path_that_was_just_stored_is_served_by_every_replica_and_the_one_before_as_well(
    cluster: Cluster, installation: Installation, kept: Kept
) -> None:
    """A rotation, step by step: whoever has not heard of the new path reads the Secret when asked at it."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))

    def everywhere(path: str) -> list[int]:
        return [answered(cluster, installation, index, path) for index in range(2)]

    before = kept.data(AUTHORITY)["hook.segment"]
    new = b"d" * LENGTH
    kept.write(AUTHORITY, {"hook.segment": new, "hook.former": before})
    assert everywhere(f"{PLAIN}/{new.decode()}") == [200, 200]
    assert everywhere(f"{PLAIN}/{before.decode()}") == [200, 200]
    wait_for(
        "the API server is told",
        lambda: kept.hook_path() == f"{PLAIN}/{new.decode()}",
        30.0,
    )
    kept.write(AUTHORITY, {"hook.former": None})
    wait_for("the old path is gone", lambda: everywhere(f"{PLAIN}/{before.decode()}") == [404, 404])


def test_a_path_that_somebody_takes_away_comes_back_at_once(
    cluster: Cluster, installation: Installation, kept: Kept
) -> None:
    """An upgrade by helm does that, and so does a GitOps controller. Binds are decided on as before then."""
    node = unique("mgpu")
    cluster.add_nodes(mgpu_node(node, cards=1, memory_mib=CARD_MIB))
    cluster.create(*[share_pod(name, 100, schedulerName=NOBODY) for name in ("a", "b")])
    told = kept.hook_path()
    for path in ("", "/mutate/bindings/something"):
        kept.call_hook_at(path)
        wait_for("the path is back", lambda: kept.hook_path() == told, 20.0)
    kept.call_hook_at(told)
    # The API server goes by it a moment later than it stores it.
    wait_for(
        "the hook is called",
        lambda: cluster.bind(binding("b", "nowhere", uid="x"), dryRun="All").status != 201,
    )
    cluster.bind(binding("a", node)).expect(201)
    assert records(cluster.pod("a")) == record(0)
    refused(cluster.bind(binding("b", node)), 409, reasons.MGPU_NO_ROOM)


def test_where_a_replica_of_the_first_release_runs_the_plain_path_goes_on(
    cluster: Cluster, installation: Installation, kept: Kept
) -> None:
    """It serves no other. When it is gone the API server is told of the secret one, and the plain one ends a minute later."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    told = kept.hook_path()
    former = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "former",
            "namespace": installation.namespace,
            "labels": {"app.kubernetes.io/name": "cardquota", "app.kubernetes.io/component": "controller"},
        },
        "spec": {"containers": [{"name": "c", "image": "none"}], "terminationGracePeriodSeconds": 0},
    }
    cluster.api.create(former).expect(201)
    try:
        kept.call_hook_at("")
        wait_for("the plain path is told", lambda: kept.hook_path() == PLAIN, 90.0)
        indices = range(2)
        wait_for(
            "it is served as well",
            lambda: [answered(cluster, installation, index, PLAIN) for index in indices] == [200, 200],
        )
        assert [answered(cluster, installation, index, told) for index in indices] == [200, 200]
    finally:
        cluster.api.delete(cluster.api.path_of(former), gracePeriodSeconds=0).expect()
    wait_for("the secret path is told again", lambda: kept.hook_path() == told, 90.0)
    assert answered(cluster, installation, 0, told) == 200


def test_nobody_is_asked_for_a_path_by_redirection(cluster: Cluster, installation: Installation) -> None:
    """kube-scheduler of before is sent on to its own port, with nothing of its question read."""
    cluster.create(share_pod("a", 100, schedulerName=NOBODY))
    with pytest.raises(HTTPError, match="404") as caught:
        Caller(cluster, installation).ask(0, "a", "n", "/kube/other")
    caught.value.close()
    assert answered(cluster, installation, 0, "/kube/filter") == 308
