"""Quota on a real control plane: who runs, who waits and what is said about it, through every change of the queue."""

import json

import pytest

from core import names, reasons
from hack.controlplane import wait_for
from hack.controlplane.nodes import gpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, samples, terms, unique, wait_known
from tests.apiserver.manifests import GPU, card_pod, queue

PRODUCT = "nvidia.com/gpu.product"


def a_gpu_node(name: str, card: str, cards: int = 8) -> Object:
    return gpu_node(name, product=card, cards=cards, memory_mib=143771)


def in_(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


@pytest.fixture
def card(cluster: Cluster) -> str:
    """A card that one node has eight of, and no other test knows."""
    return cluster.add_card()


@pytest.fixture
def five(cluster: Cluster, card: str) -> str:
    """The path of a queue with three cards, in which five pods `p0` to `p4` ask for one each."""
    name = unique("q")
    path = cluster.create_queue(queue(name, json.dumps({card: 3})))
    cluster.create(*[card_pod(f"p{number}", card, name) for number in range(5)])
    cluster.wait_running("p0", "p1", "p2")
    return path


def shortage(queue_path: str, card: str, quota: int, asked: int = 1) -> str:
    """What a pod is told that asks for `asked` cards in a queue whose quota is used up."""
    total = (quota + asked) * 1000
    return (
        f"Queue <{queue_path.rpartition('/')[2]}> has insufficient <{card}> quota: requested <{asked}000>, "
        f"total would be <{total}>, but capability is <{quota}000>"
    )


class TestQueueOfThree:
    """Five pods of one card each, quota for three."""

    def test_three_run_and_two_wait_at_the_gate_with_the_reason(
        self, cluster: Cluster, five: str, card: str
    ) -> None:
        """The oldest run; what the others are told is the text that alerts already match."""
        for name in ("p3", "p4"):
            said = cluster.wait_said(name, "InsufficientScalarQuota")
            assert said.startswith(shortage(five, card, 3))
            assert said.removeprefix(shortage(five, card, 3)) == (
                ". In cards: asks for 1, 3 of 3 are in use; wait for cards to come back, or raise the quota."
            )
        assert cluster.running() == {"p0", "p1", "p2"}
        assert cluster.gated() == {"p3", "p4"}
        for name in ("p0", "p1", "p2"):
            lifted = cluster.pod(name)
            assert json.loads(lifted["metadata"]["annotations"][names.ASSIGNED_ANNOTATION]) == {card: 1}
            assert terms(lifted) == [{"matchExpressions": [in_(PRODUCT, card)]}]
            assert cluster.events(name) == []

    def test_a_card_that_comes_back_goes_to_the_one_that_waits_longest(
        self, cluster: Cluster, five: str
    ) -> None:
        cluster.api.delete(cluster.path("p1")).expect()
        cluster.wait_running("p0", "p2", "p3")
        assert cluster.gated() == {"p4"}
        cluster.api.delete(cluster.path("p0")).expect()
        cluster.wait_running("p2", "p3", "p4")

    def test_more_quota_starts_the_rest(self, cluster: Cluster, five: str, card: str) -> None:
        cluster.set_quota(five, json.dumps({card: 5}))
        cluster.wait_running("p0", "p1", "p2", "p3", "p4")

    def test_less_quota_evicts_nobody_and_lets_nobody_in(
        self, cluster: Cluster, installation: Installation, five: str, card: str
    ) -> None:
        """Not even when one of the running pods ends: two still use more than one card.

        Those who wait still wait for the same, so they hear nothing again; a newcomer hears the present numbers.
        """
        cluster.wait_said("p3", "InsufficientScalarQuota")
        before = {name: cluster.pod(name)["metadata"]["uid"] for name in ("p0", "p1", "p2")}
        cluster.set_quota(five, json.dumps({card: 1}))
        name = five.rpartition("/")[2]
        wait_known(installation, name, card, 1)
        cluster.create(card_pod("p5", card, name))
        told = "requested <1000>, total would be <4000>, but capability is <1000>"
        assert told in cluster.wait_said("p5", "InsufficientScalarQuota")
        assert {name: cluster.pod(name)["metadata"]["uid"] for name in before} == before
        cluster.api.delete(cluster.path("p0")).expect()
        # Its quota is back with the deletion; the pod itself goes a moment later.
        cluster.wait_running("p1", "p2")
        cluster.create(card_pod("p6", card, name))
        told = f"Queue <{name}> has insufficient <{card}> quota: requested <1000>, total would be <3000>"
        assert told in cluster.wait_said("p6", "InsufficientScalarQuota")
        assert cluster.gated() == {"p3", "p4", "p5", "p6"}
        assert len(cluster.events("p3")) == 1


class TestQueueState:
    """Queues that are not there, or not open."""

    def test_pods_wait_for_a_queue_that_is_created_later(self, cluster: Cluster, card: str) -> None:
        name = unique("late")
        cluster.create(card_pod("a", card, name))
        said = cluster.wait_said("a", reasons.QUEUE_NOT_FOUND)
        # Queues of other tests may be named nearly like it, and be suggested.
        assert said.startswith(f"Queue <{name}> does not exist; the pod waits until it is created")
        assert said.endswith(" Create the queue, or name another one.")
        assert cluster.gated() == {"a"}
        cluster.create_queue(queue(name, json.dumps({card: 1})))
        cluster.wait_running("a")

    def test_a_closed_queue_takes_nobody_in_and_says_nothing(
        self, cluster: Cluster, installation: Installation, card: str
    ) -> None:
        """Whoever closed it knows why. An event of another pod proves that this one's would have been written."""
        name = unique("closed")
        path = cluster.create_queue(queue(name, json.dumps({card: 1})))
        cluster.api.patch(f"{path}/status", {"status": {"state": "Closed"}}).expect()
        cluster.set_quota(path, json.dumps({card: 2}))
        wait_known(installation, name, card, 2)  # and with it that it is closed, which came before
        before = _held(installation, reasons.QUEUE_NOT_OPEN)
        cluster.create(card_pod("a", card, name))
        wait_for("the pod is held", lambda: _held(installation, reasons.QUEUE_NOT_OPEN) > before)
        cluster.create(card_pod("b", card, unique("missing")))
        cluster.wait_said("b", reasons.QUEUE_NOT_FOUND)
        assert cluster.gated() == {"a", "b"}
        cluster.api.patch(f"{path}/status", {"status": {"state": "Open"}}).expect()
        cluster.wait_running("a")
        assert cluster.events("a") == []


def _held(installation: Installation, reason: str) -> float:
    return samples(installation.metrics("controller", -1), "cardquota_holds_total", reason=reason)


class TestPlacement:
    """Which card is taken, and how a pod is held to it."""

    @pytest.fixture
    def two(self, cluster: Cluster) -> tuple[str, str]:
        """Two cards with a node each: one of the first, eight of the second."""
        few, many = unique("FEW"), unique("MANY")
        cluster.add_nodes(a_gpu_node(unique("few"), few, cards=1), a_gpu_node(unique("many"), many))
        return few, many

    def test_of_two_cards_the_leftmost_with_quota_is_taken(
        self, cluster: Cluster, two: tuple[str, str]
    ) -> None:
        few, many = two
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps({many: 1, few: 1})))
        cluster.create(*[card_pod(pod, f"{many}|{few}", name) for pod in ("a", "b", "c")])
        cluster.wait_running("a", "b")
        self.is_on(cluster, "a", many)
        self.is_on(cluster, "b", few)
        said = cluster.wait_said("c", "InsufficientScalarQuota")
        assert said == (
            f"{shortage(name, f'{many}|{few}', 1)}. In cards: asks for 1, 1 of 1 <{many}>, 1 of 1 <{few}> are in use; "
            "wait for cards to come back, or raise the quota."
        )

    def test_of_two_cards_the_leftmost_with_stock_is_taken(
        self, cluster: Cluster, two: tuple[str, str]
    ) -> None:
        """There is quota for four of the scarce ones, but only one of them."""
        few, many = two
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps({few: 4, many: 1})))
        cluster.create(*[card_pod(pod, f"{few}|{many}", name) for pod in ("a", "b", "c")])
        cluster.wait_running("a", "b")
        self.is_on(cluster, "a", few)
        self.is_on(cluster, "b", many)
        assert f"no node has 1 of <{few}|{many}> free" in cluster.wait_said("c", reasons.NO_FREE_CARD)
        cluster.api.delete(cluster.path("a")).expect()
        cluster.wait_running("b", "c")
        self.is_on(cluster, "c", few)

    def is_on(self, cluster: Cluster, name: str, card: str) -> None:
        stored = cluster.pod(name)
        assert json.loads(stored["metadata"]["annotations"][names.ASSIGNED_ANNOTATION]) == {card: 1}
        assert terms(stored) == [{"matchExpressions": [in_(PRODUCT, card)]}]
        node = cluster.api.get(f"/api/v1/nodes/{stored['spec']['nodeName']}").expect()
        assert node["metadata"]["labels"][PRODUCT] == card

    def test_each_of_a_pods_own_terms_is_narrowed(self, cluster: Cluster, two: tuple[str, str]) -> None:
        """Terms are alternatives: one left as it was would let the pod onto other cards. An empty one matches nothing."""
        few, many = two
        name = unique("q")
        cluster.create_queue(queue(name, json.dumps({few: 1, many: 1})))
        fields = [in_("metadata.name", "somewhere")]
        own = [
            {"matchExpressions": [in_("kubernetes.io/os", "linux")]},
            {"matchExpressions": [{"key": GPU + ".product", "operator": "Exists"}]},
            {"matchFields": fields},
            {},
        ]
        preferred = [{"weight": 1, "preference": {"matchExpressions": [in_("zone", "a")]}}]
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
        cluster.create(card_pod("a", many, name, affinity={"nodeAffinity": affinity}))
        cluster.wait_running("a")
        stored = cluster.pod("a")
        assert terms(stored) == [
            {"matchExpressions": [in_("kubernetes.io/os", "linux"), in_(PRODUCT, many)]},
            {"matchExpressions": [{"key": GPU + ".product", "operator": "Exists"}, in_(PRODUCT, many)]},
            {"matchFields": fields, "matchExpressions": [in_(PRODUCT, many)]},
            {},
        ]
        node_affinity = stored["spec"]["affinity"]["nodeAffinity"]
        assert node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] == preferred

    def test_an_unknown_card_waits_until_a_node_brings_it(self, cluster: Cluster) -> None:
        card, name = unique("NEW"), unique("q")
        cluster.create_queue(queue(name, json.dumps({card: 1})))
        cluster.create(card_pod("a", card, name))
        said = cluster.wait_said("a", reasons.GET_TASK_REQUEST_RESOURCE_FAILED)
        assert said.startswith(f"Get request resource failed, Queue <{name}>, error: ")
        assert card in said
        assert cluster.gated() == {"a"}
        cluster.add_nodes(a_gpu_node(unique("node"), card))
        cluster.wait_running("a")
