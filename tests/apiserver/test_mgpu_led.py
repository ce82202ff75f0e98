"""mGPU pods at high load beside schedulers that ask no extender: whoever is lifted is bound, and no bind is denied for room."""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from random import Random

import pytest

from core import names, reasons
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.filter import fits
from core.mgpu.node import canonical, model_of
from core.mgpu.occupancy import occupancy
from core.objects import node
from core.objects import pod as pods
from core.settings import Settings
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, gates, samples, terms, unique
from tests.apiserver.manifests import binding, pod, share_pod
from tests.apiserver.sticky import StickyScheduler
from tests.apiserver.watching import Watch

STICKY, STOCK = "sticky-scheduler", "default-scheduler"
CARDS, CARD_MIB, NODES, PODS = 8, 81920, 8, 200
LOAD = 95
"""Per cent of all core."""
BOUND_S = float(os.environ.get("CARDQUOTA_BOUND_S", "10"))
"""After so long whoever has room somewhere is bound. A machine with other work is given as much more as it takes for the pods
that ask for nothing and come at the same time: those wait for API server, scheduler and watch alike, and for nothing of ours."""
OVERTAKEN = PODS // 4
"""Of those who have room nobody is let in after more who came later. Those of one second are in line by name."""
CONTROLS = 20
SESSIONS = 3
"""And after so many sessions of the scheduler, each of which begins a second after the one before."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"schedulerNames": [STICKY, STOCK]}) as installed:
        yield installed


def crowd(scheduler: str, order: Random) -> list[Object]:
    """Pods that ask for 95 % of all core, a few of them for whole cards, the others for parts that leave odd remainders."""
    sizes = [100] * 8 + [order.choice((10, 15, 20, 25, 35, 45, 55)) for _ in range(PODS - 8)]
    wanted = CARDS * NODES * LOAD
    while sum(sizes) != wanted:
        place = order.randrange(8, PODS)
        step = 5 if sum(sizes) < wanted else -5
        if 10 <= sizes[place] + step <= 60:
            sizes[place] += step
    order.shuffle(sizes)
    return [
        share_pod(f"p{number:03}", core, None if core == 100 else 300 * core, schedulerName=scheduler)
        for number, core in enumerate(sizes)
    ]


class Times:
    """When pods were first seen, lost their gates and had a node, each in the order in which it happened; a check for Watch."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.lifted: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def __call__(self, _pods: dict[str, Object], changed: Object) -> str:
        name, now = changed["metadata"]["name"], time.monotonic()
        self.seen.setdefault(name, now)
        if not gates(changed):
            self.lifted.setdefault(name, now)
        if changed["spec"].get("nodeName"):
            self.bound.setdefault(name, now)
        return ""

    def slowest_s(self, among: Iterable[str], room_since: float) -> float:
        """How long the slowest of those waited for a node who were bound since then and had room from then on."""
        waits = [
            self.bound[name] - max(self.seen[name], room_since)
            for name in among
            if self.bound[name] >= room_since
        ]
        return max(waits, default=0.0)

    def check(self, controls: Collection[str], room_since: float) -> None:
        """Fails where one of ours waited longer than BOUND_S and the slowest of those who ask for nothing together."""
        ours = self.bound.keys() - controls
        slowest, usual = self.slowest_s(ours, room_since), self.slowest_s(controls, room_since)
        assert slowest < BOUND_S + usual, (slowest, usual)

    def most_overtaken(self, among: Collection[str]) -> int:
        """After how many of them who came later one of them was let in, at the most."""
        came, let_in = (
            {name: place for place, name in enumerate(times)} for times in (self.seen, self.lifted)
        )
        return max(
            sum(came[other] > came[name] and let_in[other] < let_in[name] for other in among)
            for name in among
        )


def are_in(cluster: Cluster, pods: Iterable[str], phase: str) -> bool:
    stored = cluster.pods()
    return all(stored[name]["status"].get("phase") == phase for name in pods)


def controls(kind: str, scheduler: str) -> list[Object]:
    """Pods that ask for nothing, by name among ours: a session of the sticky scheduler binds in the order of the names."""
    apart = PODS // CONTROLS
    return [pod(f"p{number * apart:03}-{kind}", schedulerName=scheduler) for number in range(CONTROLS)]


def named(objects: list[Object]) -> set[str]:
    return {each["metadata"]["name"] for each in objects}


def mixed(*several: list[Object]) -> list[Object]:
    """All of them, those of the shorter lists spread over the longest."""
    placed = [(number / len(each), item) for each in several for number, item in enumerate(each)]
    return [item for _, item in sorted(placed, key=lambda each: each[0])]


def wait_at_rest(cluster: Cluster) -> None:
    """Returns when everybody has a node, or was told at the gate that there is no room and finds none."""

    def resting() -> bool:
        waiting = {
            name: gates(each) for name, each in cluster.pods().items() if not each["spec"].get("nodeName")
        }
        return all(waiting.values()) and all(
            reasons.NO_FREE_CARD in dict(cluster.events(name)) for name in waiting
        )

    def settled() -> bool:
        return resting() and not without_room(cluster)

    wait_for("everybody is bound, or waits at the gate for room", settled, 60.0)


def bound_shares(cluster: Cluster) -> list[str]:
    """The pods with shares that have a node."""
    return [
        name
        for name, stored in cluster.pods().items()
        if stored["spec"].get("nodeName") and names.MANAGED_LABEL in stored["metadata"].get("labels", {})
    ]


def without_room(cluster: Cluster) -> list[str]:
    """The pods that wait although some node has room for them now."""
    stored = [pods.project(raw) for raw in cluster.pods().values()]
    found = []
    for raw in cluster.api.get("/api/v1/nodes").expect()["items"]:
        view = node.project(raw)
        model = model_of(view)
        if not model.serves:
            continue
        taken = occupancy(model, [each for each in stored if each.node_name == view.name], Settings().mgpu)
        assert not taken.irregularities
        for each in stored:
            ask = mgpu_ask(each)
            if each.gated and isinstance(ask, MgpuAsk):
                found += [each.name] * (fits(ask, model, canonical(taken.state), Settings()) is None)
    return found


@pytest.mark.parametrize("scheduler", [STOCK, STICKY])
def test_whoever_fits_somewhere_is_bound_soon_and_no_bind_is_denied(
    cluster: Cluster, installation: Installation, scheduler: str
) -> None:
    def denied() -> float:
        page = installation.metrics("controller")
        return samples(page, "cardquota_binds_total", verdict="denied", reason=reasons.MGPU_NO_ROOM)

    before, order = denied(), Random(7)
    hosts = [mgpu_node(unique("mgpu"), cards=CARDS, memory_mib=CARD_MIB) for _ in range(NODES)]
    cluster.add_nodes(*hosts)
    ours, early, late = crowd(scheduler, order), controls("early", scheduler), controls("late", scheduler)
    times = Times()
    with ExitStack() as running:
        watch = running.enter_context(Watch(cluster.plane, cluster.path(), times))
        sticky = StickyScheduler(cluster, STICKY)
        if scheduler == STICKY:
            running.enter_context(sticky)
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(cluster.try_create, mixed(ours, early))
            assert {answer.status for answer in answers} == {201}
        wait_at_rest(cluster)
        watch.catch_up()
        assert times.bound
        times.check(named(early), 0.0)
        assert times.most_overtaken(times.bound.keys() - named(early)) <= OVERTAKEN
        bound = bound_shares(cluster)
        assert len(bound) > 0.9 * PODS
        leaving = order.sample(bound, 25)
        with ThreadPoolExecutor(8) as pool:
            for answer in pool.map(lambda name: cluster.api.delete(cluster.path(name)), leaving):
                answer.expect()
        again = [
            {**each, "metadata": {**each["metadata"], "name": f"{each['metadata']['name']}-again"}}
            for each in ours
            if each["metadata"]["name"] in leaving
        ]
        cluster.create(*again)
        wait_for("those who left are gone", lambda: not {*leaving} & cluster.pods().keys())
        gone = time.monotonic()
        cluster.create(*late)
        wait_at_rest(cluster)
        watch.catch_up()
        # Some may have had room sooner, where not all of the leavers' was needed.
        times.check(named(late), gone)
        assert sticky.denied == Counter()
        assert max(sticky.sessions.values(), default=0) <= SESSIONS
        assert denied() == before
    placed = [cluster.pod(name) for name in bound_shares(cluster)]
    assert {host["metadata"]["name"] for host in hosts} <= {each["spec"]["nodeName"] for each in placed}
    assert all(names.NODE_ANNOTATION in each["metadata"]["annotations"] for each in placed)


def surplus(scheduler: str, order: Random) -> list[Object]:
    """Sixty pods that together ask for 3,110 hundredths."""
    sizes = [order.choice((30, 40, 55, 60, 70)) for _ in range(60)]
    while sum(sizes) != 3110:
        place = order.randrange(60)
        step = 5 if sum(sizes) < 3110 else -5
        if 10 <= sizes[place] + step <= 80:
            sizes[place] += step
    return [
        share_pod(f"s{number:02}", core, 300 * core, schedulerName=scheduler)
        for number, core in enumerate(sizes)
    ]


@pytest.mark.parametrize("scheduler", [STOCK, STICKY])
def test_of_four_times_as_many_pods_as_there_is_room_for_each_has_its_turn_and_none_is_sent_to_a_full_node(
    cluster: Cluster, installation: Installation, scheduler: str
) -> None:
    """60 pods of 3,110 on 800 in two nodes: without being led two went to the same full node again and again.

    Whenever nothing moves any more, some of those that run end.
    """

    def denied() -> float:
        page = installation.metrics("controller")
        return samples(page, "cardquota_binds_total", verdict="denied", reason=reasons.MGPU_NO_ROOM)

    before, order = denied(), Random(11)
    cluster.add_nodes(*(mgpu_node(unique("mgpu"), cards=4, memory_mib=CARD_MIB) for _ in range(2)))
    pods = surplus(scheduler, order)
    ended = set[str]()
    sticky = StickyScheduler(cluster, STICKY)
    with ExitStack() as running:
        if scheduler == STICKY:
            running.enter_context(sticky)
        with ThreadPoolExecutor(8) as pool:
            assert {answer.status for answer in pool.map(cluster.try_create, pods)} == {201}
        while len(ended) < len(pods):
            wait_at_rest(cluster)
            bound = sorted({*bound_shares(cluster)} - ended)
            wait_for("all that are bound run", partial(are_in, cluster, bound, "Running"))
            leaving = order.sample(bound, min(len(bound), 6))
            cluster.finish(*leaving)
            ended.update(leaving)
            wait_for("they have ended", partial(are_in, cluster, ended, "Succeeded"))
        assert sticky.denied == Counter()
        assert max(sticky.sessions.values(), default=0) <= SESSIONS
        assert denied() == before


def test_terms_of_the_pod_itself_are_narrowed_to_the_node_with_room(
    cluster: Cluster, installation: Installation
) -> None:
    """A node without a label of its own is named by its field; the API server takes both into terms that are there."""
    bare, other = (mgpu_node(unique("mgpu"), cards=1, memory_mib=CARD_MIB) for _ in range(2))
    zone = unique("zone")
    for host in (bare, other):
        del host["metadata"]["labels"][names.HOSTNAME_LABEL]
        host["metadata"]["labels"]["zone"] = zone
    cluster.add_nodes(bare, other)
    by_zone = {"key": "zone", "operator": "In", "values": [zone]}
    by_name = {"key": "metadata.name", "operator": "In", "values": [bare["metadata"]["name"]]}
    own = [{"matchExpressions": [by_zone]}, {"matchFields": [by_name], "matchExpressions": [by_zone]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}}
    pods = [share_pod(name, 60, 4096, affinity={"nodeAffinity": required}) for name in ("a", "b")]
    cluster.create(*pods)
    cluster.wait_running("a", "b")
    found = {name: stored["spec"]["nodeName"] for name, stored in cluster.pods().items()}
    assert set(found.values()) == {bare["metadata"]["name"], other["metadata"]["name"]}
    for name, node_name in found.items():
        named = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        first, second = terms(cluster.pod(name))
        # What the term says already is not said twice.
        assert first["matchFields"] == [named]
        assert second["matchFields"] == ([named] if named == by_name else [by_name, named])
        assert cluster.pod(name)["metadata"]["annotations"][names.NODE_ANNOTATION] == node_name


def test_the_pods_of_a_daemon_set_are_led_to_the_nodes_they_were_made_for(
    cluster: Cluster, installation: Installation
) -> None:
    hosts = [mgpu_node(unique("mgpu"), cards=1, memory_mib=CARD_MIB) for _ in range(3)]
    pool = unique("pool")
    for host in hosts:
        host["metadata"]["labels"]["pool"] = pool
    cluster.add_nodes(*hosts)
    labels, item = {"app": "agent"}, share_pod("agent", 60, 4096, nodeSelector={"pool": pool})
    daemons = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": item["spec"]},
    }
    cluster.create(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": daemons}
    )
    wait_for("an agent runs on each node", lambda: len(cluster.running()) == len(hosts))
    found = {stored["spec"]["nodeName"] for stored in cluster.pods().values()}
    assert found == {host["metadata"]["name"] for host in hosts}


def test_a_lost_node_is_said_on_the_pod_that_was_led_there_and_the_bind_goes_through_when_it_is_back(
    cluster: Cluster, installation: Installation
) -> None:
    """Nobody serves this scheduler's pods here, so the test binds."""
    host = mgpu_node(unique("mgpu"), cards=1, memory_mib=CARD_MIB)
    name = host["metadata"]["name"]
    host["metadata"]["labels"]["pool"] = name
    cluster.add_nodes(host)
    cluster.create(share_pod("p", 60, 4096, schedulerName=STICKY, nodeSelector={"pool": name}))
    wait_for("our gate is gone", lambda: gates(cluster.pod("p")) == [])
    path = f"/api/v1/nodes/{name}"
    cluster.api.patch(path, {"spec": {"unschedulable": True}}).expect()
    said = cluster.wait_said("p", reasons.MGPU_ROOM_GONE)
    assert f"node {name} is cordoned. " in said
    cluster.create(share_pod("late", 60, 4096, schedulerName=STICKY, nodeSelector={"pool": name}))
    cluster.wait_said("late", reasons.NO_FREE_CARD)
    cluster.api.patch(path, {"spec": {"unschedulable": None}}).expect()
    assert cluster.bind(binding("p", name)).status == 201
    assert gates(cluster.pod("late")) == [names.GATE], "the room was booked all the time"
