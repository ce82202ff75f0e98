"""Deletions and evictions on a real control plane, as a tenant makes them: what may run on is charged on, by force or not."""

from typing import Final

import pytest

from core import names
from hack.controlplane import Answer, wait_for
from hack.controlplane.components import DELETE_AFTER
from tests.adversary.scene import NOBODY, Scene, assert_refused
from tests.adversary.ways import OTHER
from tests.apiserver.cluster import charged
from tests.apiserver.manifests import binding

pytestmark = pytest.mark.apiserver

YEAR_S: Final = 31_536_000


def test_an_eviction_with_a_long_grace_frees_no_quota(stage: Scene) -> None:
    """`edit` may evict: that is a deletion, with a grace that whoever evicts names."""
    stage.equip("card")
    slow = stage.pod("card", "a", terminationGracePeriodSeconds=YEAR_S)
    slow["metadata"]["annotations"][DELETE_AFTER] = "1h"
    stage.tenant.create(slow)
    stage.admin.wait_running("a")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    eviction["deleteOptions"] = {"gracePeriodSeconds": YEAR_S}
    stage.tenant.api.request("POST", f"{stage.tenant.path('a')}/eviction", eviction).expect(201)
    assert stage.admin.pod("a")["metadata"]["deletionGracePeriodSeconds"] == YEAR_S
    stage.assert_second_waits("card")


def test_a_forced_deletion_frees_no_quota_of_what_may_run_on(stage: Scene) -> None:
    """The pod would be gone at once, and its kubelet gives its containers the year. Shortened first, they end."""
    stage.equip("card")
    slow = stage.pod("card", "a", terminationGracePeriodSeconds=YEAR_S)
    slow["metadata"]["annotations"][DELETE_AFTER] = "1h"
    stage.tenant.create(slow)
    stage.admin.wait_running("a")
    api, path = stage.tenant.api, stage.tenant.path("a")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    eviction["deleteOptions"] = {"gracePeriodSeconds": 0}

    def forced() -> list[Answer]:
        return [
            api.delete(path, gracePeriodSeconds=0),
            api.delete(stage.tenant.path(), gracePeriodSeconds=0),
            api.request("DELETE", f"{path}?gracePeriodSeconds=0"),
        ]

    for answer in forced():
        assert_refused(answer, "quota.maxFreeGrace (5m)")
    assert_refused(api.request("POST", f"{path}/eviction", eviction), "without grace")
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
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}}
    eviction["deleteOptions"] = {"gracePeriodSeconds": 0}
    stage.admin.api.request("POST", f"{stage.admin.path('evicted')}/eviction", eviction).expect(201)
    wait_for("both are gone", lambda: stage.admin.pods() == {})
