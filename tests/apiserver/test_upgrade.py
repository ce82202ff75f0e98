"""From the first release to this one and back, with five hundred pods running and waiting."""

import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from controller.hook_paths import PLAIN_PATH
from core import names
from hack.controlplane import ControlPlane, ManagedProcess, WaitError, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.installation.release import ROOT, Release
from hack.installation.rendering import RenderError
from tests.apiserver.cluster import Cluster, charged, gates, unique
from tests.apiserver.devices import Devices, claiming
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue, share_pod

FIRST = "a2cb95b"
"""The last commit of 0.1.0."""
QUOTA, CARD_PODS, SHARE_PODS, CLAIM_PODS = 60, 480, 12, 8
SHARES_FIT, CLAIMS_FIT = 8, 3
INDEX = f"{names.GPU_INDEX_PREFIX}c"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cardquota-mutating"
QUEUES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh"

_PIP_TIMEOUT_S = 240.0

pytestmark = pytest.mark.timeout(480)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """0.1.0 as the repository has it: its chart, and beside it its packages with what they were built on."""
    made = subprocess.run(["git", "archive", FIRST], cwd=ROOT, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"the history does not reach back to {FIRST}: {made.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("first")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    built = installed(folder)
    (folder / "charts").rename(built / "charts")
    return built


def installed(tree: Path) -> Path:
    """The wheel of a source tree and what it depends on, in a folder."""
    target = tree / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, f"--target={target}", str(tree)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PIP_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def release(control_plane: ControlPlane) -> Iterator[Release]:
    with Release(control_plane, unique("release"), {"crds": {"install": True}}) as made:
        yield made


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Iterator[Cluster]:
    made = Cluster(control_plane, namespace)
    yield made
    made.close()


class Crowd:
    """Five hundred pods: of one queue's cards, of an mGPU card's shares, and with claims on devices."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card, self.queue = cluster.add_card(QUOTA + 4), unique("q")
        cluster.add_nodes(mgpu_node(unique("mgpu"), cards=2, memory_mib=40_000))
        cluster.create_queue(queue(self.queue, f'{{"{self.card}": {QUOTA}}}'))
        self.devices = Devices(cluster)
        self.claimants = self.devices.queue(CLAIMS_FIT)
        self.most = 0
        """The most cards that pods without our gate held at any time that was looked at."""

    def come(self) -> None:
        """Creates them all; a gang of four is first in line."""
        self.cluster.create(podgroup("gang", self.queue, 4))
        gang = [card_pod(f"gang{n}", self.card, self.queue) for n in range(4)]
        self.cluster.create(*in_group("gang", *gang))
        claims = [f"claim{number}" for number in range(CLAIM_PODS)]
        for claim in claims:
            self.devices.claim(claim)
            self.devices.allocate(claim, "r")
        pods = [
            *[claiming(f"d{n}", self.claimants, claim=claim) for n, claim in enumerate(claims)],
            *[share_pod(f"s{n:02}", 25, 10_000) for n in range(SHARE_PODS)],
            *[card_pod(f"c{n:03}", self.card, self.queue) for n in range(CARD_PODS - 4)],
        ]
        with ThreadPoolExecutor(8) as makers:
            assert {answer.status for answer in makers.map(self.cluster.try_create, pods)} == {201}

    def look(self) -> dict[str, dict[str, Any]]:
        """The pods that have been let in and have not ended, by name."""
        inside = {
            name: pod
            for name, pod in self.cluster.pods().items()
            if names.GATE not in gates(pod) and pod["status"].get("phase") not in {"Succeeded", "Failed"}
        }
        self.most = max(self.most, sum(name.startswith(("c", "gang")) for name in inside))
        return inside

    def full(self) -> bool:
        """Whether as many are in as fit."""
        inside = self.look()
        cards = sum(name.startswith(("c", "gang")) for name in inside)
        shares, claims = (sum(name[0] == kind for name in inside) for kind in "sd")
        bound = all(pod["spec"].get("nodeName") for pod in inside.values())
        return bound and (cards, shares, claims) == (QUOTA, SHARES_FIT, CLAIMS_FIT)

    def wait_full(self, when: str) -> dict[str, dict[str, Any]]:
        try:
            wait_for(f"as many are in as fit, {when}", self.full, 90.0)
        except WaitError as error:
            inside = self.look()
            unbound = sorted(name for name, pod in inside.items() if not pod["spec"].get("nodeName"))
            raise WaitError(f"{error}; in: {sorted(inside)}, of these without a node: {unbound}") from None
        return self.look()

    def make_room(self, count: int) -> set[str]:
        """Lets so many pods with cards and one of each other kind end; returns all of them."""
        inside = sorted(name for name, pod in self.look().items() if pod["status"].get("phase") == "Running")
        ending = [name for name in inside if name.startswith("c")][:count]
        ending += [next(name for name in inside if name[0] == kind) for kind in "sd"]
        self.cluster.finish(*ending)
        return {*ending}


def records(inside: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """What is on record of each pod: cards, indexes, queue."""
    return {
        name: {
            key: value
            for key, value in pod["metadata"].get("annotations", {}).items()
            if key.startswith(("cardquota.io/", names.GPU_INDEX_PREFIX, names.CARD_NAME_ANNOTATION))
        }
        for name, pod in inside.items()
    }


def assert_kept(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]], ended: set[str]) -> None:
    """Whoever was in and has not ended is still in, on the same node, with everything that was on record."""
    for name in before.keys() - ended:
        assert after[name]["spec"]["nodeName"] == before[name]["spec"]["nodeName"]
        had, has = records({name: before[name]})[name], records({name: after[name]})[name]
        assert had.items() <= has.items(), name


def assert_cards_apart(inside: dict[str, dict[str, Any]]) -> None:
    """Four shares of a quarter each fill a card: eight pods are on two cards, four on each."""
    indexes = [pod["metadata"]["annotations"][INDEX] for name, pod in inside.items() if name.startswith("s")]
    assert sorted(indexes) == ["0"] * 4 + ["1"] * 4


def launch_both(release: Release, tree: Path) -> list[ManagedProcess]:
    """A webhook and a controller of a version, once they serve."""
    started = [release.launch(component, tree) for component in ("webhook", "controller")]
    for process in started:
        process.wait_ready()
    release.wait_in_force()
    return started


def hook_path(plane: ControlPlane) -> str:
    entries = {w["name"]: w for w in plane.api.get(HOOKS).expect()["webhooks"]}
    return str(entries["bindings.cardquota.io"]["clientConfig"]["service"].get("path", ""))


def test_both_ways_nobody_loses_a_record_and_no_quota_is_exceeded(
    cluster: Cluster, release: Release, first: Path
) -> None:
    release.install(first)
    old = launch_both(release, first)
    crowd = Crowd(cluster)
    crowd.come()
    by_old = crowd.wait_full("with the first release")
    assert not any(charged(pod) for pod in by_old.values()), "that is the first release at work"
    assert_cards_apart(by_old)

    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.3):
            crowd.look()

    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(watch)
        try:
            _forth_and_back(cluster, release, first, crowd, by_old, old)
        finally:
            stop.set()
        watching.result()
    assert crowd.most == QUOTA


def _forth_and_back(
    cluster: Cluster,
    release: Release,
    first: Path,
    crowd: Crowd,
    by_old: dict[str, dict[str, Any]],
    old: list[ManagedProcess],
) -> None:
    release.install(command="upgrade")
    new = launch_both(release, ROOT)
    ended = crowd.make_room(5)
    both = crowd.wait_full("while both versions run and the first one leads")
    assert_kept(by_old, both, ended)

    for process in old:
        process.stop()
    wait_for(
        "the new leader has stamped whom the old one let in",
        lambda: all(map(charged, crowd.look().values())),
        90.0,
    )
    wait_for("the entries that are new are in force", lambda: release.is_trusted("Fail", "Ignore"), 90.0)
    ended |= crowd.make_room(20)
    upgraded = crowd.wait_full("after the upgrade")
    assert_kept(both, upgraded, ended)
    assert_cards_apart(upgraded)
    assert {charged(pod) for name, pod in upgraded.items() if name[0] in "cg"} == {crowd.queue}
    assert {charged(pod) for name, pod in upgraded.items() if name[0] == "d"} == {crowd.claimants}
    assert "spec.dra" in _fields(cluster.api.get(QUEUES).expect())
    wait_for(
        "the hook has a path of its own",
        lambda: len(hook_path(cluster.plane)) > len(f"{PLAIN_PATH}/"),
        90.0,
    )

    release.helm("rollback", "1")
    launch_both(release, first)
    for process in new:
        process.stop()
    assert hook_path(cluster.plane) == PLAIN_PATH, (
        "that of the first release, whoever led when its chart came back"
    )
    ended |= crowd.make_room(5)
    back = crowd.wait_full("after the rollback")
    assert_kept(upgraded, back, ended)
    assert_cards_apart(back)
    assert "spec.dra" in _fields(cluster.api.get(QUEUES).expect())


def _fields(definition: dict[str, Any]) -> set[str]:
    """The fields of the spec of the stored version."""
    (version,) = [each for each in definition["spec"]["versions"] if each["storage"]]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {f"spec.{field}" for field in spec["properties"]}


def test_an_upgrade_keeps_what_was_set_in_the_first_release(release: Release, first: Path) -> None:
    """Helm hands over what was set, or all values of the first release, its defaults included, and none that came since."""
    release.values["cards"] = {"podsWithoutCardName": "deny"}
    release.install(first)
    chart = str(ROOT / "charts" / "cardquota")
    with pytest.raises(RenderError, match="use --reset-then-reuse-values, which keeps what was set"):
        release.helm("upgrade", chart, "--reuse-values")
    release.helm("upgrade", chart, "--reset-then-reuse-values")
    stored = release.plane.api.get(f"/api/v1/namespaces/{release.namespace}/configmaps/cardquota").expect()
    assert "podsWithoutCardName: deny" in stored["data"]["cardquota.yaml"]
