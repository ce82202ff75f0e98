"""CrossQuota without an extender: the bind itself is refused, so no scheduler gets past a node's limit."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import reasons
from core.quantity import milli
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.leaders import TAKE_OVER_S, leader_index
from tests.apiserver.manifests import binding, pod
from tests.apiserver.test_binding import NOBODY, refused
from tests.apiserver.test_standby import Caller
from tests.apiserver.watching import Watch

LIMIT = 4
ANNOTATION = "volcano.sh/crossquota-cpu"
LABEL = "test.example.com/pool"
DEFAULT, OTHER = "default-scheduler", "second-scheduler"
"""Two kube-schedulers, neither of which has an extender."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Whichever of two controllers the API server asks."""
    values = {"crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"], "guardBind": True}}
    with Installation(control_plane, values=values, controller=2) as installed:
        yield installed


@pytest.fixture(scope="module", autouse=True)
def second_scheduler(control_plane: ControlPlane) -> Iterator[None]:
    process = control_plane.start_scheduler(name=OTHER)
    yield
    process.stop()


@pytest.fixture
def limited(cluster: Cluster) -> str:
    """A GPU node with four cores for pods without GPU; both schedulers think that it has 96.

    Until there is a leader binds are not looked at, so the first one that is refused is waited for.
    """
    name = unique("gpu")
    item = gpu_node(name, product="NVIDIA-H200", cards=8, memory_mib=143771)
    item["metadata"] |= {
        "labels": {**item["metadata"]["labels"], LABEL: name},
        "annotations": {ANNOTATION: str(LIMIT)},
    }
    cluster.add_nodes(item)
    cluster.create(cpu_pod("probe", LIMIT + 1))
    wait_for("binds are judged", lambda: cluster.bind(binding("probe", name), dryRun="All").status == 409)
    return name


def cpu_pod(name: str, cpu: int, node_name: str = "", scheduler: str = NOBODY) -> Object:
    """A pod without GPU, for one node alone where that is named."""
    selector = {"nodeSelector": {LABEL: node_name}} if node_name else {}
    return pod(name, limits={"cpu": cpu}, schedulerName=scheduler, **selector)


def over_limit(seen: dict[str, Object], _changed: Object) -> str:
    """A check for a watch: whoever is bound counts until it has ended."""
    bound = {
        name: milli(item["spec"]["containers"][0]["resources"]["limits"]["cpu"]) // 1000
        for name, item in seen.items()
        if item["spec"].get("nodeName") and item["status"].get("phase") not in ("Succeeded", "Failed")
    }
    return f"over the limit: {bound}" if sum(bound.values()) > LIMIT else ""


def denials(cluster: Cluster, name: str, scheduler: str) -> list[str]:
    """What the scheduler said about binds of the pod that were refused for this rule."""
    said = cluster.events(name, scheduler)
    return [
        text for code, text in said if code == "FailedScheduling" and reasons.CROSS_QUOTA_EXCEEDED in text
    ]


def test_two_schedulers_that_race_never_exceed_the_limit_and_say_why_the_rest_waits(
    cluster: Cluster, limited: str
) -> None:
    """Three pods of each; two fit. When one of these ends, the next one goes."""
    schedulers = {f"{name}{number}": name for number in range(3) for name in (DEFAULT, OTHER)}
    pods = [cpu_pod(name, 2, limited, scheduler) for name, scheduler in schedulers.items()]
    with Watch(cluster.plane, cluster.path(), over_limit) as watch:
        with ThreadPoolExecutor(6) as pool:
            for answer in pool.map(cluster.try_create, pods):
                answer.expect(201)
        wait_for("two run", lambda: len(cluster.running()) == 2)
        for name in sorted(set(schedulers) - cluster.running()):
            scheduler = schedulers[name]
            wait_for(f"{name} is told why", lambda n=name, s=scheduler: denials(cluster, n, s))  # type: ignore[misc]
            (text, *_) = denials(cluster, name, scheduler)
            assert (
                f"[{reasons.CROSS_QUOTA_EXCEEDED}] cpu quota exceeded: required 2, used 4, quota 4 (node {limited})"
                in text
            )
        first = cluster.running()
        cluster.api.delete(cluster.path(min(first))).expect()
        wait_for("the next one runs", lambda: len(cluster.running() - first) == 1)
        watch.catch_up()
    assert watch.complaints == []


def test_many_binds_at_once_fill_the_node_exactly(cluster: Cluster, limited: str) -> None:
    names = [f"p{number}" for number in range(12)]
    cluster.create(*(cpu_pod(name, 1) for name in names))
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda name: cluster.bind(binding(name, limited)), names))
    assert Counter(answer.status for answer in answers) == {201: LIMIT, 409: len(names) - LIMIT}


def test_gpu_pods_and_nodes_without_gpus_are_not_limited(cluster: Cluster, limited: str) -> None:
    """GPU pods of a scheduler that the settings do not name have no gate; the test binds them."""
    free = unique("cpu")
    cluster.add_nodes(node(free))
    cluster.create(
        cpu_pod("full", LIMIT),
        cpu_pod("cpu", 9),
        pod("gpu", limits={"cpu": 9, "nvidia.com/gpu": 1}, schedulerName=NOBODY),
    )
    cluster.bind(binding("full", limited)).expect(201)
    refused(cluster.bind(binding("cpu", limited)), 409, reasons.CROSS_QUOTA_EXCEEDED)
    cluster.bind(binding("gpu", limited)).expect(201)
    cluster.bind(binding("cpu", free)).expect(201)


def test_a_dry_run_takes_no_room(cluster: Cluster, limited: str) -> None:
    cluster.create(cpu_pod("asked", LIMIT), cpu_pod("bound", LIMIT))
    cluster.bind(binding("asked", limited), dryRun="All").expect(201)
    cluster.bind(binding("bound", limited)).expect(201)
    refused(cluster.bind(binding("asked", limited), dryRun="All"), 409, reasons.CROSS_QUOTA_EXCEEDED)


def test_while_nobody_leads_pods_without_gpu_start_and_then_the_limit_holds_again(
    cluster: Cluster, installation: Installation, limited: str
) -> None:
    """Last of the module: the leader is killed."""
    cluster.create(cpu_pod("full", LIMIT), cpu_pod("p", 1))
    cluster.bind(binding("full", limited)).expect(201)
    leader = leader_index(cluster.plane, installation)
    standby, caller = 1 - leader, Caller(cluster, installation)

    def judged() -> bool:
        response = caller.ask(standby, "p", limited)
        return f"[{reasons.CROSS_QUOTA_EXCEEDED}]" in response.get("status", {}).get("message", "")

    wait_for("the standby asks the leader", judged)
    installation.kill_controller(leader)
    assert caller.ask(standby, "p", limited)["allowed"]
    wait_for("the standby leads", judged, TAKE_OVER_S)
