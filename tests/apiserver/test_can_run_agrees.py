"""What `can-run` says and what the real control plane does are the same, over a table of situations.

All of them are set up side by side, asked about, and applied; then everybody is looked at once nothing moves any more.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver import situations, situations_of_groups
from tests.apiserver.cluster import Cluster, Object, gates
from tests.apiserver.scene import Scene, Situation
from tests.apiserver.volcano import JobController
from tests.own_plane import own_plane

STOCK = "VOLCANO_CRDS"
"""The environment variable that names a folder with the CustomResourceDefinitions of a Volcano release."""
VERDICTS = {0: "runs", 1: "refused", 3: "waits"}
ROUNDS = 3
"""So many pods are let in one after the other after everybody else came: by then the leader has looked at everybody."""

TABLE = (*situations.TABLE, *situations_of_groups.TABLE)


def in_play() -> list[Situation]:
    return [one for one in TABLE if STOCK in os.environ or not one.volcano]


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One of its own: a scheduler of Volcano's name, and Volcano's Job where its definition is at hand."""
    with own_plane(request) as plane:
        if STOCK in os.environ:
            plane.apply((Path(os.environ[STOCK]) / "batch.volcano.sh_jobs.yaml").read_text("utf-8"))
        plane.start_scheduler(name="volcano")
        yield plane


class Trial:
    """All situations: what is asked of each and what came of it."""

    def __init__(self, plane: ControlPlane, cluster: Cluster, folder: Path) -> None:
        self.plane = plane
        self.cluster = cluster
        self.folder = folder
        self.scenes: dict[str, Scene] = {}
        self.manifests: dict[str, list[Object]] = {}
        self.made: dict[str, list[str]] = {}
        """The objects that were stored, by their name."""

    def set_up(self) -> None:
        """Everything that is there before anybody asks."""
        for number, one in enumerate(in_play()):
            scene = self.scenes[one.name] = Scene(self.cluster, f"s{number}")
            self.manifests[one.name] = one.set_up(scene)
        busy = {name for scene in self.scenes.values() for name in scene.running}
        wait_for("those run who are to be there", lambda: busy <= self.cluster.running())

    def write(self) -> None:
        """The manifests as files, and the cluster as one."""
        for name, things in self.manifests.items():
            text = "\n---\n".join(json.dumps(self._placed(thing)) for thing in things)
            self.file(name).write_text(text, "utf-8")
        assert self.run("dump", "-o", self.folder / "state.json", *self.access) == 0

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"

    @property
    def access(self) -> tuple[str, str]:
        return "--kubeconfig", str(self.plane.admin_kubeconfig)

    def run(self, *arguments: object) -> int:
        return main([str(each) for each in arguments])

    def asked(self, name: str, *where: object) -> str:
        """The verdict by the exit status."""
        return VERDICTS[
            self.run("can-run", self.file(name), *(where or ("--state", self.folder / "state.json")))
        ]

    def apply(self) -> None:
        """Apply everything; what is refused is kept in mind."""
        jobs = JobController(self.cluster)
        for name, things in self.manifests.items():
            stored = self.made[name] = []
            for thing in things:
                if thing["apiVersion"].startswith("batch.volcano.sh/"):
                    jobs.enqueue(jobs.submit(thing))
                    stored.append(thing["metadata"]["name"])
                elif self.cluster.try_create(thing).status == 201:
                    stored.append(thing["metadata"]["name"])
        wait_for("workloads have made their pods", self._all_made)

    def settle(self) -> None:
        """Return once the leader has looked at everybody, and the schedulers at all whom it let in."""
        card = self.cluster.add_card(ROUNDS)
        scene = Scene(self.cluster, "fence")
        q = scene.queue({card: ROUNDS})
        for number in range(ROUNDS):
            scene.busy(card, q)
            wait_for(f"{number + 1} latecomers run", lambda: set(scene.running) <= self.cluster.running())
        wait_for("everybody who was let in is placed, or found to have no place", self._placed_all)

    def outcome(self, name: str) -> str:
        """What became of a situation: refused, waits or runs."""
        if len(self.made[name]) < len(self.manifests[name]):
            return "refused"
        pods = self._pods_of(name)
        assert pods
        return "runs" if all(pod["status"].get("phase") == "Running" for pod in pods) else "waits"

    def _pods_of(self, name: str) -> list[Object]:
        return [
            pod
            for key, pod in self.cluster.pods().items()
            if any(key == made or key.startswith(f"{made}-") for made in self.made[name])
        ]

    def _all_made(self) -> bool:
        """Whether each workload has as many pods as it is said to make."""
        pods = self.cluster.pods()
        for name, things in self.manifests.items():
            for thing in things:
                made, spec = thing["metadata"]["name"], thing.get("spec", {})
                wanted = {"Deployment": "replicas", "Job": "parallelism"}.get(thing["kind"])
                count = spec.get(wanted, 0) if wanted else 2 * (thing["kind"] == "DaemonSet")
                if made in self.made[name] and sum(key.startswith(f"{made}-") for key in pods) < count:
                    return False
        return True

    def _placed_all(self) -> bool:
        return all(
            names.GATE in gates(pod) or pod["spec"].get("schedulingGates") or _decided(pod)
            for pod in self.cluster.pods().values()
        )

    def _placed(self, thing: Object) -> Object:
        return {**thing, "metadata": {**thing["metadata"], "namespace": self.cluster.namespace}}


def _decided(pod: Object) -> bool:
    status: dict[str, Any] = pod["status"]
    stuck = [
        each
        for each in status.get("conditions", ())
        if each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
    ]
    return bool(stuck) or status.get("phase") == "Running"


@pytest.fixture(scope="module")
def trial(
    control_plane: ControlPlane, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trial]:
    del installation
    name = f"can-run-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    with closing(Cluster(control_plane, name)) as cluster:
        made = Trial(control_plane, cluster, tmp_path_factory.mktemp("manifests"))
        made.set_up()
        made.write()
        yield made
    control_plane.api.delete(control_plane.api.path("v1", "Namespace", name=name)).expect()


@pytest.fixture(scope="module")
def asked(trial: Trial) -> dict[str, str]:
    """What `can-run` says, before any of it is applied."""
    live = trial.asked(in_play()[0].name, *trial.access)
    said = {one.name: trial.asked(one.name) for one in in_play()}
    assert said[in_play()[0].name] == live, "of a dump it says what it says of the cluster"
    return said


@pytest.fixture(scope="module")
def became(trial: Trial, asked: dict[str, str]) -> dict[str, str]:
    """What came of it."""
    del asked
    trial.apply()
    trial.settle()
    return {one.name: trial.outcome(one.name) for one in in_play()}


def test_the_table_is_as_large_as_it_has_to_be() -> None:
    assert len([one for one in TABLE if not one.volcano]) >= 40
    assert {one.verdict for one in TABLE} == set(VERDICTS.values())


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_what_can_run_says_is_what_happens(
    one: Situation, asked: dict[str, str], became: dict[str, str]
) -> None:
    if one.name not in became:
        pytest.skip(f"{STOCK} names no folder with Volcano's definitions")
    assert (asked[one.name], became[one.name]) == (one.verdict, one.verdict)
