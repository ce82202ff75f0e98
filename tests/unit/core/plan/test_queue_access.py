"""Pods in a queue that is closed to their namespace: held whatever way sent them there, in nobody's way, refused at the bind."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.extender.enqueue import ABSTAIN, PERMIT, REJECT, Promises, vote
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import PodBuilder, QueueBuilder

CLOSED = a_queue("q").cards({"A": 8}).used_by("web")
OURS, THEIRS = "ml", "web"


def books(*queues: QueueBuilder, access: str = "open") -> Ledger:
    ledger = Ledger(Settings.model_validate({"queue": {"access": access}}))
    ledger.put_node(a_node("n").card("A", 8).view())
    for queue in queues or (CLOSED,):
        ledger.put_queue(queue.view())
    for name in (OURS, THEIRS):
        ledger.put_namespace(a_namespace(name).view())
    return ledger


def asking(name: str, namespace: str = OURS, *, queue: str = "q", second: int = 0) -> PodBuilder:
    pod = a_pod(name, namespace=namespace).gpu(1).card("A").created(f"2024-01-01T00:00:{second:02}Z")
    return (pod.in_queue(queue) if queue else pod).put("metadata", "resourceVersion", value="7")


def decided(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> dict[str, str]:
    """Pod -> the reason it is held for; empty for one that is lifted."""
    for pod in pods:
        ledger.put_pod(pod.gated().view())
    decisions = [decision for decision in Planner(ledger).run([queue]) if decision is not None]
    return {each.pod.key: each.why.code if isinstance(each, Hold) else "" for each in decisions}


HELD = {"ml/a": reasons.QUEUE_NOT_ALLOWED}


class TestTheGate:
    def by_group(self, ledger: Ledger) -> PodBuilder:
        ledger.put_group(a_group("g").in_queue("q").view())
        return asking("a", queue="").in_group("g")

    def by_job(self, ledger: Ledger) -> PodBuilder:
        ledger.put_job(a_job("j").uid("uid-j").in_queue("q").view())
        return asking("a", queue="").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")

    def by_copy(self, _: Ledger) -> PodBuilder:
        pod = asking("a", queue="").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
        return pod.annotation(names.JOB_QUEUE_ANNOTATION, "q")

    def by_annotation(self, _: Ledger) -> PodBuilder:
        return asking("a")

    def by_namespace(self, ledger: Ledger) -> PodBuilder:
        ledger.put_namespace(a_namespace(OURS).in_queue("q").view())
        return asking("a", queue="")

    @pytest.mark.parametrize("way", [by_group, by_job, by_copy, by_annotation, by_namespace])
    def test_whatever_way_leads_to_the_queue(
        self, way: Callable[["TestTheGate", Ledger], PodBuilder]
    ) -> None:
        ledger = books()
        pod = way(self, ledger)
        assert decided(ledger, pod) == HELD
        ledger.put_queue(CLOSED.used_by("web, ml").view())
        assert decided(ledger) == {"ml/a": ""}

    def test_the_default_queue_is_closed_like_any_other(self) -> None:
        ledger = books(a_queue("default").cards({"A": 8}), access="listed")
        assert decided(ledger, asking("a", queue=""), queue="default") == HELD
        ledger.put_queue(a_queue("default").cards({"A": 8}).used_by("*").view())
        assert decided(ledger, queue="default") == {"ml/a": ""}

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod("a").mgpu(core=30, memory=1024).in_queue("q"),
            a_pod("a").claim("dev", template="t").in_queue("q"),
            a_pod("a").gpu(1).card("Unknown").in_queue("q"),
            a_pod("a").gpu(1).card("A|B").in_queue("q"),
        ],
        ids=["mGPU", "claim", "unknown card", "choice"],
    )
    def test_whatever_it_asks_for(self, pod: PodBuilder) -> None:
        ledger = books()
        ledger.devices.put_template(a_template("t").view())
        assert decided(ledger, pod) == HELD

    def test_a_pod_that_asks_for_nothing_any_more_is_let_go(self) -> None:
        assert decided(books(), a_pod("a").in_queue("q")) == {"ml/a": ""}

    @pytest.mark.parametrize(
        ("queue", "reason"),
        [
            (a_queue("q").cards({"A": 8}).used_by("web").state("Closed"), reasons.QUEUE_NOT_ALLOWED),
            (a_queue("q").cards({}).used_by("web"), reasons.QUEUE_NOT_ALLOWED),
            (a_queue("other").used_by("web"), reasons.QUEUE_NOT_FOUND),
            (a_queue("q").cards({"A": 8}).used_by("ml").state("Closed"), reasons.QUEUE_NOT_OPEN),
        ],
    )
    def test_it_comes_before_what_is_wrong_with_a_queue_that_is_there(
        self, queue: QueueBuilder, reason: str
    ) -> None:
        assert decided(books(queue), asking("a")) == {"ml/a": reason}

    @pytest.mark.parametrize(("admitted", "reason"), [("web", "QueueNotAllowed"), ("ml", "QueueNotOpen")])
    def test_the_root_queue_is_closed_like_any_other(self, admitted: str, reason: str) -> None:
        ledger = books(a_queue("root").used_by(admitted))
        assert decided(ledger, asking("a", queue="root"), queue="root") == {"ml/a": reason}

    def test_each_is_told_of_its_own_namespace(self) -> None:
        """Pods that ask for the same are told the same otherwise."""
        ledger = books(a_queue("q").cards({"A": 1}).used_by("web"))
        pods = [
            asking("a"),
            asking("b"),
            asking("a", "dev"),
            asking("a", "web"),
            asking("b", "web", second=1),
        ]
        for pod in pods:
            ledger.put_pod(pod.gated().view())
        told = {each.pod.key: each for each in Planner(ledger).run(["q"]) if each is not None}
        for key in ("ml/a", "ml/b", "dev/a"):
            hold = told[key]
            assert isinstance(hold, Hold)
            assert hold.announced
            assert f"Queue <q> is not open to namespace <{key.partition('/')[0]}>" in hold.why.message
        assert isinstance(told["web/a"], Lift)
        hold = told["web/b"]
        assert isinstance(hold, Hold)
        assert hold.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA

    @pytest.mark.parametrize("first", [asking("a").priority(10), asking("a").in_group("g").priority(10)])
    def test_who_may_not_use_it_holds_up_nobody_in_a_fifo_queue(self, first: PodBuilder) -> None:
        ledger = books(a_queue("q").cards({"A": 1}).used_by("web").fifo())
        ledger.put_group(a_group("g").in_queue("q").view())
        others = [asking(name, THEIRS, second=number) for number, name in enumerate("bcd", 1)]
        told = decided(ledger, first, *others, asking("z", second=9))
        assert told == {
            "ml/a": reasons.QUEUE_NOT_ALLOWED,
            "web/b": "",
            "web/c": reasons.INSUFFICIENT_SCALAR_QUOTA,
            "web/d": reasons.INSUFFICIENT_SCALAR_QUOTA,
            "ml/z": reasons.QUEUE_NOT_ALLOWED,
        }

    def test_a_gang_waits_as_one_and_has_no_precedence(self) -> None:
        """One of it was let in before the queue was closed: what it lacks is kept from nobody."""
        ledger = books(a_queue("q").cards({"A": 2}).used_by("web"), a_queue("a"))
        ledger.put_group(a_group("g").in_queue("q").min_member(2).cards({"A": 9}).owned_by("Job", "j").view())
        ledger.put_pod(asking("m0").in_group("g").assigned({"A": 1}).charged("q").together(2).view())
        told = decided(ledger, asking("m1").in_group("g"), asking("b", THEIRS, second=9))
        assert told == {"ml/m1": reasons.QUEUE_NOT_ALLOWED, "web/b": ""}
        ledger.put_queue(a_queue("a").priority(1).view())
        assert Planner(ledger).order(["q", "a"]) == ["a", "q"]

    def test_what_a_job_declares_is_not_held_against_a_quota_that_is_none_of_its_business(self) -> None:
        ledger = books()
        owner = {"api_version": "batch.volcano.sh/v1alpha1"}
        ledger.put_group(
            a_group("g").in_queue("q").min_member(1).cards({"A": 9}).owned_by("Job", "j", **owner).view()
        )
        assert decided(ledger, asking("a").in_group("g")) == HELD

    def test_a_lift_that_is_not_written_yet_does_not_outlive_the_permission(self) -> None:
        ledger = books(CLOSED.used_by("*"))
        ledger.put_pod(asking("a").gated().view())
        planner = Planner(ledger)
        (lift,) = planner.decide("q")
        assert isinstance(lift, Lift)
        assert planner.stands(lift)
        ledger.put_queue(CLOSED.view())
        assert not planner.stands(lift)

    def test_what_was_let_in_runs_on(self) -> None:
        ledger = books()
        pods = [asking("a").charged("q").bound_to("n"), asking("b").charged("q").assigned({"A": 1})]
        for pod in pods:
            ledger.put_pod(pod.view())
        assert decided(ledger) == {}
        assert ledger.used("q", "A") == 2000

    def test_offline_it_is_held_and_told_alike(self) -> None:
        ledger = books(CLOSED.used_by("web", "x in"))
        views = [asking("a").gated().view(), asking("ungated").view(), asking("b", THEIRS).gated().view()]
        for view in views:
            ledger.put_pod(view)
        found = plan(ledger, views)
        assert {key: (pod.decision, pod.why.code if pod.why else "") for key, pod in found.pods.items()} == {
            "ml/a": ("hold", reasons.QUEUE_NOT_ALLOWED),
            "ml/ungated": ("hold", reasons.QUEUE_NOT_ALLOWED),
            "web/b": ("lift", ""),
        }
        assert [(event.object, event.reason) for event in found.events] == [
            ("Queue q", reasons.QUEUE_ACCESS_MALFORMED),
            ("Pod ml/a", reasons.QUEUE_NOT_ALLOWED),
            ("Pod ml/ungated", reasons.QUEUE_NOT_ALLOWED),
        ]


class TestTheBind:
    def answer(self, pod: PodBuilder, ledger: Ledger | None = None) -> str:
        """The reason of a refusal; empty where it is granted."""
        ledger = ledger or books()
        binder = Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)
        ledger.put_pod(pod.view())
        if binder.certain(pod.view(), "n"):
            return ""
        found = binder.decide(pod.view(), "n")
        return found.code if isinstance(found, Refusal) else ""

    @pytest.mark.parametrize(
        ("pod", "reason"),
        [
            (asking("a"), reasons.QUEUE_NOT_ALLOWED),
            (asking("a", THEIRS), ""),
            (a_pod("a").mgpu(core=30, memory=1024).in_queue("q"), reasons.QUEUE_NOT_ALLOWED),
            (a_pod("a").claim("dev", template="t").in_queue("q"), reasons.QUEUE_NOT_ALLOWED),
            # Admitted, and then judged by what it asks for.
            (a_pod("a", namespace=THEIRS).claim("dev", template="t").in_queue("q"), reasons.CLAIM_NOT_FOUND),
            (a_pod("a").claim("dev", template="t").in_queue("q").charged("q"), ""),
            (a_pod("a").limit("cpu", 1).in_queue("q"), ""),
            (asking("a").charged("q"), ""),
            (asking("a").charged("q").assigned({"A": 1}), ""),
            (asking("a").assigned({"A": 1}), ""),
            (
                asking("a", queue="").charged("q").annotation("scheduling.volcano.sh/queue-name", "nowhere"),
                "",
            ),
        ],
    )
    def test_only_a_pod_that_nobody_let_in_is_refused(self, pod: PodBuilder, reason: str) -> None:
        assert self.answer(pod) == reason

    def test_it_is_granted_once_the_queue_is_open_to_it(self) -> None:
        ledger = books()
        assert self.answer(asking("a"), ledger) == reasons.QUEUE_NOT_ALLOWED
        ledger.put_queue(CLOSED.used_by("ml").view())
        assert self.answer(asking("a"), ledger) == ""

    def test_a_feature_that_is_off_is_not_judged(self) -> None:
        ledger = books()
        ledger.settings = ledger.settings.model_copy(
            update={"features": ledger.settings.features.model_copy(update={"dra": False})}
        )
        assert self.answer(a_pod("a").claim("dev", template="t").in_queue("q"), ledger) == ""


class TestTheVote:
    """Volcano asks before it makes the pods of a job."""

    @pytest.mark.parametrize(("namespace", "status"), [(OURS, REJECT), (THEIRS, PERMIT)])
    def test_a_job_that_may_not_use_the_queue_does_not_start_and_is_promised_nothing(
        self, namespace: str, status: int
    ) -> None:
        group = a_group("g", namespace=namespace).in_queue("q").cards({"A": 8})
        group = group.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
        body = {"job": {"Queue": "q", "PodGroup": group.build()}}
        ledger, promises = books(), Promises()
        found = finish(vote(body, ledger, promises, 0.0))
        assert found.status == status
        other = replace(group.view(), name="other")
        assert promises.others(other, "q", ledger, 0.0) == ({"A": 8000} if status == PERMIT else {})
        if status == REJECT:
            assert found.why is not None
            assert found.why.code == reasons.QUEUE_NOT_ALLOWED
        nobodys = json.loads(json.dumps({"job": {"Queue": "q"}}))
        assert finish(vote(nobodys, ledger, promises, 0.0)).status == ABSTAIN
