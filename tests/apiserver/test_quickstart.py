"""docs/quickstart.md is true: followed command by command on a real control plane, it ends as it says."""

from pathlib import Path

import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.nodes import gpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster
from tests.apiserver.following import administrator, commands, files, follow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quickstart.md").read_text("utf-8")


@pytest.fixture
def environment(control_plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    return administrator(control_plane, cluster.namespace, tmp_path)


def test_the_quick_start_ends_as_it_says(
    cluster: Cluster, installation: Installation, environment: dict[str, str], tmp_path: Path
) -> None:
    """What it says before, of image, chart and command, is followed by test_first_steps.py."""
    cluster.add_nodes(gpu_node("gpu-1", product="NVIDIA-H200", cards=8, memory_mib=143771))
    try:
        follow(PAGE, tmp_path, environment, installation.namespace)
    finally:
        # The page deletes it in the end, if it gets there.
        queue = cluster.api.path("scheduling.volcano.sh/v1beta1", "Queue", name="research")
        cluster.api.delete(queue).expect(200, 404)
    assert {*files(PAGE)} == {"queue.yaml", "train.yaml", "mistake.yaml"}
    assert len([*commands(PAGE)]) > 8
