"""spec.dra under Volcano's own definition of Queue: through its installation, upgrades, and with the webhook away."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import names, reasons
from core.dra.schema import QUEUE_CRD
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, samples, unique
from tests.apiserver.devices import Devices, claiming, queue_path
from tests.apiserver.volcano import StatusWriter
from tests.builders import a_queue
from tests.own_plane import own_plane

STOCK = "VOLCANO_CRDS"
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{QUEUE_CRD}"
QUOTA: dict[str, Any] = {"capability": {"gpu.example.com": {"count": 8}}}


@pytest.fixture(scope="module")
def stock() -> str:
    """The definition of Queue as Volcano publishes it."""
    if STOCK not in os.environ:
        pytest.skip(f"{STOCK} names no folder with Volcano's definitions")
    return (Path(os.environ[STOCK]) / "scheduling.volcano.sh_queues.yaml").read_text("utf-8")


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest, progress: Any, stock: str) -> Iterator[ControlPlane]:
    """One with Volcano's definitions."""
    with own_plane(request, progress=progress) as plane:
        for file in sorted(Path(os.environ[STOCK]).glob("*.yaml")):
            plane.apply(file.read_text("utf-8"))
        yield plane


@pytest.fixture(scope="module")
def refused(control_plane: ControlPlane) -> str:
    """What kubectl says to a queue with spec.dra before anything of ours is there."""
    done = control_plane.kubectl("apply", "-f", "-", stdin=_text(unique("early")), check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, refused: str) -> Iterator[Installation]:
    assert refused
    with Installation(control_plane, values={"crds": {"install": False}}) as installed:
        wait_for("the definition has spec.dra", lambda: present(installed))
        yield installed


def present(installation: Installation) -> bool:
    return samples(installation.metrics("controller"), "cardquota_dra_crd_field_present") == 1


def _text(name: str, quota: Any = None) -> str:
    """A manifest as users write it."""
    built = a_queue(name).devices(quota or QUOTA).build()
    kept = {"metadata": {"name": name}, "spec": built["spec"]}
    return json.dumps({"apiVersion": built["apiVersion"], "kind": built["kind"], **kept})


def apply(plane: ControlPlane, name: str, *flags: str, quota: Any = None) -> str:
    """kubectl apply of a queue; what it says on standard error."""
    return plane.kubectl("apply", "-f", "-", *flags, stdin=_text(name, quota)).stderr


def stored(plane: ControlPlane, name: str) -> Any:
    """The spec.dra of a queue as it is read."""
    return plane.api.get(queue_path(name)).expect()["spec"].get("dra")


def said(plane: ControlPlane, name: str, reason: str) -> str:
    """The message of the event of this reason about a cluster-scoped object, once there is one."""

    def found() -> str:
        query = {"fieldSelector": f"involvedObject.name={name},reason={reason}"}
        events = plane.api.get("/api/v1/namespaces/default/events", **query).expect()["items"]
        return next((event["message"] for event in events), "")

    return wait_for(f"{reason} is said about {name}", found)


def replace_by(plane: ControlPlane, text: str) -> None:
    """Store Volcano's definition in place of what is there, as an upgrade of Volcano does."""
    definition: Object = yaml.safe_load(text)
    version = plane.api.get(CRD).expect()["metadata"]["resourceVersion"]
    definition["metadata"]["resourceVersion"] = version
    plane.api.replace(definition).expect()


def upgrade(plane: ControlPlane, text: str, how: str) -> None:
    if how == "replace":
        replace_by(plane, text)
    else:
        plane.apply(text)


def test_kubectl_apply_is_refused_before_and_stores_the_quota_afterwards(
    control_plane: ControlPlane, refused: str, installation: Installation
) -> None:
    assert "spec.dra" in refused
    name = unique("q")
    apply(control_plane, name)
    assert stored(control_plane, name) == QUOTA
    assert "extended" in said(control_plane, QUEUE_CRD, reasons.QUEUE_DEFINITION_EXTENDED)


@pytest.mark.parametrize("how", ["apply", "replace"])
def test_an_upgrade_of_volcano_loses_no_quota(
    control_plane: ControlPlane, installation: Installation, stock: str, how: str
) -> None:
    """While its scheduler writes the status of the queue all the time; the webhook adds the field in the same write."""
    name = unique("q")
    apply(control_plane, name)
    with StatusWriter(control_plane, queue_path(name)) as volcano:
        volcano.wait_for_writes(1)
        for number in range(3):
            upgrade(control_plane, stock, how)
            volcano.use({"cpu": str(number)})
            volcano.wait_for_writes(2)
            assert stored(control_plane, name) == QUOTA
    assert present(installation)


def test_with_the_webhook_away_the_loss_is_told_and_the_annotation_still_holds(
    control_plane: ControlPlane, installation: Installation, stock: str, namespace: str
) -> None:
    """And the leader away as well, so that the loss is certain; else it would be a race.

    The next leader puts the field back; what was written meanwhile is lost, except where it stood in the annotation too.
    """
    lost, kept = unique("lost"), unique("kept")
    processes = [*installation.webhook_processes, *installation.controller_processes]
    with ExitStack() as stack:
        cluster = Cluster(control_plane, namespace)
        stack.callback(cluster.close)
        devices = Devices(cluster)
        apply(control_plane, lost, quota=devices.quota(1))
        annotated = a_queue(kept).annotation(names.DRA_QUOTA_ANNOTATION, json.dumps(devices.quota(1)))
        cluster.create_queue(annotated.devices(devices.quota(1)).build())
        devices.template("each")
        writers = [
            stack.enter_context(StatusWriter(control_plane, queue_path(name))) for name in (lost, kept)
        ]
        for process in processes:
            process.stop()
        try:
            replace_by(control_plane, stock)
            for number, writer in enumerate(writers):
                writer.use({"cpu": str(number + 1)})
        finally:
            for process in processes:
                process.start()
        wait_for("the field is back", lambda: present(installation))
        assert samples(installation.metrics("controller"), "cardquota_queue_definition_writes_total") == 1
        assert stored(control_plane, lost) is None
        assert "spec.dra" in said(control_plane, lost, reasons.DEVICE_QUOTA_PRUNED)
        cluster.create(*[claiming(pod, kept, template="each") for pod in ("a", "b")])
        cluster.wait_said("b", reasons.INSUFFICIENT_DEVICE_QUOTA)
        devices.wait_lifted("a")
        # kubectl sees the difference, since it compares with what is stored.
        apply(control_plane, lost, quota=devices.quota(1))
        assert stored(control_plane, lost) == devices.quota(1)
