"""Which gangs hold up a fifo queue: those that wait for what others wait for too, not those that wait for something of their own."""

import pytest

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder

MINIMUM = 4


def member(number: int, *, count: int = 1, let_in: bool = False) -> PodBuilder:
    pod = a_pod(f"m{number}").gpu(count).card("A").in_group("g").created(f"2024-01-01T00:00:{number:02}Z")
    return pod.charged("q").assigned({"A": count}).together(MINIMUM) if let_in else pod.gated()


def single() -> PodBuilder:
    """Younger than every member of the gang."""
    return a_pod("single").gpu(1).card("A").in_queue("q").gated().created("2024-01-01T00:00:59Z")


def books(quota: int, *pods: PodBuilder, minimum: int = MINIMUM, above: QueueBuilder | None = None) -> Ledger:
    """Queue `q` has eight cores and four devices besides its cards, and what the queue `above` it leaves of these."""
    hierarchy = above is not None
    settings = {"cards": {"hierarchy": hierarchy}, "dra": {"hierarchy": hierarchy}}
    ledger = Ledger(Settings.model_validate(settings))
    ledger.put_node(a_node("a").card("A", 8).view())
    queue = a_queue("q").cards({"A": quota}).capability(cpu=8).devices({"capability": {"gpu": {"count": 4}}})
    ledger.put_queue((queue.child_of("above") if above is not None else queue).fifo().view())
    if above is not None:
        ledger.put_queue(above.view())
    ledger.put_group(a_group("g").in_queue("q").min_member(minimum).view())
    for pod in (*pods, single()):
        ledger.put_pod(pod.view())
    return ledger


def decided(ledger: Ledger) -> tuple[list[str], dict[str, str]]:
    """Who is lifted, and why the others are held."""
    decisions = Planner(ledger).decide("q")
    lifted = sorted(each.pod.name for each in decisions if isinstance(each, Lift))
    return lifted, {each.pod.name: each.why.code for each in decisions if isinstance(each, Hold)}


@pytest.mark.parametrize("let_in", [0, 2], ids=["none is in", "some are in"])
def test_a_gang_whose_members_are_not_all_there_holds_up_nobody(let_in: int) -> None:
    there = [member(number, let_in=number < let_in) for number in range(MINIMUM - 1)]
    lifted, held = decided(books(8, *there))
    assert lifted == ["single"]
    assert set(held.values()) == {reasons.GANG_INCOMPLETE}


@pytest.mark.parametrize("asked", [7, 99])
def test_nor_does_one_that_was_let_in_and_cannot_be_finished_by_its_queues_quota(asked: int) -> None:
    """Two of four are in and hold two of eight cards: there is none for the other two, whoever goes."""
    there = [member(0, let_in=True), member(1, let_in=True), member(2, count=asked), member(3, count=asked)]
    lifted, held = decided(books(8, *there))
    assert lifted == ["single"]
    assert held.keys() == {"m2", "m3"}


HALF = member(0, let_in=True).request("cpu", 1), member(1, let_in=True).request("cpu", 1)
"""Two of four are in, with a core each."""


@pytest.mark.parametrize("cores", [9, 7, 4])
def test_nor_by_its_queues_cpu(cores: int) -> None:
    lifted, held = decided(books(8, *HALF, *(member(number).request("cpu", cores) for number in (2, 3))))
    assert lifted == ["single"]
    assert held.keys() == {"m2", "m3"}


def test_nor_by_the_cpu_of_a_queue_above() -> None:
    above = a_queue("above").capability(cpu=5)
    others = (member(number).request("cpu", 2) for number in (2, 3))
    assert decided(books(8, *HALF, *others, above=above))[0] == ["single"]


def with_devices(*pods: PodBuilder, above: QueueBuilder | None = None) -> Ledger:
    ledger = books(8, *pods, above=above)
    for count in (1, 2, 3, 9):
        template = a_template(f"of-{count}").exactly("r", "gpu", count=count)
        ledger.devices.put_template(template.view())
    return ledger


@pytest.mark.parametrize("asked", [9, 3])
def test_nor_by_its_queues_devices(asked: int) -> None:
    """Of four devices the members that are in hold none: one claim is larger than that, or two claims are together."""
    others = (member(number).claim("dev", template=f"of-{asked}") for number in (2, 3))
    lifted, held = decided(with_devices(*HALF, *others))
    assert lifted == ["single"]
    assert held.keys() == {"m2", "m3"}


def test_nor_by_the_devices_of_a_queue_above() -> None:
    above = a_queue("above").devices({"capability": {"gpu": {"count": 3}}})
    others = (member(number).claim("dev", template="of-2") for number in (2, 3))
    assert decided(with_devices(*HALF, *others, above=above))[0] == ["single"]


def test_what_it_holds_itself_of_devices_is_not_there_for_those_that_it_lacks() -> None:
    inside = (pod.claim("dev", template="of-1") for pod in HALF)
    others = (member(number).claim("dev", template="of-2") for number in (2, 3))
    assert decided(with_devices(*inside, *others))[0] == ["single"]


def test_one_that_lacks_cpu_and_devices_that_others_have_holds_up_all() -> None:
    other = a_pod("other").gpu(1).card("A").request("cpu", 4).claim("dev", template="of-1")
    other = other.in_queue("q").charged("q").assigned({"A": 1})
    others = (member(number).request("cpu", 3).claim("dev", template="of-2") for number in (2, 3))
    lifted, held = decided(with_devices(*HALF, *others, other))
    assert lifted == []
    assert held.keys() == {"m2", "m3", "single"}


def test_one_that_can_be_finished_as_soon_as_others_go_holds_up_all() -> None:
    other = a_pod("other").gpu(5).card("A").in_queue("q").charged("q").assigned({"A": 5})
    there = [member(0, let_in=True), member(1, let_in=True), member(2, count=3), member(3, count=3)]
    lifted, held = decided(books(8, *there, other))
    assert lifted == []
    assert held.keys() == {"m2", "m3", "single"}


def test_a_gang_that_was_never_let_in_holds_up_all_by_asking_for_more_than_the_queue_has() -> None:
    """As a pod does that asks for as much: that is what fifo means."""
    lifted, held = decided(books(8, *(member(number, count=3) for number in range(MINIMUM))))
    assert lifted == []
    assert held.keys() == {"m0", "m1", "m2", "m3", "single"}
