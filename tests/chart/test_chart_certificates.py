"""The three ways to come by certificates."""

from typing import Any

import pytest

from cli import main
from hack.installation import rendering
from tests.chart.conftest import NAMESPACE, Render, Rendered

SECRETS = {"cardquota-certificates", "cardquota-controller"}


def arguments(rendered: Rendered) -> Any:
    (container,) = rendered.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"][
        "containers"
    ]
    return main.parser().parse_args([*container["args"]])


def test_by_default_the_leader_issues_them_into_empty_secrets(defaults: Rendered) -> None:
    assert arguments(defaults).certificates == "issue"
    assert defaults.kind("Secret").keys() == SECRETS
    assert not defaults.kind("Certificate")


def test_provided_ones_are_left_to_whoever_provides_them(render: Render) -> None:
    """A Secret of the chart without data would be an empty one until somebody fills it."""
    provided = render({"certs": {"mode": "provided"}})
    assert arguments(provided).certificates == "given"
    assert not provided.kind("Secret")
    assert not provided.kind("Certificate")


def test_cert_manager_is_asked_for_both_under_the_names_that_are_called(render: Render) -> None:
    managed = render({"certs": {"mode": "certManager"}, "clusterDomain": "example.local"})
    assert arguments(managed).certificates == "given"
    assert not managed.kind("Secret")
    certificates = managed.kind("Certificate")
    assert certificates.keys() == {*SECRETS, "cardquota-authority"}
    for component, secret in (("webhook", "cardquota-certificates"), ("controller", "cardquota-controller")):
        spec = certificates[secret]["spec"]
        assert spec["secretName"] == secret
        service = f"cardquota-{component}"
        assert spec["dnsNames"] == [
            service,
            f"{service}.{NAMESPACE}",
            f"{service}.{NAMESPACE}.svc",
            f"{service}.{NAMESPACE}.svc.example.local",
        ]
        assert ("client auth" in spec["usages"]) == (component == "controller")
        assert spec["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "cardquota"}
    issuers = managed.kind("Issuer")
    assert (
        issuers["cardquota"]["spec"]["ca"]["secretName"]
        == certificates["cardquota-authority"]["spec"]["secretName"]
    )
    assert certificates["cardquota-authority"]["spec"]["issuerRef"]["name"] in issuers


def test_an_issuer_that_is_there_is_used(render: Render) -> None:
    mine = {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "company"}
    managed = render({"certs": {"mode": "certManager", "certManager": {"issuerRef": mine}}})
    assert not managed.kind("Issuer")
    assert {
        name: each["spec"]["issuerRef"] for name, each in managed.kind("Certificate").items()
    } == dict.fromkeys(SECRETS, mine)


def test_another_mode_is_refused(render: Render) -> None:
    with pytest.raises(rendering.RenderError, match="certs"):
        render({"certs": {"mode": "certmanager"}})
