"""Cards at bind time: node and cards appear in one write, no card is given out twice, and nobody else writes a record."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from core import names, reasons
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.manifests import binding, pod, share_pod
from tests.apiserver.watching import Watch

INDEX = f"{names.GPU_INDEX_PREFIX}c"
CARD_MIB = 81920
NOBODY = "nobody"
"""A scheduler that is not there and that the settings do not name: its pods have no gate, the test binds them."""
LATER = "later"
"""A scheduler of ours that is not there yet."""

FORGED = {
    INDEX: "7",
    f"{names.GPU_INDEX_PREFIX}other": "0",
    names.ASSUMED_ANNOTATION: "false",
    names.ASSIGNED_ANNOTATION: '{"NVIDIA-H200": 8}',
    f"{names.OWN_PREFIX}made-up": "x",
}
HARMLESS = {"scheduling.k8s.io/group-name": "g", "example.com/note": "x"}


def records(stored: Mapping[str, object]) -> dict[str, str]:
    """The annotations of a pod by which it has its cards."""
    metadata = stored["metadata"]
    assert isinstance(metadata, dict)
    found = {k: v for k, v in metadata.get("annotations", {}).items() if names.is_record(k)}
    for of_the_lift in (names.CHARGED_QUEUE_ANNOTATION, names.NODE_ANNOTATION):
        found.pop(of_the_lift, None)
    return found


def record(*cards: int) -> dict[str, str]:
    return {INDEX: ",".join(map(str, cards)), names.ASSUMED_ANNOTATION: "true"}


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"schedulerNames": ["default-scheduler", LATER]}) as installed:
        yield installed


@pytest.fixture
def node(cluster: Cluster) -> str:
    """An mGPU node of one card."""
    name = unique("mgpu")
    cluster.add_nodes(mgpu_node(name, cards=1, memory_mib=CARD_MIB))
    return name


def a_pod_of(cluster: Cluster, name: str, core: int, memory_mib: int | None = None) -> Object:
    """A stored pod that nobody but the test will bind."""
    (stored,) = cluster.create(share_pod(name, core, memory_mib, schedulerName=NOBODY))
    assert gates(stored) == []
    return stored


def a_full_card_is_still_free(cluster: Cluster, node: str) -> None:
    """Nothing is booked on the node's only card: a pod that needs all of it gets it."""
    name = unique("full")
    a_pod_of(cluster, name, 100)
    cluster.bind(binding(name, node)).expect(201)
    assert records(cluster.pod(name)) == record(0)


def refused(answer: Answer, status: int, code: str) -> str:
    assert answer.status == status, answer.body
    message: str = answer.body["message"]
    assert message.startswith('admission webhook "bindings.cardquota.io" denied the request: ')
    assert f"[{code}]" in message
    return message


def test_no_observer_sees_a_node_without_cards_and_no_card_is_given_out_twice(cluster: Cluster) -> None:
    """Fifty pods of different sizes, bound by the real scheduler as fast as it can.

    They ask for CPU, by which the scheduler spreads them evenly; so each node has room for what it gets, whatever the
    order. A pod that is denied would be tried on the same node again.
    """
    nodes = [mgpu_node(unique("mgpu"), cards=8, memory_mib=CARD_MIB) for _ in range(6)]
    cluster.add_nodes(*nodes)
    sizes = [(10, 4096), (20, 40960), (25, 8192), (30, 20480), (40, 16384)]
    pods = [share_pod(f"p{number:02}", *sizes[number % len(sizes)]) for number in range(49)]
    for each in pods:
        each["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "4"

    def check(_seen: dict[str, Object], changed: Object) -> str:
        if not changed["spec"].get("nodeName"):
            return ""
        found = records(changed)
        complete = (
            set(found) == {INDEX, names.ASSUMED_ANNOTATION} and found[names.ASSUMED_ANNOTATION] == "true"
        )
        return "" if complete else f"{changed['metadata']['name']} has a node and the records {found}"

    with Watch(cluster.plane, cluster.path(), check) as watch, ThreadPoolExecutor(4) as pool:
        # First, while two cards of a node are idle: the others spread over all of them.
        cluster.create(share_pod("whole", 200))
        cluster.wait_running("whole")
        for answer in pool.map(cluster.try_create, pods):
            answer.expect(201)
        wait_for("all run", lambda: len(cluster.running()) == 1 + len(pods), 60)
        watch.catch_up()
    assert watch.complaints == []
    booked = booked_on_cards(cluster.pods())
    assert max(core for core, _ in booked.values()) <= 100
    assert max(memory for _, memory in booked.values()) <= CARD_MIB
    assert sum(core for core, _ in booked.values()) == 200 + sum(sizes[n % len(sizes)][0] for n in range(49))


def booked_on_cards(pods: Mapping[str, Object]) -> dict[tuple[str, str], tuple[int, int]]:
    """Core and memory by node and card, summed up from the pods' records alone."""
    core: Counter[tuple[str, str]] = Counter()
    memory: Counter[tuple[str, str]] = Counter()
    for stored in pods.values():
        limits = stored["spec"]["containers"][0]["resources"]["limits"]
        cards = records(stored)[INDEX].split(",")
        assert len(set(cards)) == len(cards) == max(int(limits[names.MGPU_CORE]) // 100, 1)
        for card in cards:
            assert int(card) in range(8)
            place = (stored["spec"]["nodeName"], card)
            core[place] += min(int(limits[names.MGPU_CORE]), 100)
            memory[place] += int(limits.get(names.MGPU_MEMORY, CARD_MIB))
    return {place: (core[place], memory[place]) for place in core}


class TestRecordsOfAScheduler:
    """A Binding may carry any annotation, and the API server lays it over the pod's."""

    def test_forged_records_give_way_to_the_real_ones(self, cluster: Cluster, node: str) -> None:
        a_pod_of(cluster, "a", 30, 1024)
        cluster.bind(binding("a", node, annotations={**FORGED, **HARMLESS})).expect(201)
        stored = cluster.pod("a")
        assert stored["spec"]["nodeName"] == node
        assert records(stored) == record(0)
        assert HARMLESS.items() <= stored["metadata"]["annotations"].items()

    def test_a_cpu_pod_gets_none(self, cluster: Cluster, node: str) -> None:
        cluster.create(pod("cpu", limits={"cpu": "1"}, schedulerName=NOBODY))
        cluster.bind(binding("cpu", node, annotations={**FORGED, **HARMLESS})).expect(201)
        stored = cluster.pod("cpu")
        assert stored["spec"]["nodeName"] == node
        assert stored["metadata"]["annotations"] == HARMLESS

    def test_the_older_way_to_bind_is_watched_as_well(self, cluster: Cluster, node: str) -> None:
        a_pod_of(cluster, "a", 30, 1024)
        path = f"/api/v1/namespaces/{cluster.namespace}/bindings"
        cluster.api.request("POST", path, binding("a", node, annotations=FORGED)).expect(201)
        stored = cluster.pod("a")
        assert (stored["spec"]["nodeName"], records(stored)) == (node, record(0))


class TestBindsThatCannotGoThrough:
    """The hook is asked before the API server looks at the pod: whatever fails afterwards must not keep a card."""

    def test_a_pod_that_is_gone(self, cluster: Cluster, node: str) -> None:
        stored = a_pod_of(cluster, "gone", 100)
        cluster.api.delete(cluster.path("gone"), gracePeriodSeconds=0).expect()
        assert cluster.bind(binding("gone", node, uid=stored["metadata"]["uid"])).status == 404
        assert cluster.bind(binding("never-there", node)).status == 404
        a_full_card_is_still_free(cluster, node)

    def test_a_pod_at_a_gate(self, cluster: Cluster, node: str) -> None:
        foreign = [{"name": "example.com/x"}]
        cluster.create(share_pod("gated", 100, schedulerName=NOBODY, schedulingGates=foreign))
        message = refused(cluster.bind(binding("gated", node)), 409, reasons.POD_GATED)
        assert "example.com/x" in message
        a_full_card_is_still_free(cluster, node)

    def test_a_pod_that_is_bound_already(self, cluster: Cluster, node: str) -> None:
        """The second bind names another node, right after the first one: both cards stay booked as they are."""
        other = unique("mgpu")
        cluster.add_nodes(mgpu_node(other, cards=1, memory_mib=CARD_MIB))
        a_pod_of(cluster, "a", 100)
        a_pod_of(cluster, "b", 100)
        cluster.bind(binding("a", node)).expect(201)
        assert cluster.bind(binding("a", other)).status == 409
        refused(cluster.bind(binding("b", node)), 409, reasons.MGPU_NO_ROOM)
        assert cluster.bind(binding("a", node)).status == 409
        assert records(cluster.pod("a")) == record(0)
        a_full_card_is_still_free(cluster, other)

    def test_a_binding_of_another_pod(self, cluster: Cluster, node: str) -> None:
        a_pod_of(cluster, "a", 100)
        a_pod_of(cluster, "b", 100)
        answer = cluster.bind(binding("b", node), pod="a")
        assert answer.status in (400, 409, 422), answer.body
        assert [cluster.pod(name)["spec"].get("nodeName") for name in "ab"] == [None, None]
        a_full_card_is_still_free(cluster, node)

    def test_a_binding_of_a_pod_of_that_name_that_was_there_before(self, cluster: Cluster, node: str) -> None:
        a_pod_of(cluster, "a", 100)
        uid = "00000000-0000-0000-0000-000000000000"
        message = refused(cluster.bind(binding("a", node, uid=uid)), 409, reasons.POD_REPLACED)
        assert uid in message
        a_full_card_is_still_free(cluster, node)

    def test_a_node_that_does_not_exist(self, cluster: Cluster) -> None:
        """The API server would store it."""
        a_pod_of(cluster, "a", 100)
        refused(cluster.bind(binding("a", "nowhere")), 409, reasons.NODE_NOT_FOUND)
        assert "nodeName" not in cluster.pod("a")["spec"]

    def test_a_dry_run(self, cluster: Cluster, node: str) -> None:
        a_pod_of(cluster, "a", 100)
        assert cluster.bind(binding("a", node), dryRun="All").status == 201
        stored = cluster.pod("a")
        assert ("nodeName" in stored["spec"], records(stored)) == (False, {})
        a_full_card_is_still_free(cluster, node)
        assert cluster.bind(binding("a", node), dryRun="All").status == 409


def test_pods_bound_to_two_nodes_at_once_never_share_a_card(cluster: Cluster) -> None:
    """A scheduler that lost an answer tries the next node while its first bind may still go through."""
    nodes = [(unique("mgpu"), unique("mgpu")) for _ in range(8)]
    cluster.add_nodes(*[mgpu_node(node, cards=1, memory_mib=CARD_MIB) for pair in nodes for node in pair])
    order = Random(1)
    with ThreadPoolExecutor(8) as pool:
        for round_, pair in enumerate(nodes):
            pods = [f"r{round_}-{number}" for number in range(4)]
            for name in pods:
                a_pod_of(cluster, name, 100)
            binds = order.sample([binding(pod, node) for pod in pods for node in pair], 8)
            assert {answer.status for answer in pool.map(cluster.bind, binds)} == {201, 409}
    places = Counter(stored["spec"].get("nodeName") for stored in cluster.pods().values())
    assert max(places[node] for pair in nodes for node in pair) == 1, places


def test_many_binds_at_once_never_share_a_full_card(cluster: Cluster, node: str) -> None:
    """Eight schedulers want the only card for eight pods at the same moment: one gets it."""
    for number in range(8):
        a_pod_of(cluster, f"p{number}", 100)
    with ThreadPoolExecutor(8) as pool:
        statuses = [a.status for a in pool.map(lambda n: cluster.bind(binding(f"p{n}", node)), range(8))]
    assert Counter(statuses) == {201: 1, 409: 7}


@pytest.fixture(scope="module")
def unknown_scheduler(control_plane: ControlPlane) -> Iterator[str]:
    """A kube-scheduler that the settings do not name: its pods have no gate, so it meets the hook unprepared."""
    name = "unknown-scheduler"
    process = control_plane.start_scheduler(name=name)
    yield name
    process.stop()


def test_a_bind_without_room_is_explained_and_repeated_until_there_is_room(
    cluster: Cluster, unknown_scheduler: str
) -> None:
    """Three times 60 are less than the 200 of the node, the scheduler thinks; but two cards hold two of them."""
    name = unique("mgpu")
    cluster.add_nodes(mgpu_node(name, cards=2, memory_mib=CARD_MIB))
    cluster.create(*[share_pod(pod, 60, 1024, schedulerName=unknown_scheduler) for pod in ("a", "b", "c")])

    def denials() -> dict[str, str]:
        said = {pod: cluster.events(pod, unknown_scheduler) for pod in ("a", "b", "c")}
        failed = {
            pod: text for pod, found in said.items() for code, text in found if code == "FailedScheduling"
        }
        return {pod: text for pod, text in failed.items() if f"[{reasons.MGPU_NO_ROOM}]" in text}

    wait_for("two are bound and the third is told why not", lambda: len(cluster.running()) == 2 and denials())
    (loser,) = {"a", "b", "c"} - cluster.running()
    assert set(denials()) == {loser}
    assert "mgpu-core 60 and mgpu-memory 1024 on 1 card" in denials()[loser]
    winner = min(cluster.running())
    freed = records(cluster.pod(winner))
    cluster.api.delete(cluster.path(winner)).expect()
    wait_for(f"{loser} is bound", lambda: loser in cluster.running())
    assert records(cluster.pod(loser)) == freed


def test_a_node_that_changed_between_lift_and_bind_is_judged_anew(cluster: Cluster) -> None:
    """The pod's scheduler does not run yet when it is lifted; meanwhile the node gets another policy."""
    name = unique("mgpu")
    cluster.add_nodes(mgpu_node(name, cards=1, memory_mib=CARD_MIB))
    cluster.create(share_pod("a", 30, 1024, schedulerName=LATER))
    wait_for("our gate is gone", lambda: gates(cluster.pod("a")) == [])
    _relabel(cluster, name, "native-burst-share")
    wait_for(
        "the hook has seen the label", lambda: cluster.bind(binding("a", name), dryRun="All").status == 409
    )
    message = refused(cluster.bind(binding("a", name)), 409, reasons.MGPU_POLICY_MISMATCH)
    assert '"fixed-share"' in message
    assert '"native-burst-share"' in message
    _relabel(cluster, name, "fixed-share")
    wait_for("the bind goes through", lambda: cluster.bind(binding("a", name)).status == 201)
    assert records(cluster.pod("a")) == record(0)


def _relabel(cluster: Cluster, node: str, policy: str) -> None:
    patch = {"metadata": {"labels": {names.MGPU_POLICY_KEY: policy}}}
    cluster.api.patch(f"/api/v1/nodes/{node}", patch).expect()
