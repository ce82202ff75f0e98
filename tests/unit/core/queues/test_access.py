"""Who may use a queue, and which waiting pods a change has judged again."""

from collections.abc import Callable
from typing import Any

import pytest

from core import names, reasons
from core.display.notices import queue_notices
from core.objects import Queue
from core.queues.access import access_of, may_use, problem_of
from core.queues.backlog import AT_ONCE
from core.queues.ledger import Ledger
from core.settings import Settings
from core.stage import Stage
from core.steps import finish
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import NamespaceBuilder, PodBuilder

LABELS = {"env": "dev", names.NAMESPACE_NAME_LABEL: "ml"}


def of(listed: str | None = None, selector: str | None = None, name: str = "q") -> Queue:
    return a_queue(name).cards({"A": 8}).used_by(listed, selector).view()


class TestOneQueue:
    @pytest.mark.parametrize(
        ("listed", "selector", "admitted"),
        [
            ("ml", None, True),
            ("m*", None, True),
            ("*", None, True),
            ("other", None, False),
            ("other, ml", None, True),
            (None, "env=dev", True),
            (None, "env=test", False),
            (None, f"{names.NAMESPACE_NAME_LABEL} in (ml, other)", True),
            ("other", "env=dev", True),
            ("ml", "env=test", True),
            ("other", "env=test", False),
            ("", None, False),
            (" ", None, False),
            (",", None, False),
            (None, "", False),
            (None, " ", False),
            ("", "", False),
            ("", "env=dev", True),
            ("ml", "", True),
            ("Ml", None, False),
            ("ml, Ml", None, False),
            (None, "env in", False),
            ("ml", "env in", True),
            ("Ml", "env=dev", True),
        ],
    )
    @pytest.mark.parametrize("access", ["open", "listed"])
    def test_either_annotation_admits_and_one_that_is_empty_or_garbage_admits_nobody(
        self, listed: str | None, selector: str | None, admitted: bool, access: str
    ) -> None:
        """What the setting says is for queues with neither."""
        assert may_use(of(listed, selector), "ml", LABELS, access) is admitted

    @pytest.mark.parametrize(("access", "admitted"), [("open", True), ("listed", False)])
    def test_a_queue_with_neither_goes_by_the_setting(self, access: str, admitted: bool) -> None:
        assert may_use(of(), "ml", LABELS, access) is admitted
        assert may_use(of(), "ml", None, access) is admitted

    @pytest.mark.parametrize(
        ("listed", "selector", "admitted"),
        [("ml", None, True), ("other", "!legacy", False), (None, "env!=prod", False), ("*", "!legacy", True)],
    )
    def test_of_a_namespace_that_was_not_seen_yet_only_the_name_counts(
        self, listed: str | None, selector: str | None, admitted: bool
    ) -> None:
        """No labels are known, which is not the same as none: whatever asks for the absence of one must not be met."""
        assert may_use(of(listed, selector), "ml", None, "open") is admitted

    def test_each_annotation_that_cannot_be_read_is_named(self) -> None:
        found = dict(access_of(of("a b", "x in")).problems)
        assert list(found) == [names.NAMESPACES_ANNOTATION, names.NAMESPACE_SELECTOR_ANNOTATION]
        assert access_of(of("a", "x in ()")).problems[0][0] == names.NAMESPACE_SELECTOR_ANNOTATION
        assert access_of(of("a", "x")).problems == ()
        assert problem_of(names.NAMESPACES_ANNOTATION, "x in (a)")
        assert not problem_of(names.NAMESPACE_SELECTOR_ANNOTATION, "x in (a)")

    def test_the_leader_says_on_the_queue_what_cannot_be_read(self) -> None:
        ledger = Ledger(Settings())
        ledger.put_queue(of("a b", "x in"))
        (notice,) = queue_notices(ledger, "q")
        assert notice.reason == reasons.QUEUE_ACCESS_MALFORMED
        assert notice.message.startswith(
            f'{names.NAMESPACES_ANNOTATION} cannot be read, it admits nobody: "a b"'
        )
        assert f"; {names.NAMESPACE_SELECTOR_ANNOTATION} cannot be read" in notice.message
        ledger.put_queue(of("a", "x"))
        assert queue_notices(ledger, "q") == []


class World:
    """A ledger with one card; pods wait for it in queues."""

    def __init__(self, **queue: Any) -> None:
        self.ledger = Ledger(Settings.model_validate({"queue": queue}))
        self.ledger.put_node(a_node("n").card("A", 8).view())

    def wait(self, *pods: PodBuilder) -> None:
        for pod in pods:
            self.ledger.put_pod(pod.gated().view())

    def namespace(self, name: str, **labels: str) -> None:
        built: NamespaceBuilder = a_namespace(name)
        for key, value in labels.items():
            built = built.label(key, value)
        self.ledger.put_namespace(built.view())

    def allowed(self) -> dict[str, bool]:
        return {entry.pod.key: entry.allowed for entry in self.ledger.entries()}

    def booked_anew(self) -> int:
        """How many bookings there were since the last time, of pods that are few."""
        before, self._before = getattr(self, "_before", 0), self.ledger.changes
        return self.ledger.changes - before

    def charges_after(self, change: Callable[[], None]) -> dict[str, int]:
        """What is used of the card by then, by queue."""
        change()
        finish(self.ledger.settle())
        return {name: used for name in self.ledger.accounts if (used := self.ledger.used(name, "A"))}

    def woken(self) -> set[str]:
        finish(self.ledger.settle())
        return set(self.ledger.wakeups.take_queues())


def asking(name: str, namespace: str = "ml", queue: str = "q") -> PodBuilder:
    return a_pod(name, namespace=namespace).gpu(1).card("A").in_queue(queue)


class TestTheBooks:
    def test_a_pod_is_judged_by_its_queue_and_its_namespace(self) -> None:
        world = World()
        world.namespace("ml", env="dev")
        world.namespace("web", env="prod")
        world.ledger.put_queue(of(None, "env=dev"))
        world.wait(asking("a"), asking("a", "web"), asking("a", "unseen"), asking("b", "web", "none"))
        assert world.allowed() == {"ml/a": True, "web/a": False, "unseen/a": False, "web/b": True}

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ((None, None), ("web", None), False),
            (("web", None), ("ml", None), True),
            (("web", None), (None, None), True),
            ((None, "env=dev"), (None, "env!=dev"), False),
            (("ml", None), ("ml,", "garbage in"), True),
            (("ml", None), ("Ml", None), False),
        ],
    )
    def test_a_changed_annotation_judges_those_who_wait_again(
        self, before: tuple[str | None, str | None], after: tuple[str | None, str | None], expected: bool
    ) -> None:
        world = World()
        world.namespace("ml", env="dev")
        world.ledger.put_queue(of(*before))
        world.ledger.put_queue(of("nobody", name="other"))
        world.wait(asking("a"), asking("b", queue="other"))
        world.woken()
        at_first = world.allowed()["ml/a"]
        world.ledger.put_queue(of(*after))
        assert world.allowed()["ml/a"] is expected
        assert world.woken() == ({"q"} if expected is not at_first else set())
        assert world.allowed()["ml/b"] is False

    def test_a_namespace_that_comes_or_changes_judges_its_waiting_pods_and_no_others(self) -> None:
        world = World()
        world.ledger.put_queue(of(None, "env=dev"))
        world.ledger.put_queue(of("ml", name="by-name"))
        world.ledger.put_queue(of(name="open"))
        world.namespace("web", env="prod")
        world.wait(asking("a"), asking("b", queue="by-name"), asking("c", queue="open"), asking("d", "web"))
        world.ledger.put_pod(asking("r").charged("q").bound_to("n").view())
        assert world.allowed()["ml/a"] is False
        world.woken()
        world.booked_anew()
        world.namespace("ml", env="dev")
        assert world.booked_anew() == 2, "the namespace itself and one pod"
        assert world.allowed()["ml/a"] is True
        assert world.woken() == {"q"}
        world.booked_anew()
        world.namespace("ml", env="dev", other="label")
        assert world.booked_anew() == 1, "the verdict is the same, so nobody is judged again"
        assert world.woken() == set()
        world.namespace("ml")
        assert world.allowed()["ml/a"] is False
        world.namespace("ml", env="dev")
        world.ledger.drop_namespace("ml")
        assert world.allowed()["ml/a"] is False

    def test_a_queue_that_goes_and_comes_back_closed(self) -> None:
        """Of a queue that is not there it is said that it is not there."""
        world = World()
        world.ledger.put_queue(of("web"))
        world.wait(asking("a"))
        assert world.allowed() == {"ml/a": False}
        world.ledger.drop_queue("q")
        assert world.allowed() == {"ml/a": True}
        world.ledger.put_queue(of("web"))
        assert world.allowed() == {"ml/a": False}

    def test_many_are_judged_again_in_steps(self) -> None:
        world = World()
        world.ledger.put_queue(of("ml"))
        world.wait(*(asking(f"p{number}") for number in range(AT_ONCE + 1)))
        world.ledger.put_queue(of("web"))
        assert not world.ledger.settled
        assert set(world.allowed().values()) == {True}, "as before, until they are settled"
        assert world.ledger.access.allows("q", "ml") is False
        world.woken()
        assert set(world.allowed().values()) == {False}

    def test_what_was_let_in_is_judged_no_more(self) -> None:
        world = World()
        world.ledger.put_queue(of("ml"))
        world.ledger.put_pod(asking("lifted").charged("q").assigned({"A": 1}).view())
        world.ledger.put_pod(asking("before-records").assigned({"A": 1}).view())
        world.ledger.put_pod(asking("bound").bound_to("n").view())
        world.ledger.put_queue(of("web"))
        stages = {entry.pod.name: (entry.stage, entry.allowed) for entry in world.ledger.entries()}
        assert stages == {
            "lifted": (Stage.RESERVED, True),
            "before-records": (Stage.RESERVED, True),
            "bound": (Stage.ALLOCATED, True),
        }

    def test_one_that_came_with_its_node_is_not_charged_to_a_queue_that_is_closed_to_it(self) -> None:
        """Past gate and bind: it is charged where its namespace may go. Who was let in stays where it is."""
        world = World()
        world.ledger.put_queue(of("web"))
        world.ledger.put_namespace(a_namespace("ml").in_queue("home").view())
        world.ledger.put_group(a_group("g").in_queue("q").view())
        came = a_pod("came").claim("dev", template="t").in_group("g").bound_to("n")
        pods = {"came": came, "let-in": came.annotation(names.LIFTED_ANNOTATION, "true")}
        charged = {name: world.ledger.attribution(pod.view()).queue for name, pod in pods.items()}
        assert charged == {"came": "home", "let-in": "q"}
        world.ledger.put_queue(of("ml"))
        assert world.ledger.attribution(came.view()).queue == "q"

    def test_one_that_came_with_its_node_is_charged_elsewhere_as_soon_as_its_queue_is_closed_or_open_to_it(
        self,
    ) -> None:
        """On a standby: a leader fixes what it charges. Whatever it is that decides who may use the queue."""
        world = World()
        world.ledger.put_namespace(a_namespace("ml").in_queue("home").view())
        world.ledger.put_group(a_group("g").in_queue("q").view())
        came = a_pod("came").card("A").gpu(1).in_group("g")
        world.ledger.put_pod(came.bound_to("n", phase="Pending").view())
        assert world.ledger.used("q", "A") == 1000
        assert world.charges_after(lambda: world.ledger.put_queue(of("web"))) == {"home": 1000}
        assert world.charges_after(lambda: world.ledger.put_pod(came.bound_to("n").view())) == {"home": 1000}
        assert world.charges_after(lambda: world.ledger.put_queue(of(None, "team=own"))) == {"home": 1000}
        own = a_namespace("ml").in_queue("home").label("team", "own")
        assert world.charges_after(lambda: world.ledger.put_namespace(own.view())) == {"q": 1000}
        assert world.charges_after(lambda: world.ledger.put_queue(of("web"))) == {"home": 1000}
        assert world.charges_after(lambda: world.ledger.drop_queue("q")) == {"q": 1000}

    def test_one_that_came_with_its_node_goes_by_the_queue_that_is_named_to_it_by_now(self) -> None:
        world = World()
        world.ledger.put_queue(of("web"))
        world.ledger.put_queue(of("web", name="r"))
        world.ledger.put_group(a_group("g").in_queue("q").view())
        world.ledger.put_pod(asking("came", queue="r").in_group("g").bound_to("n").view())
        assert world.charges_after(lambda: world.ledger.put_queue(of("ml", name="r"))) == {"r": 1000}
        assert world.charges_after(lambda: world.ledger.put_queue(of("ml"))) == {"q": 1000}
        group = a_group("g").in_queue("s").view()
        assert world.charges_after(lambda: world.ledger.put_group(group)) == {"s": 1000}
        world.booked_anew()
        world.ledger.put_queue(of("web"))
        assert world.booked_anew() == 1, "the queue itself; nobody names it any more"

    def test_who_may_use_its_queue_moves_nobody_whose_queue_is_on_record_or_fixed(self) -> None:
        world = World()
        came = asking("came").bound_to("n")
        world.ledger.put_pod(came.view())
        world.ledger.put_pod(asking("let-in").charged("q").bound_to("n").view())
        world.ledger.fix_queue(came.view())
        assert world.charges_after(lambda: world.ledger.put_queue(of("web"))) == {"q": 2000}
        assert world.charges_after(world.ledger.release_queues) == {"q": 1000, "default": 1000}
        assert world.charges_after(lambda: world.ledger.put_queue(of("ml"))) == {"q": 2000}

    def test_a_pod_at_no_gate_holds_nothing_of_a_queue_that_is_closed_to_it(self) -> None:
        """Another scheduler's, or one whose gate was forced off: nobody let it in."""
        world = World()
        world.ledger.put_queue(of("web"))
        world.ledger.put_pod(asking("a").view())
        account = world.ledger.accounts["q"]
        assert (account.reserved, account.waiting) == ({}, {"A": 1000})
        world.ledger.put_queue(of("ml"))
        assert (account.reserved, account.waiting) == ({"A": 1000}, {})

    def test_the_setting_closes_queues_that_say_nothing_and_the_default_one(self) -> None:
        world = World(access="listed")
        world.ledger.put_queue(of())
        world.ledger.put_queue(of(name="default"))
        world.wait(asking("a"), asking("b", queue=""))
        assert world.allowed() == {"ml/a": False, "ml/b": False}
        world.ledger.put_queue(of("*", name="default"))
        assert world.allowed() == {"ml/a": False, "ml/b": True}

    def test_nothing_is_kept_of_pods_that_are_gone(self) -> None:
        world = World()
        world.ledger.put_queue(of("web"))
        world.wait(asking("a"), asking("a", "web"))
        world.ledger.put_pod(asking("came").bound_to("n").view())
        world.ledger.put_pod(asking("recorded").bound_to("n").view())
        world.ledger.put_pod(asking("recorded").charged("q").bound_to("n").view())
        for uid in ("uid-ml-a", "uid-web-a", "uid-ml-came"):
            world.ledger.drop_pod(uid)
        assert world.ledger.access._past._members == {}
        assert (world.ledger.access._by_queue, world.ledger.access._by_namespace) == ({}, {})
