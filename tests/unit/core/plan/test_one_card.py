"""Members of a gang that ask for the same get one card; those who come later get the card of those before them.

With `multiCardTask: single` they wait for it, by default they are spread where no card serves them all.
"""

import pytest

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.plan.offline import plan
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, PodBuilder

SPREAD = Settings()
SINGLE = Settings.model_validate({"cards": {"multiCardTask": "single"}})
BOTH = pytest.mark.parametrize("settings", [SPREAD, SINGLE], ids=["spread", "single"])
VOLCANO_JOB = {"kind": "Job", "name": "j", "api_version": "batch.volcano.sh/v1alpha1"}


def gang(minimum: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(minimum)


def member(name: str, card: str = "A|B", task: str = "w") -> PodBuilder:
    return a_pod(name).gpu(1).card(card).in_group("g").task(task).scheduler("volcano").gated()


def running(name: str, card: str, task: str = "w") -> PodBuilder:
    return member(name, task=task).assigned({card: 1}).charged("q").bound_to(card.lower())


def lifted(name: str, card: str, together: int) -> PodBuilder:
    pod = member(name).assigned({card: 1}).charged("q").together(together)
    return pod.put("spec", "schedulingGates", value=[])


def books(
    group: GroupBuilder, quota: dict[str, int], settings: Settings, stock: dict[str, int] | None = None
) -> Ledger:
    ledger = Ledger(settings)
    for card, count in ({"A": 8, "B": 8} | (stock or {})).items():
        ledger.put_node(a_node(card.lower()).card(card, count).view())
    ledger.put_queue(a_queue("q").cards(quota).view())
    ledger.put_group(group.view())
    return ledger


def decide(ledger: Ledger, *pods: PodBuilder) -> dict[str, Decision]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def cards(decisions: dict[str, Decision]) -> dict[str, str]:
    return {name: "+".join(each.assigned) for name, each in decisions.items() if isinstance(each, Lift)}


def held(decisions: dict[str, Decision]) -> dict[str, str]:
    return {name: each.why.code for name, each in decisions.items() if isinstance(each, Hold)}


class TestThoseWhoComeLater:
    """What members get that are let in after others of their task."""

    @BOTH
    def test_members_above_the_minimum_follow_those_that_were_lifted_with_it(
        self, settings: Settings
    ) -> None:
        """Three have to start together, and B alone serves them; A, on the left, is free for one more."""
        five = [member(f"m{number}") for number in range(5)]
        found = cards(decide(books(gang(3), {"A": 2, "B": 5}, settings), *five))
        assert found == dict.fromkeys((f"m{number}" for number in range(5)), "B")

    @BOTH
    def test_a_member_above_the_minimum_follows_those_that_run(self, settings: Settings) -> None:
        ledger = books(gang(2), {"A": 8, "B": 8}, settings)
        assert cards(decide(ledger, running("x", "B"), running("y", "B"), member("m"))) == {"m": "B"}

    @BOTH
    def test_a_member_that_comes_back_follows_those_that_stayed(self, settings: Settings) -> None:
        """One of three was deleted; the gang is below its minimum until it is back."""
        ledger = books(gang(3), {"A": 8, "B": 8}, settings)
        assert cards(decide(ledger, running("x", "B"), running("y", "B"), member("m"))) == {"m": "B"}

    @BOTH
    def test_a_gang_that_was_cut_short_goes_on_with_its_card(self, settings: Settings) -> None:
        ledger = books(gang(3), {"A": 8, "B": 8}, settings)
        assert cards(decide(ledger, lifted("x", "B", 3), member("m"), member("n"))) == {"m": "B", "n": "B"}

    @BOTH
    def test_members_of_another_task_or_another_wish_do_not_follow(self, settings: Settings) -> None:
        ledger = books(gang(1).min_member(2), {"A": 8, "B": 8}, settings)
        others = member("ps", task="ps"), member("turned", card="B|A"), member("only", card="A")
        found = cards(decide(ledger, running("x", "B"), running("y", "B"), *others))
        assert found == {"ps": "A", "turned": "B", "only": "A"}

    @pytest.mark.parametrize(
        ("quota", "stock"), [({"A": 2, "B": 2}, {}), ({"A": 2, "B": 8}, {"B": 2})], ids=["quota", "nodes"]
    )
    def test_where_their_card_has_run_out_they_are_decided_on_by_themselves_or_wait_for_it(
        self, quota: dict[str, int], stock: dict[str, int]
    ) -> None:
        there = running("x", "B"), running("y", "B")
        assert cards(decide(books(gang(2), quota, SPREAD, stock), *there, member("m"))) == {"m": "A"}
        waiting = decide(books(gang(2), quota, SINGLE, stock), *there, member("m"))
        assert held(waiting) == {"m": reasons.MIXED_CARDS}
        assert isinstance(waiting["m"], Hold)
        assert waiting["m"].why.message.startswith(
            "Queue <q>: the pods of task <w> have <B>, and with cards.multiCardTask: single this one waits"
        )

    def test_who_waits_for_the_card_of_his_task_is_told_plainly_where_no_other_would_serve_him(self) -> None:
        there = running("x", "B"), running("y", "B")
        waiting = decide(books(gang(2), {"B": 2}, SINGLE), *there, member("m"))
        assert held(waiting) == {"m": reasons.INSUFFICIENT_SCALAR_QUOTA}

    def test_who_waits_for_the_card_of_his_task_goes_when_a_node_has_it(self) -> None:
        ledger = books(gang(2), {"A": 8, "B": 8}, SINGLE, {"B": 2})
        planner = Planner(ledger)
        for pod in (running("x", "B"), running("y", "B"), member("m")):
            ledger.put_pod(pod.view())
        assert [type(each) for each in planner.run(["q"]) if each is not None] == [Hold]
        ledger.wakeups.take_queues()
        ledger.put_node(a_node("b2").card("B", 1).view())
        assert "q" in ledger.wakeups.pending
        assert [type(each) for each in planner.run(["q"]) if each is not None] == [Lift]

    @BOTH
    def test_the_replicas_of_a_deployment_take_the_left_card_when_it_is_free(
        self, settings: Settings
    ) -> None:
        ledger = books(gang(1).owned_by("ReplicaSet", "web"), {"A": 8, "B": 8}, settings)
        assert cards(decide(ledger, running("x", "B"), member("m"))) == {"m": "A"}

    @BOTH
    def test_the_pods_of_a_volcano_job_follow_even_where_each_starts_alone(self, settings: Settings) -> None:
        ledger = books(gang(1).owned_by(**VOLCANO_JOB), {"A": 8, "B": 8}, settings)
        assert cards(decide(ledger, running("x", "B"), member("m"))) == {"m": "B"}

    def test_what_one_gang_was_told_is_not_told_to_one_that_holds_another_card(self) -> None:
        """Both lack one member of the same wish; the first one's card has run out, the other one's has not."""
        ledger = books(gang(2), {"A": 1, "B": 2}, SINGLE)
        ledger.put_group(a_group("h").in_queue("q").min_member(2).view())
        other = running("y", "B").in_group("h"), member("n").in_group("h")
        found = decide(ledger, running("x", "A"), member("m"), *other)
        assert held(found) == {"m": reasons.MIXED_CARDS}
        assert cards(found) == {"n": "B"}


class TestSingle:
    """`multiCardTask: single`."""

    THREE = tuple(member(f"m{number}") for number in range(3))

    @pytest.mark.parametrize(
        ("quota", "expected"),
        [
            ({"A": 3, "B": 3}, "AAA"),
            ({"A": 2, "B": 3}, "BBB"),
            ({"A": 2, "B": 1}, ""),
            ({"A": 2, "B": 2}, ""),
        ],
        ids=str,
    )
    def test_a_task_gets_one_card_or_waits(self, quota: dict[str, int], expected: str) -> None:
        decisions = decide(books(gang(3), quota, SINGLE), *self.THREE)
        assert "".join(cards(decisions).values()) == expected
        if not expected:
            assert set(held(decisions).values()) == {reasons.MIXED_CARDS}

    def test_it_says_what_would_have_to_come_free(self) -> None:
        hold = decide(books(gang(3), {"A": 2, "B": 1}, SINGLE), *self.THREE)["m0"]
        assert isinstance(hold, Hold)
        assert hold.why.message == (
            "Queue <q>: with cards.multiCardTask: single the pods of a task get one card, and none has enough left in the "
            "queue's quota and on nodes: task <w> needs 3 of <A> (2 left) or 3 of <B> (1 left); "
            "PodGroup ml/g needs 3 more members at once, 2 fit"
        )
        assert hold.group is not None

    def test_nothing_of_the_trial_stays_booked(self) -> None:
        ledger = books(gang(3), {"A": 2, "B": 1}, SINGLE)
        decide(ledger, *self.THREE)
        assert (ledger.used("q", "A"), ledger.used("q", "B")) == (0, 0)

    def test_a_gang_that_no_mixture_would_serve_either_is_told_plainly(self) -> None:
        assert set(held(decide(books(gang(3), {"A": 1, "B": 1}, SINGLE), *self.THREE)).values()) == {
            reasons.INSUFFICIENT_SCALAR_QUOTA
        }

    def test_a_gang_without_nodes_for_one_card_waits_for_room(self) -> None:
        ledger = books(gang(3), {"A": 3, "B": 3}, SINGLE, {"A": 2, "B": 1})
        planner = Planner(ledger)
        for pod in self.THREE:
            ledger.put_pod(pod.view())
        assert not any(isinstance(each, Lift) for each in planner.run(["q"]))
        ledger.put_node(a_node("a2").card("A", 1).view())
        assert "q" in ledger.wakeups.pending
        assert {next(iter(each.assigned)) for each in planner.run(["q"]) if isinstance(each, Lift)} == {"A"}

    def test_each_task_may_have_a_card_of_its_own(self) -> None:
        group = gang(4).min_task("ps", 2).min_task("w", 2)
        members = [member(f"{task}{number}", task=task) for task in ("ps", "w") for number in range(2)]
        found = cards(decide(books(group, {"A": 2, "B": 2}, SINGLE), *members))
        assert found == {"ps0": "A", "ps1": "A", "w0": "B", "w1": "B"}

    @BOTH
    def test_that_tasks_fit_by_one_card_each_is_found_out_however_many_they_are(
        self, settings: Settings
    ) -> None:
        """Only with the last task on the left card, and all others on the right one, do all fit."""
        sizes = dict.fromkeys((f"t{number}" for number in range(8)), 2) | {"t8": 3}
        members = [
            member(f"{task}-{number}", task=task) for task, count in sizes.items() for number in range(count)
        ]
        found = cards(decide(books(gang(19), {"A": 3, "B": 16}, settings, {"A": 99, "B": 99}), *members))
        assert {name: card for name, card in found.items() if name.startswith("t8")} == {
            "t8-0": "A",
            "t8-1": "A",
            "t8-2": "A",
        }
        assert set(found.values()) == {"A", "B"}
        assert len(found) == 19

    def test_of_an_elastic_gang_so_many_start_as_one_card_serves(self) -> None:
        """The rest waits for that card, whatever else is free."""
        five = [member(f"m{number}") for number in range(5)]
        decisions = decide(books(gang(3), {"A": 2, "B": 3}, SINGLE), *five)
        assert cards(decisions) == dict.fromkeys(("m0", "m1", "m2"), "B")
        assert held(decisions) == dict.fromkeys(("m3", "m4"), reasons.MIXED_CARDS)

    def test_members_without_a_choice_keep_nobody_from_his_card(self) -> None:
        pods = member("only-a", card="A"), member("m0"), member("m1")
        assert cards(decide(books(gang(3), {"A": 1, "B": 2}, SINGLE), *pods)) == {
            "only-a": "A",
            "m0": "B",
            "m1": "B",
        }


class TestWhatIsSaid:
    """A task that is spread is told once, where Volcano's scheduler may not start it."""

    def spreads(self, *pods: PodBuilder, group: GroupBuilder | None = None) -> list[str]:
        ledger = books(group or gang(3), {"A": 2, "B": 8}, SPREAD, {"B": 2})
        found = decide(ledger, *pods).values()
        return [each.spread.message for each in found if isinstance(each, Lift) and each.spread is not None]

    def test_a_spread_task_is_told_on_one_of_its_lifts(self) -> None:
        (said,) = self.spreads(*(member(f"m{number}") for number in range(4)))
        assert said.startswith(
            "Queue <q>: the pods of task <w> get <A>, <B>, for none of these serves them all"
        )
        assert "predicateErrorCacheEnable" in said

    def test_a_later_member_that_spreads_it_is_told(self) -> None:
        assert len(self.spreads(running("x", "A"), running("y", "A"), running("z", "A"), member("m"))) == 1

    def test_a_plan_has_the_event(self) -> None:
        ledger = books(gang(3), {"A": 2, "B": 8}, SPREAD, {"B": 2})
        pods = [member(f"m{number}").view() for number in range(4)]
        for pod in pods:
            ledger.put_pod(pod)
        events = plan(ledger, pods).events
        assert [(event.object, event.reason) for event in events] == [("PodGroup ml/g", reasons.TASK_SPREAD)]

    def test_nothing_is_said_where_one_card_serves_or_another_scheduler_starts_them(self) -> None:
        assert self.spreads(*(member(f"m{number}") for number in range(2)), group=gang(2)) == []
        stock = [member(f"m{number}").scheduler("default-scheduler") for number in range(4)]
        assert self.spreads(*stock) == []

    def test_nothing_is_said_of_pods_that_start_one_by_one(self) -> None:
        pods = [member(f"m{number}") for number in range(4)]
        assert self.spreads(*pods, group=gang(1).owned_by(**VOLCANO_JOB)) == []
