"""Which gangs come before all others: those that were cut short, by what is on record; none that another gate holds."""

from core import names, reasons
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder
from tests.unit.core.plan.gangs import FOUR, books, group, lifted, member

THREE_OF_FOUR = [
    pod.charged("q").put("spec", "schedulingGates", value=[]).assigned({"A": 1}).together(4)
    for pod in FOUR[:3]
]
"""What is left of a gang of four that was let in whole."""


def test_a_gang_that_was_cut_short_comes_before_everything_else() -> None:
    ledger = books(a_queue("q").cards({"A": 4}), groups=(group(),))
    urgent = a_pod("urgent").gpu(1).card("A").in_queue("q").gated().priority(100)
    half = [pod.put("spec", "schedulingGates", value=[]).together(4) for pod in FOUR[:2]]
    assert lifted(ledger, Planner(ledger), *half, *FOUR[2:], urgent) == ["m2", "m3"]


def test_a_gang_is_lifted_with_the_number_that_is_in_together() -> None:
    """Those that were in before are among them: the last of a gang that was cut short says as much as the first."""
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(),))
    half = [pod.put("spec", "schedulingGates", value=[]).together(4) for pod in FOUR[:2]]
    for pod in (*half, *FOUR[2:]):
        ledger.put_pod(pod.view())
    lifts = [decision for decision in Planner(ledger).decide("q") if isinstance(decision, Lift)]
    assert [lift.records[names.GANG_ANNOTATION] for lift in lifts] == ["4", "4"]


def test_a_member_that_comes_to_a_whole_gang_is_of_no_use_without_the_others_either() -> None:
    """Else the gang would hold quota for it for good when all others are lost before it has a node, and not come first."""
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(),))
    planner = Planner(ledger)
    for pod in (*FOUR, member("m4", second=9)):
        ledger.put_pod(pod.view())
    lifts = [decision for decision in planner.decide("q") if isinstance(decision, Lift)]
    assert [(lift.pod.name, lift.records[names.GANG_ANNOTATION]) for lift in lifts][-1] == ("m4", "4")
    for pod in FOUR:
        ledger.drop_pod(pod.view().uid)
    assert list(ledger.groups.short) == ["ml/g"]


def test_pods_that_start_alone_have_no_such_record() -> None:
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group("g", 1),))
    ledger.put_pod(FOUR[0].view())
    (alone,) = Planner(ledger).decide("q")
    assert isinstance(alone, Lift)
    assert names.GANG_ANNOTATION not in alone.records


def test_a_minimum_that_is_raised_gives_no_precedence() -> None:
    """Anybody may raise it: the group would come before older and higher ones, and its queue before all others."""
    ledger = books(a_queue("q").cards({"A": 5}), groups=(group(minimum=5),))
    urgent = a_pod("urgent").gpu(1).card("A").in_queue("q").gated().priority(100)
    whole = [pod.put("spec", "schedulingGates", value=[]).together(4) for pod in FOUR]
    planner = Planner(ledger)
    assert lifted(ledger, planner, *whole, member("m4", second=9), urgent) == ["urgent"]
    assert planner.order(["a", "q"]) == ["a", "q"]


def test_of_a_gang_that_was_cut_short_and_whose_minimum_is_raised_only_what_was_promised_comes_first() -> (
    None
):
    ledger = books(a_queue("q").cards({"A": 4}), groups=(group(minimum=8),))
    urgent = a_pod("urgent").gpu(1).card("A").in_queue("q").gated().priority(100)
    some = [pod.put("spec", "schedulingGates", value=[]).together(4) for pod in FOUR[:3]]
    more = [member(f"x{number}", second=20 + number) for number in range(5)]
    assert lifted(ledger, Planner(ledger), *some, FOUR[3], *more, urgent) == ["m3"]


def test_a_gang_that_was_cut_short_comes_before_queues_of_a_higher_priority() -> None:
    """They compete for the nodes: of two cards one runs the first member, and a pod elsewhere wants the other."""
    ledger = books(a_queue("q").cards({"A": 8}), groups=(group(minimum=2),))
    ledger.put_node(a_node("a").card("A", 2).view())
    ledger.put_node(a_node("b").card("B", 8).cordoned().view())
    ledger.put_queue(a_queue("first").cards({"A": 8}).priority(9).view())
    for pod in (
        member("m0", card="A|B").assigned({"A": 1}).together(2).bound_to("a"),
        member("m1", card="A|B"),
        a_pod("p").gpu(1).card("A|B").in_queue("first").gated(),
    ):
        ledger.put_pod(pod.view())
    planner = Planner(ledger)
    order = planner.order(["first", "q"])
    assert [name for queue in order for name in lifted(ledger, planner, queue=queue)] == ["m1"]
    assert planner.order(["first", "q"]) == ["first", "q"]


def test_a_gang_at_its_minimum_has_no_precedence_any_more() -> None:
    """It has as long as one is lacking; either way a single card is left."""
    urgent = a_pod("urgent").gpu(1).card("A").in_queue("q").gated().priority(100)
    whole = [pod.put("spec", "schedulingGates", value=[]).together(4) for pod in FOUR]
    for inside, queues, first in ((whole, ["a", "q"], "urgent"), (whole[:3], ["q", "a"], "m4")):
        ledger = books(a_queue("q").cards({"A": len(inside) + 1}), groups=(group(),))
        for pod in (*inside, member("m4", second=9), urgent):
            ledger.put_pod(pod.view())
        planner = Planner(ledger)
        assert planner.order(["a", "q"]) == queues
        assert lifted(ledger, planner) == [first]


def served_beside_it(*waiting: PodBuilder) -> tuple[list[str], list[str]]:
    """The order of the queues `a` and `q`, and that of the pods of `q`, where three of four are in and these wait.

    It is first in, first out, and has two cards left. One waits that comes before the members by its priority, and one that
    comes after them; a `+` is before those who are lifted.
    """
    ledger = books(a_queue("q").cards({"A": 5}).fifo(), groups=(group(),))
    urgent, single = (a_pod(name).gpu(1).card("A").in_queue("q").gated() for name in ("urgent", "single"))
    others = (urgent.priority(100), single.created("2024-01-01T00:00:59Z"))
    for pod in (*THREE_OF_FOUR, *waiting, *others):
        ledger.put_pod(pod.view())
    planner = Planner(ledger)
    queues = planner.order(["a", "q"])
    decisions = planner.decide("q")
    return queues, ["+" * isinstance(each, Lift) + each.pod.name for each in decisions]


class TestGatesOfOthers:
    """A member that another gate holds back as well cannot start with the others."""

    def test_a_gang_that_needs_it_waits_and_holds_nothing(self) -> None:
        ledger = books(a_queue("q").cards({"A": 4}), groups=(group(),))
        held_back = member("m3", second=3).gated("example.com/licence")
        views = [pod.view() for pod in (*FOUR[:3], held_back)]
        for view in views:
            ledger.put_pod(view)
        told = {key: pod.why.code if pod.why else "" for key, pod in plan(ledger, views).pods.items()}
        assert told == {f"ml/m{i}": reasons.GANG_INCOMPLETE for i in range(3)} | {
            "ml/m3": reasons.OTHER_GATES
        }
        assert ledger.used("q", "A") == 0
        assert lifted(ledger, Planner(ledger), FOUR[3]) == ["m0", "m1", "m2", "m3"]

    def test_a_gang_that_does_not_need_it_starts_without(self) -> None:
        ledger = books(a_queue("q").cards({"A": 5}), groups=(group(),))
        held_back = member("m4", second=4).gated("example.com/licence")
        assert lifted(ledger, Planner(ledger), *FOUR, held_back) == ["m0", "m1", "m2", "m3"]

    def test_a_gang_that_can_only_be_finished_with_it_has_no_precedence(self) -> None:
        """Else whoever puts a gate on the last member would keep everybody else waiting for ever."""
        held_back = member("m3", second=3).gated("example.com/licence")
        assert served_beside_it(held_back) == (["a", "q"], ["+urgent", "m3", "+single"])
        assert served_beside_it(FOUR[3]) == (["q", "a"], ["+m3", "+urgent", "single"])

    def test_nor_has_one_whose_other_members_could_never_finish_it(self) -> None:
        """The one that fits is held back, the one that is not never fits."""
        held_back = member("m3", second=3).gated("example.com/licence")
        never, fits = (member("m4", second=4, count=count) for count in (99, 1))
        assert served_beside_it(held_back, never) == (["a", "q"], ["+urgent", "m3", "m4", "+single"])
        assert served_beside_it(held_back, fits) == (["q", "a"], ["m3", "+m4", "+urgent", "single"])
