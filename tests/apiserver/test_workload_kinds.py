"""Kinds that others define, applied with kubectl: a fault in a pod template is refused with its place, a good one passes.

Their definitions are reduced to what the API server needs to serve them.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest
import yaml

from core import names
from core.settings import parse
from core.workloads import TABLE, Workload, kinds_with
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from hack.pages.workloads import EXAMPLE
from tests.builders.workloads import SAMPLES, Sample

CARD_NAME = "metadata.annotations[volcano.sh/card.name]"


def template(card: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "c", "image": "none", "resources": {"limits": limits}}
    return {
        "metadata": {"annotations": {names.CARD_NAME_ANNOTATION: card}},
        "spec": {"containers": [container]},
    }


def row(sample: Sample) -> Workload:
    return kinds_with(parse({"workloads": OWN})[0].workloads)[
        sample.api_version.rpartition("/")[0], sample.kind
    ]


def definition(sample: Sample) -> dict[str, Any]:
    """A CustomResourceDefinition that takes any spec."""
    group, _, version = sample.api_version.rpartition("/")
    found = row(sample)
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Without the annotation no group of Kubernetes' own domain is taken.
        "metadata": {
            "name": f"{found.resource}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, reduced for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if found.namespaced else "Cluster",
            "names": {"plural": found.resource, "singular": sample.kind.lower(), "kind": sample.kind},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def _served(made: dict[str, Any]) -> dict[str, Any]:
    return {"predictor": {"model": made["spec"]["containers"][0]}}


SERVICE = Sample("InferenceService", "serving.kserve.io/v1beta1", lambda _: {}, (), ())
OWN: list[dict[str, Any]] = yaml.safe_load(EXAMPLE)["workloads"]
"""A kind that only the values of the chart name."""
ADDED = Sample(
    "TrainingJob",
    "batch.example.com/v1",
    lambda made: {"queue": "default", "roles": [{"name": "leader", "template": made}]},
    ("spec.roles[0].template",),
    (1,),
)


def _step(made: Mapping[str, Any]) -> dict[str, Any]:
    """A step of a workflow whose pod is the one of this template."""
    (container,) = made["spec"]["containers"]
    return {"templates": [{"name": "main", "metadata": made["metadata"], "container": container}]}


WORKFLOWS = (
    *(
        Sample(kind, "argoproj.io/v1alpha1", _step, ("spec.templates[0]",), (0,))
        for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")
    ),
    Sample(
        "CronWorkflow",
        "argoproj.io/v1alpha1",
        lambda made: {"schedules": ["0 0 * * *"], "workflowSpec": _step(made)},
        ("spec.workflowSpec.templates[0]",),
        (0,),
    ),
)
SPARK = Sample(
    "SparkApplication",
    "sparkoperator.k8s.io/v1beta2",
    lambda made: {"driver": {"template": made}, "executor": {"instances": 2, "template": made}},
    ("spec.driver.template", "spec.executor.template"),
    (1, 2),
)
KNOWN = (*SAMPLES, *WORKFLOWS, SPARK, SERVICE, ADDED)


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart with its webhook and without a controller, and the definitions of all kinds."""
    with Installation(control_plane, controller=0, values={"workloads": OWN}) as installed:
        for sample in KNOWN:
            control_plane.api.create(definition(sample)).expect(201, 409)
        for sample in KNOWN:
            path = control_plane.api.path_of(definition(sample))
            wait_for(f"{sample.kind} is served", partial(_established, control_plane, path))
        yield installed
        for sample in KNOWN:
            control_plane.api.delete(control_plane.api.path_of(definition(sample))).expect(200, 202, 404)


def _established(plane: ControlPlane, path: str) -> bool:
    conditions = plane.api.get(path).expect().get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def apply(plane: ControlPlane, namespace: str, sample: Sample, card: str) -> tuple[int, str]:
    """Exit status and standard error of `kubectl apply`."""
    raw = sample.object(template(card))
    raw["metadata"] = {"name": "w"} | ({"namespace": namespace} if row(sample).namespaced else {})
    if sample is SERVICE:
        raw["metadata"]["annotations"] = template(card)["metadata"]["annotations"]
        raw["spec"] = _served(template(card))
    done = plane.kubectl("apply", "-f", "-", stdin=json.dumps(raw), check=False)
    return done.returncode, done.stderr


def test_no_kind_of_the_table_that_others_define_is_left_out() -> None:
    """Kubernetes' own and Volcano's Job have tests of their own: test_templates, test_volcano_jobs."""
    others = {row.kind for row in TABLE if row.group not in ("apps", "batch", "batch.volcano.sh")}
    assert others == {sample.kind for sample in KNOWN} - {ADDED.kind}


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("sample", KNOWN, ids=lambda sample: sample.kind)
def test_what_is_wrong_in_a_template_is_refused_where_it_stands(
    control_plane: ControlPlane, namespace: str, sample: Sample
) -> None:
    status, told = apply(control_plane, namespace, sample, "A||B")
    assert status == 1
    for path in (f"{each}.{CARD_NAME}" for each in sample.paths):
        assert path in told
    if sample is SERVICE:
        assert f"{CARD_NAME}: " in told
        assert "predictor.metadata" not in told
    status, told = apply(control_plane, namespace, sample, "A|B")
    assert (status, "denied" in told) == (0, False)
    status, told = apply(control_plane, namespace, sample, "A|A")
    assert status == 1
    assert "duplicate" in told
