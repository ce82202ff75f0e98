"""Which single pods hold up a fifo queue: those that wait for what others wait for too, not those that wait for something of their own."""

from core import reasons
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.ledger import Ledger
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_template
from tests.builders.objects import PodBuilder
from tests.unit.core.plan.lifting import books, one

LATER = one("later", second=2)


def decided(ledger: Ledger, *pods: PodBuilder, refused: tuple[str, ...] = ()) -> dict[str, str]:
    """What becomes of each pod: nothing is said of one that is let in, else why it waits."""
    for pod in pods:
        ledger.put_pod(pod.view())
    planner = Planner(ledger)
    for name in refused:
        planner.refuse(f"uid-ml-{name}", "webhook x denied the request")
    decisions = planner.decide("q")
    assert all(isinstance(each, Lift | Hold) for each in decisions)
    return {each.pod.name: each.why.code if isinstance(each, Hold) else "" for each in decisions}


def test_one_whose_lift_is_refused_holds_up_nobody() -> None:
    """Somebody's webhook would keep the queue of all its tenants closed for minutes, again and again."""
    ledger = books(a_queue("q").cards({"H200": 8}).fifo())
    told = decided(ledger, one("bad", second=1), LATER, refused=("bad",))
    assert told == {"bad": reasons.LIFT_REFUSED, "later": ""}


def test_nor_do_as_many_as_there_are_that_ask_for_the_same() -> None:
    ledger = books(a_queue("q").cards({"H200": 1}).fifo())
    bad = {f"bad{number}" for number in range(5)}
    told = decided(ledger, *(one(name, second=1) for name in sorted(bad)), LATER, refused=tuple(bad))
    assert told == dict.fromkeys(bad, reasons.LIFT_REFUSED) | {"later": ""}


def test_nor_does_one_whose_claim_does_not_exist() -> None:
    ledger = books(a_queue("q").cards({"H200": 8}).fifo())
    waiting = a_pod("bad").claim("dev", template="missing").in_queue("q").gated()
    told = decided(ledger, waiting.created("2024-01-01T00:00:01Z"), LATER)
    assert told == {"bad": reasons.CLAIM_NOT_FOUND, "later": ""}


def test_it_stands_in_its_place_again_once_it_waits_for_what_others_wait_for() -> None:
    queue = a_queue("q").cards({"H200": 1}).devices({"capability": {"gpu": {"count": 0}}})
    ledger = books(queue.fifo())
    ledger.devices.put_template(a_template("of-1").exactly("r", "gpu", count=1).view())
    waiting = a_pod("first").claim("dev", template="of-1").in_queue("q").gated()
    told = decided(ledger, waiting.created("2024-01-01T00:00:01Z"), LATER)
    assert told == {"first": reasons.INSUFFICIENT_DEVICE_QUOTA, "later": told["later"]}
    assert told["later"], "it waits behind the first"
