"""Whether an unfinished gang could get there, were all others gone: no is said only where that is certain."""

from core.plan.finishable import may_finish
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue, a_scheduling_group
from tests.builders.claims import a_claim, a_template, a_way
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder


def member(number: int, queue: str = "q") -> PodBuilder:
    return a_pod(f"m{number}").gpu(1).card("A").in_queue(queue).in_scheduling_group("g").gated()


def inside(number: int) -> PodBuilder:
    pod = member(number).put("spec", "schedulingGates", value=[]).recorded_in_gang()
    return pod.charged("q").assigned({"A": 1}).together(3)


def devices(count: int) -> QueueBuilder:
    return a_queue("q").cards({"A": 8}).devices({"capability": {"gpu": {"count": count}}})


def books(*pods: PodBuilder, queue: QueueBuilder) -> Ledger:
    """A gang of three."""
    ledger = Ledger(Settings())
    ledger.put_node(a_node("n").card("A", 8).view())
    for one in (queue, a_queue("other").cards({"A": 8})):
        ledger.put_queue(one.view())
    ledger.put_group(a_scheduling_group("g").min_count(3).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def possible(ledger: Ledger) -> bool:
    (key,) = ledger.groups.unfinished
    return finish(may_finish(ledger, key))


def test_members_of_several_queues_are_not_added_up() -> None:
    queue = a_queue("q").cards({"A": 8}).capability(cpu=2)
    here, there = member(1).request("cpu", 2), member(2, "other").request("cpu", 2)
    assert possible(books(inside(0), here, there, queue=queue))
    assert not possible(books(inside(0), here, member(2).request("cpu", 2), queue=queue))


def test_those_count_that_ask_for_least() -> None:
    """It lacks two, and four wait."""
    queue = a_queue("q").cards({"A": 8}).capability(cpu=2)
    waiting = [member(number).request("cpu", cores) for number, cores in ((1, 2), (2, 1), (3, 2), (4, 1))]
    assert possible(books(inside(0), *waiting, queue=queue))
    assert not possible(books(inside(0), *waiting[:3], queue=queue))


def test_what_only_a_member_without_cards_asks_for_of_cpu_is_not_limited() -> None:
    queue = a_queue("q").cards({"A": 8}).capability(cpu=1)
    without = (
        a_pod(f"m{number}").in_queue("q").in_scheduling_group("g").gated().request("cpu", 9)
        for number in (1, 2)
    )
    assert possible(books(inside(0), *without, queue=queue))


def test_a_claim_that_several_members_share_costs_once() -> None:
    sharing = (member(number).claim("dev", name="shared") for number in (1, 2))
    ledger = books(inside(0), *sharing, queue=devices(2))
    ledger.devices.put_claim(a_claim("shared").exactly("r", "gpu", count=2).view())
    assert possible(ledger)
    ledger.put_queue(devices(1).view())
    assert not possible(ledger)


def test_a_claim_that_somebody_else_holds_costs_nothing() -> None:
    """It is larger than the quota is now, and may be joined all the same."""
    holder = a_pod("holder").in_queue("q").claim("dev", name="shared").bound_to("n").charged("q")
    ledger = books(
        inside(0), *(member(n).claim("dev", name="shared") for n in (1, 2)), holder, queue=devices(1)
    )
    ledger.devices.put_claim(a_claim("shared").exactly("r", "gpu", count=2).view())
    assert possible(ledger)
    ledger.drop_pod(holder.view().uid)
    assert not possible(ledger)


def test_what_is_held_by_the_worst_that_may_come_of_it_may_yet_turn_out_to_be_less() -> None:
    """A claim that leaves the class open is charged with both until it has its device."""
    one = a_template("one").exactly("r", "gpu", count=1)
    ledger = books(
        inside(0).claim("dev", template="open"),
        *(member(n).claim("dev", template="one") for n in (1, 2)),
        queue=devices(2),
    )
    ledger.devices.put_template(one.view())
    either = a_template("open").first_available("r", a_way("gpu", name="a"), a_way("small", name="b"))
    ledger.devices.put_template(either.view())
    assert possible(ledger)
    ledger.devices.put_template(a_template("open").exactly("r", "gpu", count=1).view())
    assert not possible(ledger)


def test_all_there_are_of_a_class_is_such_a_claim() -> None:
    ledger = books(
        inside(0).claim("dev", template="all"),
        *(member(n).claim("dev", template="one") for n in (1, 2)),
        queue=devices(3),
    )
    ledger.devices.put_template(a_template("one").exactly("r", "gpu", count=1).view())
    ledger.devices.put_template(a_template("all").exactly("r", "gpu", mode="All").view())
    assert possible(ledger)


def test_where_no_claims_are_served_nobody_waits_for_any() -> None:
    ledger = books(inside(0), *(member(n).claim("dev", template="one") for n in (1, 2)), queue=devices(1))
    ledger.devices.put_template(a_template("one").exactly("r", "gpu", count=1).view())
    assert not possible(ledger)
    ledger.devices.serve(False)
    assert possible(ledger)
