"""What `hack.install` changes in rendered objects so that they work outside a cluster, and that it changes no more."""

import copy
import sys
from pathlib import Path

import pytest

from hack.installation import substitution
from hack.installation.substitution import Surroundings
from tests.chart.conftest import NAMESPACE, Render, Rendered

AROUND = Surroundings(
    pod_name="cardquota-controller-0",
    namespace=NAMESPACE,
    ports={9443: 21001, 8080: 21002},
    mounts={"/etc/cardquota": Path("/run/settings")},
    kubeconfig=Path("/run/account.yaml"),
)


def test_the_command_line_differs_in_ports_files_and_pod_variables_alone(defaults: Rendered) -> None:
    deployment = defaults.one("Deployment", "cardquota-controller")
    python, dash_m, module, *local = substitution.command_line(deployment, AROUND)
    assert (python, dash_m, module) == (sys.executable, "-m", "cli")
    rendered = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert len(local) == len(rendered) + 2
    assert local[-2:] == ["--kubeconfig=/run/account.yaml", "--bind-address=127.0.0.1"]
    changed = {
        before: after
        for before, after in zip(rendered, local[:-2], strict=True)
        if before.replace("$(POD_NAMESPACE)", NAMESPACE) != after
    }
    assert changed == {
        "--config=/etc/cardquota/cardquota.yaml": "--config=/run/settings/cardquota.yaml",
        "--port=9443": "--port=21001",
        "--metrics-port=8080": "--metrics-port=21002",
        "--identity=$(POD_NAME)": "--identity=cardquota-controller-0",
        "--advertise-address=https://$(POD_IP):9443": "--advertise-address=https://127.0.0.1:21001",
    }


def test_the_settings_are_found_behind_the_mount(defaults: Rendered) -> None:
    deployment = defaults.one("Deployment", "cardquota-webhook")
    assert substitution.config_mounts(deployment) == {"/etc/cardquota": "cardquota"}


def test_a_service_leads_to_its_deployment(defaults: Rendered) -> None:
    deployments = list(defaults.kind("Deployment").values())
    for name in ("cardquota-webhook", "cardquota-controller"):
        deployment, port = substitution.backend(defaults.one("Service", name), 443, deployments)
        assert (deployment["metadata"]["name"], port) == (name, 9443)


def test_a_service_that_leads_nowhere_is_an_error(defaults: Rendered) -> None:
    service = copy.deepcopy(defaults.one("Service", "cardquota-webhook"))
    service["spec"]["selector"]["app.kubernetes.io/component"] = "nothing"
    with pytest.raises(ValueError, match="selects 0 Deployments"):
        substitution.backend(service, 443, list(defaults.kind("Deployment").values()))


def test_webhook_entries_differ_in_the_address_alone(defaults: Rendered) -> None:
    rendered = defaults.one("MutatingWebhookConfiguration", "cardquota-mutating")
    before = copy.deepcopy(rendered)
    urls = {"cardquota-webhook": "https://localhost:1", "cardquota-controller": "https://localhost:2"}
    local = substitution.on_loopback(rendered, urls)
    assert rendered == before
    for was, now in zip(before["webhooks"], local["webhooks"], strict=True):
        service = was.pop("clientConfig")["service"]
        assert now.pop("clientConfig") == {"url": urls[service["name"]] + service.get("path", "")}
        assert now == was


def test_entries_that_nothing_serves_are_left_out(defaults: Rendered) -> None:
    rendered = defaults.one("MutatingWebhookConfiguration", "cardquota-mutating")
    local = substitution.on_loopback(rendered, {"cardquota-controller": "https://localhost:2"})
    assert [entry["name"] for entry in local["webhooks"]] == ["bindings.cardquota.io"]
    assert substitution.on_loopback(rendered, {})["webhooks"] == []


def test_a_certificate_is_good_for_the_addresses_of_the_processes_as_well(render: Render) -> None:
    """That of an authority has no addresses."""
    certificates = render({"certs": {"mode": "certManager"}}).kind("Certificate")
    before = copy.deepcopy(certificates)
    local = {name: substitution.for_loopback(thing)["spec"] for name, thing in certificates.items()}
    assert certificates == before
    names = before["cardquota-controller"]["spec"]["dnsNames"]
    assert local["cardquota-controller"]["dnsNames"] == [*names, "localhost"]
    assert local["cardquota-controller"]["ipAddresses"] == ["127.0.0.1"]
    assert local["cardquota-authority"] == before["cardquota-authority"]["spec"]
