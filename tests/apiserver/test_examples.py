"""What each folder of examples/ says is true: its commands, followed on a real control plane, show what it shows."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hack.controlplane import ControlPlane
from hack.controlplane.nodes import gpu_node, h200_node, mgpu_node, mig_mps_node, node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object
from tests.apiserver.following import administrator, commands, files, follow, run

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
FOLDERS: Final = sorted(page.parent.name for page in EXAMPLES.glob("*/README.md"))
CLASSES: Final = ("gpu.nvidia.com", "hami-core-gpu.project-hami.io")

_APPLIED = re.compile(r"-f ([\w.-]+\.yaml)")


def shared_a100(name: str) -> Object:
    """Two A100, each shared by MPS in four."""
    whole = gpu_node(name, product="NVIDIA-A100-80GB", cards=2, memory_mib=81920)
    labels = whole["metadata"]["labels"] | {"nvidia.com/gpu.replicas": "4"}
    amounts = {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"}
    return node(name, labels=labels, allocatable=amounts)


NODES: Final[Mapping[str, Sequence[Object]]] = {
    "set-a-quota": [
        h200_node("gpu-1"),
        gpu_node("gpu-2", product="NVIDIA-H800", cards=2, memory_mib=81920),
        shared_a100("gpu-3"),
    ],
    "label-nodes-by-hand": [node("npu-1", allocatable={"example.com/npu": 8})],
    "parts-of-cards": [mig_mps_node("gpu-1")],
    "share-by-mgpu": [mgpu_node("mgpu-1"), mgpu_node("mgpu-2", policy="native-burst-share")],
    "node-pool-at-zero": [],
    "either-card": [
        h200_node("gpu-1"),
        gpu_node("gpu-2", product="NVIDIA-H800", cards=8, memory_mib=81920),
    ],
    "queue-tree": [h200_node("gpu-1", 12)],
}
"""What the text of a folder says of its nodes; all others have one node of eight H200."""


def page(folder: str) -> str:
    return (EXAMPLES / folder / "README.md").read_text("utf-8")


def values(folder: str) -> dict[str, Any]:
    """What the chart is installed with, empty for its defaults."""
    found: dict[str, Any] = yaml.safe_load(files(page(folder)).get("values.yaml", "{}"))
    return found


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """The chart with the values of a folder; folders without any share one."""
    with Installation(control_plane, values=values(request.param)) as installed:
        yield installed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each folder with the installation that it takes; those with the defaults first, one after the other."""
    if "folder" in metafunc.fixturenames:
        ordered = sorted(FOLDERS, key=lambda name: bool(values(name)))
        plain = next(name for name in ordered if not values(name))
        takes = [(name if values(name) else plain, name) for name in ordered]
        metafunc.parametrize(
            ("installation", "folder"), takes, indirect=["installation"], scope="module", ids=ordered
        )


def test_a_folder_shows_what_it_says(
    cluster: Cluster, control_plane: ControlPlane, installation: Installation, folder: str, tmp_path: Path
) -> None:
    for name in CLASSES if folder == "devices" else ():
        cluster.make(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": name},
                "spec": {},
            }
        )
    cluster.add_nodes(*NODES.get(folder, [h200_node("gpu-1")]))
    environment = administrator(control_plane, cluster.namespace, tmp_path)
    place = tmp_path / "example"
    shutil.copytree(EXAMPLES / folder, place)
    text = page(folder)
    try:
        follow(text, place, environment, installation.namespace)
    finally:
        applied = {name for command in commands(text) for name in _APPLIED.findall(command.text)}
        names = " ".join(f"-f {name}" for name in sorted(applied))
        run(f"kubectl delete --ignore-not-found --timeout=60s {names}", place, environment)
