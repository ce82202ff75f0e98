"""What a bind of a card pod is granted: by its record, or, where it was never lifted, by what the queue has left."""

import json
from collections.abc import Callable, Mapping

import pytest

from core import names, reasons
from core.crossquota.book import guest_book
from core.objects import Pod
from core.plan.bind import Binder
from core.queues.ledger import Ledger
from core.settings import Settings
from core.shortfall import Shortfall
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder

QUOTA = {"A": 2, "B": 1}
HUGE = 1_000_000_000
"""The greatest quota."""


def asking(name: str, card: str = "A", count: int = 1, **record: int) -> PodBuilder:
    """A pod at no gate; with `record` the one that a lift would have left."""
    pod = a_pod(name).gpu(count).card(card).in_queue("q")
    return pod.assigned(record) if record else pod


def running(name: str, card: str = "A", count: int = 1) -> PodBuilder:
    return asking(name, card, count).bound_to("other")


def books(*pods: PodBuilder, queue: QueueBuilder | None = None, settings: Settings | None = None) -> Ledger:
    """A queue of two A and one B; nodes `a` and `b` with these cards, and `bare` without any."""
    ledger = Ledger(settings or Settings())
    for node in (a_node("a").card("A", 8), a_node("b").card("B", 8), a_node("bare").allocatable("cpu", 8)):
        ledger.put_node(node.view())
    ledger.put_queue((queue or a_queue("q").cards(QUOTA)).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def binder(ledger: Ledger, cut_short: Callable[[], None] = lambda: None) -> Binder:
    return Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, cut_short)


def decided(pod: PodBuilder, node: str, *others: PodBuilder) -> Mapping[str, str] | Shortfall:
    """The answer with these other pods in the books, and the pod itself as the watch has shown it."""
    return binder(books(pod, *others)).decide(pod.view(), node)


def granted(answer: Mapping[str, str] | Shortfall) -> Mapping[str, int]:
    assert not isinstance(answer, Shortfall), answer
    found: dict[str, int] = json.loads(answer[names.ASSIGNED_ANNOTATION])
    return found


def refused(answer: Mapping[str, str] | Shortfall) -> Shortfall:
    assert isinstance(answer, Shortfall), answer
    return answer


class TestWhatNeedsNoDecision:
    """The leader is not asked where the answer does not depend on what anybody else uses."""

    @pytest.mark.parametrize(
        ("pod", "node"),
        [
            (a_pod("cpu"), "a"),
            (a_pod("gpu").gpu(1), "a"),
            (asking("p", A=1), "a"),
            (asking("p", A=1), "bare"),
            (asking("p", A=1), "unknown"),
            (asking("p", count=0, A=0), "a"),
            (asking("p", "A|B", A=1), "a"),
            (asking("p", "A|B", B=1), "b"),
        ],
    )
    def test_a_pod_that_stays_with_the_card_it_was_lifted_for(self, pod: PodBuilder, node: str) -> None:
        """Also after a quota cut, and in a queue that is closed or gone: none of that is looked at."""
        assert binder(books()).certain(pod.view(), node)

    @pytest.mark.parametrize(
        ("pod", "node"),
        [
            (asking("none"), "a"),
            (asking("other-card", B=1), "a"),
            (asking("two-cards", A=1, B=1), "a"),
            (asking("garbage").assigned("{"), "a"),
            (asking("p", "A|B", A=1), "b"),
            (asking("p", "A|B", A=1), "bare"),
            (asking("p", "A|B", A=1), "unknown"),
            (asking("p", A=1).mgpu(core=30, memory=1024), "a"),
            (a_pod("share").mgpu(core=30, memory=1024), "a"),
        ],
    )
    def test_all_others_are_decided_on(self, pod: PodBuilder, node: str) -> None:
        assert not binder(books()).certain(pod.view(), node)

    def test_a_feature_that_is_off_decides_nothing(self) -> None:
        off = Settings.model_validate({"features": {"cards": False}})
        assert binder(books(settings=off)).certain(asking("p").view(), "a")


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
        assert answer.reason == reasons.INSUFFICIENT_SCALAR_QUOTA
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
        assert answer.reason == reason
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
        assert answer.reason == reason
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
        assert refused(binds.decide(second.view(), "a")).reason == reasons.INSUFFICIENT_SCALAR_QUOTA
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
        assert short.reason == reasons.MGPU_NODE_TYPE
        assert short.message.endswith("(node a)"), "the scheduler's event does not say which node it tried"


def given(binds: Binder, pod: PodBuilder, node: str) -> Mapping[str, str]:
    answer = binds.decide(pod.view(), node)
    assert not isinstance(answer, Shortfall), answer
    return answer


class TestLiftedForAnotherCard:
    """A choice that comes to a node of another alternative: the node was relabelled, or its affinity got round."""

    def test_the_record_becomes_the_nodes_real_card(self) -> None:
        assert granted(decided(asking("p", "A|B", A=1), "b")) == {"B": 1}

    def test_unless_the_queue_has_no_quota_for_that_one(self) -> None:
        answer = refused(decided(asking("p", "A|B", A=1), "b", running("r", "B")))
        assert answer.reason == reasons.INSUFFICIENT_SCALAR_QUOTA
        assert answer.message == (
            "Queue <q> has insufficient <B> quota: requested <1000>, total would be <2000>, "
            "but capability is <1000>. In cards: asks for 1, 1 of 1 are in use; "
            "wait for cards to come back, or raise the quota; the pod was lifted for <A>, and node b carries <B>"
        )

    def test_whoever_was_never_lifted_does_not_stand_in_its_way(self) -> None:
        assert granted(decided(asking("p", "A|B", A=1), "b", asking("x", "B"))) == {"B": 1}

    @pytest.mark.parametrize("state", ["Closed", "Open"])
    def test_it_has_been_taken_in_whatever_became_of_the_queue_since(self, state: str) -> None:
        pod = asking("p", "A|B", A=1)
        ledger = books(pod, queue=a_queue("q").cards({"B": 1}).state(state))
        assert granted(binder(ledger).decide(pod.view(), "b")) == {"B": 1}
        ledger.drop_queue("q")
        assert refused(binder(ledger).decide(pod.view(), "b")).reason == reasons.QUEUE_NOT_FOUND

    def test_on_a_node_without_any_of_its_cards_it_keeps_its_own(self) -> None:
        """Its quota is paid; a node whose labels are away for a moment must not hold it up."""
        pod = asking("p", "A|B", B=1)
        ledger = books(pod)
        binds = binder(ledger)
        binds.book(pod.view(), "bare", given(binds, pod, "bare"))
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (0, 1000)

    def test_both_cards_are_held_until_the_watch_shows_the_bind(self) -> None:
        pod, ledger, binds = self.moved()
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (1000, 1000)
        stored = pod.assigned({"B": 1}).bound_to("b", phase="Pending").view()
        ledger.put_pod(stored)
        binds.observe(pod.view(), stored)
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (0, 1000)

    def test_a_bind_that_fails_leaves_it_with_the_first_card_alone(self) -> None:
        pod, ledger, binds = self.moved()
        binds.take_back(pod.view().uid)
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (1000, 0)

    @pytest.mark.parametrize("seen", [True, False], ids=["seen before", "never seen"])
    def test_a_pod_that_ends_meanwhile_gives_both_back(self, *, seen: bool) -> None:
        pod, ledger, binds = self.moved()
        view = pod.view()
        ledger.drop_pod(view.uid)
        if seen:
            binds.observe(view, None)
        else:
            binds.observe(None, pod.terminating().view())
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (0, 0)

    def test_the_held_card_is_no_member_of_the_group(self) -> None:
        pod = asking("p", "A|B", A=1).in_group("g")
        ledger = books(pod)
        group = a_group("g").in_queue("q").view()
        ledger.put_group(group)
        binds = binder(ledger)
        binds.book(pod.view(), "b", given(binds, pod, "b"))
        assert len(ledger.members(group)) == 1
        assert ledger.used("q", "A") == 1000

    def moved(self) -> tuple[PodBuilder, Ledger, Binder]:
        pod = asking("p", "A|B", A=1)
        ledger = books(pod)
        binds = binder(ledger)
        binds.book(pod.view(), "b", given(binds, pod, "b"))
        return pod, ledger, binds


class TestANodeOfAnotherCard:
    """A lift is narrowed to the nodes of its card; labels may change since, or somebody binds by hand."""

    @pytest.mark.parametrize("card", ["A", "gone"], ids=["still known", "on no node any more"])
    def test_it_is_refused_for_the_pod_would_use_a_card_that_nobody_counts(self, card: str) -> None:
        pod = asking("p", card, **{card: 1})
        assert not binder(books(pod)).certain(pod.view(), "b")
        refusal = refused(decided(pod, "b"))
        assert refusal.reason == reasons.CARD_NOT_ON_NODE
        assert "node b carries <B>" in refusal.message

    @pytest.mark.parametrize(
        "node", ["bare", "npu"], ids=["no card at all", "cards that it does not ask for"]
    )
    def test_a_node_that_has_nothing_for_it_is_the_schedulers_business(self, node: str) -> None:
        pod = asking("p", A=1)
        ledger = books(pod)
        ledger.put_node(a_node("npu").card("N", 8, prefix="huawei.com/npu").view())
        assert binder(ledger).certain(pod.view(), node)

    def test_with_alternatives_the_same_holds(self) -> None:
        pod = asking("p", "A|gone", A=1)
        assert refused(decided(pod, "b")).reason == reasons.CARD_NOT_ON_NODE


class TestCardsWithoutAName:
    """Where none may be used so, the bind is the last that can tell: at its creation nobody may have known the resource."""

    @staticmethod
    def bind(policy: str, pod: PodBuilder, node: str) -> Mapping[str, str] | Shortfall | None:
        settings = Settings.model_validate({"cards": {"podsWithoutCardName": policy}})
        bound = binder(books(pod, settings=settings))
        return None if bound.certain(pod.view(), node) else bound.decide(pod.view(), node)

    @pytest.mark.parametrize("policy", ["deny", "infer"])
    def test_they_are_refused(self, policy: str) -> None:
        answer = self.bind(policy, a_pod("p").gpu(1), "a")
        assert answer is not None
        assert refused(answer).reason == reasons.CARD_NAME_MISSING
        assert "node a carries <A>" in refused(answer).message

    def test_a_second_card_beside_the_one_that_it_was_lifted_for_is_refused(self) -> None:
        pod = asking("p", "A|ZZZ", A=1).limit("nvidia.com/mig-1g.10gb", 7)
        ledger = books(pod, settings=Settings.model_validate({"cards": {"podsWithoutCardName": "deny"}}))
        ledger.put_node(a_node("cut").card("A", 1).mig("1g.10gb", 7).view())
        assert not binder(ledger).certain(pod.view(), "cut")
        assert refused(binder(ledger).decide(pod.view(), "cut")).reason == reasons.CARD_NAME_MISSING
        assert binder(ledger).certain(asking("p", "A|ZZZ", A=1).view(), "cut")

    @pytest.mark.parametrize(
        ("policy", "pod", "node"),
        [
            ("warn", a_pod("p").gpu(1), "a"),
            ("ignore", a_pod("p").gpu(1), "a"),
            ("deny", a_pod("p").gpu(0), "a"),
            ("deny", a_pod("p").limit("rdma/hca", 1), "a"),
            ("deny", a_pod("p").gpu(1), "bare"),
            ("infer", asking("p", A=1), "a"),
        ],
    )
    def test_otherwise_nobody_asks(self, policy: str, pod: PodBuilder, node: str) -> None:
        assert self.bind(policy, pod, node) is None


class TestAnotherNode:
    """A bind was granted, and the scheduler names another node, while the first bind may still be stored."""

    @pytest.mark.parametrize(
        ("granted", "node", "may"),
        [
            (asking("p", A=1), "a", True),
            (asking("p", "A|B", A=1), "a", True),
            (asking("p", "A|B", A=1), "b", False),
            (asking("p", A=1), "bare", False),
            (asking("p", A=1), "unknown", False),
            (asking("p", A=1).mgpu(core=30, memory=1024), "a", False),
        ],
    )
    def test_it_may_be_one_with_the_same_card(self, granted: PodBuilder, node: str, *, may: bool) -> None:
        assert binder(books()).may_move(granted.view(), node) is may


def test_pods_are_followed_from_creation_to_their_bind() -> None:
    """A pod that loses its gate counts as never lifted from then on; one that got a record, a node or an end, no more."""

    def blocked(pod: Pod) -> bool:
        """Whether the pod, as it is now, takes the only B from another one."""
        ledger = books()
        binds = binder(ledger)
        ledger.put_pod(pod)
        binds.observe(gated.view(), pod)
        return isinstance(binds.decide(asking("x", "B").view(), "b"), Shortfall)

    gated = asking("p", "B").gated()
    assert not blocked(gated.view())
    assert not blocked(asking("p", "B").view())
    assert blocked(asking("p", "B", B=1).view())
    assert blocked(asking("p", "B").bound_to("b").view())
    assert not blocked(asking("p", "B").terminating().view())


def test_a_search_that_ends_by_its_budget_is_told() -> None:
    """Eight containers of four cards each, all different, on sixteen cards: more than any budget sorts out."""
    pod = a_pod("hard").mgpu_policy("native-burst-share").in_queue("q")
    for number in range(8):
        pod = pod.mgpu(f"c{number}", core=4 * (10 + 5 * number), memory=4 * (1000 + 733 * number))
    pod = pod.only(*(f"c{number}" for number in range(8))).cards_per_container(*[4] * 8)
    told: list[str] = []
    ledger = books()
    ledger.put_node(a_node("a").mgpu(16, memory=81920, policy="native-burst-share").view())
    binds = binder(ledger, lambda: told.append("cut short"))
    assert not isinstance(binds.decide(pod.view(), "a"), Shortfall)
    assert told == ["cut short"]
    easy = pod.only("c0").cards_per_container(4)
    assert not isinstance(binds.decide(easy.view(), "a"), Shortfall)
    assert told == ["cut short"]
