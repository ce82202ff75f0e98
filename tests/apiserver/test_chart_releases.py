"""The chart as helm installs, upgrades and removes it on a real API server."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane import ControlPlane
from hack.installation import rendering

NAMESPACE = "released"
VALUES_FILES = sorted((rendering.CHART / "ci").glob("*-values.yaml"))
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/cardquota-validating"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/cardquota-certificates"
CRDS = [
    f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.scheduling.volcano.sh"
    for plural in ("queues", "podgroups")
]

Helm = Callable[..., str]


@pytest.fixture(scope="module")
def space(control_plane: ControlPlane) -> Iterator[str]:
    control_plane.create_namespace(NAMESPACE)
    yield NAMESPACE
    control_plane.api.delete(f"/api/v1/namespaces/{NAMESPACE}").expect()


@pytest.mark.parametrize("file", VALUES_FILES, ids=lambda file: file.stem.removesuffix("-values"))
def test_the_api_server_takes_every_object_without_a_warning(
    control_plane: ControlPlane, space: str, file: Path
) -> None:
    """Server-side apply refuses fields that it does not know; expressions are compiled on the way."""
    values = yaml.safe_load(file.read_text("utf-8"))
    objects = rendering.render(control_plane.binary("helm"), values, space)
    answer = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(objects)
    )
    assert answer.stderr == ""
    assert len(answer.stdout.splitlines()) == len(objects)


@pytest.fixture
def helm(control_plane: ControlPlane, space: str) -> Iterator[Helm]:
    """Runs helm on the release; it is uninstalled at the end."""
    access = (f"--kubeconfig={control_plane.admin_kubeconfig}", f"--namespace={space}")

    def run(command: str, *args: str) -> str:
        return rendering.helm(control_plane.binary("helm"), command, rendering.RELEASE, *args, *access)

    yield run
    run("uninstall", "--ignore-not-found", "--cascade=foreground")


def authority_of(configuration: dict[str, Any]) -> set[str]:
    return {entry["clientConfig"].get("caBundle", "") for entry in configuration["webhooks"]}


def test_an_upgrade_leaves_what_the_processes_wrote(control_plane: ControlPlane, helm: Helm) -> None:
    api = control_plane.api
    # Other tests may have left the CRDs.
    notes = helm("install", str(rendering.CHART), "--set=crds.install=true", "--take-ownership")
    assert "volcano.sh/card.quota" in notes
    assert "data" not in api.get(SECRET).expect()
    assert authority_of(api.get(CONFIGURATION).expect()) == {""}

    written = base64.b64encode(b"written by a process").decode()
    api.patch(SECRET, {"data": {"tls.key": written}}).expect(200)
    entries = len(api.get(CONFIGURATION).expect()["webhooks"])
    authority = base64.b64encode(control_plane.ca_file.read_bytes()).decode()
    api.patch(
        CONFIGURATION,
        [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": authority}
            for index in range(entries)
        ],
        "json",
    ).expect(200)

    helm("upgrade", str(rendering.CHART), "--set=crds.install=true,webhook.timeoutSeconds=3,commonLabels.a=b")
    upgraded = api.get(CONFIGURATION).expect()
    assert {entry["timeoutSeconds"] for entry in upgraded["webhooks"]} == {3}
    assert authority_of(upgraded) == {authority}
    assert api.get(SECRET).expect()["data"] == {"tls.key": written}

    helm("uninstall")
    assert api.get(CONFIGURATION).status == 404
    for crd in CRDS:
        assert "deletionTimestamp" not in api.get(crd).expect()["metadata"]


def test_a_second_release_is_refused(control_plane: ControlPlane, helm: Helm) -> None:
    helm("install", str(rendering.CHART))
    second = ("second", str(rendering.CHART), "--namespace=elsewhere", "--create-namespace")
    with pytest.raises(rendering.RenderError, match="cannot be imported into the current release"):
        rendering.helm(
            control_plane.binary("helm"), "install", *second, f"--kubeconfig={control_plane.admin_kubeconfig}"
        )
    control_plane.api.delete("/api/v1/namespaces/elsewhere").expect(200, 404)
