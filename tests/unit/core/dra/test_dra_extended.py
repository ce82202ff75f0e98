"""Extended resources that DeviceClasses serve: which class it is, and what pods are charged for them."""

import itertools

import pytest

from core import names, reasons
from core.dra.amounts import thousandths
from core.dra.extended import Candidates, DeviceClasses
from core.objects import DeviceClass, device_class
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder

GPU = "example.com/gpu"
CLASS = DeviceClass("gpu", extended=GPU)


class TestWhichClassServes:
    def test_the_newest_then_the_first_by_name_in_whatever_order_they_come(self) -> None:
        old, new, twin = DeviceClass("a", 1, GPU), DeviceClass("z", 2, GPU), DeviceClass("y", 2, GPU)
        for order in itertools.permutations((old, new, twin)):
            classes = DeviceClasses()
            for each in order:
                classes.put(each)
            assert classes.serving(GPU) == "y"
            classes.drop("y")
            assert classes.serving(GPU) == "z"

    def test_the_implicit_name_is_that_of_the_class_alone(self) -> None:
        classes = DeviceClasses()
        implicit = f"{names.DEVICE_CLASS_RESOURCE_PREFIX}gpu"
        assert classes.serving(implicit) is None
        assert classes.put(CLASS) == {implicit, GPU}
        assert classes.serving(implicit) == classes.serving(GPU) == "gpu"
        assert classes.serving(f"{names.DEVICE_CLASS_RESOURCE_PREFIX}gp") is None

    def test_a_change_names_the_resources_that_are_served_otherwise(self) -> None:
        classes = DeviceClasses()
        classes.put(DeviceClass("gpu", 1, GPU))
        assert classes.put(DeviceClass("gpu", 1, GPU)) == frozenset()
        assert classes.put(DeviceClass("gpu", 1, "example.com/npu")) == {"example.com/npu"}
        assert classes.release(GPU) == {GPU}
        assert classes.put(DeviceClass("older", 0, "example.com/npu")) == {
            f"{names.DEVICE_CLASS_RESOURCE_PREFIX}older"
        }
        assert classes.drop("nobody") == frozenset()

    def test_what_no_class_serves_any_more_goes_on_as_it_was_served_last_until_it_is_released(self) -> None:
        classes, implicit = DeviceClasses(), f"{names.DEVICE_CLASS_RESOURCE_PREFIX}gpu"
        classes.put(CLASS)
        assert classes.drop("gpu") == frozenset()
        assert classes.serving(GPU) == classes.serving(implicit) == "gpu"
        assert classes.orphaned == {GPU: "gpu", implicit: "gpu"}
        assert classes, "a resource is served"
        assert "gpu" not in classes
        assert not list(classes.values())
        assert classes.release(GPU) == {GPU}
        assert classes.release(GPU) == frozenset()
        assert classes.serving(GPU) is None
        assert classes.serving(implicit) == "gpu"
        classes.release(implicit)
        assert not classes

    def test_a_class_that_comes_back_serves_as_if_it_had_never_been_away(self) -> None:
        classes = DeviceClasses()
        classes.put(DeviceClass("gpu", 1, GPU))
        classes.drop("gpu")
        assert classes.put(DeviceClass("gpu", 2, GPU)) == frozenset()
        assert not classes.orphaned
        assert classes.release(GPU) == frozenset()
        assert classes.serving(GPU) == "gpu"

    def test_one_that_comes_back_for_another_resource_goes_on_with_the_old_one_too(self) -> None:
        classes = DeviceClasses()
        classes.put(CLASS)
        classes.drop("gpu")
        assert classes.put(DeviceClass("gpu", extended="example.com/npu")) == {"example.com/npu"}
        assert classes.orphaned == {GPU: "gpu"}

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_another_class_takes_over_at_once_whenever_it_comes(self, when: str) -> None:
        """A chart may move a resource from one class to another, with one write for each."""
        classes, other = DeviceClasses(), DeviceClass("npu", 0, GPU)
        classes.put(DeviceClass("gpu", 1, GPU))
        if when == "before":
            classes.put(other)
        classes.put(DeviceClass("gpu", 1))
        assert classes.serving(GPU) == ("npu" if when == "before" else "gpu")
        classes.put(other)
        assert classes.serving(GPU) == "npu"
        assert not classes.orphaned

    def test_the_view_of_a_class(self) -> None:
        raw = {
            "metadata": {"name": "gpu", "creationTimestamp": "1970-01-01T00:00:02Z"},
            "spec": {"extendedResourceName": GPU},
        }
        assert device_class.project(raw) == DeviceClass("gpu", 2_000_000, GPU)
        assert device_class.project({"metadata": {"name": "gpu"}}) == DeviceClass("gpu")


class TestWhoMayComeToBeServed:
    def test_one_that_runs_without_a_claim_is_not_asked_for_any_more(self) -> None:
        candidates, bound = Candidates(), a_pod("a").limit(GPU, 1).bound_to("n", phase="Pending")
        for stage, pod in ((Stage.WAITING, asking("a")), (Stage.ALLOCATED, bound)):
            assert candidates.put(pod.view(), stage, "q")
            assert list(candidates.asking([GPU])) == [pod.view().uid]
        assert not candidates.put(bound.phase("Running").view(), Stage.ALLOCATED, "q")
        assert not candidates.asking([GPU])

    @pytest.mark.parametrize("stage", [Stage.WAITING, Stage.RESERVED, Stage.ALLOCATED])
    def test_each_is_asked_for_by_what_it_requests_now(self, stage: Stage) -> None:
        candidates, npu = Candidates(), "example.com/npu"
        candidates.put(asking("a").view(), Stage.WAITING, "q")
        other = a_pod("a").limit(npu, 1).view()
        assert candidates.put(other, stage, "q")
        assert not candidates.asking([GPU])
        assert candidates.booked(candidates.asking([npu])) == [(other, stage, "q")]

    def test_one_that_has_no_place_in_the_books_is_none(self) -> None:
        candidates = Candidates()
        candidates.put(asking("a").view(), Stage.WAITING, "q")
        assert not candidates.put(asking("a").view(), Stage.IGNORED, "q")
        assert not candidates.asking([GPU])


def a_ledger(*pods: PodBuilder, limit: int = 1, classes: tuple[DeviceClass, ...] = (CLASS,)) -> Ledger:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").view())
    ledger.put_queue(a_queue("q").devices({"capability": {"gpu": {"count": limit}}}).view())
    for each in classes:
        ledger.devices.put_class(each)
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def asking(name: str, count: int = 1) -> PodBuilder:
    return a_pod(name).limit(GPU, count).in_queue("q").gated()


def decided(ledger: Ledger) -> dict[str, Lift | Hold]:
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def gpus(ledger: Ledger) -> tuple[int, int, int]:
    """Waiting, reserved, allocated."""
    book = ledger.devices.book
    sums = (book.accounts.waiting("q"), book.accounts.reserved("q"), book.accounts.allocated("q"))
    waiting, reserved, allocated = (thousandths(each).get("deviceclass/gpu", 0) // 1000 for each in sums)
    return waiting, reserved, allocated


class TestTheGate:
    def test_they_are_held_to_the_device_quota(self) -> None:
        ledger = a_ledger(asking("a"), asking("b"))
        decisions = decided(ledger)
        assert isinstance(decisions["a"], Lift)
        held = decisions["b"]
        assert isinstance(held, Hold)
        assert held.why.code == reasons.INSUFFICIENT_DEVICE_QUOTA
        assert gpus(ledger) == (1, 1, 0)

    def test_each_piece_is_a_device(self) -> None:
        assert isinstance(decided(a_ledger(asking("a", 2)))["a"], Hold)
        assert isinstance(decided(a_ledger(asking("a", 2), limit=2))["a"], Lift)

    @pytest.mark.parametrize("classes", [(), (DeviceClass("gpu", extended="example.com/npu"),)])
    def test_what_no_class_serves_goes_at_once(self, classes: tuple[DeviceClass, ...]) -> None:
        """The webhook did not know, and gated it."""
        ledger = a_ledger(asking("a", 5), limit=0, classes=classes)
        assert isinstance(decided(ledger)["a"], Lift)

    def test_a_class_that_comes_later_takes_the_pods_on_its_books_and_gives_them_free_when_it_is_gone_for_good(
        self,
    ) -> None:
        ledger = a_ledger(asking("a", 5), classes=())
        assert gpus(ledger) == (0, 0, 0)
        ledger.wakeups.take_queues()
        ledger.devices.put_class(CLASS)
        assert gpus(ledger) == (5, 0, 0)
        assert "q" in ledger.wakeups.take_queues()
        assert isinstance(decided(ledger)["a"], Hold)
        ledger.devices.drop_class("gpu")
        ledger.devices.release_resource(GPU)
        assert gpus(ledger) == (0, 0, 0)
        assert "q" in ledger.wakeups.take_queues()
        assert isinstance(decided(ledger)["a"], Lift)

    @pytest.mark.parametrize(
        "left", [None, DeviceClass("gpu"), DeviceClass("gpu", extended="example.com/npu")]
    )
    def test_a_class_that_is_away_for_a_moment_lets_in_nobody_beyond_its_quota(
        self, left: DeviceClass | None
    ) -> None:
        ledger = a_ledger(asking("a"), asking("b"), asking("c"), limit=2)
        assert isinstance(decided(ledger)["a"], Lift)
        if left is None:
            ledger.devices.drop_class("gpu")
        else:
            ledger.devices.put_class(left)
        decisions = decided(ledger)
        assert {name: type(each) for name, each in decisions.items()} == {"c": Hold}
        assert gpus(ledger) == (1, 2, 0)
        ledger.devices.put_class(CLASS)
        assert gpus(ledger) == (1, 2, 0)

    def test_a_class_that_is_away_is_shown_only_where_it_is_listed_as_one_that_does_not_exist(self) -> None:
        ledger, other = a_ledger(), a_queue("other").view()
        ledger.put_queue(other)
        for queue in ("q", "other"):
            ledger.put_pod(a_pod(queue).limit(GPU, 1).charged(queue).bound_to("n", phase="Pending").view())
        ledger.devices.drop_class("gpu")
        assert ledger.devices.published(ledger.queues["q"]) == {"deviceclass/gpu": "1"}
        assert ledger.devices.published(other) == {}

    def test_a_card_pod_is_charged_for_both(self) -> None:
        """Nobody knows yet whether a device plugin or a driver will serve it."""
        ledger = a_ledger()
        ledger.put_node(a_node("n").card("A", 8).view())
        ledger.devices.put_class(DeviceClass("gpu", extended="nvidia.com/gpu"))
        ledger.put_queue(a_queue("q").cards({"A": 8}).devices({"capability": {"gpu": {"count": 1}}}).view())
        for name in "ab":
            ledger.put_pod(a_pod(name).card("A").gpu(1).in_queue("q").gated().view())
        decisions = decided(ledger)
        assert isinstance(decisions["a"], Lift)
        assert isinstance(decisions["b"], Hold)


class TestTheWayOfAPod:
    LET_IN = a_pod("p").limit(GPU, 2).charged("q")
    MADE = LET_IN.put("status", "extendedResourceClaimStatus", value={"resourceClaimName": "made"})
    CLAIM = a_claim("made").exactly("r", "gpu", count=1).allocated("r")

    def test_let_in_it_holds_what_it_may_get(self) -> None:
        ledger = a_ledger(self.LET_IN)
        assert ledger.stages.of(self.LET_IN.view()) is Stage.RESERVED
        assert gpus(ledger) == (0, 2, 0)

    def test_the_claim_that_was_made_takes_the_place_of_the_estimate(self) -> None:
        ledger = a_ledger(self.LET_IN)
        ledger.devices.put_claim(self.CLAIM.view())
        ledger.put_pod(self.MADE.view())
        assert gpus(ledger) == (0, 1, 0)
        ledger.put_pod(self.MADE.bound_to("n").view())
        assert gpus(ledger) == (0, 0, 1)

    @pytest.mark.parametrize("phase", ["Pending", "Running"])
    def test_until_the_claim_is_in_view_the_estimate_stays(self, phase: str) -> None:
        """Pods and claims come in two streams, in whatever order. So it does when somebody has taken the claim away."""
        ledger = a_ledger(self.LET_IN)
        ledger.put_pod(self.MADE.view())
        assert gpus(ledger) == (0, 2, 0)
        ledger.put_pod(self.MADE.bound_to("n", phase=phase).view())
        assert gpus(ledger) == (0, 0, 2)
        ledger.devices.put_claim(self.CLAIM.view())
        assert gpus(ledger) == (0, 0, 1)
        ledger.devices.drop_claim("ml/made")
        assert gpus(ledger) == (0, 0, 2)

    def test_a_claim_under_its_name_that_no_scheduler_allocated_is_another(self) -> None:
        ledger = a_ledger(self.LET_IN)
        ledger.devices.put_claim(a_claim("made").exactly("r", "other").view())
        ledger.put_pod(self.MADE.bound_to("n").view())
        assert gpus(ledger) == (0, 0, 2)

    def test_bound_it_holds_what_it_may_get_until_it_runs(self) -> None:
        """Without a claim then it was served by a device plugin."""
        ledger = a_ledger(self.LET_IN)
        bound = self.LET_IN.bound_to("n", phase="Pending")
        ledger.put_pod(bound.view())
        assert ledger.stages.of(bound.view()) is Stage.ALLOCATED
        assert gpus(ledger) == (0, 0, 2)
        ledger.devices.drop_class("gpu")
        assert gpus(ledger) == (0, 0, 2)
        ledger.devices.release_resource(GPU)
        assert gpus(ledger) == (0, 0, 0)
        ledger.devices.put_class(CLASS)
        assert gpus(ledger) == (0, 0, 2)
        ledger.put_pod(bound.phase("Running").view())
        assert gpus(ledger) == (0, 0, 0)

    def test_nobody_let_it_in_and_no_gate_holds_it_so_it_holds_nothing(self) -> None:
        assert gpus(a_ledger(a_pod("p").limit(GPU, 2).in_queue("q"))) == (0, 0, 0)

    def test_gone_it_leaves_nothing_behind(self) -> None:
        ledger = a_ledger(self.LET_IN, asking("w"))
        for name in ("p", "w"):
            ledger.drop_pod(a_pod(name).view().uid)
        assert gpus(ledger) == (0, 0, 0)
        assert not list(ledger.devices.book.accounts.queues())
        ledger.devices.drop_class("gpu")
        ledger.devices.put_class(CLASS)
        assert gpus(ledger) == (0, 0, 0)
