"""What a bind of a card pod is granted that was never lifted: what the queue has left."""

from collections.abc import Mapping

import pytest

from core import names, reasons
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder
from tests.unit.core.binding.deciding import (
    HUGE,
    QUOTA,
    asking,
    binder,
    books,
    decided,
    given,
    granted,
    refused,
    running,
)


class TestNeverLifted:
    """No valid record: what a lift would have asked for is asked for now."""

    @pytest.mark.parametrize(
        ("pod", "others", "record"),
        [
            (asking("p"), [], {"A": 1}),
            (asking("p", count=2), [], {"A": 2}),
            (asking("p"), [running("r")], {"A": 1}),
            (asking("p"), [asking("lifted", A=1)], {"A": 1}),
            (asking("p", count=2), [asking("another", count=2)], {"A": 2}),
            (asking("p", count=2), [running("r", "B"), asking("w").gated()], {"A": 2}),
            (asking("p", count=0), [running("r", count=2)], {"A": 0}),
            (asking("p", "B|A"), [running("r", "B")], {"A": 1}),
            (asking("stale", B=1), [], {"A": 1}),
            (asking("garbage").assigned("{"), [], {"A": 1}),
        ],
    )
    def test_the_record_is_the_nodes_real_card_while_the_quota_holds(
        self, pod: PodBuilder, others: list[PodBuilder], record: Mapping[str, int]
    ) -> None:
        """Bound, lifted and granted pods count; pods at the gate and others that were never lifted do not."""
        assert granted(decided(pod, "a", *others)) == record

    @pytest.mark.parametrize(
        ("pod", "others", "total"),
        [
            (asking("p", count=3), [], 3),
            (asking("p"), [running("r", count=2)], 3),
            (asking("p"), [asking("lifted", count=2, A=2)], 3),
            (asking("p", count=2), [running("r"), asking("lifted", A=1)], 4),
            (asking("p"), [running("r", "A|B", 2).assigned({"A": 2})], 3),
        ],
    )
    def test_one_more_than_the_quota_is_refused_in_the_words_of_the_gate(
        self, pod: PodBuilder, others: list[PodBuilder], total: int
    ) -> None:
        answer = refused(decided(pod, "a", *others))
        count = pod.view().limits["nvidia.com/gpu"]
        assert answer.code == reasons.INSUFFICIENT_SCALAR_QUOTA
        text, _, plain = answer.message.partition(". In cards: ")
        assert text == (
            f"Queue <q> has insufficient <A> quota: requested <{count}>, total would be <{total}000>, "
            "but capability is <2000>"
        )
        cards = count // 1000
        assert plain == (
            "asks for 3, more than the whole quota (2); ask for fewer, or raise the quota."
            if cards > 2
            else f"asks for {cards}, {total - cards} of 2 are in use; wait for cards to come back, or raise the quota."
        )

    @pytest.mark.parametrize(
        ("queue", "reason", "words"),
        [
            (a_queue("else"), reasons.QUEUE_NOT_FOUND, "Queue <q> does not exist"),
            (a_queue("q").cards(QUOTA).state("Closed"), reasons.QUEUE_NOT_OPEN, "Queue <q> is Closed"),
            (a_queue("q").cards(QUOTA).state("Closing"), reasons.QUEUE_NOT_OPEN, "Queue <q> is Closing"),
            (a_queue("q").cards("{"), reasons.CARD_QUOTA_MALFORMED, "cannot be read"),
            (a_queue("q"), reasons.EMPTY_QUEUE_CAPABILITY, "is empty, deny it to allocate"),
            (a_queue("q").cards({"B": 9}), reasons.INSUFFICIENT_SCALAR_QUOTA, "but capability is <0>"),
            (
                a_queue("q").cards(QUOTA).capability(cpu=1),
                reasons.INSUFFICIENT_CPU_QUOTA,
                "insufficient CPU quota: requested <2000>, total would be <2000>, but capability is <1000>",
            ),
        ],
    )
    def test_a_queue_that_takes_nobody_in_refuses(self, queue: QueueBuilder, reason: str, words: str) -> None:
        pod = asking("p").request("cpu", 2)
        answer = refused(binder(books(pod, queue=queue)).decide(pod.view(), "a"))
        assert answer.code == reason
        assert words in answer.message

    @pytest.mark.parametrize(
        ("pod", "node", "reason", "words"),
        [
            (
                a_pod("p").card("A").in_queue("q"),
                "a",
                reasons.GET_TASK_REQUEST_RESOURCE_FAILED,
                "Get request resource failed, Queue <q>, error: no resource <nvidia.com/gpu> defined in requests/limits",
            ),
            (asking("p"), "b", reasons.CARD_NOT_ON_NODE, "node b carries no <A>"),
            (asking("p"), "bare", reasons.CARD_NOT_ON_NODE, "node bare carries no <A>"),
            (asking("p", "A|B"), "bare", reasons.CARD_NOT_ON_NODE, "node bare carries no <A|B>"),
            (asking("p", "UNKNOWN"), "a", reasons.CARD_NOT_ON_NODE, "node a carries no <UNKNOWN>"),
            (asking("p"), "nowhere", reasons.NODE_NOT_FOUND, "node nowhere does not exist"),
        ],
    )
    def test_a_node_that_cannot_serve_it_refuses(
        self, pod: PodBuilder, node: str, reason: str, words: str
    ) -> None:
        """Nothing led it to a node of its card: bound elsewhere it would use cards that nobody counts."""
        answer = refused(decided(pod, node))
        assert answer.code == reason
        assert words in answer.message

    def test_cpu_of_others_that_were_never_lifted_does_not_count_either(self) -> None:
        pods = [asking(name).request("cpu", 2) for name in "pq"]
        ledger = books(*pods, queue=a_queue("q").cards(QUOTA).capability(cpu=2))
        assert granted(binder(ledger).decide(pods[0].view(), "a")) == {"A": 1}

    @pytest.mark.parametrize("known", [True, False], ids=["seen", "not seen yet"])
    def test_huge_counts_are_exact(self, *, known: bool) -> None:
        for count, fits in ((HUGE, True), (HUGE + 1, False), (2**63 - 1, False)):
            pod = asking("p", count=count)
            ledger = books(*([pod] if known else []), queue=a_queue("q").cards({"A": HUGE}))
            answer = binder(ledger).decide(pod.view(), "a")
            assert (granted(answer) == {"A": HUGE}) if fits else refused(answer)

    def test_its_gang_is_put_on_record(self) -> None:
        member = asking("p").in_gang("g", 2, owner="j")
        found = given(binder(books(member)), member, "a")
        assert found[names.GANG_OF_ANNOTATION] == member.view().group_key != ""
        lifted = asking("p", A=1).charged("q").in_gang("g", 2, owner="j")
        assert names.GANG_OF_ANNOTATION not in given(binder(books(lifted)), lifted, "a")

    def test_the_queue_is_that_of_its_group(self) -> None:
        pod = asking("p").in_group("g")
        ledger = books(pod)
        ledger.put_group(a_group("g").in_queue("rich").view())
        assert (
            refused(binder(ledger).decide(pod.view(), "a")).message
            == "Queue <rich> does not exist; the pod waits until it is created"
        )
        ledger.put_queue(a_queue("rich").cards({"A": 1}).view())
        assert granted(binder(ledger).decide(pod.view(), "a")) == {"A": 1}

    def test_of_two_the_first_one_gets_the_last_card(self) -> None:
        first, second = asking("first"), asking("second")
        others = running("r")
        ledger = books(first, second, others)
        binds = binder(ledger)
        binds.book(first.view(), "a", given(binds, first, "a"))
        assert ledger.used("q", "A") == 3000, "the second one may be bound any moment, lifts have to fear"
        assert refused(binds.decide(second.view(), "a")).code == reasons.INSUFFICIENT_SCALAR_QUOTA
        binds.take_back(first.view().uid)
        assert granted(binds.decide(second.view(), "a")) == {"A": 1}

    def test_with_mgpu_beside_cards_it_gets_both_records_or_none(self) -> None:
        pod = asking("p").mgpu("share", core=30, memory=1024)
        ledger = books(pod, queue=a_queue("q").cards(QUOTA).shares(core=30))
        ledger.put_node(a_node("a").card("A", 8).mgpu(1, memory=16384).view())
        found = given(binder(ledger), pod, "a")
        assert found == {
            names.CHARGED_QUEUE_ANNOTATION: "q",
            names.ASSIGNED_ANNOTATION: '{"A":1}',
            names.GPU_INDEX_PREFIX + "share": "0",
            names.ASSUMED_ANNOTATION: "true",
        }
        ledger.put_queue(a_queue("q").cards(QUOTA).shares(core=29).view())
        assert names.MGPU_CORE in refused(binder(ledger).decide(pod.view(), "a")).message
        lifted = pod.assigned('{"A":1}')
        assert given(binder(ledger), lifted, "a") == found
        ledger.put_node(a_node("a").card("A", 8).view())
        short = refused(binder(ledger).decide(lifted.view(), "a"))
        assert short.code == reasons.MGPU_NODE_TYPE
        assert short.message.endswith("(node a)"), "the scheduler's event does not say which node it tried"
