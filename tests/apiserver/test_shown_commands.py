"""Every command that the pages show, those in consoles apart, is run on a real control plane, or it is said why not and by whom it is.

Commands in consoles are followed with what they print (test_quickstart.py, test_examples.py); of `cardquota` arguments are tried by
tests/unit/docs/test_pages.py, and what it does on a cluster by the tests of each command.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from hack.controlplane import ControlPlane
from hack.controlplane.nodes import h200_node, node
from hack.install import NAMESPACE, Installation
from tests.apiserver.cluster import Cluster
from tests.apiserver.following import administrator, run
from tests.builders import a_queue
from tests.builders.documents import PAGES

ROOT: Final = Path(__file__).parents[2]
NOT_RUN: Final[Mapping[str, str]] = {
    "kubectl port-forward ": "the nodes of the tests have no kubelet, which would have to forward it",
}
"""Beginnings of commands, and why no test runs them."""
ELSEWHERE: Final[Mapping[str, str]] = {
    "docker push ": "tests/apiserver/test_first_steps.py",
    "helm install ": "tests/apiserver/test_first_steps.py",
    "helm upgrade ": "tests/apiserver/test_demo.py",
    "helm uninstall ": "tests/apiserver/test_uninstall.py",
    "helm test ": "tests/apiserver/test_first_steps.py",
    "make image ": "tests/apiserver/test_first_steps.py",
    "pipx install ": "tests/apiserver/test_first_steps.py",
}
"""Beginnings of commands, and who does what they do."""
_BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:kubectl|helm|curl|docker|pipx|make image) .*")
_DRAWN = "──►"


def shown() -> Iterator[str]:
    """Each command in one line, without its comment."""
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text("utf-8")):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                if _COMMAND.fullmatch(line) and _DRAWN not in line:
                    yield line.split("  #")[0].strip()


COMMANDS: Final = sorted({*shown()})
RUN: Final = [one for one in COMMANDS if not one.startswith((*NOT_RUN, *ELSEWHERE))]


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[None]:
    """Nodes and a queue of the names that the pages have."""
    cluster.add_nodes(h200_node("node"), node("npu-1", allocatable={"example.com/npu": 8}))
    cluster.create(a_queue("vision").cards({"NVIDIA-H200": 8}).raw)
    yield
    queue = cluster.api.path("scheduling.volcano.sh/v1beta1", "Queue", name="vision")
    cluster.api.delete(queue).expect(200)


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("command", RUN)
def test_a_command_of_the_pages_does_what_it_is_for(
    control_plane: ControlPlane, cluster: Cluster, installation: Installation, tmp_path: Path, command: str
) -> None:
    environment = administrator(control_plane, cluster.namespace, tmp_path)
    here = command.replace(NAMESPACE, installation.namespace).replace(" NODE ", " node ")
    here = here.replace("127.0.0.1:8080", installation.metrics_address("controller"))
    printed = run(f"{here} && echo it went well", tmp_path, environment)
    assert printed.endswith("it went well\n"), printed
    assert len(printed.splitlines()) > 1, "it says nothing"


def test_what_is_not_run_is_shown_and_what_is_done_elsewhere_is_there() -> None:
    """So neither list keeps what nobody shows any more."""
    listed = (*NOT_RUN, *ELSEWHERE)
    assert [one for one in listed if not any(command.startswith(one) for command in COMMANDS)] == []
    assert [path for path in ELSEWHERE.values() if not (ROOT / path).exists()] == []


def test_there_are_commands_to_run() -> None:
    assert len(RUN) >= 5
