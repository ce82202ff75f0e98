"""Wrong pod templates are refused where they are applied, with their place in the object, whatever kind carries them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core import names
from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.apiserver.test_match_conditions_workloads import WORKLOAD_KINDS, template

KINDS = [kind for kind in WORKLOAD_KINDS if kind != "Volcano Job"]
GOOD, BAD = {names.CARD_NAME_ANNOTATION: "A|B"}, {names.CARD_NAME_ANNOTATION: "A||B"}
CARD_NAME = "metadata.annotations[volcano.sh/card.name]"
FIXED = {"Job"}
"""Kinds whose template the API server itself lets nobody change."""


def place(kind: str) -> tuple[str, ...]:
    """Where the template is in an object of this kind."""
    return ("spec", "jobTemplate", "spec", "template") if kind == "CronJob" else ("spec", "template")


def workload(kind: str, namespace: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """An object of this kind with such a template; no pod is made of it."""
    make, _ = WORKLOAD_KINDS[kind]
    made = make(namespace, template(annotations))
    none: dict[str, Any] = {"replicas": 0}
    if kind in ("Job", "CronJob"):
        none = {"suspend": True}
    elif kind == "DaemonSet":
        none = {}
        made["spec"]["template"]["spec"]["nodeSelector"] = {"no.such/node": "at-all"}
    return {**made, "spec": {**made["spec"], **none}}


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return dict(value)


@pytest.fixture(scope="class")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart with its webhook and without a controller."""
    with Installation(control_plane, controller=0) as installed:
        yield installed


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("kind", KINDS)
class TestApply:
    def test_a_new_object_is_refused_with_the_place_of_the_fault(
        self, control_plane: ControlPlane, namespace: str, kind: str
    ) -> None:
        text = json.dumps(workload(kind, namespace, BAD))
        done = control_plane.kubectl("apply", "-f", "-", stdin=text, check=False)
        assert done.returncode == 1
        assert f"{kind} {namespace}/w-" in done.stderr
        assert f'is refused: {".".join(place(kind))}.{CARD_NAME}: Invalid value: "A||B": ' in done.stderr

    def test_a_changed_template_is_refused_and_all_else_may_change(
        self, control_plane: ControlPlane, namespace: str, kind: str
    ) -> None:
        stored = control_plane.api.create(workload(kind, namespace, GOOD)).expect(201)
        path = control_plane.api.path_of(stored)
        control_plane.api.patch(path, {"metadata": {"labels": {"team": "a"}}}).expect()
        if kind not in FIXED:
            worse = nested((*place(kind), "metadata", "annotations"), BAD)
            refused = control_plane.api.patch(path, worse)
            assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
            assert f"{'.'.join(place(kind))}.{CARD_NAME}" in refused.body["message"]


def test_what_was_stored_before_stays_usable_until_its_template_is_touched(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Old objects with a fault can be labelled, scaled and ended; a new template has to be right."""
    api = control_plane.api
    old = {kind: api.path_of(api.create(workload(kind, namespace, BAD)).expect(201)) for kind in KINDS}
    with Installation(control_plane, controller=0):
        for kind, path in old.items():
            api.patch(path, {"metadata": {"labels": {"team": "a"}}}).expect()
            if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
                api.patch(f"{path}/scale", {"spec": {"replicas": 0}}).expect()
            if kind not in FIXED:
                touched = nested((*place(kind), "metadata", "annotations", "example.com/note"), "x")
                assert api.patch(path, touched).status == 400, kind
                mended = nested((*place(kind), "metadata", "annotations"), GOOD)
                api.patch(path, mended).expect()
        for path in old.values():
            api.delete(path, propagationPolicy="Background").expect()
