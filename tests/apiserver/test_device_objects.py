"""The objects of device quota on a real API server: spec.dra under Volcano's own definition, claims in every version."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.dra.schema import QUEUE_CRD, extension
from core.objects import claim, queue
from hack.controlplane import ControlPlane, wait_for
from tests.apiserver.cluster import unique
from tests.builders import a_queue
from tests.builders.claims import a_claim, a_template, a_way
from tests.own_plane import own_plane

STOCK = "VOLCANO_CRDS"
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{QUEUE_CRD}"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUOTA: dict[str, Any] = {
    "capability": {"gpu.example.com": {"count": 8, "capacity": {"memory": "80Gi", "cores": 800}}},
    "deserved": {"gpu.example.com": {"count": 4}},
    "guarantee": {"gpu.example.com": {"count": 0, "capacity": {}}},
}


@pytest.fixture(scope="module")
def extended(request: pytest.FixtureRequest, progress: Any) -> Iterator[ControlPlane]:
    """A control plane with Volcano's definition of Queue, to which the field has been added."""
    if STOCK not in os.environ:
        pytest.skip(f"{STOCK} names no folder with Volcano's definitions")
    with own_plane(request, progress=progress) as plane:
        stock = Path(os.environ[STOCK]) / "scheduling.volcano.sh_queues.yaml"
        plane.apply(stock.read_text("utf-8"))
        plane.api.patch(CRD, extension(plane.api.get(CRD).expect()), "json").expect()
        probe = a_queue("probe").devices(QUOTA).build()

        def kept() -> bool:
            # While the server takes up the changed definition it answers 503, "apiserver is shutting down".
            answer = plane.api.request("POST", f"{QUEUES}?dryRun=All", probe)
            return answer.status != 503 and "dra" in answer.expect()["spec"]

        wait_for("the field is there", kept)
        yield plane


def test_a_quota_is_stored_as_it_is_written(extended: ControlPlane) -> None:
    written = a_queue(unique("q")).devices(QUOTA)
    stored = extended.api.create(written.build()).expect()
    assert stored["spec"]["dra"] == QUOTA
    assert queue.project(stored).spec_dra == QUOTA
    assert extension(extended.api.get(CRD).expect()) == []


@pytest.mark.parametrize(
    ("dra", "words"),
    [
        ({"capability": {"gpu": None}}, "must not be null"),
        ({"capability": {"gpu": {"count": 1, "capacity": {"m": None}}}}, "must not be null"),
        ({"capability": {"gpu": {}}}, "count"),
        ({"capability": {"gpu": {"count": -1}}}, "greater than or equal to 0"),
        ({"capability": {"gpu": {"count": "8"}}}, "integer"),
        ({"capability": {"gpu": {"count": 1.5}}}, "integer"),
        ({"capability": {"gpu": {"count": 1, "capacity": {"m": "80GB"}}}}, "should match"),
        ({"capability": []}, "object"),
    ],
)
def test_what_would_mean_something_else_is_refused_by_the_schema(
    extended: ControlPlane, dra: Any, words: str
) -> None:
    answer = extended.api.create(a_queue(unique("q")).put("spec", "dra", value=dra).build())
    assert answer.status == 422
    assert words in answer.body["message"]


def test_the_field_outlives_a_write_of_the_status(extended: ControlPlane) -> None:
    stored = extended.api.create(a_queue(unique("q")).devices(QUOTA).build()).expect()
    path = f"{QUEUES}/{stored['metadata']['name']}"
    extended.api.replace({**stored, "status": {"state": "Open"}}, "status").expect()
    assert extended.api.get(path).expect()["spec"]["dra"] == QUOTA


def test_every_served_version_is_read_alike(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    built = (
        a_claim("c", namespace=namespace)
        .exactly("one", "gpu.example.com", count=2, capacity={"memory": "8Gi"})
        .exactly("all", "gpu.example.com", mode="All")
        .exactly("default", "nic.example.com")
        .first_available(
            "any", a_way("big.example.com", name="a"), a_way("small.example.com", name="b", count=3)
        )
    )
    template = a_template("t", namespace=namespace).put("spec", "spec", value=built.raw["spec"])
    api.create(built.build()).expect()
    api.create(template.build()).expect()
    served = [each["version"] for each in api.get("/apis/resource.k8s.io").expect()["versions"]]
    assert "v1" in served
    for version in served:
        prefix = f"/apis/resource.k8s.io/{version}/namespaces/{namespace}"
        if version.startswith("v1alpha"):
            continue
        seen = claim.project(api.get(f"{prefix}/resourceclaims/c").expect())
        assert seen.requests == built.view().requests, version
        from_template = claim.project_template(api.get(f"{prefix}/resourceclaimtemplates/t").expect())
        assert from_template.requests == seen.requests, version
