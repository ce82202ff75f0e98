"""The policies that docs/security.md recommends where tenants share a cluster: they do what the page says, and no more."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.controlplane import Answer, ApiClient, ControlPlane, wait_for
from tests.adversary import scene
from tests.apiserver.manifests import Object, pod

pytestmark = pytest.mark.apiserver

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
CLAIMS = [{"name": "dev", "resourceClaimTemplateName": "each"}]


@pytest.fixture
def tenant(control_plane: ControlPlane, namespace: str) -> Iterator[ApiClient]:
    with scene.tenancy(control_plane, namespace) as mine:
        yield mine.api


@pytest.fixture
def recommended(control_plane: ControlPlane, namespace: str, tenant: ApiClient) -> Iterator[None]:
    """In force in the test's namespace alone: other tests go on meanwhile."""
    text = PAGE.read_text("utf-8")
    (shown,) = re.findall(r"```yaml\n(apiVersion: admissionregistration.*?)```", text, re.DOTALL)
    things = list(yaml.safe_load_all(shown))
    labels = {"kubernetes.io/metadata.name": namespace}
    for thing in things:
        if thing["kind"].endswith("Binding"):
            thing["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": labels}}
    assert ask(tenant, namespace, a_service(externalIPs=["192.0.2.1"])).status == 201, "a tenant may"
    control_plane.apply(things)
    for refused in (a_pod(nodeName="n", resourceClaims=CLAIMS), a_service(externalIPs=["192.0.2.1"])):
        wait_for(
            "the policies are in force",
            lambda refused=refused: ask(tenant, namespace, refused).status == 422,  # type: ignore[misc]
        )
    yield
    for each in reversed(things):
        control_plane.api.delete(control_plane.api.path_of(each)).expect()


def a_pod(**spec: Any) -> Object:
    return pod("p", **spec)


def a_service(**spec: Any) -> Object:
    metadata = {"name": "s"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [{"port": 1}], **spec},
    }


def ask(api: ApiClient, namespace: str, thing: Object) -> Answer:
    """As if it were created."""
    return api.request("POST", f"/api/v1/namespaces/{namespace}/{thing['kind'].lower()}s?dryRun=All", thing)


@pytest.mark.usefixtures("recommended")
def test_pods_with_claims_are_placed_by_a_scheduler_and_no_service_takes_addresses_of_others(
    tenant: ApiClient, namespace: str
) -> None:
    cases = {
        "claims and a node": (a_pod(nodeName="n", resourceClaims=CLAIMS), 422),
        "claims": (a_pod(resourceClaims=CLAIMS), 201),
        "a node": (a_pod(nodeName="n"), 201),
        "neither": (a_pod(), 201),
        "an address": (a_service(externalIPs=["192.0.2.1"]), 422),
        "a service": (a_service(), 201),
    }
    answers = {name: ask(tenant, namespace, thing).status for name, (thing, _) in cases.items()}
    assert answers == {name: status for name, (_, status) in cases.items()}
