"""The policy that docs/security.md recommends where tenants share devices: it does what the page says, and no more."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane import Answer, ControlPlane, wait_for
from tests.apiserver.manifests import Object, pod

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
CLAIMS = [{"name": "dev", "resourceClaimTemplateName": "each"}]


@pytest.fixture
def recommended(control_plane: ControlPlane, namespace: str) -> Iterator[None]:
    """In force in the test's namespace alone: other tests go on meanwhile."""
    text = PAGE.read_text("utf-8")
    (shown,) = re.findall(r"```yaml\n(apiVersion: admissionregistration.*?)```", text, re.DOTALL)
    policy, binding = yaml.safe_load_all(shown)
    labels = {"kubernetes.io/metadata.name": namespace}
    binding["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": labels}}
    control_plane.apply([policy, binding])
    refused = a_pod(nodeName="n", resourceClaims=CLAIMS)
    wait_for("the policy is in force", lambda: ask(control_plane, namespace, refused).status == 422)
    yield
    for each in (binding, policy):
        control_plane.api.delete(control_plane.api.path_of(each)).expect()


def a_pod(**spec: Any) -> Object:
    return pod("p", **spec)


def ask(plane: ControlPlane, namespace: str, thing: Object) -> Answer:
    """As if it were created."""
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    return plane.api.request("POST", path, thing)


@pytest.mark.usefixtures("recommended")
def test_pods_with_claims_are_placed_by_a_scheduler_and_all_end_within_minutes(
    control_plane: ControlPlane, namespace: str
) -> None:
    cases = {
        "claims and a node": (a_pod(nodeName="n", resourceClaims=CLAIMS), 422),
        "a year to end": (a_pod(terminationGracePeriodSeconds=31_536_000), 422),
        "claims": (a_pod(resourceClaims=CLAIMS), 201),
        "a node": (a_pod(nodeName="n"), 201),
        "neither": (a_pod(), 201),
        "five minutes": (a_pod(terminationGracePeriodSeconds=300), 201),
    }
    answers = {name: ask(control_plane, namespace, thing).status for name, (thing, _) in cases.items()}
    assert answers == {name: status for name, (_, status) in cases.items()}
