"""The chart as helm installs, upgrades and removes it on a real API server."""

import base64
import shutil
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
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cardquota-mutating"
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
    objects = rendering.render(control_plane.binary("helm"), values, space, hooks=True)
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
    run("uninstall", "--ignore-not-found", "--cascade=foreground", "--no-hooks")


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

    helm("uninstall", "--no-hooks")
    assert api.get(CONFIGURATION).status == 404
    for crd in CRDS:
        assert "deletionTimestamp" not in api.get(crd).expect()["metadata"]


def hook_path(control_plane: ControlPlane) -> str:
    stored = control_plane.api.get(HOOKS).expect()
    (client,) = [w["clientConfig"] for w in stored["webhooks"] if w["name"] == "bindings.cardquota.io"]
    return str(client["service"].get("path", ""))


def tell(control_plane: ControlPlane, path: str) -> None:
    """As the leader does."""
    names = [w["name"] for w in control_plane.api.get(HOOKS).expect()["webhooks"]]
    place = f"/webhooks/{names.index('bindings.cardquota.io')}/clientConfig/service/path"
    control_plane.api.patch(HOOKS, [{"op": "add", "path": place, "value": path}], "json").expect()


def test_the_path_that_the_leader_told_outlives_upgrades(control_plane: ControlPlane, helm: Helm) -> None:
    helm("install", str(rendering.CHART))
    assert hook_path(control_plane) == ""
    tell(control_plane, "/mutate/bindings/0a1b")
    helm("upgrade", str(rendering.CHART), "--set=webhook.timeoutSeconds=3")
    assert hook_path(control_plane) == "/mutate/bindings/0a1b"
    access = (f"--kubeconfig={control_plane.admin_kubeconfig}", f"--namespace={NAMESPACE}")
    manifest = rendering.helm(control_plane.binary("helm"), "get", "manifest", rendering.RELEASE, *access)
    assert "bindings.cardquota.io" in manifest
    assert "0a1b" not in manifest, "who reads releases does not read the path"


def test_an_upgrade_of_the_first_release_leaves_the_path_that_its_replicas_serve(
    control_plane: ControlPlane, helm: Helm, tmp_path: Path
) -> None:
    """Until the leader exchanges it. The chart that comes after may take that away once; the leader puts it back."""
    first = tmp_path / "cardquota"
    shutil.copytree(rendering.CHART, first)
    template = first / "templates" / "_admission.tpl"
    text = template.read_text("utf-8")
    at = text.index('{{- define "cardquota.admission.hookPath" -}}')
    end = text.index("{{/* One match condition.")
    plain = '{{- define "cardquota.admission.hookPath" -}}/mutate/bindings{{- end }}\n'
    template.write_text(text[:at] + plain + text[end:], "utf-8")
    helm("install", str(first))
    assert hook_path(control_plane) == "/mutate/bindings"
    helm("upgrade", str(rendering.CHART))
    assert hook_path(control_plane) == "/mutate/bindings"
    tell(control_plane, "/mutate/bindings/0a1b")
    helm("upgrade", str(rendering.CHART))
    assert hook_path(control_plane) in ("", "/mutate/bindings/0a1b")
    tell(control_plane, "/mutate/bindings/0a1b")
    helm("upgrade", str(rendering.CHART))
    assert hook_path(control_plane) == "/mutate/bindings/0a1b"


def test_a_second_release_is_refused(control_plane: ControlPlane, helm: Helm) -> None:
    helm("install", str(rendering.CHART))
    second = ("second", str(rendering.CHART), "--namespace=elsewhere", "--create-namespace")
    with pytest.raises(
        rendering.RenderError, match="release cardquota in namespace released is installed already"
    ):
        rendering.helm(
            control_plane.binary("helm"), "install", *second, f"--kubeconfig={control_plane.admin_kubeconfig}"
        )
    control_plane.api.delete("/api/v1/namespaces/elsewhere").expect(200, 404)
