"""Device quota on a real control plane: claims made by the real controllers, allocated by a stand-in for a driver."""

import json

import pytest

from core import names, reasons
from hack.controlplane import wait_for
from hack.controlplane.nodes import node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.devices import Devices, claiming, queue_path
from tests.apiserver.manifests import binding, in_group, podgroup
from tests.builders import a_queue
from tests.builders.claims import a_claim, a_way

SHORT = reasons.INSUFFICIENT_DEVICE_QUOTA


@pytest.fixture
def devices(cluster: Cluster) -> Devices:
    """A DeviceClass of the test's own, and a node for pods whose claims are allocated."""
    cluster.add_nodes(node(unique("node")))
    return Devices(cluster)


def numbers(requested: int, used: int, limit: int) -> str:
    return f"quota exceeded: requested {requested}, used {used}, limit {limit}"


def test_pods_with_a_template_are_held_and_lifted_one_by_one(cluster: Cluster, devices: Devices) -> None:
    """Their claims are made while they are gated; the one that waits is let in when the other goes."""
    queue = devices.queue(1)
    devices.template("each")
    for name in ("a", "b"):
        cluster.create(claiming(name, queue, template="each"))
    assert numbers(1, 1, 1) in cluster.wait_said("b", SHORT)
    devices.wait_lifted("a")
    assert devices.generated("b") != devices.generated("a")
    lifted = cluster.pod("a")
    assert lifted["metadata"]["annotations"][names.CHARGED_QUEUE_ANNOTATION] == queue
    assert "cardquota" in {entry["manager"] for entry in lifted["metadata"]["managedFields"]}
    cluster.api.delete(cluster.path("a"), gracePeriodSeconds=0).expect()
    devices.wait_lifted("b")


def test_usage_is_shown_in_the_queue_and_in_those_above_while_pods_run(
    cluster: Cluster, devices: Devices, installation: Installation
) -> None:
    org = devices.queue(None)
    queue = devices.queue(4, parent=org)
    devices.claim("c", 2)
    cluster.create(claiming("a", queue, claim="c"))
    devices.wait_lifted("a")
    assert cluster.allocated(queue_path(queue)) == {}
    devices.allocate("c", "r", "r")
    cluster.wait_running("a")
    for name in (queue, org):
        devices.wait_shown(name, {devices.key: "2"})
    text, labels = (
        installation.metrics("controller"),
        {"queue_name": org, "device_class": devices.device_class},
    )
    assert samples(text, "cardquota_queue_device_allocated", **labels) == 2
    assert samples(text, "cardquota_queue_device_limit", **{**labels, "queue_name": queue}) == 4
    cluster.finish("a")
    for name in (queue, org):
        devices.wait_shown(name, {})


def test_pods_that_share_a_claim_need_it_once(cluster: Cluster, devices: Devices) -> None:
    queue = devices.queue(1)
    devices.claim("shared")
    devices.claim("other")
    cluster.create(claiming("a", queue, claim="shared"), claiming("b", queue, claim="shared"))
    devices.wait_lifted("a", "b")
    cluster.create(claiming("c", queue, claim="other"))
    cluster.wait_said("c", SHORT)
    cluster.api.delete(cluster.path("a"), gracePeriodSeconds=0).expect()
    wait_for("a is gone", lambda: set(cluster.pods()) == {"b", "c"})
    assert cluster.gated() == {"c"}, "b has the claim still"
    cluster.api.delete(cluster.path("b"), gracePeriodSeconds=0).expect()
    devices.wait_lifted("c")


def test_a_smaller_limit_above_holds_for_all_below_together(cluster: Cluster, devices: Devices) -> None:
    org = devices.queue(2)
    left, right = (devices.queue(8, parent=org) for _ in range(2))
    devices.template("two", 2)
    cluster.create(claiming("a", left, template="two"))
    devices.wait_lifted("a")
    cluster.create(claiming("b", right, template="two"))
    said = cluster.wait_said("b", SHORT)
    assert f"queue {org}: DeviceClass" in said
    assert f"queue {right} is below it" in said
    devices.set_quota(org, 4)
    devices.wait_lifted("a", "b")


def test_a_quota_below_what_is_used_evicts_nobody_and_is_told(cluster: Cluster, devices: Devices) -> None:
    queue = devices.queue(2)
    devices.template("each")
    for name in ("a", "b"):
        cluster.create(claiming(name, queue, template="each"))
        devices.allocate(devices.generated(name), "r")
    cluster.wait_running("a", "b")
    devices.set_quota(queue, 1)
    assert f"{devices.key} used 2, limit 1" in wait_for(
        "the queue is told", lambda: _said_on_queue(cluster, queue)
    )
    cluster.create(claiming("c", queue, template="each"))
    assert numbers(1, 2, 1) in cluster.wait_said("c", SHORT)
    cluster.finish("a")
    wait_for("a has ended", lambda: cluster.running() == {"b"})
    cluster.create(claiming("d", queue, template="each"))
    assert numbers(1, 1, 1) in cluster.wait_said("d", SHORT)
    assert cluster.gated() == {"c", "d"}
    assert len(cluster.events("c")) == 1
    cluster.finish("b")
    wait_for("c is lifted", lambda: cluster.gated() == {"d"})


def _said_on_queue(cluster: Cluster, queue: str, reason: str = reasons.QUOTA_EXCEEDED) -> str:
    query = {"fieldSelector": f"involvedObject.name={queue},reason={reason}"}
    found = cluster.api.get("/api/v1/namespaces/default/events", **query).expect()["items"]
    return next((event["message"] for event in found), "")


def test_a_card_that_a_class_offers_too_is_told_on_the_queue(cluster: Cluster) -> None:
    """Nobody can tell that they are the same devices; whoever has quota for both has them once by each name."""
    card, device_class = cluster.add_card(), f"{unique('gpu')}.nvidia.com"
    metadata = {"name": device_class}
    cluster.make(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata, "spec": {}}
    )
    queue = (
        a_queue(unique("q")).cards({card: 1}).devices({"capability": {device_class: {"count": 1}}}).build()
    )
    cluster.create_queue(queue)
    said = wait_for(
        "the queue is told",
        lambda: _said_on_queue(cluster, queue["metadata"]["name"], reasons.DEVICES_COUNTED_TWICE),
    )
    assert f"<{card}> and DeviceClass {device_class} (limit 1) may be the same devices" in said


def test_a_claim_may_come_after_its_pod(cluster: Cluster, devices: Devices) -> None:
    """By name as well as by template."""
    queue = devices.queue(2)
    cluster.create(claiming("a", queue, claim="late"), claiming("b", queue, template="later"))
    assert f"ResourceClaim {cluster.namespace}/late does not exist" in cluster.wait_said(
        "a", reasons.CLAIM_NOT_FOUND
    )
    assert "ResourceClaimTemplate" in cluster.wait_said("b", reasons.CLAIM_NOT_FOUND)
    devices.claim("late")
    devices.wait_lifted("a")
    devices.template("later")
    devices.wait_lifted("a", "b")


def test_a_queue_that_is_made_anew_knows_who_has_its_devices(cluster: Cluster, devices: Devices) -> None:
    queue = devices.queue(1)
    devices.template("each")
    cluster.create(claiming("a", queue, template="each"))
    devices.wait_lifted("a")
    cluster.api.delete(queue_path(queue)).expect()
    cluster.create(claiming("b", queue, template="each"))
    cluster.wait_said("b", reasons.QUEUE_NOT_FOUND)
    cluster.api.create(a_queue(queue).devices(devices.quota(1)).build()).expect(201)
    assert numbers(1, 1, 1) in cluster.wait_said("b", SHORT)
    cluster.api.delete(cluster.path("a"), gracePeriodSeconds=0).expect()
    devices.wait_lifted("b")


def test_what_a_driver_chose_counts_from_then_on(cluster: Cluster, devices: Devices) -> None:
    """Two devices or one: two until the choice is made, one afterwards."""
    queue = devices.queue(2)
    ways = (a_way(devices.device_class, name="two", count=2), a_way(devices.device_class, name="one"))
    cluster.create(a_claim("any").first_available("r", *ways).build())
    devices.template("each")
    cluster.create(claiming("a", queue, claim="any"))
    devices.wait_lifted("a")
    cluster.create(claiming("b", queue, template="each"))
    assert numbers(1, 2, 2) in cluster.wait_said("b", SHORT)
    devices.allocate("any", "r/one")
    devices.wait_lifted("a", "b")


def test_a_gang_gets_its_devices_all_at_once(cluster: Cluster, devices: Devices) -> None:
    queue = devices.queue(2)
    devices.template("each")
    cluster.create(podgroup("g", queue, 3))
    cluster.create(*in_group("g", *[claiming(f"m{n}", queue, template="each") for n in range(3)]))
    cluster.wait_said("m0", SHORT)
    assert cluster.gated() == {"m0", "m1", "m2"}
    devices.set_quota(queue, 3)
    devices.wait_lifted("m0", "m1", "m2")


def test_a_broken_chain_holds_its_own_pods_alone(cluster: Cluster, devices: Devices) -> None:
    broken, fine = devices.queue(2, parent=unique("gone")), devices.queue(2)
    devices.template("each")
    cluster.create(claiming("a", broken, template="each"), claiming("b", fine, template="each"))
    devices.wait_lifted("b")
    assert "does not exist" in cluster.wait_said("a", reasons.QUEUE_HIERARCHY_BROKEN)
    assert cluster.gated() == {"a"}


def test_a_claim_made_anew_and_larger_after_the_lift_is_refused_at_the_bind(
    cluster: Cluster, devices: Devices
) -> None:
    """Its owner may delete and create claims as they like; what was let in is the claim that was counted."""
    queue, worker = devices.queue(1), unique("node")
    cluster.add_nodes(node(worker))
    devices.claim("mine")
    cluster.create(claiming("a", queue, claim="mine"))
    devices.wait_lifted("a")
    counted = cluster.api.get(devices.claim_path("mine")).expect()["metadata"]["uid"]
    record = json.loads(cluster.pod("a")["metadata"]["annotations"][names.CLAIMS_ANNOTATION])
    assert [entry["uid"] for entry in record.values()] == [counted]
    cluster.api.delete(devices.claim_path("mine")).expect()
    wait_for("the claim is gone", lambda: cluster.api.get(devices.claim_path("mine")).status == 404)
    devices.claim("mine", 2)

    def refused() -> str:
        answer = cluster.bind(binding("a", worker), dryRun="All")
        return str(answer.body["message"]) if answer.status != 201 else ""

    def refused_for_its_size() -> str:
        """Between the deletion and the new claim the watch shows none of this name: refused too, to be tried again."""
        why = refused()
        return why if reasons.CLAIM_NOT_FOUND not in why else ""

    assert "requested 2, used 0, limit 1" in wait_for("the larger claim is in view", refused_for_its_size)
    devices.set_quota(queue, 2)
    wait_for("there is room", lambda: not refused())
