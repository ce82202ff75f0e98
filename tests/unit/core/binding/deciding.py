"""A queue and nodes with cards, and binds that are judged there."""

import json
from collections.abc import Callable, Mapping

from core import names
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder, QueueBuilder

QUOTA = {"A": 2, "B": 1}


HUGE = 1_000_000_000


"""The greatest quota."""


def asking(name: str, card: str = "A", count: int = 1, **record: int) -> PodBuilder:
    """A pod at no gate; with `record` the one that a lift would have left."""
    pod = a_pod(name).gpu(count).card(card).in_queue("q")
    return pod.assigned(record) if record else pod


def running(name: str, card: str = "A", count: int = 1) -> PodBuilder:
    return asking(name, card, count).bound_to("other")


def books(*pods: PodBuilder, queue: QueueBuilder | None = None, settings: Settings | None = None) -> Ledger:
    """A queue of two A and one B; nodes `a` and `b` with these cards, and `bare` without any."""
    ledger = Ledger(settings or Settings())
    for node in (a_node("a").card("A", 8), a_node("b").card("B", 8), a_node("bare").allocatable("cpu", 8)):
        ledger.put_node(node.view())
    ledger.put_queue((queue or a_queue("q").cards(QUOTA)).view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return ledger


def binder(ledger: Ledger, cut_short: Callable[[], None] = lambda: None) -> Binder:
    return Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, cut_short)


def decided(pod: PodBuilder, node: str, *others: PodBuilder) -> Mapping[str, str] | Refusal:
    """The answer with these other pods in the books, and the pod itself as the watch has shown it."""
    return binder(books(pod, *others)).decide(pod.view(), node)


def granted(answer: Mapping[str, str] | Refusal) -> Mapping[str, int]:
    assert not isinstance(answer, Refusal), answer
    found: dict[str, int] = json.loads(answer[names.ASSIGNED_ANNOTATION])
    return found


def refused(answer: Mapping[str, str] | Refusal) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def given(binds: Binder, pod: PodBuilder, node: str) -> Mapping[str, str]:
    answer = binds.decide(pod.view(), node)
    assert not isinstance(answer, Refusal), answer
    return answer
