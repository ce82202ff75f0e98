"""Cards that nobody named, where that is denied and where the card is inferred: as tenants try it."""

import json
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.manifests import card_pod, pod, queue

GPU = {"nvidia.com/gpu": 1}
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module", params=["deny", "infer"])
def installed(
    request: pytest.FixtureRequest, control_plane: ControlPlane
) -> Iterator[tuple[str, Installation]]:
    """A policy, and the installation under it."""
    with Installation(
        control_plane, values={"cards": {"podsWithoutCardName": request.param}}
    ) as installation:
        yield request.param, installation


@pytest.fixture(scope="module")
def policy(installed: tuple[str, Installation]) -> str:
    """The policy of the installation, which is ready when its webhook has seen nodes."""
    return installed[0]


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


@pytest.fixture
def card(cluster: Cluster, policy: str) -> str:
    """A card of the test's own, known to the webhook."""
    made = cluster.add_card()
    wait_for(
        "the webhook knows the resource",
        lambda: (
            (answer := cluster.try_create(unnamed("probe"), dryRun="All")).status != 201
            or gates(answer.body) == [names.GATE]
        ),
    )
    return made


def unnamed(name: str, **more: str) -> Object:
    return pod(name, annotations=more, limits=GPU)


def test_taking_the_name_away_at_the_gate_frees_nobody(cluster: Cluster, policy: str, card: str) -> None:
    """The pod waits for quota that there is not; without a name it would ask for none."""
    cluster.create_queue(queue(name := unique("q"), json.dumps({card: 0})))
    cluster.create(card_pod("p", card, name))
    cluster.wait_said("p", "InsufficientScalarQuota")
    without = cluster.api.patch(
        cluster.path("p"), {"metadata": {"annotations": {names.CARD_NAME_ANNOTATION: None}}}
    )
    if policy == "deny":
        assert without.status == 400
        assert "nvidia.com/gpu is asked for without a card name" in without.body["message"]
    else:
        without.expect()
        assert names.DEFAULT_CARD_ANNOTATION in cluster.wait_said("p", "CardNameMissing")
    assert gates(cluster.pod("p")) == [names.GATE]


def test_a_pod_that_names_none_is_refused_or_gets_the_card_of_its_namespace(
    cluster: Cluster, policy: str, card: str
) -> None:
    if policy == "deny":
        assert cluster.try_create(unnamed("p")).status == 400
        return
    path = cluster.create_queue(queue(name := unique("q"), json.dumps({card: 1})))
    in_queue = {names.QUEUE_NAME_ANNOTATION: name}
    cluster.create(unnamed("a", **in_queue), unnamed("b", **in_queue))
    cluster.wait_said("a", "CardNameMissing")
    namespace = f"/api/v1/namespaces/{cluster.namespace}"
    cluster.api.patch(
        namespace, {"metadata": {"annotations": {names.DEFAULT_CARD_ANNOTATION: card}}}
    ).expect()
    cluster.wait_running("a")
    assert cluster.pod("a")["metadata"]["annotations"][names.CARD_NAME_ANNOTATION] == card
    cluster.wait_said("b", "InsufficientScalarQuota")
    cluster.wait_allocated(path, {card: 1})


def test_cards_of_every_vendor_need_a_name(cluster: Cluster, policy: str) -> None:
    """Whatever the resource of a card is called, the webhook is asked about it. Two kinds of cards cannot be inferred."""
    several = {f"{unique('vendor')}.com/npu": 1 for _ in range(2)}
    for resource in several:
        labels = {f"{resource}.product": unique("NPU"), f"{resource}.memory": "65536"}
        cluster.add_nodes(node(unique("node"), labels=labels, allocatable={resource: 8}))

    def refused() -> str:
        answer = cluster.try_create(pod("p", limits=several), dryRun="All")
        return str(answer.body["message"]) if answer.status == 400 else ""

    said = wait_for("the webhook knows the resources", refused)
    assert all(resource in said for resource in several)


def test_the_bind_is_the_last_that_can_tell(cluster: Cluster, policy: str) -> None:
    """When the pod was created, its resource stood for no card."""
    resource, product = f"{unique('vendor')}.com/npu", unique("NPU")
    cluster.create(pod("early", limits={resource: 1}))
    labels = {f"{resource}.product": product, f"{resource}.memory": "65536"}
    cluster.add_nodes(node(unique("node"), labels=labels, allocatable={resource: 8}))

    def refused() -> str:
        conditions = cluster.pod("early")["status"].get("conditions", [])
        return next((one["message"] for one in conditions if product in one.get("message", "")), "")

    assert "without a card name" in wait_for(f"the bind is refused under {policy}", refused)


def test_a_webhook_that_has_not_seen_the_nodes_is_asked_by_nobody(
    control_plane: ControlPlane, installed: tuple[str, Installation]
) -> None:
    """It takes no resource for a card yet. Here because it may not list them; last of the module."""
    _, installation = installed
    (webhook,) = installation.webhook_processes
    role = f"/apis/{_RBAC}/v1/clusterroles/cardquota-webhook"
    rules = control_plane.api.get(role).expect()["rules"]
    blind = [{**rule, "resources": [kind for kind in rule["resources"] if kind != "nodes"]} for rule in rules]
    webhook.kill()
    control_plane.api.patch(role, {"rules": blind}).expect()
    try:
        webhook.launch()
        waits_for = ["[-]nodes the nodes are not listed yet"]
        wait_for("it waits for nothing but the nodes", lambda: unready(installation) == waits_for)
    finally:
        control_plane.api.patch(role, {"rules": rules}).expect()
    webhook.wait_ready()


def unready(installation: Installation) -> list[str]:
    """Why the webhook is to be sent nothing, as it says to whoever asks; nothing where nobody answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{installation.metrics_address('webhook')}/readyz", timeout=10.0):
            return []
    except HTTPError as error:
        with error:
            return [line for line in error.read().decode().splitlines() if line.startswith("[-]")]
    except OSError:
        return []
