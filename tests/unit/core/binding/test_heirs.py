"""What a former leader may have let a pod be bound with is held for the pod, and given to nobody by a lift."""

import pytest

from core import names
from core.plan.decision import Lift
from core.plan.lift import Planner
from core.queues.amounts import CPU
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.builders.objects import PodBuilder
from tests.unit.core.binding.deciding import asking, binder, books

ONE_OF_EACH = a_queue("q").cards({"A": 1, "B": 1})
FOREIGN = asking("heir", "A").scheduler("another")


def lifted(ledger: Ledger) -> list[str]:
    return [each.pod.name for each in Planner(ledger).decide("q") if isinstance(each, Lift)]


def sums(ledger: Ledger) -> tuple[object, ...]:
    own = ledger.sums("q")
    held = dict(own.reserved), dict(ledger.devices.reserved("q")), ledger.cpu_memory.used("q", CPU)
    return (*held, len(ledger.reserved_shares), len(list(ledger.entries())))


@pytest.mark.parametrize(
    "heir",
    [asking("heir", "A|B"), FOREIGN, asking("heir", "A|B").scheduler("another")],
    ids=["with the choice", "of a scheduler that is not ours", "both"],
)
def test_an_heir_that_nobody_lifted_holds_the_card_that_it_may_have_got(heir: PodBuilder) -> None:
    """The former leader granted it A, and the bind hangs; the next leader must not lift another one for the only A."""
    waiting = asking("w", "A").gated()
    found = binder(books(heir, waiting, queue=ONE_OF_EACH)).decide(heir.view(), "a")
    assert not isinstance(found, Refusal)
    ledger = books(heir, waiting, queue=ONE_OF_EACH)
    binds = binder(ledger)
    assert binds.contested(heir.view())
    binds.hold_outcomes(heir.view())
    assert lifted(ledger) == []
    ledger.put_pod(heir.recorded(found).bound_to("a").view())
    binds.release_outcomes(heir.view().uid)
    assert ledger.used("q", "A") == 1000
    assert lifted(ledger) == []


def test_an_heir_of_another_scheduler_holds_cpu_and_shares_as_well() -> None:
    heir = FOREIGN.request("cpu", 4).mgpu("c", core=30, memory=1024)
    ledger = books(heir)
    binder(ledger).hold_outcomes(heir.view())
    assert ledger.cpu_memory.used("q", CPU) == 4000
    assert (ledger.used("q", "A"), ledger.used("q", names.MGPU_CORE)) == (1000, 30_000)


def test_an_heir_holds_claims_that_were_not_counted_when_it_was_lifted() -> None:
    heir = a_pod("heir").claim("dev", name="mine").charged("q")
    heir = heir.annotation(names.CLAIMS_ANNOTATION, '{"dev":{"uid":"old","deviceclass/nic":"1"}}')
    ledger = books(heir)
    ledger.devices.serve(True)
    ledger.devices.put_claim(a_claim("mine").exactly("r", "gpu", count=2).view())
    assert ledger.devices.reserved("q") == {"deviceclass/nic": 1000}
    binder(ledger).hold_outcomes(heir.view())
    assert ledger.devices.reserved("q") == {"deviceclass/nic": 1000, "deviceclass/gpu": 2000}


def test_an_heir_of_another_scheduler_holds_its_claims() -> None:
    heir = a_pod("heir").claim("dev", name="mine").in_queue("q").scheduler("another")
    ledger = books(heir)
    ledger.devices.serve(True)
    ledger.devices.put_claim(a_claim("mine").exactly("r", "gpu", count=2).view())
    assert ledger.devices.reserved("q") == {}
    binder(ledger).hold_outcomes(heir.view())
    assert ledger.devices.reserved("q") == {"deviceclass/gpu": 2000}


def test_the_claim_that_an_heir_holds_pays_for_nobody_who_shares_it() -> None:
    """Perhaps nobody has ever asked for it."""
    heir = a_pod("heir").claim("dev", name="two").in_queue("q").scheduler("another")
    sharing = a_pod("w").claim("dev", name="two").in_queue("q").gated()
    ledger = books(heir, sharing, queue=a_queue("q").devices({"capability": {"gpu": {"count": 1}}}))
    ledger.devices.serve(True)
    ledger.devices.put_claim(a_claim("two").exactly("r", "gpu", count=2).view())
    binder(ledger).hold_outcomes(heir.view())
    assert ledger.devices.reserved("q") == {"deviceclass/gpu": 2000}
    assert lifted(ledger) == []


@pytest.mark.parametrize(
    ("core", "held", "recorded"),
    [
        (30, 1000, None),
        (100, 1000, None),
        (101, 2000, None),
        (30, 1000, "{}"),
        (30, 300, '{"A":30}'),
        (0, 0, None),
    ],
)
def test_where_shares_count_against_a_card_each_that_a_node_may_name_is_held(
    core: int, held: int, recorded: str | None
) -> None:
    """A part as a whole one, and none besides the one that was found out at the lift."""
    settings = Settings.model_validate({"mgpu": {"cardQuota": True}})
    heir = a_pod("heir").mgpu("c", core=core, memory=1024).in_queue("q").charged("q")
    if recorded is not None:
        heir = heir.annotation(names.SHARE_CARD_ANNOTATION, recorded)
    ledger = books(heir, settings=settings)
    ledger.put_node(a_node("s").product("A").mgpu(2, memory=16384).view())
    assert list(ledger.inventory.shared_products()) == ["A"]
    binder(ledger).hold_outcomes(heir.view())
    assert ledger.used("q", "A") == held


@pytest.mark.parametrize(
    "heir",
    [
        asking("p", "A|B", A=1),
        asking("p", "A|B"),
        FOREIGN,
        asking("p", "A|B", A=1).mgpu("c", core=30, memory=1024).request("cpu", 4),
    ],
)
def test_what_is_held_is_not_in_the_way_of_the_heir_itself(heir: PodBuilder) -> None:
    """One of its binds is stored, and no other."""
    ledger = books(heir, queue=ONE_OF_EACH)
    ledger.put_node(a_node("a").card("A", 8).mgpu(8, memory=16384).view())
    binds = binder(ledger)
    for _ in range(2):
        binds.hold_outcomes(heir.view())
    held = sums(ledger)
    answer = binds.decide(heir.view(), "a")
    assert not isinstance(answer, Refusal), answer
    assert sums(ledger) == held


def test_nor_does_the_heir_get_more_than_there_is_because_of_it() -> None:
    heir = a_pod("heir").claim("dev", name="mine").in_queue("q").scheduler("another")
    ledger = books(heir, queue=a_queue("q").devices({"capability": {"gpu": {"count": 1}}}))
    ledger.devices.serve(True)
    ledger.devices.put_claim(a_claim("mine").exactly("r", "gpu", count=2).view())
    binds = binder(ledger)
    binds.hold_outcomes(heir.view())
    assert isinstance(binds.decide(heir.view(), "a"), Refusal)


@pytest.mark.parametrize("heir", [FOREIGN, asking("p", "A|B", A=1), asking("p", "A|B|C"), asking("p", "A")])
@pytest.mark.parametrize("all_at_once", [True, False])
def test_afterwards_nothing_is_left_of_it(heir: PodBuilder, *, all_at_once: bool) -> None:
    ledger = books(heir)
    before = sums(ledger)
    binds = binder(ledger)
    binds.hold_outcomes(heir.view())
    if all_at_once:
        binds.release_all_outcomes()
        for _ in ledger.settle():
            pass
    else:
        binds.release_outcomes(heir.view().uid)
        binds.release_outcomes(heir.view().uid)
    assert sums(ledger) == before


def test_one_that_its_queue_is_closed_to_holds_nothing() -> None:
    """No leader can have let it be bound, and whoever may make pods could keep other people's queues from them."""
    ledger = books(FOREIGN, settings=Settings.model_validate({"queue": {"access": "listed"}}))
    assert isinstance(binder(ledger).decide(FOREIGN.view(), "a"), Refusal)
    binder(ledger).hold_outcomes(FOREIGN.view())
    assert ledger.used("q", "A") == 0
