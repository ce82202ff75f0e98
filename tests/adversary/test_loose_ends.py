"""What the API server sees to by itself, and what our books take for granted therefore: shown with the attack, as a tenant."""

from http import HTTPStatus
from typing import Final

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from tests.adversary.scene import NOBODY, Scene, assert_refused
from tests.adversary.ways import CLASS
from tests.apiserver.cluster import Object, charged, gates
from tests.apiserver.manifests import binding

pytestmark = pytest.mark.apiserver

SCHEDULER: Final = "kube-scheduler"
KEPT: Final = ["example.com/kept"]


def test_a_lifted_pod_that_a_finalizer_keeps_on_its_way_out_is_bound_by_nobody(
    control_plane: ControlPlane, stage: Scene
) -> None:
    """It has given its quota back, and the next one has it; its end is put off for as long as its tenant likes."""
    stage.equip("card")
    control_plane.stop_process(SCHEDULER)
    try:
        made = stage.pod("card", "a")
        made["metadata"]["finalizers"] = KEPT
        stage.tenant.create(made)
        wait_for("it is lifted", lambda: charged(stage.admin.pod("a")))
        stage.tenant.api.delete(stage.tenant.path("a")).expect()
        stage.tenant.create(stage.pod("card", "b"))
        wait_for("the next one is lifted", lambda: charged(stage.admin.pod("b")))
        # Neither can a deletion be taken back.
        revived = {"metadata": {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}}
        stage.patch("a", revived).expect()
        assert stage.admin.pod("a")["metadata"]["deletionTimestamp"]
        node = next(iter(stage.admin.api.get("/api/v1/nodes").expect()["items"]))["metadata"]["name"]
        answer = stage.admin.bind(binding("a", node))
        assert answer.status == HTTPStatus.CONFLICT, answer.body
    finally:
        control_plane.start_process(SCHEDULER)
    stage.admin.wait_running("b")
    stage.patch("a", {"metadata": {"finalizers": None}}).expect(200, 404)


def test_devices_for_administration_are_not_for_tenants(stage: Scene) -> None:
    """They cost no quota (`dra.countAdminAccess`), so nobody may ask for them but in namespaces that an administrator labels."""
    stage.equip("claim")
    requests = [{"name": "r", "exactly": {"deviceClassName": CLASS, "adminAccess": True}}]
    spec: Object = {"devices": {"requests": requests}}
    api = "resource.k8s.io/v1"
    claim = {"apiVersion": api, "kind": "ResourceClaim", "metadata": {"name": "free"}, "spec": spec}
    template = {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": spec}}
    for made in (claim, template):
        answer = stage.tenant.try_create(made)
        if answer.status == HTTPStatus.CREATED:
            stored = answer.body["spec"].get("spec", answer.body["spec"])
            (request,) = stored["devices"]["requests"]
            assert "adminAccess" not in request["exactly"], "dropped where the feature is off"
        else:
            assert answer.status in {403, 422}, answer.body


def test_a_gate_of_ours_that_a_pod_brings_along_opens_nothing(stage: Scene) -> None:
    """It asks for nothing at first, or of a scheduler that we gate nothing for, and for a card as soon as it waits."""
    stage.first("card")
    gate = [{"name": names.GATE}]
    own = stage.pod("card", "b", schedulingGates=gate, schedulerName=NOBODY)
    stage.tenant.create(own)
    assert gates(stage.admin.pod("b")) == [names.GATE]
    later = stage.pod("card", "later", schedulingGates=gate)
    del later["metadata"]["annotations"][names.CARD_NAME_ANNOTATION]
    refused = stage.tenant.try_create(later)
    assert refused.status == HTTPStatus.BAD_REQUEST, refused.body
    stage.assert_waits("card")


def test_names_and_numbers_that_no_program_expects_hold_up_nobody(stage: Scene) -> None:
    """Gangs of any size and name, priorities by annotation, groups that are others' names: each waits or runs by itself."""
    stage.equip("card")
    odd = (
        {names.OWN_PREFIX + "gang-name": "g", names.OWN_PREFIX + "gang-size": "9" * 5000},
        {names.OWN_PREFIX + "gang-name": "\u200b", names.OWN_PREFIX + "gang-size": "\uff11\uff12"},
        {names.GROUP_NAME_ANNOTATION: "../" * 80},
        {names.TASK_SPEC_ANNOTATION: "\U0001f4a3" * 1000},
        {names.JOB_QUEUE_ANNOTATION: "\x7f"},
        {names.MGPU_MULTIPLE_ANNOTATION: "9" * 5000},
    )
    answers = []
    for number, more in enumerate(odd):
        made = stage.pod("card", f"odd{number}", "nowhere")
        made["metadata"]["annotations"] |= more
        answers.append(stage.tenant.try_create(made).status)
    assert {*answers} <= {201, 400, 403, 422}, answers
    stage.tenant.create(stage.pod("card", "a"))
    wait_for("an honest one runs", lambda: "a" in stage.admin.running())
    stage.tenant.create(stage.pod("card", "b"))
    stage.admin.wait_said("b", reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert stage.admin.running() == {"a"}


def test_more_than_is_looked_at_is_refused_with_the_limit(stage: Scene) -> None:
    """Alternatives, the length of a card's name, conditions: each costs time for every other card and node there is."""
    conditions = [{"key": f"k{number}", "operator": "Exists"} for number in range(2001)]
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": conditions}]
        }
    }
    picky = stage.pod("card", "b", affinity={"nodeAffinity": required})
    assert_refused(stage.tenant.try_create(picky), "must have at most 2,000 expressions", status=400)
    for card in ("|".join(f"A{number}" for number in range(17)), "A" * 4097):
        made = stage.pod("card", "b")
        made["metadata"]["annotations"][names.CARD_NAME_ANNOTATION] = card
        assert_refused(
            stage.tenant.try_create(made), "at most 16 alternatives in 4,096 characters", status=400
        )
    assert stage.admin.pods() == {}
