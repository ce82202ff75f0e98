"""Records that are missing or were edited, because nothing was there to prevent it: mended where that still helps."""

from collections.abc import Iterator

import pytest

from core import names, reasons
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, charged, samples, unique
from tests.apiserver.leaders import TAKE_OVER_S, hook_entry
from tests.apiserver.manifests import Object, binding, share_pod
from tests.apiserver.node_agent import tended
from tests.apiserver.test_binding import CARD_MIB, INDEX, NOBODY, record, records, refused


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """A controller alone: whoever may update pods may edit records."""
    values = {"policies": {"enabled": False}}
    with Installation(control_plane, values=values, webhook=False) as installed:
        yield installed


def a_node(cluster: Cluster, cards: int) -> str:
    name = unique("mgpu")
    cluster.add_nodes(mgpu_node(name, cards=cards, memory_mib=CARD_MIB))
    return name


def not_starting(name: str, core: int, memory_mib: int | None = None) -> Object:
    """A pod that stays as it is once it is bound, as on a node whose kubelet is slow."""
    return tended(share_pod(name, core, memory_mib, schedulerName=NOBODY))


def bound(cluster: Cluster, pod: Object, node: str) -> Object:
    """The pod as it is stored right after its bind."""
    cluster.create(pod)
    name = pod["metadata"]["name"]
    cluster.bind(binding(name, node)).expect(201)
    return cluster.pod(name)


def card_counts(cluster: Cluster, pod: str) -> str:
    return str(cluster.pod(pod)["metadata"].get("annotations", {}).get(names.MGPU_MULTIPLE_ANNOTATION, ""))


def irregularities(installation: Installation, kind: str) -> float:
    return samples(installation.metrics("controller", -1), "cardquota_mgpu_irregularities", kind=kind)


def test_what_was_bound_while_no_controller_ran_is_found_and_nobody_is_evicted(
    cluster: Cluster, installation: Installation
) -> None:
    """Not started: cards and an event. No room: an event, and cards once there is room. Started: an event only.

    Which of two gets the only card is left to their UIDs where both were created within a second.
    """
    narrow, other = a_node(cluster, 1), a_node(cluster, 1)
    installation.stop_controller(len(installation.controller_processes) - 1)
    one = bound(cluster, not_starting("one", 100), narrow)
    two = bound(cluster, not_starting("two", 100), narrow)
    running = bound(cluster, share_pod("running", 60, 1024, schedulerName=NOBODY), other)
    assert [records(pod) for pod in (one, two, running)] == [{}, {}, {}]
    cluster.wait_running("running")
    installation.start_controller()

    def with_cards() -> list[str]:
        return [name for name in ("one", "two") if records(cluster.pod(name)) == record(0)]

    (winner,) = wait_for("one of the two has the card", with_cards, TAKE_OVER_S)
    (loser,) = {"one", "two"} - {winner}
    assert "cards assigned now" in cluster.wait_said(winner, reasons.MGPU_RECORD_ASSIGNED)
    assert "it runs already" in cluster.wait_said("running", reasons.MGPU_RECORD_MISSING)
    said = cluster.wait_said(loser, reasons.MGPU_RECORD_MISSING)
    assert "none can be assigned: not enough mGPU" in said
    assert [records(cluster.pod(name)) for name in (loser, "running")] == [{}, {}]
    wait_for(
        "their queue is on record",
        lambda: {charged(cluster.pod(name)) for name in ("one", "two", "running")} == {"default"},
    )
    assert irregularities(installation, "missing") == 1
    assert irregularities(installation, "no-room") == 1
    for stored in (one, two, running):
        assert cluster.pod(stored["metadata"]["name"])["metadata"]["uid"] == stored["metadata"]["uid"]

    cluster.create(share_pod("next", 60, 1024, schedulerName=NOBODY))
    refused(cluster.bind(binding("next", other)), 409, reasons.MGPU_NO_ROOM)
    cluster.api.delete(cluster.path(winner)).expect()
    wait_for("the other has the card", lambda: records(cluster.pod(loser)) == record(0))
    assert len([code for code, _ in cluster.events("running") if code == reasons.MGPU_RECORD_MISSING]) == 1


def test_a_bind_that_passes_by_the_leader_is_mended_at_once(
    cluster: Cluster, installation: Installation
) -> None:
    """The API server cannot reach the hook, and the leader is well."""
    node = a_node(cluster, 8)
    entry = hook_entry(cluster.plane)

    def call(address: str) -> None:
        op = {"op": "replace", "path": f"/webhooks/{entry.place}/clientConfig/url", "value": address}
        cluster.api.patch(entry.path, [op], "json").expect()

    names_: list[str] = []

    def one_more_is_mended() -> bool:
        names_.append(f"p{len(names_):02}")
        bound(cluster, not_starting(names_[-1], 20, 1024), node)
        return any(reasons.MGPU_RECORD_ASSIGNED in dict(cluster.events(name)) for name in names_)

    try:
        call("https://localhost:1/mutate/bindings")
        wait_for("a pod was bound past the hook, and mended", one_more_is_mended)
    finally:
        call(entry.client["url"])
    wait_for("all have cards", lambda: all(INDEX in records(pod) for pod in cluster.pods().values()))
    taken = [records(pod)[INDEX] for pod in cluster.pods().values()]
    assert max(taken.count(card) for card in taken) <= 5


@pytest.mark.parametrize(
    "edit",
    [
        {INDEX: "1"},
        {INDEX: "0,1"},
        {INDEX: "garbage"},
        {INDEX: None, names.ASSUMED_ANNOTATION: None},
        {f"{names.GPU_INDEX_PREFIX}other": "1", INDEX: "77"},
        {names.MGPU_MULTIPLE_ANNOTATION: "2"},
        None,
    ],
    ids=["another-card", "more-cards", "garbage", "without", "stray", "card-counts", "all-annotations"],
)
def test_an_edited_record_is_put_back(
    cluster: Cluster, installation: Installation, edit: dict[str, str | None] | None
) -> None:
    """The cards that it names meanwhile are not given away, and those that it had are not free."""
    node = a_node(cluster, 2)
    stored = bound(cluster, share_pod("a", 100, schedulerName=NOBODY), node)
    assert records(stored) == record(0)
    cluster.wait_running("a")
    before = samples(installation.metrics("controller", -1), "cardquota_mgpu_repairs_total", outcome="done")
    cluster.api.patch(cluster.path("a"), {"metadata": {"annotations": edit}}).expect()
    assert records(bound(cluster, share_pod("b", 100, schedulerName=NOBODY), node)) == record(1)
    wait_for(
        "it is put back", lambda: records(cluster.pod("a")) == record(0) and not card_counts(cluster, "a")
    )
    said = cluster.wait_said("a", reasons.MGPU_RECORD_RESTORED)
    assert said.startswith('the record of the cards was edited; put back: container "c": 0')
    after = samples(installation.metrics("controller", -1), "cardquota_mgpu_repairs_total", outcome="done")
    assert after - before == 1
    assert records(cluster.pod("b")) == record(1)
    cluster.wait_running("a", "b")


def test_a_card_that_two_records_claim_is_said_of_its_node_once(
    cluster: Cluster, installation: Installation
) -> None:
    """A new leader takes what it finds, and does not take sides."""
    node = a_node(cluster, 2)
    for name in ("a", "b"):
        bound(cluster, share_pod(name, 100, schedulerName=NOBODY), node)
    installation.stop_controller(len(installation.controller_processes) - 1)
    cluster.api.patch(cluster.path("b"), {"metadata": {"annotations": {INDEX: "0"}}}).expect()
    installation.start_controller()
    path = "/api/v1/namespaces/default/events"

    def said() -> list[str]:
        found = cluster.api.get(path, fieldSelector=f"involvedObject.name={node}").expect()["items"]
        return [event["message"] for event in found if event["reason"] == reasons.MGPU_RECORD_IRREGULAR]

    wait_for("the node is said to be overbooked", said, TAKE_OVER_S)
    assert said() == ["card 0: more is booked than there is"]
    assert records(cluster.pod("b")) == record(0)
    assert irregularities(installation, "overbooked") == 1
    cluster.api.delete(cluster.path("a")).expect()
    wait_for("nothing is wrong any more", lambda: irregularities(installation, "overbooked") == 0)
