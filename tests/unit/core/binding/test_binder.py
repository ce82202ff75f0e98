"""What a bind of a card pod is granted: by its record, or, where it was never lifted, by what the queue has left."""

from collections.abc import Mapping

import pytest

from core import reasons
from core.binding.binder import Binder
from core.objects import Pod
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.binding.deciding import asking, binder, books, decided, given, granted, refused, running


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


class TestLiftedForAnotherCard:
    """A choice that comes to a node of another alternative: the node was relabelled, or its affinity got round."""

    def test_the_record_becomes_the_nodes_real_card(self) -> None:
        assert granted(decided(asking("p", "A|B", A=1), "b")) == {"B": 1}

    def test_unless_the_queue_has_no_quota_for_that_one(self) -> None:
        answer = refused(decided(asking("p", "A|B", A=1), "b", running("r", "B")))
        assert answer.code == reasons.INSUFFICIENT_SCALAR_QUOTA
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
        assert refused(binder(ledger).decide(pod.view(), "b")).code == reasons.QUEUE_NOT_FOUND

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
        assert refusal.code == reasons.CARD_NOT_ON_NODE
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
        assert refused(decided(pod, "b")).code == reasons.CARD_NOT_ON_NODE


class TestCardsWithoutAName:
    """Where none may be used so, the bind is the last that can tell: at its creation nobody may have known the resource."""

    @staticmethod
    def bind(policy: str, pod: PodBuilder, node: str) -> Mapping[str, str] | Refusal | None:
        settings = Settings.model_validate({"cards": {"podsWithoutCardName": policy}})
        bound = binder(books(pod, settings=settings))
        return None if bound.certain(pod.view(), node) else bound.decide(pod.view(), node)

    @pytest.mark.parametrize("policy", ["deny", "infer"])
    def test_they_are_refused(self, policy: str) -> None:
        answer = self.bind(policy, a_pod("p").gpu(1), "a")
        assert answer is not None
        assert refused(answer).code == reasons.CARD_NAME_MISSING
        assert "node a carries <A>" in refused(answer).message

    def test_a_second_card_beside_the_one_that_it_was_lifted_for_is_refused(self) -> None:
        pod = asking("p", "A|ZZZ", A=1).limit("nvidia.com/mig-1g.10gb", 7)
        ledger = books(pod, settings=Settings.model_validate({"cards": {"podsWithoutCardName": "deny"}}))
        ledger.put_node(a_node("cut").card("A", 1).mig("1g.10gb", 7).view())
        assert not binder(ledger).certain(pod.view(), "cut")
        assert refused(binder(ledger).decide(pod.view(), "cut")).code == reasons.CARD_NAME_MISSING
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
        ("pod", "node", "may"),
        [
            (asking("p"), "a", True),
            (asking("p", "A|B"), "a", True),
            (asking("p", "A|B"), "b", False),
            (asking("p"), "bare", False),
            (asking("p"), "unknown", False),
            (asking("p").mgpu(core=30, memory=1024), "a", False),
        ],
    )
    def test_it_may_be_one_with_the_same_card(self, pod: PodBuilder, node: str, *, may: bool) -> None:
        granted = pod.charged("q").assigned({"A": 1}).bound_to("first", phase="Pending").view()
        binds = binder(books(pod))
        answer = binds.decide_again(pod.view(), granted, node)
        assert answer == binds.records_of(granted) if may else isinstance(answer, Refusal)

    @pytest.mark.parametrize(("node", "may"), [("bare", True), ("a", True), ("b", False)])
    def test_the_card_it_was_lifted_for_is_paid_for_where_no_card_is_shown(
        self, node: str, *, may: bool
    ) -> None:
        """As at its first bind. Only binds that ask for something else as well come here."""
        pod = asking("p", "A|B", A=1)
        granted = pod.charged("q").bound_to("first", phase="Pending").view()
        assert isinstance(binder(books(pod)).decide_again(pod.view(), granted, node), Refusal) is not may

    def test_it_must_not_be_one_of_a_card_that_the_pod_would_not_be_charged_for(self) -> None:
        settings = Settings.model_validate({"cards": {"podsWithoutCardName": "deny"}})
        pod = a_pod("p").gpu(1)
        granted = pod.bound_to("bare", phase="Pending").view()
        answer = binder(books(pod, settings=settings)).decide_again(pod.view(), granted, "a")
        assert refused(answer).code == reasons.CARD_NAME_MISSING


def test_pods_are_followed_from_creation_to_their_bind() -> None:
    """A pod that loses its gate counts as never lifted from then on; one that got a record, a node or an end, no more."""

    def blocked(pod: Pod) -> bool:
        """Whether the pod, as it is now, takes the only B from another one."""
        ledger = books()
        binds = binder(ledger)
        ledger.put_pod(pod)
        binds.observe(gated.view(), pod)
        return isinstance(binds.decide(asking("x", "B").view(), "b"), Refusal)

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
    assert not isinstance(binds.decide(pod.view(), "a"), Refusal)
    assert told == ["cut short"]
    easy = pod.only("c0").cards_per_container(4)
    assert not isinstance(binds.decide(easy.view(), "a"), Refusal)
    assert told == ["cut short"]
