"""`multiCardJob: uniform`: all pods of a gang or of a Volcano Job are served by one card."""

import pytest

from core import reasons
from core.plan.decision import Decision, Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, PodBuilder, QueueBuilder

UNIFORM = Settings.model_validate({"cards": {"multiCardJob": "uniform"}})


def books(
    group: GroupBuilder,
    quota: dict[str, int],
    settings: Settings = UNIFORM,
    queue: QueueBuilder | None = None,
) -> Ledger:
    ledger = Ledger(settings)
    ledger.put_node(a_node("a").card("A", 8).view())
    ledger.put_node(a_node("b").card("B", 8).view())
    ledger.put_queue((queue or a_queue("q")).cards(quota).view())
    ledger.put_group(group.view())
    return ledger


def gang(minimum: int) -> GroupBuilder:
    return a_group("g").in_queue("q").min_member(minimum)


def member(name: str, card: str = "A|B") -> PodBuilder:
    return a_pod(name).gpu(1).card(card).in_group("g").gated()


def decide(ledger: Ledger, *pods: PodBuilder) -> dict[str, Decision]:
    for pod in pods:
        ledger.put_pod(pod.view())
    return {decision.pod.name: decision for decision in Planner(ledger).decide("q")}


def cards(decisions: dict[str, Decision]) -> dict[str, str]:
    return {name: "+".join(each.assigned) for name, each in decisions.items() if isinstance(each, Lift)}


THREE = [member(f"m{i}") for i in range(3)]


def test_a_gang_gets_the_leftmost_card_that_serves_all_of_it() -> None:
    assert cards(decide(books(gang(3), {"A": 2, "B": 3}), *THREE)) == dict.fromkeys(("m0", "m1", "m2"), "B")
    assert cards(decide(books(gang(3), {"A": 3, "B": 3}), *THREE)) == dict.fromkeys(("m0", "m1", "m2"), "A")


def test_a_gang_that_only_fits_across_cards_waits_but_is_spread_by_default() -> None:
    quota = {"A": 2, "B": 2}
    decisions = decide(books(gang(3), quota), *THREE)
    assert cards(decisions) == {}
    assert isinstance(decisions["m0"], Hold)
    assert decisions["m0"].why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert len(cards(decide(books(gang(3), quota, Settings()), *THREE))) == 3


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ({"A": 3, "B": 3}, "AAA"),
        # One card could serve all: with the left one alone for two of them the third would go to the other.
        ({"A": 2, "B": 3}, "BBB"),
        ({"A": 2, "B": 1}, "AAB"),
        ({"A": 1, "B": 1}, ""),
    ],
)
def test_members_that_ask_for_the_same_get_one_card_where_one_serves_them(
    quota: dict[str, int], expected: str
) -> None:
    decisions = cards(decide(books(gang(3), quota, Settings()), *THREE))
    assert "".join(decisions[name] for name in sorted(decisions)) == expected


def test_each_task_gets_a_card_of_its_own() -> None:
    group = gang(4).min_task("ps", 2).min_task("w", 2)
    members = [member(f"{task}{number}").task(task) for task in ("ps", "w") for number in range(2)]
    decisions = cards(decide(books(group, {"A": 3, "B": 3}, Settings()), *members))
    assert decisions == {"ps0": "A", "ps1": "A", "w0": "B", "w1": "B"}


def test_of_an_elastic_gang_so_many_get_one_card_as_have_to_start_together() -> None:
    five = [member(f"m{number}") for number in range(5)]
    decisions = cards(decide(books(gang(3), {"A": 2, "B": 3}, Settings()), *five))
    assert [decisions[f"m{number}"] for number in range(3)] == ["B", "B", "B"]
    assert len(decisions) == 5


def test_a_gang_of_very_many_tasks_with_choices_is_decided_on_in_few_ways() -> None:
    tasks = [f"t{number}" for number in range(40)]
    pods = [member(f"{task}-{number}", "A|B").task(task) for task in tasks for number in range(2)]
    ledger = books(gang(80), {"A": 41, "B": 39}, Settings())
    ledger.put_node(a_node("a").card("A", 100).view())
    ledger.put_node(a_node("b").card("B", 100).view())
    assert len(cards(decide(ledger, *pods))) == 80


def test_a_member_without_a_choice_decides_for_all() -> None:
    ledger = books(gang(3), {"A": 3, "B": 3})
    assert cards(decide(ledger, *THREE[:2], member("m2", "B"))) == dict.fromkeys(("m0", "m1", "m2"), "B")


def test_members_that_no_card_serves_together_wait_with_a_reason_of_their_own() -> None:
    decisions = decide(books(gang(2), {"A": 3, "B": 3}), member("m0", "A"), member("m1", "B"))
    assert {each.why.code for each in decisions.values() if isinstance(each, Hold)} == {reasons.MIXED_CARDS}
    assert len(decisions) == 2


def test_later_members_get_the_card_of_the_first_or_wait() -> None:
    first = a_pod("first").gpu(1).card("A|B").in_group("g").assigned({"B": 1}).bound_to("b")
    ledger = books(gang(1).owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1"), {"A": 3, "B": 2})
    decisions = decide(ledger, first, *THREE, member("m3", "A"))
    assert cards(decisions) == {"m0": "B"}
    assert isinstance(decisions["m1"], Hold)
    assert decisions["m1"].why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
    assert isinstance(decisions["m3"], Hold)
    assert decisions["m3"].why.code == reasons.MIXED_CARDS
    assert "<B>" in decisions["m3"].why.message


def test_of_an_elastic_job_the_part_that_one_card_serves_runs_and_the_rest_is_told_why() -> None:
    """Two of four, with two A and two B: B is free and accepted, and the setting leaves the job nothing but A."""
    four = [*THREE, member("m3")]
    group = gang(2).owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
    decisions = decide(books(group, {"A": 2, "B": 2}), *four)
    assert cards(decisions) == {"m0": "A", "m1": "A"}
    for name in ("m2", "m3"):
        hold = decisions[name]
        assert isinstance(hold, Hold)
        assert hold.why.code == reasons.INSUFFICIENT_SCALAR_QUOTA
        assert hold.why.message.startswith("Queue <q> has insufficient <A|B> quota: requested <1000>")
        assert hold.why.message.endswith(
            "; other cards do not count, as the pods of this group have <A> and with cards.multiCardJob: uniform all get one card"
        )


def test_an_unfinished_gang_is_finished_with_the_card_that_it_began_with() -> None:
    lifted = a_pod("first").gpu(1).card("A|B").in_group("g").assigned({"B": 1})
    ledger = books(gang(3), {"A": 3, "B": 3})
    assert cards(decide(ledger, lifted, *THREE[:2])) == {"m0": "B", "m1": "B"}


def test_the_pods_of_a_deployment_are_not_bound_together() -> None:
    ledger = books(gang(1).owned_by("ReplicaSet", "web"), {"A": 2, "B": 2})
    assert cards(decide(ledger, *THREE)) == {"m0": "A", "m1": "A", "m2": "B"}


@pytest.mark.parametrize(("asked", "admitted"), [(3, True), (4, False)])
def test_what_a_job_declares_has_to_fit_one_card(asked: int, admitted: bool) -> None:
    job = gang(1).cards({"A|B": asked}).owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
    assert bool(cards(decide(books(job, {"A": 2, "B": 3}), member("m0")))) is admitted
