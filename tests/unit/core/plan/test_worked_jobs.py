"""Worked examples of shares, of jobs in turn, and of what queues leave each other."""

import pytest

from core import reasons
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.unit.core.plan.examples import (
    GPU,
    MPS,
    decided,
    given,
    nodes,
    planned,
    pods,
    running,
    volcano_job,
)


class TestShares:
    """Cards that are cut into pieces."""

    def test_sixteen_pods_on_slices_of_four_cards(self) -> None:
        card = "NVIDIA-A100-80GB/mps-80g*1/8"
        node = a_node("mps").product("NVIDIA-A100-80GB", count=4, memory=81920).mps(32, replicas=8)
        queue, sixteen = a_queue("q").cards({card: 16}), pods("p", card, 16, resource=MPS)
        assert given(planned(node, queue, *sixteen)) == {card: 16}
        bound = running(sixteen, "mps", card)
        assert planned(node, queue, *bound).queues["q"].allocated == {card: 16_000}

    QUEUE = (
        a_queue("cr-queue1")
        .cards(
            {
                "NVIDIA-H200": 3,
                "NVIDIA-H800": 2,
                "NVIDIA-GeForce-RTX-4090": 2,
                "NVIDIA-H800/mps-80g*1/2": 2,
                "NVIDIA-H200/mig-1g.18gb-mixed": 3,
                "NVIDIA-H200/mig-3g.71gb-mixed": 1,
            }
        )
        .capability(cpu=4, memory="4Gi")
        .deserved(cpu=4, memory="4Gi")
        .guarantee(cpu=4, memory="4Gi")
    )
    CARDS = (
        a_node("h200")
        .card("NVIDIA-H200", 7, memory=143771)
        .mig("1g.18gb", 3)
        .mig("3g.71gb", 1)
        .allocatable("cpu", 64),
        a_node("h800").card("NVIDIA-H800", 8),
        a_node("h800-mps").product("NVIDIA-H800").mps(16, replicas=2),
        a_node("4090").card("NVIDIA-GeForce-RTX-4090", 8, memory=24564),
    )

    @pytest.mark.parametrize(
        ("card", "resource", "quota"),
        [
            ("NVIDIA-H200", GPU, 3),
            ("NVIDIA-H800", GPU, 2),
            ("NVIDIA-GeForce-RTX-4090", GPU, 2),
            ("NVIDIA-H800/mps-80g*1/2", MPS, 2),
            ("NVIDIA-H200/mig-1g.18gb-mixed", "nvidia.com/mig-1g.18gb", 3),
            ("NVIDIA-H200/mig-3g.71gb-mixed", "nvidia.com/mig-3g.71gb", 1),
        ],
    )
    def test_whole_cards_and_shares_have_quotas_of_their_own(
        self, card: str, resource: str, quota: int
    ) -> None:
        """A card in use does not count for its slices, nor they for it."""
        asking = [
            a_pod(f"p-{number}").limit(resource, 1).card(card).in_queue("cr-queue1").gated()
            for number in range(quota + 1)
        ]
        other = a_pod("other").card("NVIDIA-H200").gpu(3).in_queue("cr-queue1").bound_to("h200")
        beside = [other] if card != "NVIDIA-H200" else []
        result = planned(*self.CARDS, self.QUEUE, *beside, *asking)
        assert given(result) == {card: quota}
        assert decided(result, "hold") == [f"p-{quota}"]

    def test_five_of_three_cards_are_refused_in_these_words(self) -> None:
        asking = a_pod("p").card("NVIDIA-H200").gpu(5).in_queue("cr-queue1").gated()
        held = planned(*self.CARDS, self.QUEUE, asking).pods["ml/p"]
        assert held.why == Refusal(
            "InsufficientScalarQuota",
            (
                "Queue <cr-queue1> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
                "but capability is <3000>. "
                "In cards: asks for 5, more than the whole quota (3); ask for fewer, or raise the quota."
            ),
        )


class TestJobsInTurn:
    """Jobs that fill a queue one after the other."""

    def test_a_third_job_waits_while_two_of_one_card_fill_a_quota_of_two(self) -> None:
        """It declares one card for two pods, and starts with one when one is free."""
        queue, node = a_queue("q").cards({"K80": 2}), nodes("K80", 8)
        third = volcano_job("c", pods("c", "K80", 2), minimum=1, request={"K80": 1}, second=3)
        jobs = [
            *volcano_job("a", pods("a", "K80", 1), minimum=1, request={"K80": 1}, second=1),
            *volcano_job("b", pods("b", "K80", 1), minimum=1, request={"K80": 1}, second=2),
        ]
        assert decided(planned(*node, queue, *jobs, *third), "lift") == ["a-0", "b-0"]
        left = volcano_job("a", running(pods("a", "K80", 1), "k80-0", "K80"), minimum=1, request={"K80": 1})
        assert decided(planned(*node, queue, *left, *third), "lift") == ["c-0"]

    def test_one_job_of_two_kinds_of_cards_leaves_nothing_of_the_first(self) -> None:
        queue = a_queue("q").cards({"K80": 8, "4090": 8, "H800": 8})
        cluster = (*nodes("K80", 8), *nodes("4090", 8), *nodes("H800", 8), queue)
        tasks = [*pods("k", "K80", 1, each=8), *pods("r", "4090", 1, each=8)]
        both = volcano_job("both", tasks, minimum=2, request={"K80": 8, "4090": 8}, second=1)
        further = volcano_job("further", pods("f", "K80", 1), minimum=1, request={"K80": 1}, second=2)
        result = planned(*cluster, *both, *further)
        assert given(result) == {"K80": 8, "4090": 8}
        assert decided(result, "hold") == ["f-0"]


class TestCpuAndMemory:
    """A queue of two cores and four cards, its cores used up by a pod without cards."""

    CLUSTER = (*nodes("K80", 8), a_queue("q").cards({"K80": 4}).capability(cpu=2, memory="2Gi"))
    CPU_POD = a_pod("cpu").request("cpu", 2).in_queue("q")
    CARD_POD = a_pod("card").request("cpu", 1).gpu(2).card("K80").in_queue("q").gated()

    def test_free_of_cpu_and_memory_the_cards_still_go(self) -> None:
        unlimited = Settings.model_validate({"cards": {"unlimitedCpuMemory": True}})
        result = planned(*self.CLUSTER, self.CPU_POD.bound_to("k80-0"), self.CARD_POD, settings=unlimited)
        assert result.pods["ml/card"].assigned == {"K80": 2}

    def test_else_the_card_pod_waits_for_cpu(self) -> None:
        held = planned(*self.CLUSTER, self.CPU_POD.bound_to("k80-0"), self.CARD_POD).pods["ml/card"]
        assert held.decision == "hold"
        assert held.why == Refusal(
            reasons.INSUFFICIENT_CPU_QUOTA,
            (
                "Queue <q> has insufficient CPU quota: requested <1000>, total would be <3000>, "
                "but capability is <2000>. "
                "In cores: asks for 1, 2 of 2 are in use; wait for pods to end, or raise spec.capability.cpu."
            ),
        )

    def test_a_further_pod_without_cards_is_the_schedulers_own_business(self) -> None:
        further = a_pod("further").request("cpu", 2).in_queue("q")
        result = planned(*self.CLUSTER, self.CPU_POD.bound_to("k80-0"), further)
        assert result.pods["ml/further"].decision == "ignored"


class TestBetweenQueues:
    """What one queue has says nothing about another, nor about the cluster."""

    def test_a_queue_has_its_own_cards_whatever_its_parent_has(self) -> None:
        parent = a_queue("parent").cards({"A100": 1})
        child = a_queue("q").cards({"A100": 3}).child_of("parent")
        result = planned(*nodes("A100", 8), parent, child, *pods("p", "A100", 4))
        assert given(result) == {"A100": 3}
        assert (result.queues["parent"].allocated, result.queues["parent"].reserved) == ({}, {})

    def test_quotas_may_promise_more_cards_than_there_are(self) -> None:
        """Which of the lifted pods waits for a card is the scheduler's business."""
        other = [pod.in_queue("other") for pod in pods("other", "A100", 4)]
        queues = [a_queue(name).cards({"A100": 4}) for name in ("q", "other")]
        result = planned(*nodes("A100", 4), *queues, *pods("p", "A100", 4), *other)
        assert given(result) == {"A100": 8}
