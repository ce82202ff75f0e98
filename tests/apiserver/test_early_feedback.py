"""What whoever applies a template, a PodGroup or a queue is told at once, although the object itself asks for nothing."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.manifests import Object, deployment, pod, podgroup, queue

MIG = {"nvidia.com/mig-1g.10gb": 1}
"""A resource that stands for a share of a card whether a node is known or not."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart with its webhook, which refuses pods without a card name, and without a controller."""
    values = {"cards": {"podsWithoutCardName": "deny"}}
    with Installation(control_plane, values=values, controller=0) as installed:
        yield installed


class Kubectl:
    """kubectl as the administrator in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def apply(self, thing: Mapping[str, Any], *flags: str) -> tuple[int, str]:
        """Exit status and what is told."""
        arguments = ("apply", f"--namespace={self._namespace}", "-f", "-", *flags)
        done = self._plane.kubectl(*arguments, stdin=json.dumps(thing), check=False)
        return done.returncode, done.stderr


@pytest.fixture
def kubectl(control_plane: ControlPlane, installation: Installation, namespace: str) -> Kubectl:
    del installation
    return Kubectl(control_plane, namespace)


def annotated(annotations: Mapping[str, str]) -> Object:
    return deployment("web", pod("x", annotations=annotations), replicas=0)


def test_a_template_without_card_name_is_refused_where_its_pods_would_be(kubectl: Kubectl) -> None:
    status, told = kubectl.apply(deployment("web", pod("x", limits=MIG), replicas=0))
    assert status == 1
    assert "spec.template.metadata.annotations[volcano.sh/card.name]: Required value: nvidia.com/mig-" in told


def test_an_accelerator_of_which_no_node_shows_a_card_is_warned_about_and_not_refused(
    kubectl: Kubectl,
) -> None:
    """Once the webhook has listed DeviceClasses: until then any of them may serve the resource."""
    asking = deployment("guessed", pod("x", limits={"unheard-of.example.com/xpu": 1}), replicas=0)

    def warned() -> str:
        status, told = kubectl.apply(asking, "--dry-run=server")
        assert status == 0
        return told

    told = wait_for("the webhook warns", warned)
    assert told.startswith("Warning: spec.template.metadata.annotations[volcano.sh/card.name]: ")
    assert "unheard-of.example.com/xpu is asked for without a card name, so no card quota counts it" in told


def test_a_template_that_brings_records_is_refused(kubectl: Kubectl) -> None:
    status, told = kubectl.apply(annotated({names.ASSIGNED_ANNOTATION: "{}"}))
    assert status == 1
    assert f"spec.template.metadata.annotations[{names.ASSIGNED_ANNOTATION}]: Forbidden" in told


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (names.CARD_NAME_MISPRINT, "NVIDIA-H200", f"the card is named by {names.CARD_NAME_ANNOTATION}"),
        (names.CROSSQUOTA_STRATEGY_ANNOTATION, "random", '"random" is no strategy'),
    ],
)
def test_a_template_with_an_annotation_that_nobody_reads_is_warned_about(
    kubectl: Kubectl, key: str, value: str, words: str
) -> None:
    status, told = kubectl.apply(annotated({key: value}))
    assert status == 0
    assert told.startswith("Warning: ")
    assert f"spec.template.metadata.annotations[{key}]" in told
    assert words in told


def test_the_request_of_a_podgroup_is_judged_when_it_is_new_and_when_it_changes(kubectl: Kubectl) -> None:
    def group(request: str) -> Object:
        made = podgroup("gang", "default", 1)
        return {
            **made,
            "metadata": {**made["metadata"], "annotations": {names.CARD_REQUEST_ANNOTATION: request}},
        }

    for number in range(2):
        status, told = kubectl.apply(group('{"NVIDIA-H200": "2"}'))
        assert status == 1
        assert f"metadata.annotations[{names.CARD_REQUEST_ANNOTATION}][NVIDIA-H200]" in told
        assert "written without quotes" in told
        assert kubectl.apply(group(f'{{"NVIDIA-H200": {number}}}'))[0] == 0


def test_whoever_lowers_or_removes_a_quota_in_use_is_warned(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    api, made = control_plane.api, queue("early-feedback", '{"NVIDIA-H200": 8}')
    try:
        assert kubectl.apply(made)[0] == 0
        path = api.path_of(made)
        used = {"status": {"allocated": {"NVIDIA-H200": "4"}}}
        api.patch(f"{path}/status", used, fieldManager=names.FIELD_MANAGER).expect()
        for quota, count in (('{"NVIDIA-H200": 3}', 3), ("", 0)):
            made["metadata"]["annotations"] = {names.CARD_QUOTA_ANNOTATION: quota} if quota else {}
            status, told = kubectl.apply(made)
            assert status == 0
            assert f"lowered to {count} while 4 are in use" in told
            assert told.startswith("Warning: ")
    finally:
        api.delete(api.path_of(made)).expect(200, 404)


def test_whoever_lowers_the_capability_below_the_card_quota_is_warned(
    control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """The quota itself is not written then."""
    api, made = control_plane.api, queue("early-capability", '{"H200/mig-1g.10gb-mixed": 8}')
    try:
        for amount, warned in (("8", False), ("2", True), ("2", False)):
            made["spec"]["capability"] = {"nvidia.com/mig-1g.10gb": amount}
            status, told = kubectl.apply(made)
            assert status == 0
            assert ("Warning: spec.capability[nvidia.com/mig-1g.10gb]: allows 2 of" in told) is warned
    finally:
        api.delete(api.path_of(made)).expect(200, 404)


def test_whoever_deletes_a_queue_in_use_is_warned(control_plane: ControlPlane, kubectl: Kubectl) -> None:
    api, made = control_plane.api, queue("early-deleted", '{"NVIDIA-H200": 8}')
    path = api.path_of(made)
    for used, warned in (({"cpu": "4"}, False), ({"cpu": "4", "NVIDIA-H200": "4"}, True)):
        assert kubectl.apply(made)[0] == 0
        api.patch(f"{path}/status", {"status": {"allocated": used}}).expect()
        done = control_plane.kubectl("delete", "queue", "early-deleted", check=False)
        assert done.returncode == 0
        assert ('Warning: status.allocated: 4 "NVIDIA-H200" in use' in done.stderr) is warned
        api.get(path).expect(404)


def test_a_queue_below_another_is_judged(kubectl: Kubectl) -> None:
    """A queue that is its own parent is refused; a parent that is not there yet is worth a warning."""

    def below(parent: str) -> tuple[int, str]:
        queue = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "child"},
        }
        return kubectl.apply({**queue, "spec": {"parent": parent}}, "--dry-run=server")

    status, told = below("child")
    assert status == 1
    assert "spec.parent" in told
    wait_for("the webhook has listed the queues", lambda: "does not exist" in below("nobody")[1])
    assert below("nobody")[0] == 0
    assert below("root") == (0, "")
