"""The many-to-many index: what is listed comes out again, whatever it was listed under."""

from core.index import Index
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_pod, a_queue


def test_a_value_that_is_named_twice_is_one_value() -> None:
    index = Index()
    index.put("p", "A", "A", None)
    assert (index.values("p"), [*index.get("A")]) == (("A",), ["p"])
    assert not index.put("p", "A", "A")
    assert index.put("p", "B")
    assert (index.values("p"), [*index.get("A")]) == (("B",), [])
    assert index.put("p")
    assert index.values("p") == ()


def test_a_pod_that_repeats_a_card_goes_as_any_other() -> None:
    """Admission refuses it, but an admin, or an edit while the webhook was away, may bring it about."""
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("q").cards({"A": 2}).view())
    pod = a_pod("p").gpu(1).in_queue("q").gated()
    for card in ("A|A", "|", "A|B|A", "B"):
        ledger.put_pod(pod.card(card).view())
    ledger.put_pod(pod.card("A|A").view())
    ledger.drop_pod(pod.view().uid)
    assert [*ledger.entries()] == []
