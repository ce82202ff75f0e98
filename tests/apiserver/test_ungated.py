"""Pods that were never at the gate: they count, they are shown, and nobody touches them."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from hack.installation.rendering import of_kind
from tests.apiserver.cluster import Cluster, Object, gates, samples, unique
from tests.apiserver.manifests import card_pod, queue


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    """The test's namespace without an installation."""
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


def uids(cluster: Cluster) -> dict[str, str]:
    """Pod -> uid of the pods that nobody has told to end."""
    return {
        name: pod["metadata"]["uid"]
        for name, pod in cluster.pods().items()
        if "deletionTimestamp" not in pod["metadata"]
    }


def shown_by_queues(cluster: Cluster, name: str) -> Object:
    """What `cardquota queues` says of a queue."""
    kubeconfig = str(cluster.plane.admin_kubeconfig)
    command = [sys.executable, "-m", "cli", "queues", "--kubeconfig", kubeconfig, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: Object = json.loads(done.stdout)[name]
    return found


def test_pods_from_before_the_installation_count_and_keep_running(cluster: Cluster) -> None:
    """Three run in a queue that allows two: a fourth waits until two have ended, and the three are left alone."""
    card, name = cluster.add_card(), unique("q")
    cluster.create(*(card_pod(f"old-{number}", card, name) for number in range(3)))
    cluster.wait_running("old-0", "old-1", "old-2")
    before = uids(cluster)
    with Installation(cluster.plane) as installation:
        path = cluster.create_queue(queue(name, json.dumps({card: 2})))
        # There is no Lease, and a former leader might go on beside this one.
        cluster.wait_allocated(path, {card: 3}, timeout_s=60.0)
        cluster.create(card_pod("new", card, name))
        said = cluster.wait_said("new", "InsufficientScalarQuota")
        assert "requested <1000>, total would be <4000>, but capability is <2000>. " in said
        assert "In cards: asks for 1, 3 of 2 are in use;" in said
        assert {pod: uid for pod, uid in uids(cluster).items() if pod != "new"} == before
        metrics = installation.metrics("controller")
        assert samples(metrics, "volcano_queue_card_allocated", queue_name=name, card=card) == 3
        shown = shown_by_queues(cluster, name)
        assert (shown["quota"], shown["allocated"], shown["waiting"]) == (
            {card: "2"},
            {card: "3"},
            {card: "1"},
        )
        cluster.finish("old-0", "old-1")
        cluster.wait_running("old-2", "new")
        cluster.wait_allocated(path, {card: 2})


def test_pods_made_while_the_webhook_was_away_count_and_keep_running(cluster: Cluster) -> None:
    """An administrator let them pass; they are stored without gate, and what they use is missing to those at the gate."""
    card, name = cluster.add_card(), unique("q")
    with Installation(cluster.plane) as installation:
        path = cluster.create_queue(queue(name, json.dumps({card: 2})))
        cluster.create(card_pod("gated", card, name))
        cluster.wait_running("gated")
        (webhook,) = installation.webhook_processes
        webhook.kill()
        assert cluster.try_create(card_pod("passed", card, name)).status == 500
        ignore_the_webhook(cluster, installation)
        wait_for("pods pass", lambda: cluster.try_create(card_pod("passed", card, name)).status in (201, 409))
        assert gates(cluster.pod("passed")) == []
        assert names.MANAGED_LABEL not in cluster.pod("passed")["metadata"].get("labels", {})
        cluster.wait_running("gated", "passed")
        cluster.wait_allocated(path, {card: 2})
        before = uids(cluster)
        webhook.start()
        wait_for("pods are gated again", lambda: _is_gated(cluster, card_pod("probe", card, name)))
        cluster.create(card_pod("late", card, name))
        cluster.wait_said("late", "InsufficientScalarQuota")
        cluster.set_quota(path, json.dumps({card: 0}))
        cluster.create(card_pod("later", card, name))
        told = "total would be <3000>, but capability is <0>"
        assert told in cluster.wait_said("later", "InsufficientScalarQuota")
        assert {pod: uid for pod, uid in uids(cluster).items() if pod not in {"late", "later"}} == before
        assert cluster.allocated(path) == {card: "2"}


def ignore_the_webhook(cluster: Cluster, installation: Installation) -> None:
    """What an administrator does so that pods can be created while no webhook answers."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for configuration in of_kind(installation.objects, kind).values():
            for index, entry in enumerate(configuration["webhooks"]):
                if entry["name"] == "pods.cardquota.io":
                    replace = {"op": "replace", "path": f"/webhooks/{index}/failurePolicy", "value": "Ignore"}
                    cluster.api.patch(cluster.api.path_of(configuration), [replace], "json").expect()


def _is_gated(cluster: Cluster, probe: Object) -> bool:
    """Whether a pod would be stored with our gate."""
    return names.GATE in gates(cluster.try_create(probe, dryRun="All").expect(201))
