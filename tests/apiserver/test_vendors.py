"""Nodes as the device plugins and labellers of AMD and Huawei make them: their cards are counted, shares are no whole cards."""

import json

from core import names, reasons
from core.cards.vendors import AMD, ASCEND
from hack.controlplane import wait_for
from hack.controlplane.nodes import node
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.manifests import pod, queue


def asking(name: str, card: str, resource: str, queue_name: str) -> Object:
    annotations = {names.CARD_NAME_ANNOTATION: card, names.QUEUE_NAME_ANNOTATION: queue_name}
    return pod(name, limits={resource: 1}, annotations=annotations)


def test_amd_whole_cards_and_partitions_have_quotas_of_their_own(cluster: Cluster) -> None:
    whole, cut = unique("whole"), unique("cut")
    for name, example in ((whole, AMD.examples[0]), (cut, AMD.examples[1])):
        cluster.add_nodes(node(name, labels=example.labels, allocatable=dict(example.allocatable)))
    card, share = "AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_OAM/cpx_nps4"
    path = cluster.create_queue(queue("amd", json.dumps({card: 1, share: 2})))
    for number in range(2):
        cluster.create(asking(f"w{number}", card, "amd.com/gpu", "amd"))
    for number in range(3):
        cluster.create(asking(f"s{number}", share, "amd.com/gpu", "amd"))
    wait_for("what has quota runs", lambda: len(cluster.running()) == 3)
    on = {name: cluster.pod(name)["spec"]["nodeName"] for name in cluster.running()}
    assert {node_name for name, node_name in on.items() if name.startswith("w")} == {whole}
    assert {node_name for name, node_name in on.items() if name.startswith("s")} == {cut}
    cluster.wait_allocated(path, {card: 1, share: 2})
    assert len(cluster.gated()) == 2


def test_ascend_chips_and_their_templates(cluster: Cluster) -> None:
    whole, cut = unique("npu"), unique("vnpu")
    for name, example in ((whole, ASCEND.examples[0]), (cut, ASCEND.examples[1])):
        cluster.add_nodes(node(name, labels=example.labels, allocatable=dict(example.allocatable)))
    path = cluster.create_queue(queue("npu", json.dumps({"910B3": 1, "310P3/vnpu-2c": 1})))
    cluster.create(
        asking("chip", "910B3", "huawei.com/Ascend910", "npu"),
        asking("part", "310P3/vnpu-2c", "huawei.com/Ascend310P-2c", "npu"),
        asking("more", "310P3/vnpu-4c.3cpu", "huawei.com/Ascend310P-4c.3cpu", "npu"),
    )
    cluster.wait_running("chip", "part")
    assert cluster.pod("chip")["spec"]["nodeName"] == whole
    assert cluster.pod("part")["spec"]["nodeName"] == cut
    cluster.wait_allocated(path, {"910B3": 1, "310P3/vnpu-2c": 1})
    assert cluster.gated() == {"more"}


def test_an_accelerator_without_card_is_an_event_on_its_node(cluster: Cluster) -> None:
    name = unique("mlu")
    cluster.add_nodes(node(name, allocatable={"cambricon.com/mlu": 8}))

    def said() -> list[str]:
        found = cluster.api.get("/apis/events.k8s.io/v1/namespaces/default/events").expect()["items"]
        of_node = [event for event in found if event["regarding"]["name"] == name]
        return [event["note"] for event in of_node if event["reason"] == reasons.ACCELERATOR_WITHOUT_CARD]

    wait_for("it is said", said, 60)
    (note,) = said()
    assert "cambricon.com/mlu is offered and gives no card" in note
