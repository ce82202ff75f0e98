"""The real control plane for the tests of this folder: a namespace per test."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.controlplane import ControlPlane, check_processes
from hack.install import Installation
from hack.prometheus import Api, running
from hack.toolchain import prometheus
from tests.apiserver.cluster import Cluster
from tests.apiserver.granted import wait_granted_to
from tests.apiserver.proxy import Proxy

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.apiserver)


@pytest.fixture(autouse=True)
def nobody_ended_by_itself() -> Iterator[None]:
    """No program of the control plane or of an installation has ended, but those that the test ended."""
    yield
    check_processes()


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    """A way to the API server on which connections can be made to fail."""
    with Proxy(control_plane.url) as between:
        yield between


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace in which pods can be created; deleted afterwards, without waiting for that."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.api.delete(control_plane.api.path("v1", "Namespace", name=name)).expect()


@pytest.fixture
def tenant(control_plane: ControlPlane, namespace: str) -> Path:
    """The kubeconfig of a user who has the role `edit` in the test's namespace and nothing else."""
    user = f"tenant-of-{namespace}"
    control_plane.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
    )
    kubeconfig = control_plane.user_kubeconfig(user)
    wait_granted_to(control_plane, kubeconfig, f"/api/v1/namespaces/{namespace}/pods")
    return kubeconfig


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The chart as it comes, with one webhook and one controller, for all tests of a module."""
    with Installation(control_plane) as installed:
        yield installed


@pytest.fixture
def scraped(control_plane: ControlPlane, installation: Installation) -> Iterator[Api]:
    """A Prometheus that reads both processes each second, with the alerts of the chart; skipped where there is none."""
    if prometheus.find("prometheus") is None:
        pytest.skip(prometheus.MISSING.format("prometheus"))
    with running(control_plane, installation.metrics_address) as api:
        yield api


@pytest.fixture
def cluster(control_plane: ControlPlane, installation: Installation, namespace: str) -> Iterator[Cluster]:
    """The test's namespace on the installed chart; nodes and queues made through it go at the end."""
    made = Cluster(control_plane, namespace)
    yield made
    made.close()
