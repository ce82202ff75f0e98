"""Whole small clusters, planned to the end: jobs, quotas and cards that users of card quotas meet first.

Cards in these tests are counted in whole cards, as users count them.
"""

from collections.abc import Sequence

import pytest

from core import reasons
from core.objects import Group, Job, Node, Pod, Queue
from core.plan.offline import Plan, plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_job, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder

BATCH = "batch.volcano.sh/v1alpha1"
GPU, MPS = "nvidia.com/gpu", "nvidia.com/gpu.shared"
Thing = NodeBuilder | QueueBuilder | GroupBuilder | JobBuilder | PodBuilder


def planned(*things: Thing, settings: Settings | None = None) -> Plan:
    """The plan of a controller that knows these objects and no others."""
    ledger = Ledger(settings or Settings())
    pods = []
    for thing in things:
        match thing.view():
            case Node() as node:
                ledger.put_node(node)
            case Queue() as queue:
                ledger.put_queue(queue)
            case Group() as group:
                ledger.put_group(group)
            case Job() as job:
                ledger.put_job(job)
            case Pod() as pod:
                pods.append(pod)
                ledger.put_pod(pod)
    return plan(ledger, pods)


def nodes(card: str, *counts: int) -> list[Thing]:
    """A node of this card for each count."""
    return [
        a_node(f"{card.lower()}-{number}").card(card, count).allocatable("cpu", 64)
        for number, count in enumerate(counts)
    ]


def pods(name: str, card: str, count: int, *, each: int = 1, resource: str = GPU) -> list[PodBuilder]:
    """Gated pods `<name>-0` and so on in the queue `q`, from the oldest on; each asks for `each` cards."""
    return [
        a_pod(f"{name}-{number}")
        .limit(resource, each)
        .card(card)
        .in_queue("q")
        .gated()
        .created(f"2024-01-01T00:00:{number:02}Z")
        for number in range(count)
    ]


def volcano_job(
    name: str, tasks: Sequence[PodBuilder], *, minimum: int, request: dict[str, int], second: int = 0
) -> list[Thing]:
    """A Volcano Job in the queue `q` as its controller leaves it: the PodGroup with the declared cards, and the pods."""
    job = a_job(name).in_queue("q").cards(request)
    group = a_group(name).in_queue("q").min_member(minimum).cards(request).uid(f"uid-group-{name}")
    group = group.owned_by("Job", name, api_version=BATCH).created(f"2024-01-01T00:01:{second:02}Z")
    members = [pod.in_group(name).owned_by("Job", name, api_version=BATCH) for pod in tasks]
    return [job, group, *members]


def running(things: Sequence[PodBuilder], node: str, card: str) -> list[PodBuilder]:
    """The pods after they were lifted for one of this card each, and bound."""
    return [pod.bound_to(node).assigned({card: 1}) for pod in things]


def decided(result: Plan, decision: str) -> list[str]:
    return sorted(key.removeprefix("ml/") for key, pod in result.pods.items() if pod.decision == decision)


def given(result: Plan) -> dict[str, int]:
    """Card -> how many the lifted pods got of it."""
    sums: dict[str, int] = {}
    for pod in result.pods.values():
        for card, count in (pod.assigned or {}).items():
            sums[card] = sums.get(card, 0) + count
    return sums


def used(result: Plan, card: str) -> int:
    """Allocated plus reserved of the queue `q`, in whole cards."""
    queue = result.queues["q"]
    return (queue.allocated.get(card, 0) + queue.reserved.get(card, 0)) // 1000


class TestOneCard:
    """Two nodes of four A100, a quota of five, a job of four."""

    CLUSTER = (*nodes("A100", 4, 4), a_queue("q").cards({"A100": 5}))
    FOUR = pods("train", "A100", 4)

    def test_the_job_is_let_in_as_a_whole(self) -> None:
        job = volcano_job("train", self.FOUR, minimum=4, request={"A100": 4})
        result = planned(*self.CLUSTER, *job)
        assert decided(result, "lift") == ["train-0", "train-1", "train-2", "train-3"]
        assert given(result) == {"A100": 4}

    @pytest.mark.parametrize(("count", "decision"), [(1, "lift"), (2, "hold")])
    def test_beside_it_one_more_card_fits_and_two_do_not(self, count: int, decision: str) -> None:
        job = volcano_job("train", running(self.FOUR, "a100-0", "A100"), minimum=4, request={"A100": 4})
        result = planned(*self.CLUSTER, *job, *pods("more", "A100", 1, each=count))
        assert result.queues["q"].allocated == {"A100": 4000}
        more = result.pods["ml/more-0"]
        assert more.decision == decision
        if decision == "hold":
            assert more.reason == reasons.INSUFFICIENT_SCALAR_QUOTA
            assert "requested <2000>, total would be <6000>, but capability is <5000>" in more.message
            assert "In cards: asks for 2, 4 of 5 are in use;" in more.message


class TestEitherCard:
    """Jobs that take an A100 or an H100."""

    CARDS = (*nodes("A100", 8), *nodes("H100", 8))

    def test_the_left_card_is_used_up_first(self) -> None:
        four = pods("train", "A100|H100", 4)
        job = volcano_job("train", four, minimum=1, request={"A100|H100": 4})
        result = planned(*self.CARDS, a_queue("q").cards({"A100": 3, "H100": 3}), *job)
        assert given(result) == {"A100": 3, "H100": 1}
        last = result.pods["ml/train-3"]
        assert last.assigned == {"H100": 1}

    def test_a_card_without_quota_counts_as_zero(self) -> None:
        six = pods("train", "A100|H100", 6)
        queue = a_queue("q").cards({"A100": 5})
        result = planned(*self.CARDS, queue, *six)
        assert given(result) == {"A100": 5}
        assert decided(result, "hold") == ["train-5"]
        declared = volcano_job("train", six, minimum=1, request={"A100|H100": 6})
        assert decided(planned(*self.CARDS, queue, *declared), "lift") == []

    def test_what_is_declared_goes_by_the_sum_of_both_quotas(self) -> None:
        """Three of eight are in use, and four more fit, although neither card alone has four left."""
        queue = a_queue("q").cards({"A100": 5, "H100": 3})
        before = [
            *running(pods("a", "A100", 2), "a100-0", "A100"),
            *running(pods("h", "H100", 1), "h100-0", "H100"),
        ]
        job = volcano_job("train", pods("train", "A100|H100", 4), minimum=4, request={"A100|H100": 4})
        result = planned(*self.CARDS, queue, *before, *job)
        assert given(result) == {"A100": 3, "H100": 1}
        assert (used(result, "A100"), used(result, "H100")) == (5, 2)

    @pytest.mark.parametrize(
        ("quota", "count", "expected"),
        [
            pytest.param(4, 6, {"A100": 4, "H100": 2}, id="6 of 4 and 4"),
            pytest.param(3, 6, {"A100": 3, "H100": 3}, id="6 of 3 and 3"),
            pytest.param(3, 8, {}, id="8 of 3 and 3: the job does not start at all"),
        ],
    )
    def test_a_job_declares_more_than_either_quota_but_never_more_than_both(
        self, quota: int, count: int, expected: dict[str, int]
    ) -> None:
        queue = a_queue("q").cards({"A100": quota, "H100": quota})
        tasks = pods("train", "A100|H100", count)
        result = planned(
            *self.CARDS, queue, *volcano_job("train", tasks, minimum=1, request={"A100|H100": count})
        )
        assert given(result) == expected

    def test_two_jobs_of_either_card_do_not_both_pass_by_the_sum(self) -> None:
        """What the first was given counts for the second, although it is booked under cards and not under a choice."""
        first = volcano_job("a", pods("a", "A100|H100", 4), minimum=1, request={"A100|H100": 4}, second=1)
        second = volcano_job("b", pods("b", "A100|H100", 4), minimum=1, request={"A100|H100": 4}, second=2)
        result = planned(*self.CARDS, a_queue("q").cards({"A100": 3, "H100": 3}), *first, *second)
        assert decided(result, "lift") == ["a-0", "a-1", "a-2", "a-3"]

    def test_a_job_that_declares_too_much_is_told_the_sums_on_its_podgroup(self) -> None:
        queue = a_queue("q").cards({"A100": 3, "H100": 3})
        tasks = pods("train", "A100|H100", 8)
        result = planned(
            *self.CARDS, queue, *volcano_job("train", tasks, minimum=1, request={"A100|H100": 8})
        )
        told = [event for event in result.events if event.object == "PodGroup ml/train"]
        assert [event.reason for event in told] == [reasons.INSUFFICIENT_SCALAR_QUOTA]
        assert "Queue <q> has insufficient <A100|H100> quota: requested <8000>" in told[0].message
        assert "total would be <8000>, but capability is <6000>" in told[0].message
        assert decided(result, "hold") == [f"train-{number}" for number in range(8)]


class TestOneAfterTheOther:
    """A pod of two cards whose first choice is nearly used up."""

    @pytest.mark.parametrize(
        ("quota", "expected"),
        [
            pytest.param({"4090D": 7, "H200": 9}, {"4090D": 2}, id="seven of the first are allowed"),
            pytest.param({"4090D": 6, "H200": 10}, {"H200": 2}, id="ten of the second are allowed"),
            pytest.param({"4090D": 6, "H200": 9}, None, id="neither"),
        ],
    )
    def test_each_card_is_tried_with_what_is_in_use_of_it(
        self, quota: dict[str, int], expected: dict[str, int] | None
    ) -> None:
        """Five of one and eight of the other are in use."""
        result = planned(
            *nodes("4090D", 16),
            *nodes("H200", 16),
            a_queue("q").cards(quota),
            *running(pods("a", "4090D", 5), "4090d-0", "4090D"),
            *running(pods("b", "H200", 8), "h200-0", "H200"),
            *pods("p", "4090D|H200", 1, each=2),
        )
        pod = result.pods["ml/p-0"]
        assert pod.assigned == expected
        if expected is None:
            assert pod.message.startswith(
                "Queue <q> has insufficient <4090D|H200> quota: requested <2000>, "
                "total would be <10000>, but capability is <9000>. In cards: asks for 2, "
            )

    @pytest.mark.parametrize(
        ("in_use", "expected"),
        [
            pytest.param((9, 3), {"H200": 2}, id="nine and three: five of eight H200"),
            pytest.param((9, 7), None, id="nine and seven: neither"),
            pytest.param((3, 3), {"4090": 2}, id="three and three: five of ten 4090"),
        ],
    )
    def test_a_quota_of_ten_and_eight(self, in_use: tuple[int, int], expected: dict[str, int] | None) -> None:
        first, second = in_use
        result = planned(
            *nodes("4090", 16),
            *nodes("H200", 16),
            a_queue("q").cards({"4090": 10, "H200": 8}),
            *running(pods("a", "4090", first), "4090-0", "4090"),
            *running(pods("b", "H200", second), "h200-0", "H200"),
            *pods("p", "4090|H200", 1, each=2),
        )
        assert result.pods["ml/p-0"].assigned == expected


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
        assert (held.reason, held.message) == (
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
        assert (held.decision, held.reason, held.message) == (
            "hold",
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


def test_a_running_pod_whose_cards_cannot_be_counted_uses_none_and_is_told() -> None:
    """Its card is on no node any more, it has no record, and it asks for two devices: any of them might be the card."""
    lost = a_pod("lost").card("GONE").gpu(2).limit("rdma/hca", 1).in_queue("q").bound_to("a100-0")
    result = planned(*nodes("A100", 4), a_queue("q").cards({"GONE": 2}), lost)
    assert result.pods["ml/lost"].decision == "allocated"
    assert result.queues["q"].allocated == {}
    assert [(event.object, event.reason) for event in result.events] == [
        ("Pod ml/lost", reasons.GET_TASK_REQUEST_RESOURCE_FAILED)
    ]
