"""One filter and one score behind both protocols: three parts, each by itself, added before they are rounded."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.extender.pipeline import Scores, kube_score, volcano_score
from core.settings import Settings, parse
from tests.builders.objects import GPU, a_node, a_pod
from tests.unit.core.crossquota.ruling import gpu_node, ruled
from tests.unit.core.extender.asking import (
    LIMITED,
    RUNNING,
    by_name,
    cluster,
    cpu_pod,
    filtered,
    predicated,
    prioritized,
    scored,
    session_node,
    task,
)

NOTHING = Fraction(0)


@pytest.mark.parametrize(
    ("guest", "shares", "cards", "score"),
    [
        ("0", "0", "0", 0),
        ("19/22", "0", "0", 9),
        ("5/8", "0", "0", 6),
        ("1/20", "0", "0", 1),
        ("49/1000", "0", "0", 0),
        ("0", "5", "0", 1),
        ("0", "499/100", "0", 0),
        ("0", "33", "0", 3),
        ("0", "0", "100", 10),
        ("0", "0", "50", 5),
        ("0", "0", "25", 3),
        ("0", "0", "25/2", 1),
        ("0", "0", "25/8", 0),
        ("1/4", "24", "0", 5),
        ("3/100", "3", "0", 1),
        ("1", "100", "100", 10),
    ],
    ids=[
        "nothing",
        "first worked example",
        "second worked example",
        "half is rounded up",
        "less than half is not",
        "half a point of mGPU",
        "less than half a point of mGPU",
        "mGPU's worked example",
        "first alternative",
        "second",
        "third",
        "fourth",
        "sixth",
        "parts are added before rounding",
        "two halves that would both be lost",
        "never above ten",
    ],
)
def test_kube_scores_are_whole_numbers_of_the_sum(guest: str, shares: str, cards: str, score: int) -> None:
    found = kube_score(Scores(Fraction(guest), Fraction(shares), Fraction(cards)))
    assert found == score
    assert type(found) is int


@given(
    st.fractions(0, 1, max_denominator=10**6),
    st.fractions(0, 100, max_denominator=10**6),
    st.fractions(0, 100, max_denominator=10**6),
)
def test_kube_scores_are_rounded_half_up_whatever_the_parts(
    guest: Fraction, shares: Fraction, cards: Fraction
) -> None:
    found = kube_score(Scores(guest, shares, cards))
    exact = 10 * guest + shares / 10 + cards / 10
    assert 0 <= found <= 10
    assert found == 10 if exact >= Fraction(19, 2) else -Fraction(1, 2) < found - exact <= Fraction(1, 2)


def test_volcano_gets_the_sum_as_it_is() -> None:
    parts = Scores(Fraction(19, 22), Fraction(33), Fraction(50))
    assert volcano_score(parts, Settings()) == pytest.approx(8.636363636 + 33 + 50)
    assert volcano_score(Scores(Fraction(1), NOTHING, NOTHING), ruled(weight=1000)) == 1000.0


def test_a_weight_of_nothing_scores_nothing_in_either_protocol() -> None:
    """Only then does CrossQuota's own weight show in kube-scheduler's scores."""
    nodes = [gpu_node().view()]
    for weight, kube, volcano in ((0, 0, 0.0), (1, 1, 0.0625), (1000, 1, 62.5)):
        settings = ruled(weight=weight)
        asked = cluster(nodes, settings=settings)
        assert prioritized(by_name(cpu_pod(), "gpu"), asked) == {"gpu": kube}
        answer = scored(task(cpu_pod()), session_node(gpu_node().build()), asked=asked)
        assert answer["nodeScore"] == {"gpu": pytest.approx(volcano)}


OFF: dict[str, Any] = {"gpu-resource-names": "nvidia.com/gpu", "quota.cpu": "4"}


def test_every_part_can_be_switched_off() -> None:
    both = a_pod("both").request("cpu", 5).mgpu(core=30, memory=99999).card("A|B")
    node = gpu_node("n").mgpu(1, memory=16384).card("B", 1).allocatable(GPU, 8)

    def refused(**features: bool) -> str:
        settings = parse({**OFF, "features": features})[0]
        answer = filtered(by_name(both, "n"), cluster([node.view()], settings=settings))
        failed = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
        return str(failed.get("n", ""))

    cross, mgpu = "cpu quota exceeded: required 5, used 0, quota 4", "[MgpuNoRoom] not enough mGPU"
    assert refused().startswith(f"{cross}; {mgpu}")
    assert refused(crossQuota=False).startswith(mgpu)
    assert refused(mgpu=False) == cross
    assert refused(mgpu=False, crossQuota=False) == ""
    scores = {
        cards: prioritized(
            by_name(both, "n"),
            cluster([node.view()], settings=parse({"features": {"mgpu": False, "cards": cards}})[0]),
        )
        for cards in (True, False)
    }
    assert scores == {True: {"n": 5}, False: {"n": 0}}


def test_mgpu_pods_are_led_to_the_fuller_node() -> None:
    """The worked example: of two nodes with two cards of 16 GiB one has a pod of 40 and 4096."""
    used = a_pod("used").mgpu("c", core=40, memory=4096).only("c").bound_to("n1")
    nodes = [a_node(name).mgpu(2, memory=16384).view() for name in ("n1", "n2")]
    pods = [used.annotation("vke.volcengine.com/gpu-index-container-c", "0").view()]
    pod = a_pod("p").mgpu("c", core=30, memory=2048).only("c")
    found = scored(
        task(pod),
        session_node(a_node("n1").mgpu(2, memory=16384).build(), task(used, status=RUNNING)),
        session_node(a_node("n2").mgpu(2, memory=16384).build()),
        asked=cluster(nodes, pods),
    )
    assert found["nodeScore"] == {"n1": 33.0, "n2": 12.0}
    assert prioritized(by_name(pod, "n1", "n2"), cluster(nodes, pods)) == {"n1": 3, "n2": 1}
    spread = parse({"mgpu": {"policy": "spread"}})[0]
    assert prioritized(by_name(pod, "n1", "n2"), cluster(nodes, pods, spread)) == {"n1": 8, "n2": 9}


def test_cards_lead_but_never_rule_out() -> None:
    nodes = [a_node(card).card(card, 1).view() for card in ("A", "B", "C", "D")]
    asked = cluster(nodes, settings=LIMITED)
    body = by_name(a_pod().gpu(1).card("A|B|C"), "A", "B", "C", "D")
    assert prioritized(body, asked) == {"A": 10, "B": 5, "C": 3, "D": 0}
    assert filtered(body, asked)["NodeNames"] == ["A", "B", "C", "D"]
    assert prioritized(by_name(a_pod().gpu(1).card("A"), "A"), asked) == {"A": 0}


def test_what_does_not_apply_scores_nothing_and_rules_nothing_out() -> None:
    asked = cluster([gpu_node().view(), a_node("cpu").view()])
    gpu_pod = cpu_pod(cpu=1000).gpu(1)
    for pod in (gpu_pod, a_pod()):
        body = by_name(pod, "gpu", "cpu")
        assert filtered(body, asked)["NodeNames"] == ["gpu", "cpu"]
        assert prioritized(body, asked) == {"gpu": 0, "cpu": 0}
    assert filtered(by_name(cpu_pod(cpu=1000), "cpu"), asked)["NodeNames"] == ["cpu"]


def test_the_pods_of_a_daemon_set_fit_everywhere_and_keep_others_out() -> None:
    """They have to be on every node, and have nowhere else to go."""
    daemon, other = cpu_pod("d", cpu=9).owned_by("DaemonSet", "d"), cpu_pod("o", cpu=1)
    settings, node = ruled(quota={"cpu": 4}), gpu_node()
    asked = cluster([node.view()], settings=settings)
    assert filtered(by_name(daemon, "gpu"), asked)["NodeNames"] == ["gpu"]
    assert predicated(task(daemon), session_node(node.build()), asked)["code"] == 0
    asked = cluster([node.view()], [daemon.bound_to("gpu").view()], settings)
    full = "cpu quota exceeded: required 1, used 9, quota 4"
    assert filtered(by_name(other, "gpu"), asked)["FailedNodes"] == {"gpu": full}
    session = session_node(node.build(), task(daemon, status=RUNNING))
    assert predicated(task(other), session, asked) == {"status": full, "code": 2}


def test_a_pod_of_a_made_up_daemon_set_is_kept_out_as_others_are() -> None:
    made_up = cpu_pod("p", cpu=9).owned_by("DaemonSet", "d", api_version="made.up/v1")
    asked = cluster([gpu_node().view()], settings=ruled(quota={"cpu": 4}))
    full = "cpu quota exceeded: required 9, used 0, quota 4"
    assert filtered(by_name(made_up, "gpu"), asked)["FailedAndUnresolvableNodes"] == {"gpu": full}
    assert predicated(task(made_up), session_node(gpu_node().build()), asked)["status"] == full


def test_the_pods_of_a_daemon_set_are_scored_as_others_are() -> None:
    daemon = cpu_pod("d").owned_by("DaemonSet", "d")
    asked = cluster([gpu_node().view()])
    assert prioritized(by_name(daemon, "gpu"), asked) == prioritized(by_name(cpu_pod("d"), "gpu"), asked)


def test_a_pod_that_asks_for_mgpu_in_an_impossible_way_fits_nowhere() -> None:
    pod = a_pod().init_container("i", limits={"vke.volcengine.com/mgpu-core": 30})
    answer = filtered(by_name(pod, "m"), cluster([a_node("m").mgpu(1, memory=1024).view()]))
    assert answer["FailedAndUnresolvableNodes"]["m"].startswith("[MgpuInitContainer] ")


def test_room_is_counted_anew_when_a_pod_comes_or_goes() -> None:
    asked = cluster([a_node("m").mgpu(1, memory=1024).view()])
    body = by_name(a_pod("p").mgpu("c", core=60, memory=512).only("c"), "m")
    other = a_pod("o").mgpu("c", core=60, memory=512).only("c").bound_to("m")
    assert filtered(body, asked)["NodeNames"] == ["m"]
    asked.ledger.put_pod(other.view())
    assert filtered(body, asked)["NodeNames"] == []
    asked.ledger.drop_pod("uid-ml-o")
    assert filtered(body, asked)["NodeNames"] == ["m"]


def test_the_pod_itself_takes_no_room() -> None:
    """A bind whose outcome the scheduler has not heard of, or a question about a bound pod."""
    pod = a_pod("p").mgpu("c", core=60, memory=512).only("c").request("cpu", 3)
    settings = ruled(quota={"cpu": 4})
    node = gpu_node("m").mgpu(1, memory=1024).view()
    asked = cluster([node], [pod.bound_to("m").view()], settings)
    assert filtered(by_name(pod, "m"), asked)["NodeNames"] == ["m"]
    assert filtered(by_name(pod.uid("another"), "m"), asked)["NodeNames"] == []
    assert filtered(by_name(pod, "m"), asked)["NodeNames"] == ["m"]
