"""The fixtures of the tests here that attack a real control plane; all others need none."""

from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane
from hack.install import Installation
from tests.adversary import scene
from tests.adversary.scene import Scene
from tests.apiserver.cluster import Cluster
from tests.apiserver.conftest import cluster, namespace, nobody_ended_by_itself

__all__ = ["cluster", "namespace", "nobody_ended_by_itself"]


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Where a card has to be named."""
    with Installation(control_plane, values={"cards": {"podsWithoutCardName": "deny"}}) as installed:
        yield installed


@pytest.fixture
def stage(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Scene]:
    """A tenant, its queue, and what else is there."""
    with scene.tenancy(control_plane, cluster.namespace) as tenant:
        yield Scene(cluster, tenant)
