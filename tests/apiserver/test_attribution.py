"""Which queue a pod is charged to: it may change while the pod waits, and not afterwards."""

import json

from core import names
from tests.apiserver.cluster import Cluster, charged, unique
from tests.apiserver.manifests import GPU, JOB_OUT_OF_REACH, Object, card_pod, in_group, pod, podgroup, queue


def unqueued_pod(name: str, card: str) -> Object:
    """A pod that asks for one card and names no queue."""
    return pod(name, limits={GPU: 1}, annotations={names.CARD_NAME_ANNOTATION: card})


def a_queue(cluster: Cluster, card: str, quota: int) -> tuple[str, str]:
    """Name and path of a new queue."""
    name = unique("q")
    return name, cluster.create_queue(queue(name, json.dumps({card: quota})))


def name_queue_of_namespace(cluster: Cluster, queue_name: str) -> None:
    annotations = {names.QUEUE_NAME_ANNOTATION: queue_name}
    cluster.api.patch(
        f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"annotations": annotations}}
    ).expect()


def test_a_waiting_pod_follows_its_podgroup_to_another_queue(cluster: Cluster) -> None:
    """The PodGroup of a Deployment's pods is made after the first of them, and named on the pod after that."""
    card = cluster.add_card()
    (none, none_path), (some, some_path) = a_queue(cluster, card, 0), a_queue(cluster, card, 1)
    cluster.create(card_pod("a", card, none))
    cluster.wait_said("a", "InsufficientScalarQuota")
    cluster.create(podgroup("late", some, 1))
    group = {"metadata": {"annotations": {names.GROUP_NAME_ANNOTATION: "late"}}}
    cluster.api.patch(cluster.path("a"), group).expect()
    cluster.wait_running("a")
    cluster.wait_allocated(some_path, {card: 1})
    assert cluster.allocated(none_path) == {}


def test_what_runs_stays_charged_to_the_queue_that_let_it_in_whatever_its_tenant_writes(
    cluster: Cluster,
) -> None:
    """Its PodGroup is moved, made anew elsewhere and deleted, it gets another owner, its namespace names another queue."""
    card = cluster.add_card()
    (first, first_path), (second, second_path) = a_queue(cluster, card, 1), a_queue(cluster, card, 0)
    cluster.create(podgroup("g", first, 1))
    (grouped,) = in_group("g", unqueued_pod("a", card))
    cluster.create(grouped)
    cluster.wait_running("a")
    assert charged(cluster.pod("a")) == first
    cluster.wait_allocated(first_path, {card: 1})
    cluster.create(card_pod("b", card, first))
    cluster.wait_said("b", "InsufficientScalarQuota")
    group = cluster.api.path("scheduling.volcano.sh/v1beta1", "PodGroup", cluster.namespace, "g")
    for other in (second, "nowhere"):
        cluster.api.patch(group, {"spec": {"queue": other}}).expect()
    cluster.api.delete(group).expect()
    cluster.api.patch(cluster.path("a"), {"metadata": {"ownerReferences": [JOB_OUT_OF_REACH]}}).expect()
    name_queue_of_namespace(cluster, second)
    # The queue that nothing names any more is looked at last: by then all of it has been taken in.
    cluster.create(unqueued_pod("c", card))
    assert f"Queue <{second}>" in cluster.wait_said("c", "InsufficientScalarQuota")
    assert cluster.allocated(first_path) == {card: "1"}
    assert cluster.allocated(second_path) == {}
    assert cluster.running() == {"a"}


def test_a_namespace_names_the_queue_of_pods_that_name_none(cluster: Cluster) -> None:
    """A pod's own annotation comes before it, and a change of it moves those that wait."""
    card = cluster.add_card()
    (none, _), (some, some_path), (own, own_path) = (a_queue(cluster, card, quota) for quota in (0, 1, 1))
    name_queue_of_namespace(cluster, none)
    cluster.create(unqueued_pod("a", card), card_pod("b", card, own))
    cluster.wait_running("b")
    assert f"Queue <{none}>" in cluster.wait_said("a", "InsufficientScalarQuota")
    name_queue_of_namespace(cluster, some)
    cluster.wait_running("a", "b")
    cluster.wait_allocated(some_path, {card: 1})
    cluster.wait_allocated(own_path, {card: 1})


def test_a_pod_that_nothing_sends_anywhere_waits_for_the_default_queue(cluster: Cluster) -> None:
    card = cluster.add_card()
    cluster.create(unqueued_pod("a", card))
    assert cluster.wait_said("a", "QueueNotFound").startswith("Queue <default> does not exist")
    path = cluster.create_queue(queue("default", json.dumps({card: 1})))
    cluster.wait_running("a")
    cluster.wait_allocated(path, {card: 1})


def test_a_waiting_pod_may_be_sent_to_another_queue_by_its_owner(cluster: Cluster) -> None:
    """Its annotation may change while it is at the gate; afterwards it is fixed."""
    card = cluster.add_card()
    (none, _), (some, some_path) = a_queue(cluster, card, 0), a_queue(cluster, card, 1)
    cluster.create(card_pod("a", card, none))
    cluster.wait_said("a", "InsufficientScalarQuota")
    move = {"metadata": {"annotations": {names.QUEUE_NAME_ANNOTATION: some}}}
    cluster.api.patch(cluster.path("a"), move).expect()
    cluster.wait_running("a")
    cluster.wait_allocated(some_path, {card: 1})
    back = {"metadata": {"annotations": {names.QUEUE_NAME_ANNOTATION: none}}}
    assert cluster.api.patch(cluster.path("a"), back).status == 403
