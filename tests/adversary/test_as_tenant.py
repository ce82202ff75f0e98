"""Attacks on a real control plane, as a tenant makes them: a token of a ServiceAccount with `edit`, and plain requests.

They show some cells of the table in `cells`, and what CEL and the API server make of an attack; the whole table is tried on the
offline model in `test_matrix`.
"""

from typing import Final

import pytest

from core import names, reasons
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.install import Installation
from tests.adversary.cells import cell
from tests.adversary.scene import NOBODY, Scene, assert_refused
from tests.adversary.ways import OTHER, OWN, WAYS
from tests.apiserver.cluster import Object, charged, gates, unique, wait_known
from tests.apiserver.manifests import JOB_OUT_OF_REACH, binding, podgroup

pytestmark = pytest.mark.apiserver

QUEUE, GROUP = names.QUEUE_NAME_ANNOTATION, names.GROUP_NAME_ANNOTATION
SCHEDULER: Final = "kube-scheduler"
CONTAINER: Final = {"name": "late", "image": "none"}


# -- what a tenant holds, and what cannot be -------------------------------------------------------------------------


def test_a_tenant_writes_nothing_that_we_rest_on(stage: Scene) -> None:
    """Neither status nor Binding nor what admission and quotas consist of; that is what the table assumes."""
    stage.equip("card")
    stage.tenant.create(stage.pod("card", "a"))
    pod, api = stage.tenant.path("a"), stage.tenant.api
    namespace = f"/api/v1/namespaces/{stage.tenant.namespace}"
    admission = "/apis/admissionregistration.k8s.io/v1"
    claims = f"/apis/resource.k8s.io/v1/namespaces/{stage.tenant.namespace}/resourceclaims"
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{stage.tenant.namespace}/endpointslices"
    forbidden = [
        api.patch(f"{pod}/status", {"metadata": {"annotations": {QUEUE: "x"}}}),
        api.patch(f"{pod}/ephemeralcontainers", {"spec": {"ephemeralContainers": [CONTAINER]}}, "strategic"),
        api.request("POST", f"{pod}/binding", binding("a", "n")),
        api.request("POST", f"{namespace}/bindings", binding("a", "n")),
        api.patch(namespace, {"metadata": {"annotations": {QUEUE: "x"}}}),
        api.patch(stage.paths[OWN], {"metadata": {"annotations": {names.CARD_QUOTA_ANNOTATION: "{}"}}}),
        api.patch(f"{stage.paths[OWN]}/status", {"status": {"allocated": {"A": "0"}}}),
        api.request("POST", f"{namespace}/endpoints", {"kind": "Endpoints", "metadata": {"name": "to-us"}}),
        api.request("POST", slices, {"kind": "EndpointSlice", "metadata": {"name": "to-us"}}),
        api.patch(f"{pod}/resize", {"spec": {}}),
        api.patch(f"{claims}/any/status", {"status": {}}),
        api.delete(f"{admission}/validatingadmissionpolicybindings/cardquota-gate"),
        api.delete(f"{admission}/mutatingwebhookconfigurations/cardquota-mutating"),
        api.get("/apis/coordination.k8s.io/v1/namespaces/cardquota-system/leases/cardquota"),
        api.get("/api/v1/namespaces/cardquota-system/secrets"),
    ]
    assert [answer.status for answer in forbidden] == [403] * len(forbidden)


def test_no_resize_and_no_ephemeral_container_gets_a_card(stage: Scene) -> None:
    """Not even for an administrator: the API server knows neither."""
    stage.first("card")
    api, pod = stage.admin.api, stage.admin.path("a")
    limits = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}
    grown = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
    assert_refused(api.patch(f"{pod}/resize", grown, "strategic"), "resiz", status=422)
    late = {"spec": {"ephemeralContainers": [{**CONTAINER, "resources": limits}]}}
    answer = api.patch(f"{pod}/ephemeralcontainers", late, "strategic")
    assert_refused(answer, "cannot be set for an Ephemeral Container", status=422)


# -- at creation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [cell("create", way) for way in ("init", "sidecar", "template", "implicit")])
def test_one_more_than_the_quota_waits(stage: Scene, way: str) -> None:
    stage.first(way)
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("create", way) for way in ("unnamed", "beside")])
def test_cards_that_no_quota_would_count_are_refused(stage: Scene, way: str) -> None:
    stage.equip("mps")
    stage.equip("card")
    made = stage.pod(way, "b")
    wait_for("the nodes are known", lambda: stage.tenant.try_create(made, dryRun="All").status != 201)
    assert_refused(stage.tenant.try_create(made), "card", status=400)
    past_a_scheduler = stage.tenant.try_create(stage.pod(way, "b", nodeName="n", schedulerName=NOBODY))
    assert past_a_scheduler.status in {400, 403}
    assert stage.admin.pods() == {}


@pytest.mark.parametrize("way", [cell("image of a static pod", way) for way in ("card", "share")])
def test_nobody_but_a_kubelet_makes_the_image_of_a_static_pod(stage: Scene, way: str) -> None:
    """It would be on a node at once, and charged to whatever queue it names."""
    stage.equip(way)
    image = stage.pod(way, "b", OTHER, nodeName="some-node")
    image["metadata"]["annotations"][names.MIRROR_POD_ANNOTATION] = "x"
    assert_refused(stage.tenant.try_create(image), "nodeName")
    assert stage.charged() == []


@pytest.mark.parametrize("way", [cell("nodeName", way) for way in ("card", "share")])
def test_nobody_chooses_the_node_of_cards_or_shares(stage: Scene, way: str) -> None:
    """Past gate and bind the pod would run, whichever scheduler it names: nobody schedules it any more."""
    stage.equip(way)
    for scheduler in ("default-scheduler", NOBODY):
        made = stage.pod(way, "b", OTHER, nodeName="some-node", schedulerName=scheduler)
        assert_refused(stage.tenant.try_create(made), "nodeName")
    assert stage.admin.pods() == {}


@pytest.mark.parametrize("way", [cell("foreign queue", "claim")])
def test_who_comes_with_a_node_is_charged_to_no_queue_that_is_closed_to_it(
    stage: Scene, installation: Installation, way: str
) -> None:
    """No scheduler and no bind had a say, and what the queue would be charged with nobody could use."""
    stage.equip(way)
    closed = {names.NAMESPACES_ANNOTATION: "theirs", names.CARD_QUOTA_ANNOTATION: '{"A": 3}'}
    stage.admin.api.patch(stage.paths[OTHER], {"metadata": {"annotations": closed}}).expect()
    wait_known(installation, stage.queues[OTHER], "A", 3)  # and with it that it is closed
    stage.tenant.create(podgroup("g", stage.queues[OTHER], 1))
    early, made = stage.pod(way, "early", ""), stage.pod(way, "b", "", nodeName="some-node")
    for each in (early, made):
        each["metadata"].setdefault("annotations", {})[GROUP] = "g"
    stage.tenant.create(early)
    # What is said to one at the gate shows that the controller knows the group as well.
    stage.admin.wait_said("early", reasons.QUEUE_NOT_ALLOWED)
    stage.tenant.create(made)
    wait_for("its queue is on record", lambda: charged(stage.admin.pod("b")))
    assert charged(stage.admin.pod("b")) == "default"
    assert stage.admin.allocated(stage.paths[OTHER]) == {}


@pytest.mark.parametrize("way", [cell("other scheduler", "extended")])
def test_a_scheduler_that_is_none_of_ours_binds_nothing_beyond_the_quota(stage: Scene, way: str) -> None:
    stage.first(way)
    stage.tenant.create(stage.pod(way, "b", schedulerName=NOBODY))
    node = stage.admin.pod("a")["spec"]["nodeName"]
    assert gates(stage.admin.pod("b")) == []
    assert_refused(stage.tenant.bind(binding("b", node)), "cannot create")
    assert_refused(stage.admin.bind(binding("b", node)), WAYS[way].short, status=409)
    assert stage.charged() == [stage.queues[OWN]]


def test_who_comes_with_a_node_keeps_the_claim_that_another_pod_was_let_in_for(stage: Scene) -> None:
    """By design, see docs/security.md: nobody asks for its quota, and it is charged to the queue that it names."""
    stage.first("claim")
    node = stage.admin.pod("a")["spec"]["nodeName"]
    made = stage.pod("card", "kept", OTHER, nodeName=node)
    del made["metadata"]["annotations"][names.CARD_NAME_ANNOTATION]
    made["spec"]["containers"][0].pop("resources")
    made["spec"]["resourceClaims"] = [{"name": "dev", "resourceClaimName": "of-a"}]
    stage.tenant.create(made)
    stage.admin.wait_running("a", "kept")
    wait_for("the claim is reserved for it", lambda: "kept" in stage.reserved_for("of-a"))
    stage.admin.finish("a")
    stage.tenant.create(stage.pod("claim", "b"))
    stage.admin.wait_running("b", "kept")
    wait_for("its queue is on record", lambda: charged(stage.admin.pod("kept")))
    assert charged(stage.admin.pod("kept")) == stage.queues[OTHER]
    wait_for("its claim is on record", lambda: stage.annotation("kept", names.CLAIMS_ANNOTATION))
    # It is charged as long as it runs, though its tenant takes the claim out of sight, finalizers and all.
    stage.take_away_claim("of-a")
    stage.tenant.create(stage.pod("claim", "d", OTHER))
    stage.admin.wait_running("b", "kept", "d")
    both = {WAYS["claim"].key: "2"}
    wait_for("both are charged", lambda: stage.admin.allocated(stage.paths[OTHER]) == both)


# -- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [cell("update while gated", "choice")])
def test_who_waits_gets_no_further_by_editing(stage: Scene, way: str) -> None:
    stage.first(way)
    stage.assert_second_waits(way)
    assert_refused(stage.patch("b", {"spec": {"schedulingGates": None}}), "quota controller only")
    assert_refused(stage.annotate("b", **{names.CHARGED_QUEUE_ANNOTATION: stage.queues[OTHER]}), "records")
    assert_refused(stage.annotate("b", **{names.ASSIGNED_ANNOTATION: '{"A":0}'}), "records")
    assert_refused(stage.patch("b", {"metadata": {"labels": {names.MANAGED_LABEL: None}}}), "belongs to")
    assert_refused(stage.annotate("b", **{names.CARD_NAME_ANNOTATION: None}), "card", status=400)
    stage.assert_waits(way)


def rewrite(stage: Scene, name: str) -> list[Answer]:
    """All that a pod was counted by, as its tenant edits it."""
    records = (names.CHARGED_QUEUE_ANNOTATION, names.ASSIGNED_ANNOTATION, names.CLAIMS_ANNOTATION)
    writes: list[Object] = [
        {QUEUE: stage.queues[OTHER]},
        {names.JOB_QUEUE_ANNOTATION: stage.queues[OTHER]},
        {names.CARD_NAME_ANNOTATION: "B"},
        *({key: "x"} for key in records),
    ]
    return [stage.annotate(name, **entries) for entries in writes]


@pytest.mark.parametrize("way", [cell("update after lift", "share")])
def test_what_was_lifted_is_counted_by_what_it_was_lifted_for(
    control_plane: ControlPlane, stage: Scene, way: str
) -> None:
    """No scheduler looks at it meanwhile."""
    stage.equip(way)
    control_plane.stop_process(SCHEDULER)
    try:
        stage.tenant.create(stage.pod(way, "a"))
        wait_for("it is lifted", stage.charged)
        assert [answer.status for answer in rewrite(stage, "a")] == [403] * 6
        assert stage.admin.running() == set()
    finally:
        control_plane.start_process(SCHEDULER)
    stage.admin.wait_running("a")
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("update after bind", "mps")])
def test_what_runs_is_counted_by_what_it_was_lifted_for(stage: Scene, way: str) -> None:
    stage.first(way)
    assert [answer.status for answer in rewrite(stage, "a")] == [403] * 6
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("owner reference", "mig")])
def test_another_owner_moves_nothing(stage: Scene, way: str) -> None:
    stage.first(way)
    stage.patch("a", {"metadata": {"ownerReferences": [JOB_OUT_OF_REACH]}}).expect()
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("PodGroup", "claim")])
def test_another_group_moves_nothing(stage: Scene, way: str) -> None:
    """The group that named the queue is moved, deleted, and made anew for another."""
    stage.equip(way)
    stage.tenant.create(podgroup("g", stage.queues[OWN], 1))
    made = stage.pod(way, "a", "")
    made["metadata"].setdefault("annotations", {})[GROUP] = "g"
    stage.tenant.create(made)
    stage.admin.wait_running("a")
    path = stage.tenant.api.path("scheduling.volcano.sh/v1beta1", "PodGroup", stage.tenant.namespace, "g")
    stage.tenant.api.patch(path, {"spec": {"queue": stage.queues[OTHER]}}).expect()
    stage.tenant.api.delete(path).expect()
    stage.tenant.create(podgroup("g", stage.queues[OTHER], 1))
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("status", "card")])
def test_who_may_write_the_status_of_pods_moves_nothing_with_it(stage: Scene, way: str) -> None:
    """An administrator here: a tenant may not, see above."""
    stage.first(way)
    status = f"{stage.admin.path('a')}/status"
    for entries in ({names.CHARGED_QUEUE_ANNOTATION: "x"}, {QUEUE: stage.queues[OTHER]}):
        assert_refused(stage.admin.api.patch(status, {"metadata": {"annotations": entries}}))
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("binding by hand", "template")])
def test_what_waits_is_bound_by_nobody(stage: Scene, way: str) -> None:
    stage.first(way)
    stage.assert_second_waits(way)
    node = stage.admin.pod("a")["spec"]["nodeName"]
    forged = {names.CHARGED_QUEUE_ANNOTATION: stage.queues[OTHER], names.CLAIMS_ANNOTATION: "x"}
    assert_refused(stage.tenant.bind(binding("b", node, annotations=forged)), "cannot create")
    assert_refused(stage.admin.bind(binding("b", node, annotations=forged)), reasons.POD_GATED, status=409)
    stage.assert_waits(way)


# -- with parts of us away -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [cell("no controller", "share")])
def test_while_nobody_leads_what_comes_waits(stage: Scene, installation: Installation, way: str) -> None:
    stage.first(way)
    (controller,) = installation.controller_processes
    controller.kill()
    try:
        stage.tenant.create(stage.pod(way, "b"))
        assert_refused(stage.patch("b", {"spec": {"schedulingGates": None}}), "quota controller only")
        assert [answer.status for answer in rewrite(stage, "a")] == [403] * 6
        node = stage.admin.pod("a")["spec"]["nodeName"]
        assert stage.admin.bind(binding("b", node)).status == 409
    finally:
        controller.start()
    # Whoever leads next waits for the lease of the one that was killed.
    stage.admin.wait_said("b", WAYS[way].short, timeout_s=120.0)
    stage.assert_waits(way)


@pytest.mark.parametrize("way", [cell("PodGroup", "card")])
def test_who_leads_next_charges_what_runs_by_its_record(
    stage: Scene, installation: Installation, way: str
) -> None:
    """All that named its queue has moved while nobody led, and who leads next has never seen it otherwise."""
    stage.equip(way)
    stage.tenant.create(podgroup("g", stage.queues[OWN], 1))
    made = stage.pod(way, "a", "")
    made["metadata"]["annotations"][GROUP] = "g"
    stage.tenant.create(made)
    stage.admin.wait_running("a")
    (controller,) = installation.controller_processes
    controller.stop()
    try:
        path = stage.tenant.api.path("scheduling.volcano.sh/v1beta1", "PodGroup", stage.tenant.namespace, "g")
        stage.tenant.api.patch(path, {"spec": {"queue": stage.queues[OTHER]}}).expect()
    finally:
        controller.start()
    stage.assert_second_waits(way)


@pytest.mark.parametrize("way", [cell("no webhook", "mig")])
def test_while_the_webhook_is_away_nobody_comes_past_the_gate(
    stage: Scene, installation: Installation, way: str
) -> None:
    stage.first(way)
    (webhook,) = installation.webhook_processes
    webhook.kill()
    try:
        for name, more in (("b", {}), (unique("c"), {"schedulerName": NOBODY})):
            assert_refused(stage.tenant.try_create(stage.pod(way, name, **more)), status=500)
        assert [answer.status for answer in rewrite(stage, "a")] == [403] * 6
    finally:
        webhook.start()
    wait_for("pods are admitted", lambda: stage.tenant.try_create(stage.pod(way, "b")).status in {201, 409})
    stage.assert_waits(way)
