"""`mgpu.cardQuota` at the bind: the card of the node counts, and only if the pod was not lifted for another one."""

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder

ON = Settings.model_validate({"mgpu": {"cardQuota": True}})
RECORD = names.SHARE_CARD_ANNOTATION


def share(name: str = "p", core: int = 50) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=1000).in_queue("q")


def lifted(name: str = "p", core: int = 50, record: str = '{"A10":50}') -> PodBuilder:
    pod = share(name, core).charged("q")
    return pod.annotation(RECORD, record) if record else pod


def books(*pods: PodBuilder, quota: int = 1, product: str = "A10", settings: Settings = ON) -> Binder:
    node = a_node("n1").mgpu(4, memory=10_000)
    ledger = Ledger(settings)
    ledger.put_node((node.product(product) if product else node).view())
    ledger.put_queue(a_queue("q").cards({"A10": quota}).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)


def bind(binder: Binder, pod: PodBuilder) -> str | None:
    """The record that the Binding gets, None for none; the code of a refusal."""
    view = pod.view()
    answer = binder.decide(view, "n1")
    if isinstance(answer, Refusal):
        return answer.code
    granted = binder.book(view, "n1", answer)
    assert binder.records_of(granted).get(RECORD) == answer.get(RECORD)
    return answer.get(RECORD)


@pytest.mark.parametrize(
    ("record", "product", "expected"),
    [
        ('{"A10":50}', "A10", '{"A10":50}'),
        ('{"A10":50}', "", '{"A10":50}'),
        ('{"A10":50}', "L20", reasons.CARD_NOT_ON_NODE),
        ("", "A10", '{"A10":50}'),
        ("", "L20", reasons.INSUFFICIENT_SCALAR_QUOTA),
        ("", "", "{}"),
    ],
)
def test_the_record_of_a_lifted_pod_stays_and_a_missing_one_is_made(
    record: str, product: str, expected: str
) -> None:
    pod = lifted(record=record)
    assert bind(books(pod, product=product), pod) == expected


def test_who_was_never_lifted_has_to_fit_the_quota_of_the_card() -> None:
    first, second, third = share("a"), share("b"), share("c")
    binder = books(first, second, third)
    assert bind(binder, first) == '{"A10":50}'
    assert bind(binder, second) == '{"A10":50}'
    assert bind(binder, third) == reasons.INSUFFICIENT_SCALAR_QUOTA


def test_quota_0_refuses_the_bind_and_the_refusal_names_the_card() -> None:
    pod = share()
    answer = books(pod, quota=0).decide(pod.view(), "n1")
    assert isinstance(answer, Refusal)
    assert answer.message.startswith("Queue <q> has insufficient <A10> quota")


def test_a_whole_card_and_a_share_of_one_pod_are_charged_with_both() -> None:
    pod = share("p").gpu(1).card("A10")
    node = a_node("n1").mgpu(4, memory=10_000).card("A10", 2)
    for quota, expected in ((1, reasons.INSUFFICIENT_SCALAR_QUOTA), (2, '{"A10":50}')):
        binder = books(pod, quota=quota)
        binder._ledger.put_node(node.view())
        assert bind(binder, pod) == expected


def test_without_the_setting_nothing_is_recorded_or_asked() -> None:
    pod = share()
    assert bind(books(pod, quota=0, settings=Settings()), pod) is None


def test_a_bind_that_is_taken_back_gives_its_quota_back() -> None:
    first, second = share("a", 80), share("b", 80)
    binder = books(first, second)
    assert bind(binder, first) == '{"A10":80}'
    assert bind(binder, second) == reasons.INSUFFICIENT_SCALAR_QUOTA
    binder.take_back(first.view().uid)
    assert bind(binder, second) == '{"A10":80}'
