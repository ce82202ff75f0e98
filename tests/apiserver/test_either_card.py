"""Pods that take one card or another: where they land is where they are counted."""

import json
from concurrent.futures import ThreadPoolExecutor

from core import names
from hack.controlplane import wait_for
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue
from tests.apiserver.test_quota import PRODUCT
from tests.apiserver.watching import Watch, within


def cards_by_record(cluster: Cluster) -> dict[str, str]:
    """Pod -> the card of its record, for the pods that have one."""
    records = {
        name: pod["metadata"]["annotations"].get(names.ASSIGNED_ANNOTATION)
        for name, pod in cluster.pods().items()
    }
    return {name: next(iter(json.loads(record))) for name, record in records.items() if record}


def cards_by_node(cluster: Cluster) -> dict[str, str]:
    """Pod -> the card that its node really has, for the pods that are bound."""
    found = cluster.api.get("/api/v1/nodes").expect()["items"]
    products = {node["metadata"]["name"]: node["metadata"]["labels"].get(PRODUCT, "") for node in found}
    return {
        name: products[pod["spec"]["nodeName"]]
        for name, pod in cluster.pods().items()
        if "nodeName" in pod["spec"]
    }


def test_eight_pods_at_once_on_two_kinds_of_cards(cluster: Cluster) -> None:
    """Quota for two of one and three of the other: five run, each on the card that its record and its queue name."""
    first, second, name = cluster.add_card(3), cluster.add_card(4), unique("q")
    path = cluster.create_queue(queue(name, json.dumps({first: 2, second: 3})))
    choices = [f"{first}|{second}", f"{second}|{first}"]
    pods = [card_pod(f"p{number}", choices[number % 2], name) for number in range(8)]
    with (
        Watch(cluster.plane, cluster.path(), within({first: 2, second: 3})) as watch,
        ThreadPoolExecutor(4) as pool,
    ):
        assert {answer.status for answer in pool.map(cluster.try_create, pods)} == {201}
        wait_for("five run", lambda: len(cluster.running()) == 5)
        watch.catch_up()
        records = cards_by_record(cluster)
        assert records == cards_by_node(cluster)
        assert sorted(records.values()) == sorted([first] * 2 + [second] * 3)
        assert len(cluster.gated()) == 3
        cluster.wait_allocated(path, {first: 2, second: 3})
        freed = next(pod for pod, card in records.items() if card == first)
        cluster.api.delete(cluster.path(freed)).expect()
        wait_for("another one runs", lambda: len(cluster.running() - {freed}) == 5)
        watch.catch_up()
    assert watch.complaints == []
    assert cards_by_record(cluster) == cards_by_node(cluster)
    cluster.wait_allocated(path, {first: 2, second: 3})


def test_a_flexible_member_leaves_the_card_to_the_one_behind_it(cluster: Cluster) -> None:
    """One pass from left to right would give the flexible pod, which is older, the only card that the other can use."""
    scarce, other, name = cluster.add_card(1), cluster.add_card(1), unique("q")
    cluster.create_queue(queue(name, json.dumps({scarce: 1, other: 1})))
    flexible, single = in_group(
        "gang", card_pod("flexible", f"{scarce}|{other}", name), card_pod("single", scarce, name)
    )
    cluster.create(podgroup("gang", name, 2), flexible, single)
    cluster.wait_running("flexible", "single")
    assert cards_by_record(cluster) == cards_by_node(cluster) == {"flexible": other, "single": scarce}
