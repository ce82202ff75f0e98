"""`spec.capability` for a card's resource beside the card quota: the smaller holds, and whoever writes both is told."""

from core import reasons
from core.admission.dispatch import judge
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.display.notices import queue_notices
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.admission.samples import creation, update

GPU = "nvidia.com/gpu"
NODES = (a_node("n1").card("A", 8), a_node("n2").card("B", 4))
CODE = reasons.CAPABILITY_BELOW_QUOTA
TEXT = (
    "allows 2 of nvidia.com/gpu, and the card quota has 8 cards of it (A 8): the smaller holds, so Volcano's quota keeps "
    "pods without a node that have their card quota"
)


def queue(capability: int | None, **cards: int) -> QueueBuilder:
    built = a_queue("q").cards(cards) if cards else a_queue("q")
    return built if capability is None else built.put("spec", "capability", GPU, value=str(capability))


def said(
    new: QueueBuilder, old: QueueBuilder | None = None, settings: Settings | None = None
) -> list[tuple[str, str]]:
    inventory = Inventory({})
    for node in NODES:
        inventory.put(node.view())
    request = creation(new.build()) if old is None else update(old.build(), new.build())
    findings = judge(request, Context(ClusterView(inventory=inventory), settings or Settings()))
    assert findings.violations == []
    return [(hint.path, hint.text) for hint in findings.hints if hint.code == CODE]


def test_a_capability_below_the_cards_of_the_quota_is_told() -> None:
    assert said(queue(2, A=8)) == [(f"spec.capability[{GPU}]", TEXT)]


def test_cards_of_one_resource_count_together() -> None:
    ((_, text),) = said(queue(8, A=6, B=3))
    assert "has 9 cards of it (A 6, B 3)" in text
    assert said(queue(9, A=6, B=3)) == []


def test_what_does_not_contradict_is_not_told() -> None:
    assert said(queue(8, A=2)) == []
    assert said(queue(8, A=8)) == []
    assert said(queue(None, A=8)) == []
    assert said(queue(2)) == []
    assert said(queue(0, A=0)) == []
    assert said(queue(2, unknown=8)) == []
    assert said(queue(2, A=8), settings=Settings.model_validate({"features": {"cards": False}})) == []


def test_a_stored_queue_is_told_when_either_changes() -> None:
    old = queue(2, A=8)
    assert said(old.priority(3), old) == []
    assert said(queue(3, A=8), old) != []
    assert said(queue(2, A=7), old) != []


def notices(ledger: Ledger) -> list[str]:
    return [one.message for one in queue_notices(ledger, "q") if one.reason == CODE]


def test_the_leader_says_it_as_soon_as_the_resource_is_known() -> None:
    """An event on the queue, for a queue that was stored before any node showed the card."""
    ledger = Ledger(Settings())
    ledger.put_queue(queue(2, A=8).view())
    assert notices(ledger) == []
    ledger.wakeups.take_figures()
    ledger.put_node(NODES[0].view())
    assert "q" in ledger.wakeups.take_figures()
    assert notices(ledger) == [f"Queue <q>: spec.capability {TEXT}"]
