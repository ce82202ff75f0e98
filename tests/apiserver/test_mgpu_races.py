"""Two schedulers, three controllers of which leaders are killed, and a node that forgives nothing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

import pytest

from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import MGPU_CORE, MGPU_MEMORY, MGPU_POLICY, mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.leaders import leader_index
from tests.apiserver.manifests import Object, share_pod
from tests.apiserver.node_agent import COUNTS, NodeAgent, shares_of, tended

CARD_MIB = 81920
NATIVE = "native-burst-share"
SCHEDULERS = ("racer-one", "racer-two")
QUICK = "podMaxBackoffSeconds: 2"
"""A bind that is denied is tried again after a second or two, not after ten."""

PODS = 200
ROUND_S = 90.0


@pytest.fixture(scope="module")
def schedulers(control_plane: ControlPlane) -> Iterator[None]:
    """Two kube-schedulers that know of each other's pods what the watch tells them, and no more."""
    processes = [control_plane.start_scheduler(QUICK, name) for name in SCHEDULERS]
    yield
    for process in processes:
        process.stop()


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Three controllers. No bind passes while the API server still calls the one that was killed."""
    values = {
        "schedulerNames": list(SCHEDULERS),
        "controller": {"bindingHook": {"failurePolicy": "Fail"}},
    }
    with Installation(control_plane, values=values, controller=3) as installed:
        yield installed


def container(name: str, **limits: int) -> Object:
    resources = {"limits": {key: str(amount) for key, amount in limits.items()}}
    return {"name": name, "image": "none", "resources": resources}


def crowd(round_: int, order: Random) -> list[Object]:
    """Pods of both schedulers: eight of them want a whole card, the others parts of different shapes.

    No name occurs in two rounds: kwok may delete a pod twice, by its name.
    CPU spreads them evenly over the nodes, so that in the end there is a place for each, whatever the order. There is
    memory to spare: a scheduler that asks no extender stays on the node whose bind was denied, so none may be full for good.
    """
    sizes: list[tuple[int, int | None]] = [(100, None)] * 8
    sizes += [((5, 1024), (10, 4096), (15, 2048), (5, 5120))[number % 4] for number in range(PODS - 8)]
    order.shuffle(sizes)
    pods = []
    for number, (core, memory) in enumerate(sizes):
        pod = share_pod(f"r{round_}-{number:03}", core, memory, schedulerName=SCHEDULERS[number % 2])
        pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1500m"
        pods.append(tended(pod))
    return pods


def run(cluster: Cluster, agent: NodeAgent, count: int) -> bool:
    """Whether so many pods run; an error as soon as the nodes complain."""
    assert (agent.failed, agent.complaints) == ({}, [])
    return len(cluster.running()) >= count


@pytest.mark.timeout(900)
def test_no_card_is_shared_beyond_its_size_whoever_races_and_whoever_dies(
    cluster: Cluster, installation: Installation, schedulers: None
) -> None:
    """Each node admits every pod at the first moment that shows it there, as a kubelet does, and none may fail."""
    nodes = [mgpu_node(unique("mgpu"), cards=8, memory_mib=CARD_MIB) for _ in range(4)]
    cluster.add_nodes(*nodes)
    order = Random(20)
    with NodeAgent(cluster.plane, cluster.path(), nodes) as agent, ThreadPoolExecutor(4) as pool:
        for round_ in (1, 2):
            pods = crowd(round_, order)
            answers = [pool.submit(cluster.try_create, pod) for pod in pods]
            for running in (PODS // 3, 2 * PODS // 3):
                wait_for(f"{running} run", partial(run, cluster, agent, running), ROUND_S)
                installation.kill_controller(leader_index(cluster.plane, installation))
                installation.start_controller()
            assert {answer.result().status for answer in answers} == {201}
            wait_for("all run", lambda: run(cluster, agent, PODS), ROUND_S)
            agent.catch_up()
            assert (agent.failed, agent.complaints) == ({}, [])
            assert agent.admitted == PODS * round_
            assert {pod["spec"]["nodeName"] for pod in cluster.pods().values()} == {
                node["metadata"]["name"] for node in nodes
            }
            paths = [cluster.path(pod["metadata"]["name"]) for pod in order.sample(pods, PODS)]
            for answer in pool.map(cluster.api.delete, paths):
                answer.expect()
            wait_for("all are gone", lambda: not cluster.pods(), ROUND_S)


def test_the_agent_finds_the_cards_of_every_container(
    cluster: Cluster, installation: Installation, schedulers: None
) -> None:
    """Shares of two cards, none, a whole card, another pair, in one pod; and a plain pod of two containers."""
    node = mgpu_node(unique("mgpu"), cards=4, memory_mib=CARD_MIB, policy=NATIVE)
    cluster.add_nodes(node)
    wide = share_pod("wide", 60, 8192, schedulerName=SCHEDULERS[0])
    wide["spec"]["containers"] += [
        container("none"),
        container("whole", **{MGPU_CORE: 100}),
        container("pair", **{MGPU_CORE: 40, MGPU_MEMORY: 4096}),
    ]
    wide["metadata"]["annotations"] = {COUNTS: "2,0,1,2", MGPU_POLICY: NATIVE}
    plain = share_pod("plain", 40, 4096, schedulerName=SCHEDULERS[1])
    plain["spec"]["containers"].append(container("other", **{MGPU_CORE: 60, MGPU_MEMORY: 4096}))
    plain["metadata"]["annotations"] = {MGPU_POLICY: NATIVE}
    with NodeAgent(cluster.plane, cluster.path(), [node]) as agent:
        cluster.create(tended(wide))
        wait_for("wide runs", partial(run, cluster, agent, 1))
        cluster.create(tended(plain))
        wait_for("both run", partial(run, cluster, agent, 2))
        agent.catch_up()
        assert (agent.failed, agent.complaints, agent.admitted) == ({}, [], 2)
    shares = [*shares_of(cluster.pod("wide"), cards=4), *shares_of(cluster.pod("plain"), cards=4)]
    assert sorted(share.core for share in shares) == [20, 20, 30, 30, 40, 60, 100]
