"""The leader answers people by what the API server says of them, directly and by way of the API server."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from cli.main import main
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.client import ApiClient
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.proxy import Proxy
from tests.apiserver.trusting import Kept

RBAC: Final = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def bound(kind: str, role: str, namespace: str, user: str, where: str = "") -> dict[str, Any]:
    """A binding of a role to a ServiceAccount."""
    metadata = {"name": unique("reads")} | ({"namespace": where} if where else {})
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if where else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": namespace}],
    }


@pytest.fixture
def ann(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[Path]:
    """The kubeconfig, with a token, of somebody with `edit` in the namespace and the queue-reader roles."""
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "ann", create=True)
    reader = "cardquota-queue-reader"
    bindings = [
        bound("ClusterRole", "edit", namespace, "ann", namespace),
        bound("ClusterRole", reader, namespace, "ann"),
        bound("Role", reader, namespace, "ann", installation.namespace),
    ]
    paths = [control_plane.api.path_of(control_plane.apply(each)[0]) for each in bindings]
    yield kubeconfig
    for path in paths:
        control_plane.api.delete(path).expect()


@pytest.fixture
def full(cluster: Cluster, control_plane: ControlPlane) -> Iterator[str]:
    """A queue of two cards: one is used here and one by others; one of others and then `waits` stand in line."""
    others = unique("others")
    control_plane.create_namespace(others)
    beside = Cluster(control_plane, others)
    card, name = cluster.add_card(8), unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 2})))
    cluster.create(card_pod("own", card, name))
    beside.create(card_pod("theirs", card, name))
    cluster.wait_running("own")
    beside.wait_running("theirs")
    beside.create(card_pod("first", card, name))
    beside.wait_said("first", "InsufficientScalarQuota")
    cluster.create(card_pod("waits", card, name))
    cluster.wait_said("waits", "InsufficientScalarQuota")
    cluster.wait_allocated(path, {card: 2})
    yield others
    beside.close()
    control_plane.api.delete(control_plane.api.path("v1", "Namespace", name=others)).expect()


@contextmanager
def asking(
    url: str, kubeconfig: Path, plane: ControlPlane, installation: Installation, folder: Path
) -> Iterator[ApiClient]:
    """Somebody who asks a controller at its own address, and trusts whom the API server was told to trust."""
    authority = folder / "authority.pem"
    authority.write_bytes(next(iter(Kept(plane, installation).trusted())))
    user = json.loads(kubeconfig.read_text("utf-8"))["users"][0]["user"]
    with closing(ApiClient(url, authority, token=user["token"])) as client:
        yield client


def test_either_replica_answers_what_the_caller_may_see(
    control_plane: ControlPlane,
    installation: Installation,
    cluster: Cluster,
    full: str,
    ann: Path,
    tmp_path: Path,
) -> None:
    leader, root = leader_index(control_plane, installation), "/answers/v1"
    for index in (leader, 1 - leader):
        with asking(installation.answers_url(index), ann, control_plane, installation, tmp_path) as api:
            told = wait_for(
                f"controller {index} answers", partial(answer, api, f"{root}/pods/{cluster.namespace}/waits")
            )
            assert told["leader"].startswith(installation.controller_processes[leader].name)
            assert (told["decision"], told["position"]["number"], told["position"]["of"]) == ("hold", 2, 2)
            assert [one["pod"] for one in told["heldBy"]] == [f"{cluster.namespace}/own"]
            assert told["heldByOthers"]["pods"] == 1
            assert full not in json.dumps(told)
            assert api.get(f"{root}/pods/{full}/theirs").status == 403
            assert told["queue"] in api.get(f"{root}/books").expect()["queues"]


def answer(api: ApiClient, path: str) -> dict[str, Any]:
    """Empty while there is none."""
    found = api.get(path)
    return found.body if found.status == HTTPStatus.OK else {}


def test_whoever_has_no_rights_or_no_token_is_told_nothing(
    control_plane: ControlPlane,
    installation: Installation,
    cluster: Cluster,
    full: str,
    tmp_path: Path,
) -> None:
    del full
    leader = leader_index(control_plane, installation)
    nobody = control_plane.service_account_kubeconfig(cluster.namespace, "bob", create=True)
    url = installation.answers_url(leader)
    with asking(url, nobody, control_plane, installation, tmp_path) as api:
        for question in (f"pods/{cluster.namespace}/waits", f"pods/{cluster.namespace}/none", "books"):
            assert api.get(f"/answers/v1/{question}").status == 403, question
        for path in ("/leader/answers", "/leader/bindings", "/mutate/bindings", "/metrics"):
            assert api.get(path).status == 404, path
    for token in ("", "x.y.z"):
        with closing(ApiClient(url, tmp_path / "authority.pem", token=token)) as stranger:
            assert stranger.get("/answers/v1/books").status == 401


def own_address() -> str:
    """An address of this machine that an API server may forward to: not that of loopback. Empty where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return ""
        address = str(line.getsockname()[0])
    return "" if address.startswith("127.") else address


@pytest.fixture
def served(control_plane: ControlPlane, installation: Installation) -> Iterator[Proxy]:
    """The Service of the controllers leads to the one that leads, as it would to its pod."""
    address = own_address()
    if not address:
        pytest.skip("this machine has no address but that of loopback, where no API server forwards to")
    leader, api, home = leader_index(control_plane, installation), control_plane.api, installation.namespace
    service = api.path("v1", "Service", home, "cardquota-controller")
    with Proxy(installation.answers_url(leader), host=address) as proxy:
        # API servers forward to addresses of pods alone. Nobody else is to write those of the Service.
        api.patch(service, {"spec": {"selector": None}}).expect()
        pod = api.create(standing_in(home)).expect(201)["metadata"]
        status = {"podIP": address, "podIPs": [{"ip": address}]}
        api.patch(f"/api/v1/namespaces/{home}/pods/{pod['name']}/status", {"status": status}).expect()
        reference = {"kind": "Pod", "namespace": home, "name": pod["name"], "uid": pod["uid"]}
        port = {"name": "answers", "port": int(proxy.url.rpartition(":")[2]), "protocol": "TCP"}
        api.apply(
            {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": {"name": "cardquota-controller", "namespace": home},
                "subsets": [{"addresses": [{"ip": address, "targetRef": reference}], "ports": [port]}],
            }
        )
        yield proxy
        api.delete(f"/api/v1/namespaces/{home}/pods/{pod['name']}", gracePeriodSeconds=0).expect()


def standing_in(home: str) -> dict[str, Any]:
    """A pod that nobody runs, for the controller's process."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": unique("controller"), "namespace": home},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "none"}]},
    }


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.usefixtures("served")
def test_a_tenant_sees_the_place_in_line_by_way_of_the_api_server(
    cluster: Cluster,
    full: str,
    ann: Path,
    control_plane: ControlPlane,
    installation: Installation,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("explain", "waits", "-n", cluster.namespace, "--kubeconfig", str(ann))
    told = [""]

    def answered() -> bool:
        status, told[0], err = run(capsys, *arguments)
        assert status == 0, err
        return "Answered by" in told[0] and "the leader was not asked" not in err

    wait_for("the leader answers by way of the API server", answered)
    out = told[0]
    assert "In line       2 of 2 (whoever fits goes)" in out
    assert "behind pods of others" in out
    assert f"Held by       {cluster.namespace}/own" in out
    assert "1 more, of others" in out
    assert full not in out
    # That Service's port and nothing else of the installation.
    home = f"/api/v1/namespaces/{installation.namespace}/services"
    with closing(control_plane.client(ann)) as api:
        for name in (
            "https:cardquota-controller:https",
            "cardquota-controller",
            "https:cardquota-webhook:https",
        ):
            assert api.get(f"{home}/{name}/proxy/answers/v1/books").status == 403
        assert api.request("POST", f"{home}/https:cardquota-controller:answers/proxy/x", {}).status == 403
    _, out, _ = run(capsys, "verify", "-o", "json", "--kubeconfig", str(ann))
    (books,) = (one for one in json.loads(out)["checks"] if one["check"] == "leader's books")
    assert books["result"] == "ok"


@pytest.mark.usefixtures("full")
def test_without_a_token_it_is_said_why_the_leader_was_not_asked(
    cluster: Cluster, tenant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "explain", "waits", "-n", cluster.namespace, "--kubeconfig", str(tenant))
    assert status == 0
    assert "note: the leader was not asked: your kubeconfig shows no token" in err
    assert "InsufficientScalarQuota" in out
