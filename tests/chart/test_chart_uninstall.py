"""The hook that runs before an uninstall: what it may do, and that it removes what the chart installs."""

import re
from pathlib import Path
from typing import Any

import pytest

from cli import main
from hack.installation import rendering
from kube import ungating
from tests.chart.conftest import NAMESPACE, Rendered
from tests.chart.test_chart_rights import rules


@pytest.fixture(scope="module")
def hooks(helm: Path) -> list[dict[str, Any]]:
    everything = rendering.render(helm, {}, NAMESPACE, hooks=True)
    return [thing for thing in everything if before_delete(thing)]


def before_delete(thing: dict[str, Any]) -> bool:
    return bool(thing["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete")


def job(hooks: list[dict[str, Any]]) -> dict[str, Any]:
    return rendering.of_kind(hooks, "Job")["cardquota-uninstall"]


def test_all_of_it_is_there_only_while_it_runs(hooks: list[dict[str, Any]], defaults: Rendered) -> None:
    assert {thing["kind"] for thing in hooks} == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Job",
    }
    for thing in hooks:
        annotations = thing["metadata"]["annotations"]
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        # The rights come before who needs them.
        assert (int(annotations["helm.sh/hook-weight"]) < 0) == (thing["kind"] != "Job")
    assert not any("uninstall" in thing["metadata"]["name"] for thing in defaults.objects)


def test_its_rights_are_these_and_no_others(hooks: list[dict[str, Any]]) -> None:
    rendered = Rendered(hooks)
    registration = "admissionregistration.k8s.io"
    policies = {
        f"{kind}.{registration}/{name}": ("delete",)
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        for name in ungating.POLICIES
    }
    assert rules(rendered, "ClusterRole", "cardquota-uninstall") == policies | {
        "pods": ("list", "patch"),
        f"mutatingwebhookconfigurations.{registration}/{ungating.MUTATING}": ("delete",),
        f"validatingwebhookconfigurations.{registration}/{ungating.VALIDATING}": ("delete",),
    }
    assert rules(rendered, "Role", "cardquota-uninstall") == {
        f"rolebindings.rbac.authorization.k8s.io/{ungating.LEADER_ELECTION}": ("delete",),
        f"leases.coordination.k8s.io/{ungating.LEASE}": ("delete",),
    }


def test_it_removes_every_webhook_and_policy_of_the_chart(defaults: Rendered) -> None:
    assert defaults.kind("MutatingWebhookConfiguration").keys() == {ungating.MUTATING}
    assert defaults.kind("ValidatingWebhookConfiguration").keys() == {ungating.VALIDATING}
    assert defaults.kind("ValidatingAdmissionPolicy").keys() == set(ungating.POLICIES)
    assert defaults.kind("ValidatingAdmissionPolicyBinding").keys() == set(ungating.POLICIES)
    assert ungating.LEADER_ELECTION in defaults.kind("RoleBinding")
    controller = defaults.one("Deployment", "cardquota-controller")["spec"]["template"]["spec"]
    assert f"--lease={ungating.LEASE}" in controller["containers"][0]["args"]


def test_no_service_leads_to_its_pod_and_it_is_as_restricted_as_the_processes(
    hooks: list[dict[str, Any]], defaults: Rendered
) -> None:
    template = job(hooks)["spec"]["template"]
    for service in defaults.kind("Service").values():
        assert not service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    process = defaults.one("Deployment", "cardquota-webhook")["spec"]["template"]["spec"]
    assert template["spec"]["securityContext"] == process["securityContext"]
    (container,), (running,) = template["spec"]["containers"], process["containers"]
    assert container["securityContext"] == running["securityContext"]
    assert container["image"] == running["image"]


def test_the_command_takes_its_arguments(hooks: list[dict[str, Any]]) -> None:
    (container,) = job(hooks)["spec"]["template"]["spec"]["containers"]
    options = main.parser().parse_args([*container["args"]])
    assert (options.yes, options.rate) == (True, 100)


def test_it_can_be_left_out(helm: Path) -> None:
    everything = rendering.render(helm, {"uninstall": {"ungate": False}}, NAMESPACE, hooks=True)
    assert not any(before_delete(thing) for thing in everything)


def test_helm_test_verifies_and_can_write_nothing(helm: Path) -> None:
    everything = rendering.render(helm, {}, NAMESPACE, hooks=True)
    found = Rendered(
        [each for each in everything if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"]
    )
    (container,) = found.one("Job", "cardquota-test")["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["verify"]
    assert main.parser().parse_args([*container["args"]]).state is None
    for kind in ("ClusterRole", "Role"):
        assert {verb for verbs in rules(found, kind, "cardquota-test").values() for verb in verbs} <= {
            "get",
            "list",
        }
    assert not any("secrets" in name for name in rules(found, "ClusterRole", "cardquota-test"))


def test_what_a_failed_test_said_is_read_as_the_page_tells_and_goes_by_itself(helm: Path) -> None:
    """`helm test --logs` asks for pods with the names of its objects, and the Job's pod has another: it fails, even if all is well."""
    told = re.findall(r"`(kubectl [^`]+ logs job/[^`]+)`", (rendering.CHART / "README.md").read_text("utf-8"))
    assert told == ["kubectl --namespace cardquota-system logs job/cardquota-test"]
    made = rendering.of_kind(rendering.render(helm, {}, NAMESPACE, hooks=True), "Job")["cardquota-test"]
    assert "hook-failed" not in made["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert made["spec"]["ttlSecondsAfterFinished"] >= 3600, "helm uninstall leaves what hooks have made"
