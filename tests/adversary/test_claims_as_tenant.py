"""Claims of running pods on a real control plane, as their tenant changes them: the pods are charged what they were let in for."""

from typing import Any

import pytest

from hack.controlplane import wait_for
from tests.adversary.cells import cell
from tests.adversary.scene import Scene
from tests.adversary.ways import MANY, OTHER, OWN, WAYS
from tests.apiserver.cluster import Object

pytestmark = pytest.mark.apiserver

API = "resource.k8s.io/v1"


def claim_of(stage: Scene, pod: str) -> str:
    """The name of the claim that a running pod has, whoever has made it."""
    (found,) = (
        each["metadata"]["name"]
        for each in stage.tenant.api.get(claims(stage)).expect()["items"]
        if pod in {user["name"] for user in each.get("status", {}).get("reservedFor", [])}
    )
    return str(found)


def claims(stage: Scene, name: str | None = None, kind: str = "ResourceClaim") -> str:
    return stage.tenant.api.path(API, kind, stage.tenant.namespace, name)


def asking(kind: str, name: str, device_class: str, count: int) -> Object:
    spec: dict[str, Any] = {
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class, "count": count}}]}
    }
    spec = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def last_word(stage: Scene) -> None:
    """Return once the leader has seen what was done to claims: it lets a pod in that came with one made afterwards."""
    stage.tenant.create(stage.pod("claim", "last", OTHER))
    wait_for("the last one runs", lambda: "last" in stage.admin.running())
    stage.tenant.api.delete(stage.tenant.path("last"), gracePeriodSeconds=0).expect()
    wait_for("it is gone", lambda: "last" not in stage.admin.pods())


@pytest.mark.parametrize(
    "way", [cell("claims made larger", way) for way in ("claim", "template", "extended")]
)
def test_a_claim_made_anew_for_all_there_is_charges_nobody_with_it(stage: Scene, way: str) -> None:
    """Deleted while the pod runs, finalizer and all, and made again under its name for eight devices that nobody has.

    The open queue has quota for eight: were it charged with the new claim, it would have none left for whoever else uses it.
    """
    stage.first(way)
    stage.tenant.create(stage.pod(way, "shared", OTHER))
    stage.admin.wait_running("a", "shared")
    for pod in ("a", "shared"):
        name = claim_of(stage, pod)
        was = stage.tenant.api.get(claims(stage, name)).expect()["metadata"]
        stage.take_away_claim(name)
        larger = asking("ResourceClaim", name, WAYS[way].key.partition("/")[2], MANY)
        # It looks as if it had been made for the pod.
        larger["metadata"] |= {key: was[key] for key in ("annotations", "ownerReferences") if key in was}
        stage.tenant.create(larger)
    last_word(stage)
    stage.tenant.create(stage.pod(way, "b"), stage.pod(way, "other", OTHER))
    stage.admin.wait_running("a", "shared", "other")
    said = stage.admin.wait_said("b", WAYS[way].short)
    assert stage.queues[OWN] in said
    two = {WAYS[way].key: "2"}
    one = {WAYS[way].key: "1"}
    wait_for(
        "each queue is charged what it let in",
        lambda: [stage.admin.allocated(stage.paths[short]) for short in (OWN, OTHER)] == [one, two],
    )
    assert stage.admin.running() == {"a", "shared", "other"}


@pytest.mark.parametrize("way", [cell("claims disowned", "template")])
def test_a_claim_that_belongs_to_nobody_any_more_is_paid_for_by_the_pod_that_has_it(
    stage: Scene, way: str
) -> None:
    """Its owner references are patched away, and its template is gone; the next one comes by another template."""
    stage.first(way)
    disowned = claims(stage, claim_of(stage, "a"))
    stage.tenant.api.patch(disowned, {"metadata": {"ownerReferences": None}}).expect()
    stage.tenant.api.delete(claims(stage, "each", "ResourceClaimTemplate")).expect()
    another = asking("ResourceClaimTemplate", "another", WAYS[way].key.partition("/")[2], 1)
    stage.tenant.create(another)
    last_word(stage)
    made = stage.pod(way, "b")
    made["spec"]["resourceClaims"] = [{"name": "dev", "resourceClaimTemplateName": "another"}]
    stage.tenant.create(made)
    stage.assert_waits(way)
    stage.tenant.api.get(disowned).expect()
