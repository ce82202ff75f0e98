"""The leader answers people by what the API server says of them, directly and by way of the API server."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from ssl import CERT_NONE, create_default_context
from typing import Any, Final
from urllib.parse import unquote
from urllib.request import Request, urlopen

import pytest

from cli.main import main, parser
from cli.page import source_of
from core.page.html.document import document
from core.page.view import Wish
from core.steps import finish
from hack.controlplane import ControlPlane, WaitError, wait_for
from hack.controlplane.client import ApiClient
from hack.install import Installation
from kube.client import Client
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.granted import wait_granted_to
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.trusting import Kept

RBAC: Final = "rbac.authorization.k8s.io"
SERVICE: Final = "https:cardquota-controller:answers"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """In another namespace than most have it, of which the ClusterRole of queue readers tells."""
    values = {"controller": {"answers": {"page": True}}}
    with Installation(control_plane, controller=2, values=values, namespace="answering") as installed:
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
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{installation.namespace}/leases/cardquota"
    wait_granted_to(control_plane, kubeconfig, f"/api/v1/namespaces/{namespace}/pods", "/api/v1/nodes", lease)
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


def test_either_replica_shows_a_tenant_the_status_page_without_the_pods_of_others(
    control_plane: ControlPlane,
    installation: Installation,
    cluster: Cluster,
    full: str,
    ann: Path,
    tmp_path: Path,
) -> None:
    leader = leader_index(control_plane, installation)
    own = f"{cluster.namespace}/waits"
    for index in (leader, 1 - leader):
        with asking(installation.answers_url(index), ann, control_plane, installation, tmp_path) as api:

            def shown(query: str, api: ApiClient = api) -> dict[str, Any]:
                return answer(api, f"/answers/v1/page{query}")

            wait_for(
                f"controller {index} shows who waits", lambda: own in str(shown(f"?own={cluster.namespace}"))
            )
            view = shown(f"?own={cluster.namespace}")
            assert [(one["pod"], one["number"], one["line"]) for one in view["waiting"]["rows"]] == [
                (own, 2, 2)
            ]
            assert view["queues"]["rows"]
            assert view["hours"] is None
            assert full not in json.dumps(view)
            theirs = shown(f"?namespace={full}")
            assert (theirs["waiting"], theirs["changes"]) == (None, None)
            assert f"{full}/" not in json.dumps(theirs)


@pytest.mark.usefixtures("forwarded", "full")
def test_a_tenant_opens_the_status_page_by_way_of_the_api_server(
    cluster: Cluster, ann: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = parser().parse_args(["page", "-n", cluster.namespace, "--kubeconfig", str(ann)])
    own = f"{cluster.namespace}/waits"

    def page() -> str:
        source = source_of(options)
        told = capsys.readouterr().err
        assert "the leader was not asked" not in told, told

        async def once() -> str:
            async with source as pages:
                return finish(document(await pages(Wish(find="waits"))))

        return asyncio.run(once())

    wait_for("the page shows who waits", lambda: own in page())
    assert "2 of 2" in page()


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
        for question in (
            f"pods/{cluster.namespace}/waits",
            f"pods/{cluster.namespace}/none",
            "books",
            "page",
            f"page?own={cluster.namespace}",
        ):
            assert api.get(f"/answers/v1/{question}").status == 403, question
        for path in ("/leader/answers", "/leader/bindings", "/mutate/bindings", "/metrics"):
            assert api.get(path).status == 404, path
    for token in ("", "x.y.z"):
        with closing(ApiClient(url, tmp_path / "authority.pem", token=token)) as stranger:
            assert stranger.get("/answers/v1/books").status == 401


@pytest.fixture
def forwarded(
    control_plane: ControlPlane, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of the controllers' Service gets to the leader, without the header that API servers keep for themselves.

    They forward to addresses of pods alone, and the processes here listen on loopback.
    """
    leader = installation.answers_url(leader_index(control_plane, installation))
    place = f"/api/v1/namespaces/{installation.namespace}/services/{SERVICE}/proxy"
    straight = Client.read_text

    async def read_text(
        client: Client, path: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0
    ) -> str:
        if not unquote(path).startswith(place):
            return await straight(client, path, headers=headers, timeout_s=timeout_s)
        url = f"{leader}{unquote(path).removeprefix(place)}"
        return await asyncio.to_thread(fetched, url, headers or {}, timeout_s)

    monkeypatch.setattr(Client, "read_text", read_text)


def fetched(url: str, headers: Mapping[str, str], timeout_s: float) -> str:
    """API servers do not look at the certificate either."""
    trusting = create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, CERT_NONE
    with urlopen(Request(url, headers=dict(headers)), timeout=timeout_s, context=trusting) as answered:
        return str(answered.read().decode())


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.usefixtures("forwarded")
def test_a_tenant_sees_the_place_in_line_by_way_of_the_api_server(
    cluster: Cluster,
    full: str,
    ann: Path,
    control_plane: ControlPlane,
    installation: Installation,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("explain", "waits", "-n", cluster.namespace, "--kubeconfig", str(ann))
    told = ["", ""]

    def answered() -> bool:
        status, *told[:] = run(capsys, *arguments)
        assert status == 0, told[1]
        return "Answered by" in told[0] and "the leader was not asked" not in told[1]

    try:
        wait_for("the leader answers by way of the API server", answered)
    except WaitError as error:
        error.add_note("\n".join(told))
        raise
    out = told[0]
    assert "In line       2 of 2 (whoever fits goes)" in out
    assert "behind pods of others" in out
    assert f"Held by       {cluster.namespace}/own" in out
    assert "1 more, of others" in out
    assert full not in out
    # That port of the Service, behind which the API server finds no pod here, and nothing else of the installation.
    home = f"/api/v1/namespaces/{installation.namespace}/services"
    with closing(control_plane.client(ann)) as api:
        assert api.get(f"{home}/{SERVICE}/proxy/answers/v1/books").status == 503
        for name in (
            "https:cardquota-controller:https",
            "cardquota-controller",
            "https:cardquota-webhook:https",
        ):
            assert api.get(f"{home}/{name}/proxy/answers/v1/books").status == 403
        assert api.request("POST", f"{home}/{SERVICE}/proxy/x", {}).status == 403

    def agree() -> bool:
        # The pods of other tests may just be on their way out.
        _, out, _ = run(capsys, "verify", "-o", "json", "--kubeconfig", str(ann))
        (books,) = (one for one in json.loads(out)["checks"] if one["check"] == "leader's books")
        return bool(books["result"] == "ok")

    wait_for("the leader's books agree", agree)


@pytest.mark.usefixtures("full")
def test_without_a_token_it_is_said_why_the_leader_was_not_asked(
    cluster: Cluster, tenant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "explain", "waits", "-n", cluster.namespace, "--kubeconfig", str(tenant))
    assert status == 0
    assert "note: the leader was not asked: your kubeconfig shows no token" in err
    assert "InsufficientScalarQuota" in out


@pytest.mark.usefixtures("forwarded", "full")
def test_a_dump_holds_what_the_leader_says_and_no_token(
    control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    admin, path = control_plane.admin_kubeconfig, tmp_path / "state.json"

    def checks() -> dict[str, dict[str, str]]:
        _, out, _ = run(capsys, "verify", "--state", str(path), "-o", "json")
        return {one["check"]: one for one in json.loads(out)["checks"]}

    def agree() -> bool:
        # The pods of other tests may just be on their way out.
        status, _, err = run(capsys, "dump", "-o", str(path), "--kubeconfig", str(admin))
        assert status == 0, err
        return "and the leader's books" in err and checks()["leader's books"]["result"] == "ok"

    wait_for("a dump with the leader's books", agree)
    text = path.read_text("utf-8")
    assert json.loads(admin.read_text("utf-8"))["users"][0]["user"]["token"] not in text
    dumped = json.loads(text)
    (books,) = (one for one in dumped["items"] if one["kind"] == "LeaderBooks")
    assert books["status"]["source"] == "answer"
    (name,) = (name for name, one in books["status"]["queues"].items() if one["waiting"])
    ((card, used),) = books["status"]["queues"][name]["allocated"].items()
    assert used == "2"
    books["status"]["queues"][name]["allocated"][card] = "3"
    path.write_text(json.dumps(dumped), "utf-8")
    assert checks()["leader's books"] == {
        "check": "leader's books",
        "result": "wrong",
        "found": f"queue {name}: 3 of {card}, and its pods use 2",
    }


def test_whoever_may_not_ask_the_leader_is_told_what_the_dump_lacks(
    control_plane: ControlPlane,
    installation: Installation,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """With the ClusterRole of queue readers alone."""
    cluster.create_queue(queue(unique("q"), "{}"))
    path, bea = tmp_path / "state.json", unique("bea")
    kubeconfig = control_plane.service_account_kubeconfig(cluster.namespace, bea, create=True)
    reads = bound("ClusterRole", "cardquota-queue-reader", cluster.namespace, bea)
    made = control_plane.api.path_of(control_plane.apply(reads)[0])

    def told() -> str:
        # The API server takes up a binding a moment after it was made.
        status, _, err = run(capsys, "dump", "-o", str(path), "--kubeconfig", str(kubeconfig))
        return err if status == 0 else ""

    said = wait_for("rights to the queues", told)
    (why,) = (line for line in said.splitlines() if "the leader's own view" in line)
    assert why.startswith("warning: without the leader's own view: ")
    assert "services" in why
    assert "forbidden" in why
    assert f"the Role cardquota-queue-reader in namespace {installation.namespace}" in why
    assert "the value queueReader.groups of the chart" in why
    assert "LeaderBooks" not in path.read_text("utf-8")
    control_plane.api.delete(made).expect()
