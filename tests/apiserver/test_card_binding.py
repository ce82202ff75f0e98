"""Card pods at bind time: whoever got past the gate is held by the bind, and every record names the node's real card."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node
from hack.install import Installation
from hack.installation.rendering import of_kind
from tests.apiserver.cluster import Cluster, Object, gates, unique
from tests.apiserver.manifests import binding, card_pod, queue
from tests.apiserver.test_binding import NOBODY, records, refused
from tests.apiserver.test_ungated import ignore_the_webhook
from tests.apiserver.watching import Watch

SCHEDULER = "default-scheduler"
NOT_RUNNING = "later"
"""A scheduler of ours that is not there yet."""
"""A scheduler that the settings name: its pods have the gate and are lifted, and then the test binds them."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """Administrators may remove gates here, as after the binding of the policy was deleted."""
    values = {"schedulerNames": ["default-scheduler", NOT_RUNNING]}
    with Installation(control_plane, values=values) as installed:
        policy = of_kind(installed.objects, "ValidatingAdmissionPolicyBinding")["cardquota-gate"]
        control_plane.api.delete(control_plane.api.path_of(policy)).expect()
        yield installed


def a_card(cluster: Cluster) -> tuple[str, str]:
    """A card that no other test knows, and the node that has eight of it."""
    card, node = unique("CARD"), unique("node")
    cluster.add_nodes(gpu_node(node, product=card, cards=8, memory_mib=143771))
    return card, node


def record(card: str, count: int = 1) -> dict[str, str]:
    return {names.ASSIGNED_ANNOTATION: json.dumps({card: count}, separators=(",", ":"))}


def bound_without_record(_seen: dict[str, Object], changed: Object) -> str:
    """A check for a watch: no observer may see a node without the record."""
    naked = changed["spec"].get("nodeName") and not records(changed)
    return f"{changed['metadata']['name']} has a node and no record" if naked else ""


def force_off(cluster: Cluster, pod: str) -> None:
    """Remove the pod's gate as an administrator can once the policy is out of the way."""
    remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    wait_for(
        "the gate may be removed", lambda: cluster.api.patch(cluster.path(pod), remove, "json").status == 200
    )


def wait_denied(cluster: Cluster, pod: str, words: str) -> None:
    """Return once the scheduler's event about the pod tells the denial of its bind."""

    def told() -> bool:
        said = cluster.events(pod, SCHEDULER)
        return any(code == "FailedScheduling" and words in text for code, text in said)

    wait_for(f"{pod} is told why it is not bound", told)


def one_too_many(queue_name: str, card: str) -> str:
    return (
        f"[{reasons.INSUFFICIENT_SCALAR_QUOTA}] Queue <{queue_name}> has insufficient <{card}> quota: "
        "requested <1000>, total would be <2000>, but capability is <1000>. "
        "In cards: asks for 1, 1 of 1 are in use; wait for cards to come back, or raise the quota."
    )


def test_a_pod_whose_gate_was_forced_off_is_bound_only_when_quota_is_free(cluster: Cluster) -> None:
    """The scheduler tries, is told why not, tries again; the record comes with the node."""
    card, _ = a_card(cluster)
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 1})))
    cluster.create(card_pod("holder", card, name))
    cluster.wait_running("holder")
    cluster.create(card_pod("forced", card, name))
    cluster.wait_said("forced", reasons.INSUFFICIENT_SCALAR_QUOTA)
    with Watch(cluster.plane, cluster.path(), bound_without_record) as watch:
        force_off(cluster, "forced")
        wait_denied(cluster, "forced", one_too_many(name, card))
        assert cluster.running() == {"holder"}
        assert records(cluster.pod("forced")) == {}
        cluster.api.delete(cluster.path("holder")).expect()
        wait_for("the other one runs", lambda: "forced" in cluster.running())
        watch.catch_up()
    assert watch.complaints == []
    assert records(cluster.pod("forced")) == record(card)
    cluster.wait_allocated(path, {card: 1})


def test_a_pod_that_was_lifted_is_bound_although_the_queue_was_cut_and_closed(cluster: Cluster) -> None:
    """Another one that was not lifted shows that the hook has seen it."""
    card, node = a_card(cluster)
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 1})))
    cluster.create(card_pod("lifted", card, name, schedulerName=NOT_RUNNING))
    wait_for("it is lifted", lambda: gates(cluster.pod("lifted")) == [])
    cluster.set_quota(path, json.dumps({card: 0}))
    cluster.api.patch(f"{path}/status", {"status": {"state": "Closed"}}).expect()
    cluster.create(card_pod("other", card, name, schedulerName=NOBODY))

    def closed() -> bool:
        return f"[{reasons.QUEUE_NOT_OPEN}]" in str(cluster.bind(binding("other", node)).body)

    wait_for("the queue is seen to be closed", closed)
    cluster.bind(binding("lifted", node)).expect(201)
    assert records(cluster.pod("lifted")) == record(card)


def test_eight_binds_at_once_get_the_two_cards_that_are_left(cluster: Cluster) -> None:
    """None of them was lifted; none stands in another one's way unless it was granted its bind."""
    card, node = a_card(cluster)
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 2})))
    pods = [f"p{number}" for number in range(8)]
    cluster.create(*(card_pod(pod, card, name, schedulerName=NOBODY) for pod in pods))
    with Watch(cluster.plane, cluster.path(), bound_without_record) as watch, ThreadPoolExecutor(8) as pool:
        statuses = [answer.status for answer in pool.map(lambda pod: cluster.bind(binding(pod, node)), pods)]
        watch.catch_up()
    assert watch.complaints == []
    assert Counter(statuses) == {201: 2, 409: 6}
    cluster.wait_allocated(path, {card: 2})


class TestChoices:
    """A pod `A|B`: whatever it was lifted for, its node decides."""

    def test_a_pod_lifted_for_one_card_and_bound_to_the_other_is_charged_with_that(
        self, cluster: Cluster
    ) -> None:
        """Nobody but a scheduler that ignores the node affinity does so, or one that was overtaken by a relabelling."""
        (first, first_node), (second, second_node) = a_card(cluster), a_card(cluster)
        name = unique("q")
        path = cluster.create_queue(queue(name, json.dumps({first: 2, second: 1})))
        pods = [card_pod(pod, f"{first}|{second}", name, schedulerName=NOT_RUNNING) for pod in ("p", "q")]
        cluster.create(*pods)
        wait_for("both are lifted", lambda: not cluster.gated())
        assert [records(cluster.pod(pod)) for pod in ("p", "q")] == [record(first)] * 2
        cluster.bind(binding("p", second_node)).expect(201)
        assert records(cluster.pod("p")) == record(second)
        message = refused(cluster.bind(binding("q", second_node)), 409, reasons.INSUFFICIENT_SCALAR_QUOTA)
        assert f"the pod was lifted for <{first}>, and node {second_node} carries <{second}>" in message
        cluster.bind(binding("q", first_node)).expect(201)
        assert records(cluster.pod("q")) == record(first)
        cluster.wait_allocated(path, {first: 1, second: 1})

    def test_a_pod_that_was_never_lifted_gets_the_record_of_its_nodes_card(self, cluster: Cluster) -> None:
        (first, first_node), (second, second_node) = a_card(cluster), a_card(cluster)
        name = unique("q")
        path = cluster.create_queue(queue(name, json.dumps({first: 1, second: 1})))
        pods = [card_pod(pod, f"{first}|{second}", name, schedulerName=NOBODY) for pod in ("p", "q")]
        cluster.create(*pods)
        forged = binding("p", second_node, annotations=record(first, 8))
        cluster.bind(forged).expect(201)
        assert records(cluster.pod("p")) == record(second)
        refused(cluster.bind(binding("q", second_node)), 409, reasons.INSUFFICIENT_SCALAR_QUOTA)
        cluster.bind(binding("q", first_node)).expect(201)
        assert records(cluster.pod("q")) == record(first)
        cluster.wait_allocated(path, {first: 1, second: 1})


def test_a_node_without_the_card_is_refused_to_a_pod_that_nothing_led_there(cluster: Cluster) -> None:
    (card, _), (_, other_node) = a_card(cluster), a_card(cluster)
    name = unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 1})))
    cluster.create(card_pod("p", card, name, schedulerName=NOBODY))
    message = refused(cluster.bind(binding("p", other_node)), 409, reasons.CARD_NOT_ON_NODE)
    assert f"node {other_node} carries no <{card}>" in message


def test_a_pod_created_while_the_webhook_was_away_is_bound_only_when_quota_is_free(
    cluster: Cluster, installation: Installation
) -> None:
    """Last of the module: from here on pods pass ungated."""
    card, _ = a_card(cluster)
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 1})))
    cluster.create(card_pod("holder", card, name))
    cluster.wait_running("holder")
    installation.webhook_processes[0].kill()
    ignore_the_webhook(cluster, installation)
    wait_for("pods pass", lambda: cluster.try_create(card_pod("p", card, name)).status in (201, 409))
    assert gates(cluster.pod("p")) == []
    with Watch(cluster.plane, cluster.path(), bound_without_record) as watch:
        wait_denied(cluster, "p", one_too_many(name, card))
        assert records(cluster.pod("p")) == {}
        cluster.api.delete(cluster.path("holder")).expect()
        wait_for("it runs", lambda: "p" in cluster.running())
        watch.catch_up()
    assert watch.complaints == []
    assert records(cluster.pod("p")) == record(card)
    cluster.wait_allocated(path, {card: 1})
