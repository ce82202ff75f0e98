"""Deletions and evictions on a real control plane, as a tenant makes them: what may run on is charged on, by force or not."""

from typing import Final

import pytest

from core import names
from hack.controlplane import Answer, wait_for
from hack.controlplane.components import DELETE_AFTER
from tests.adversary.scene import NOBODY, Scene, assert_refused
from tests.adversary.ways import OTHER
from tests.apiserver.cluster import Cluster, charged
from tests.apiserver.manifests import binding

pytestmark = pytest.mark.apiserver

YEAR_S: Final = 31_536_000


def run_slow_pod(stage: Scene) -> None:
    """The tenant's pod `a` runs, and would take a year to end."""
    slow = stage.pod("card", "a", terminationGracePeriodSeconds=YEAR_S)
    slow["metadata"]["annotations"][DELETE_AFTER] = "1h"
    stage.tenant.create(slow)
    stage.admin.wait_running("a")


def evict(whose: Cluster, name: str, grace_s: int) -> Answer:
    """What the API server answers to an eviction of a pod with that grace."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"gracePeriodSeconds": grace_s},
    }
    return whose.api.request("POST", f"{whose.path(name)}/eviction", eviction)


def test_an_eviction_with_a_long_grace_frees_no_quota(stage: Scene) -> None:
    """`edit` may evict: that is a deletion, with a grace that whoever evicts names."""
    stage.equip("card")
    run_slow_pod(stage)
    evict(stage.tenant, "a", YEAR_S).expect(201)
    assert stage.admin.pod("a")["metadata"]["deletionGracePeriodSeconds"] == YEAR_S
    stage.assert_second_waits("card")


def test_a_forced_deletion_frees_no_quota_of_what_may_run_on(stage: Scene) -> None:
    """The pod would be gone at once, and its kubelet gives its containers the year. Shortened first, they end."""
    stage.equip("card")
    run_slow_pod(stage)
    api, path = stage.tenant.api, stage.tenant.path("a")

    def forced() -> list[Answer]:
        return [
            api.delete(path, gracePeriodSeconds=0),
            api.delete(stage.tenant.path(), gracePeriodSeconds=0),
            api.request("DELETE", f"{path}?gracePeriodSeconds=0"),
        ]

    for answer in forced():
        assert_refused(answer, "quota.maxFreeGrace (5m)")
    assert_refused(evict(stage.tenant, "a", 0), "without grace")
    api.delete(path).expect()
    for answer in forced():
        assert_refused(answer, f"run on for {YEAR_S} s")
    stage.assert_second_waits("card")
    api.delete(path, gracePeriodSeconds=60).expect()
    stage.admin.wait_running("a", "b")
    api.delete(path, gracePeriodSeconds=0).expect()
    stage.admin.wait_running("b")


def test_a_forced_deletion_frees_no_quota_of_what_the_bind_alone_has_charged(stage: Scene) -> None:
    """A scheduler that we gate no pod for, and a resource that no expression knows for ours: nothing but a record tells."""
    stage.first("extended")
    stage.tenant.create(
        stage.pod("extended", "b", OTHER, schedulerName=NOBODY, terminationGracePeriodSeconds=YEAR_S)
    )
    stage.admin.bind(binding("b", stage.admin.pod("a")["spec"]["nodeName"])).expect(201)
    wait_for("it is charged", lambda: charged(stage.admin.pod("b")) == stage.queues[OTHER])
    assert names.MANAGED_LABEL not in stage.admin.pod("b")["metadata"].get("labels", {})
    assert_refused(
        stage.tenant.api.delete(stage.tenant.path("b"), gracePeriodSeconds=0), "quota.maxFreeGrace"
    )


def test_whoever_deletes_in_every_namespace_may_force_it(stage: Scene) -> None:
    """Kubelets, Kubernetes' own controllers, an administrator: a pod on a lost node has to go sometime."""
    stage.equip("card")
    for name in ("deleted", "evicted"):
        stage.tenant.create(stage.pod("card", name, OTHER, terminationGracePeriodSeconds=YEAR_S))
    stage.admin.wait_running("deleted", "evicted")
    stage.admin.api.delete(stage.admin.path("deleted"), gracePeriodSeconds=0).expect()
    evict(stage.admin, "evicted", 0).expect(201)
    wait_for("both are gone", lambda: stage.admin.pods() == {})
