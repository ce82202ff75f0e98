"""Who may use a queue: what a tenant of another namespace tries on it, and what happens when it is let in."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from core import names, reasons
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.install import Installation
from hack.installation.rendering import of_kind
from tests.apiserver.cluster import Cluster, charged, unique
from tests.apiserver.granted import wait_granted
from tests.apiserver.manifests import (
    GPU,
    JOB_OUT_OF_REACH,
    Object,
    binding,
    card_pod,
    deployment,
    in_group,
    pod,
    podgroup,
    queue,
)

ACCOUNT = "tenant"
NOBODY = "nobody"
"""A scheduler that does not exist, and that we do not gate for."""
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def tenant(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Cluster]:
    """The namespace in the hands of a ServiceAccount with the role `edit`, and with that on PodGroups, as Volcano grants it."""
    namespace = cluster.namespace
    kubeconfig = control_plane.service_account_kubeconfig(namespace, ACCOUNT, create=True)
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    rule = {
        "apiGroups": ["scheduling.volcano.sh"],
        "resources": ["podgroups"],
        "verbs": ["get", "create", "patch"],
    }
    metadata = {"name": "podgroups", "namespace": namespace}
    control_plane.apply(
        [
            {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
            _binding(namespace, "edit", {"kind": "ClusterRole", "name": "edit"}, subject),
            _binding(namespace, "podgroups", {"kind": "Role", "name": "podgroups"}, subject),
        ]
    )
    with closing(control_plane.client(kubeconfig)) as client:
        here = f"namespaces/{namespace}"
        wait_granted(
            client, f"/api/v1/{here}/pods", f"/apis/scheduling.volcano.sh/v1beta1/{here}/podgroups/none"
        )
        mine = Cluster(control_plane, namespace)
        mine.api = client
        yield mine


def _binding(namespace: str, name: str, role: Object, subject: Object) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, **role},
        "subjects": [subject],
    }


THEIRS = {names.NAMESPACES_ANNOTATION: "theirs"}


class Team:
    """A queue of somebody else, with as many cards of a kind as a node has."""

    def __init__(self, cluster: Cluster, cards: int = 8, annotations: Mapping[str, str] = THEIRS) -> None:
        self._cluster = cluster
        self.card, self.queue = cluster.add_card(cards), unique("team")
        written = queue(self.queue, json.dumps({self.card: cards}))
        written["metadata"]["annotations"] |= annotations
        self.path = cluster.create_queue(written)

    def annotate(self, **annotations: str | None) -> None:
        """What the administrator writes on the queue."""
        self.try_annotate(**annotations).expect()

    def try_annotate(self, **annotations: str | None) -> Answer:
        """The answer to what the administrator writes on the queue."""
        return self._cluster.api.patch(self.path, {"metadata": {"annotations": annotations}})

    def admit(self, namespace: str) -> None:
        """The administrator lists the namespace."""
        self.annotate(**{names.NAMESPACES_ANNOTATION: f"theirs, {namespace}"})

    def pod(self, name: str, **spec: Any) -> Object:
        """A pod that names the queue itself."""
        return card_pod(name, self.card, self.queue, **spec)

    def unqueued(self, name: str, cards: int = 1, **spec: Any) -> Object:
        """A pod that asks for cards and names no queue."""
        annotations = {names.CARD_NAME_ANNOTATION: self.card}
        return pod(name, limits={GPU: cards}, annotations=annotations, **spec)

    def allocated(self) -> dict[str, str]:
        """What the queue is charged with."""
        return self._cluster.allocated(self.path)

    def wait_known(self, tenant: Cluster) -> None:
        """Returns once the webhook knows of the queue and of the namespace."""
        wait_for(
            "the webhook knows who may use the queue",
            lambda: tenant.try_create(self.pod("trial"), dryRun="All").status == 403,
        )


def owned_by_job(made: Object, in_queue: str) -> Object:
    """As the Job controller makes it, or whoever copies that."""
    annotations = {**made["metadata"]["annotations"], names.JOB_QUEUE_ANNOTATION: in_queue}
    metadata = {**made["metadata"], "ownerReferences": [JOB_OUT_OF_REACH], "annotations": annotations}
    return {**made, "metadata": metadata}


def pass_queues(cluster: Cluster, installation: Installation) -> None:
    """What an administrator does so that queues can be written while no webhook answers."""
    (configuration,) = of_kind(installation.objects, "ValidatingWebhookConfiguration").values()
    for index, entry in enumerate(configuration["webhooks"]):
        if entry["name"] == "queues.cardquota.io":
            replace = {"op": "replace", "path": f"/webhooks/{index}/failurePolicy", "value": "Ignore"}
            cluster.api.patch(cluster.api.path_of(configuration), [replace], "json").expect()


def test_what_names_a_closed_queue_itself_is_refused_with_its_path_and_the_way_out(
    cluster: Cluster, tenant: Cluster
) -> None:
    team = Team(cluster)
    team.wait_known(tenant)
    said = (
        f'"{team.queue}": queue {team.queue} is not open to namespace {cluster.namespace}; name another queue'
    )
    answer = tenant.try_create(team.pod("a"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert f"metadata.annotations[{names.QUEUE_NAME_ANNOTATION}]: Forbidden: {said}" in answer.body["message"]
    answer = tenant.try_create(deployment("d", team.pod("x"), replicas=1))
    assert answer.status == 403
    assert "spec.template.metadata.annotations" in answer.body["message"]
    assert said in answer.body["message"]
    assert cluster.pods() == {}


def test_whatever_way_a_tenant_takes_it_waits_and_holds_nothing_until_it_is_admitted(
    cluster: Cluster, tenant: Cluster
) -> None:
    """By PodGroup, by an owner, and by an annotation that is written after the pod."""
    team, empty = Team(cluster, cards=3), unique("empty")
    cluster.create_queue(queue(empty, json.dumps({team.card: 0})))
    team.wait_known(tenant)
    tenant.create(podgroup("g", team.queue, 1), *in_group("g", team.unqueued("by-group")))
    tenant.create(owned_by_job(team.unqueued("by-owner"), team.queue))
    tenant.create(card_pod("by-edit", team.card, empty))
    cluster.wait_said("by-edit", "InsufficientScalarQuota")
    moved = {"metadata": {"annotations": {names.QUEUE_NAME_ANNOTATION: team.queue}}}
    tenant.api.patch(tenant.path("by-edit"), moved).expect()
    for name in ("by-group", "by-owner", "by-edit"):
        said = cluster.wait_said(name, reasons.QUEUE_NOT_ALLOWED)
        assert f"Queue <{team.queue}> is not open to namespace <{cluster.namespace}>" in said
    assert (team.allocated(), cluster.running()) == ({}, set())
    assert {charged(found) for found in cluster.pods().values()} == {""}
    team.admit(cluster.namespace)
    cluster.wait_running("by-group", "by-owner", "by-edit")
    cluster.wait_allocated(team.path, {team.card: 3})
    assert {charged(found) for found in cluster.pods().values()} == {team.queue}


def test_the_queue_of_a_namespace_is_closed_like_any_other(cluster: Cluster, tenant: Cluster) -> None:
    """Nobody in it has named the queue, so its pods are not refused: they wait."""
    team = Team(cluster)
    home = f"/api/v1/namespaces/{cluster.namespace}"
    cluster.api.patch(home, {"metadata": {"annotations": {names.QUEUE_NAME_ANNOTATION: team.queue}}}).expect()
    team.wait_known(tenant)
    tenant.create(team.unqueued("a"))
    cluster.wait_said("a", reasons.QUEUE_NOT_ALLOWED)
    team.annotate(**{names.NAMESPACES_ANNOTATION: None})
    cluster.wait_running("a")


def test_labels_of_the_namespace_open_and_close_a_queue_for_those_who_wait(
    cluster: Cluster, tenant: Cluster
) -> None:
    """What runs stays, and stays charged. A tenant cannot label its namespace."""
    team = Team(
        cluster, cards=2, annotations={names.NAMESPACE_SELECTOR_ANNOTATION: "tier in (gold, silver), !legacy"}
    )
    home = f"/api/v1/namespaces/{cluster.namespace}"
    assert tenant.api.patch(home, {"metadata": {"labels": {"tier": "gold"}}}).status == 403
    team.wait_known(tenant)
    tenant.create(podgroup("g", team.queue, 1), *in_group("g", team.unqueued("a")))
    cluster.wait_said("a", reasons.QUEUE_NOT_ALLOWED)
    cluster.api.patch(home, {"metadata": {"labels": {"tier": "gold"}}}).expect()
    cluster.wait_running("a")
    cluster.wait_allocated(team.path, {team.card: 1})
    # Who has waited before tells that the controller has seen the label.
    tenant.create(*in_group("g", team.unqueued("b", cards=2)))
    cluster.wait_said("b", reasons.INSUFFICIENT_SCALAR_QUOTA)
    cluster.api.patch(home, {"metadata": {"labels": {"legacy": ""}}}).expect()
    cluster.wait_said("b", reasons.QUEUE_NOT_ALLOWED)
    tenant.create(*in_group("g", team.unqueued("c")))
    cluster.wait_said("c", reasons.QUEUE_NOT_ALLOWED)
    assert cluster.running() == {"a"}
    assert team.allocated() == {team.card: "1"}


def test_closing_a_queue_tells_those_who_wait_and_ends_nothing(cluster: Cluster, tenant: Cluster) -> None:
    team = Team(cluster, cards=1, annotations={names.NAMESPACES_ANNOTATION: "*"})
    tenant.create(team.pod("a"))
    cluster.wait_running("a")
    cluster.wait_allocated(team.path, {team.card: 1})
    tenant.create(team.pod("b"))
    cluster.wait_said("b", "InsufficientScalarQuota")
    team.annotate(**{names.NAMESPACES_ANNOTATION: "theirs"})
    cluster.wait_said("b", reasons.QUEUE_NOT_ALLOWED)
    assert (cluster.running(), team.allocated()) == ({"a"}, {team.card: "1"})


def test_the_bind_of_a_pod_that_never_passed_the_gate_is_refused_and_it_holds_nothing(
    cluster: Cluster, tenant: Cluster
) -> None:
    """Its scheduler is none of ours. The one card of the queue goes to whom it belongs meanwhile."""
    team = Team(cluster, cards=1)
    team.wait_known(tenant)
    node = next(
        node["metadata"]["name"]
        for node in cluster.api.get("/api/v1/nodes").expect()["items"]
        if node["metadata"]["labels"].get("nvidia.com/gpu.product") == team.card
    )
    tenant.create(podgroup("g", team.queue, 1), *in_group("g", team.unqueued("a", schedulerName=NOBODY)))

    def refused_as_closed() -> bool:
        """Otherwise at first, while the controller has not seen the group."""
        answer = cluster.bind(binding("a", node))
        assert answer.status == 409, answer.body
        return f"[{reasons.QUEUE_NOT_ALLOWED}] Queue <{team.queue}>" in answer.body["message"]

    wait_for("the bind is refused to who may not use the queue", refused_as_closed)
    cluster.plane.create_namespace(theirs := unique("theirs"))
    team.annotate(**{names.NAMESPACES_ANNOTATION: theirs})
    rightful = Cluster(cluster.plane, theirs)
    try:
        wait_for(
            "the rightful tenant is admitted", lambda: rightful.try_create(team.pod("b")).status in (201, 409)
        )
        rightful.wait_running("b")
    finally:
        rightful.close()
    team.admit(cluster.namespace)
    wait_for("the bind is granted", lambda: cluster.bind(binding("a", node)).status == 201)
    assert charged(cluster.pod("a")) == team.queue


@pytest.mark.parametrize(
    ("annotation", "text", "said"),
    [
        (names.NAMESPACES_ANNOTATION, "Team_A", '"Team_A" can be the name of no namespace'),
        (names.NAMESPACE_SELECTOR_ANNOTATION, "tier in gold", "values in parentheses"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_is_written(
    cluster: Cluster, annotation: str, text: str, said: str
) -> None:
    team, new = Team(cluster), queue(unique("q"), "{}")
    new["metadata"]["annotations"][annotation] = text
    assert cluster.api.create(new).status == 400
    answer = team.try_annotate(**{annotation: text})
    assert answer.status == 400
    assert f"metadata.annotations[{annotation}]: Invalid value: " in answer.body["message"]
    assert said in answer.body["message"]


def test_what_cannot_be_read_and_is_stored_admits_nobody_and_is_told_on_the_queue(
    cluster: Cluster, tenant: Cluster, installation: Installation
) -> None:
    team = Team(cluster, cards=1, annotations={names.NAMESPACES_ANNOTATION: "*"})
    tenant.create(team.pod("a"))
    cluster.wait_running("a")
    tenant.create(team.pod("b"))
    cluster.wait_said("b", "InsufficientScalarQuota")
    (webhook,) = installation.webhook_processes
    webhook.kill()
    try:
        pass_queues(cluster, installation)
        garbage = {names.NAMESPACES_ANNOTATION: f"{cluster.namespace} and others"}
        wait_for("it is stored", lambda: team.try_annotate(**garbage).status == 200)
        cluster.wait_said("b", reasons.QUEUE_NOT_ALLOWED)
    finally:
        webhook.start()
    query = {"fieldSelector": f"involvedObject.name={team.queue},involvedObject.kind=Queue"}

    def told() -> list[str]:
        found = cluster.api.get("/api/v1/namespaces/default/events", **query).expect()["items"]
        return [event["message"] for event in found if event["reason"] == reasons.QUEUE_ACCESS_MALFORMED]

    (message,) = wait_for("the queue is told", told)
    assert f'"{cluster.namespace} and others" can be the name of no namespace' in message
    assert cluster.running() == {"a"}
