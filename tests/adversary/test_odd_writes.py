"""Odd ways to say a thing to a real API server, as a tenant: what counts is what is stored, whatever way it came there."""

import json
from typing import Any, Final

import pytest
import yaml

from core import names, reasons
from hack.controlplane import wait_for
from hack.controlplane.client import PatchKind
from tests.adversary.scene import Scene
from tests.adversary.ways import EXTENDED, OTHER, OWN, WAYS
from tests.apiserver.cluster import Object, charged, gates

pytestmark = pytest.mark.apiserver

RECORD: Final = names.CHARGED_QUEUE_ANNOTATION
POINTER: Final = RECORD.replace("/", "~1")
MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of keys and values together that the API server takes."""
MERGE: Final = "merge"
STRATEGIC: Final = "strategic"
JSON: Final = "json"
APPLY: Final = "apply"


def pods_path(stage: Scene, query: str = "") -> str:
    return f"{stage.tenant.path()}{query}"


def own_gates(stage: Scene) -> dict[str, bool]:
    """The pods of the namespace, and whether each waits at our gate."""
    return {name: names.GATE in gates(pod) for name, pod in stage.admin.pods().items()}


# -- at creation -----------------------------------------------------------------------------------------------------


def test_what_a_client_says_of_the_past_of_a_pod_counts_for_nothing(stage: Scene) -> None:
    """That it is old, has ended, is on its way out, was let in by the controller, or has its devices."""
    stage.first("card")
    made = stage.pod("card", "b")
    made["metadata"] |= {
        "uid": stage.admin.pod("a")["metadata"]["uid"],
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 1,
        "generation": 9,
        "labels": {names.MANAGED_LABEL: "false"},
    }
    made["status"] = {
        "phase": "Succeeded",
        "resourceClaimStatuses": [{"name": "dev", "resourceClaimName": "any"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "any", "requestMappings": []},
    }
    stage.tenant.create(made)
    stage.assert_waits("card")
    stored = stage.admin.pod("b")
    assert stored["status"]["phase"] == "Pending"
    assert not {"resourceClaimStatuses", "extendedResourceClaimStatus"} & stored["status"].keys()
    assert "deletionTimestamp" not in stored["metadata"]
    assert stored["metadata"]["creationTimestamp"] >= stage.admin.pod("a")["metadata"]["creationTimestamp"]
    assert stored["metadata"]["labels"][names.MANAGED_LABEL] == "true"


def test_a_body_that_says_a_thing_twice_is_what_the_server_makes_of_it(stage: Scene) -> None:
    """Strictly read it is refused; otherwise one of both counts, and that one is gated or refused."""
    stage.first("card")
    made = stage.pod("card", "b")
    without: Object = {key: value for key, value in made["metadata"].items() if key != "annotations"}
    less = {**made["spec"], "schedulingGates": [], "containers": [{"name": "main", "image": "none"}]}
    pairs = [("metadata", made["metadata"]), ("spec", made["spec"]), ("metadata", without), ("spec", less)]
    head = [("apiVersion", "v1"), ("kind", "Pod")]
    for validation, order in (("Strict", pairs), ("Ignore", pairs), ("Ignore", pairs[::-1])):
        text = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in [*head, *order])
        path = pods_path(stage, f"?fieldValidation={validation}")
        answer = stage.tenant.api.request("POST", path, f"{{{text}}}".encode())
        if validation == "Strict":
            assert answer.status == 400, answer.body
        elif answer.status == 201:
            asks = bool(answer.body["spec"]["containers"][0].get("resources", {}).get("limits"))
            assert (names.GATE in gates(answer.body)) == asks
            stage.tenant.api.delete(stage.tenant.path("b"), gracePeriodSeconds=0).expect()
            wait_for("it is gone", lambda: "b" not in stage.admin.pods())
    stage.assert_second_waits("card")


def test_every_door_to_a_new_pod_has_the_gate(stage: Scene) -> None:
    """YAML, a generated name, an apply of what is not there yet, under the controller's name too, and a first rank."""
    stage.first("card")
    api, made = stage.tenant.api, stage.pod("card", "b", priorityClassName="system-cluster-critical")
    doors = [
        api.request("POST", pods_path(stage), yaml.safe_dump(made).encode(), content_type="application/yaml"),
        api.request(
            "POST",
            pods_path(stage),
            {**made, "metadata": {**made["metadata"], "name": None, "generateName": "g-"}},
        ),
        *(
            api.patch(
                stage.tenant.path(name),
                stage.pod("card", name),
                APPLY,
                fieldManager=manager,
                force="true",
            )
            for name, manager in (("applied", "tenant"), ("ours", names.FIELD_MANAGER))
        ),
    ]
    assert [answer.status for answer in doors] == [201] * 4, [answer.body for answer in doors]
    waiting = own_gates(stage)
    assert len(waiting) == 5
    assert [name for name, gated in waiting.items() if not gated] == ["a"]
    stage.assert_waits("card")


def test_fields_in_which_cards_could_be_asked_for_past_the_containers(stage: Scene) -> None:
    """The API server takes none in them; what it does not know, it drops."""
    stage.first("card")
    gpu = {"nvidia.com/gpu": "1"}
    refused = (
        stage.pod("card", "b", resources={"limits": gpu, "requests": gpu}),
        stage.pod("card", "b", overhead=gpu),
    )
    for made in refused:
        assert stage.tenant.try_create(made).status in {403, 422}
    odd: tuple[Object, ...] = (
        {"schedulingGroup": {"podGroupName": "g"}},
        {"workloadRef": {"name": "w", "podGroup": "g"}},
    )
    for number, more in enumerate(odd):
        answer = stage.tenant.try_create(stage.pod("card", f"o{number}", **more))
        assert answer.status in {201, 400, 422}, answer.body
        assert answer.status != 201 or names.GATE in gates(answer.body)
    stage.assert_second_waits("card")


# -- queues by names that are nearly right ------------------------------------------------------------------------------


def test_a_name_that_is_nearly_the_queues_is_no_queue(stage: Scene) -> None:
    """With blanks, in capitals, in other alphabets, in more than one, and of a length that only an annotation has."""
    stage.equip("card")
    own = stage.queues[OWN]
    nearly = (
        f" {own}",
        f"{own}\n",
        own.upper(),
        f"{own}\u200b",
        own.replace("o", "\u043e", 1),
        own.replace("o", "\uff4f", 1),
        f"{own},{stage.queues[OTHER]}",
        f"../{own}",
        own * 4000,
    )
    for number, name in enumerate(nearly):
        made = stage.pod("card", f"n{number}")
        made["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] = name
        stage.tenant.create(made)
    for number in range(len(nearly)):
        stage.admin.wait_said(f"n{number}", reasons.QUEUE_NOT_FOUND)
    stage.tenant.create(stage.pod("card", "a"))
    stage.admin.wait_running("a")
    stage.assert_second_waits("card")


# -- at the gate, and behind it ----------------------------------------------------------------------------------------


def removals(stage: Scene, pod: Object) -> list[tuple[PatchKind, Any]]:
    """Ways to say that gate, label or records are to go or to be others."""
    everything = {"op": "replace", "path": "/metadata/annotations", "value": {}}
    kept = {"op": "add", "path": "/metadata/annotations/kept", "value": stage.queues[OTHER]}
    found: list[tuple[PatchKind, Any]] = [
        (STRATEGIC, {"metadata": {"labels": {"$patch": "delete"}}}),
        (STRATEGIC, {"metadata": {"labels": {"$patch": "replace"}}}),
        (MERGE, {"metadata": {"labels": None}}),
        (JSON, [{"op": "remove", "path": "/metadata/labels"}]),
        (
            JSON,
            [
                kept,
                {
                    "op": "move",
                    "from": "/metadata/annotations/kept",
                    "path": f"/metadata/annotations/{POINTER}",
                },
            ],
        ),
        (
            JSON,
            [
                kept,
                {
                    "op": "copy",
                    "from": "/metadata/annotations/kept",
                    "path": f"/metadata/annotations/{POINTER}",
                },
            ],
        ),
        (
            APPLY,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {RECORD: stage.queues[OTHER]}}},
        ),
    ]
    if charged(pod):
        found += [
            (MERGE, {"metadata": {"annotations": None}}),
            (STRATEGIC, {"metadata": {"annotations": {"$patch": "delete"}}}),
            (JSON, [everything]),
        ]
    else:
        found += [
            (MERGE, {"spec": {"schedulingGates": []}}),
            (STRATEGIC, {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.GATE}]}}),
            (STRATEGIC, {"spec": {"schedulingGates": [{"$patch": "replace"}]}}),
            (JSON, [{"op": "remove", "path": "/spec/schedulingGates/0"}]),
            (JSON, [{"op": "replace", "path": "/spec/schedulingGates/0/name", "value": "example.com/mine"}]),
        ]
    return found


def test_no_form_of_an_update_takes_gate_label_or_records(stage: Scene) -> None:
    stage.first("card")
    stage.assert_second_waits("card")
    for name in ("a", "b"):
        pod = stage.admin.pod(name)
        for kind, patch in removals(stage, pod):
            query = {"fieldManager": names.FIELD_MANAGER, "force": "true"} if kind == APPLY else {}
            answer = stage.tenant.api.patch(stage.tenant.path(name), patch, kind, **query)
            assert answer.status in {403, 422}, (name, kind, patch, answer.body)
        bare = {**pod, "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]}}
        assert stage.tenant.api.replace(bare).status in {400, 403}
        another = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
        assert stage.tenant.api.replace(another).status == 409
        unchanged = stage.admin.pod(name)["metadata"]
        assert unchanged["annotations"] == pod["metadata"]["annotations"]
        assert unchanged["labels"] == pod["metadata"]["labels"]
    # The history of writers may be wiped; nothing rests on it.
    for name in ("a", "b"):
        stage.patch(name, {"metadata": {"managedFields": [{}]}}).expect()
    stage.assert_waits("card")


def test_a_pod_with_no_room_for_records_keeps_nobody_waiting(stage: Scene) -> None:
    """Its lift is refused by the API server: it is told why, and the quota goes to the next one."""
    stage.equip("card")
    made = stage.pod("card", "stuffed")
    annotations = made["metadata"]["annotations"]
    size = sum(len(key) + len(value) for key, value in annotations.items())
    annotations["x"] = "x" * (MOST_ANNOTATIONS - size - 1)
    stage.tenant.create(made)
    stage.admin.wait_said("stuffed", reasons.LIFT_REFUSED)
    stage.tenant.create(stage.pod("card", "b"))
    stage.admin.wait_running("b")
    assert own_gates(stage) == {"stuffed": True, "b": False}
    assert stage.charged() == [stage.queues[OWN]]


# -- devices by extended resources -------------------------------------------------------------------------------------


def with_init_containers(pod: Object, limits: dict[str, str], *policies: str) -> Object:
    """The pod with an init container of these limits for each restart policy; '' for none."""
    inits = [
        {"name": f"i{number}", "image": "none", "resources": {"limits": limits}}
        | ({"restartPolicy": policy} if policy else {})
        for number, policy in enumerate(policies)
    ]
    return {**pod, "spec": {**pod["spec"], "initContainers": inits}}


@pytest.mark.parametrize("policies", [("",), ("Always",), ("", "Always")], ids=" ".join)
def test_devices_of_init_containers_are_charged_as_the_scheduler_allocates_them(
    stage: Scene, policies: tuple[str, ...]
) -> None:
    """Whatever it makes of them: the books say the same, and nothing runs beyond the quota."""
    stage.equip("extended")
    path = stage.paths[OTHER]
    limits = {EXTENDED: "1"}
    stage.tenant.create(with_init_containers(stage.pod("extended", "a", OTHER), limits, *policies))
    stage.admin.wait_running("a")
    (claim,) = stage.admin.api.get(
        stage.admin.api.path("resource.k8s.io/v1", "ResourceClaim", stage.admin.namespace)
    ).expect()["items"]
    devices = claim["status"]["allocation"]["devices"]["results"]
    wait_for(
        "they are charged", lambda: stage.admin.allocated(path) == {WAYS["extended"].key: str(len(devices))}
    )
    stage.tenant.create(with_init_containers(stage.pod("extended", "b"), limits, *policies))
    if len(devices) == 1:
        stage.admin.wait_running("a", "b")
    else:
        stage.admin.wait_said("b", reasons.INSUFFICIENT_DEVICE_QUOTA)
        assert stage.admin.running() == {"a"}
