"""How many cards a pod asks for, and under which card it is booked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from core import names
from core.cards import expression
from core.cards.assigned import read_assigned
from core.cards.discovery import CardStock
from core.objects import Pod

ResourcesOf = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class CardAsk:
    """What a pod asks for.

    `card` is what it is booked under: the real card once it is decided, the whole expression while it is open.
    `resource` is what the count was read from, empty when only the record of the assignment gave it.
    `milli` is a whole number of cards, times 1000.
    """

    expression: str
    alternatives: tuple[str, ...]
    card: str
    resource: str
    milli: int


@dataclass(frozen=True, slots=True)
class AskError:
    """Why the count cannot be computed."""

    message: str


TOO_MANY: Final = AskError(
    f"{names.CARD_NAME_ANNOTATION} names more than {expression.MAX_ALTERNATIVES} cards, or has more than "
    f"{expression.MAX_LENGTH} characters, which nobody counts; shorten it to the cards that matter most"
)


def card_ask(
    pod: Pod, resources_of: ResourcesOf, on_node: Mapping[str, CardStock] | None
) -> CardAsk | AskError | None:
    """What a pod asks for; None for a pod without a card name.

    `on_node` are the cards of the pod's node; None or empty when the node is unknown. A pod that is bound or lifted is
    counted even if its card has left the cluster: with its record, else by the only extended resource it asks for.
    """
    if not pod.card_name:
        return None
    if expression.is_excessive(pod.card_name):
        return _by_record(pod)
    alternatives = expression.split(pod.card_name)
    if pod.gated and not pod.bound:
        return open_ask(pod.card_name, pod.limits, pod.requests, resources_of)
    record = assignment_of(pod)
    card = _real_card(pod, alternatives, resources_of, on_node or {}, record)
    if card is None:
        return open_ask(pod.card_name, pod.limits, pod.requests, resources_of)
    counted = _count(pod, card, resources_of(card))
    if isinstance(counted, AskError):
        counted = _fall_back(pod, card, resources_of(card), record) or counted
    if isinstance(counted, AskError):
        return counted
    return CardAsk(pod.card_name, alternatives, card, *counted)


def _by_record(pod: Pod) -> CardAsk | AskError:
    """The count of a pod whose expression is not looked at: what it was admitted with, whatever the nodes say now."""
    record = None if pod.gated and not pod.bound else assignment_of(pod)
    return TOO_MANY if record is None else CardAsk(record[0], (record[0],), record[0], "", record[1] * 1000)


def open_ask(
    cards: str, limits: Mapping[str, int], requests: Mapping[str, int], resources_of: ResourcesOf
) -> CardAsk | AskError:
    """What a pod asks for whose card is not decided; `cards` is its expression, not empty, amounts in thousandths.

    The count is that by the first alternative that gives one; all share one resource, so it does not matter which.
    """
    if expression.is_excessive(cards):
        return TOO_MANY
    alternatives = expression.split(cards)
    problems: list[AskError] = []
    for card in alternatives:
        counted = count_of(card, limits, requests, resources_of(card))
        if not isinstance(counted, AskError):
            return CardAsk(cards, alternatives, cards, *counted)
        problems.append(counted)
    return problems[0]


def assignment_of(pod: Pod) -> tuple[str, int] | None:
    """The card of the pod's record and how many; None without one, and where it names no card that the pod accepts.

    An excessive expression is not looked at: only the controller writes records.
    """
    record = read_assigned(pod.annotations.get(names.ASSIGNED_ANNOTATION, ""))
    if record is None or expression.is_excessive(pod.card_name):
        return record
    return record if record[0] in expression.split(pod.card_name) else None


def _real_card(
    pod: Pod,
    alternatives: tuple[str, ...],
    resources_of: ResourcesOf,
    on_node: Mapping[str, CardStock],
    record: tuple[str, int] | None,
) -> str | None:
    """The card of a bound or lifted pod; None while it is open.

    The recorded card while the node has it, else the first alternative that the node has and that can be counted, else
    the recorded one, else the first alternative: a bound pod is never dropped.
    """
    if len(alternatives) == 1:
        return alternatives[0]
    if record is not None and (record[0] in on_node or not pod.bound):
        return record[0]
    for card in alternatives:
        if card in on_node and not isinstance(_count(pod, card, resources_of(card)), AskError):
            return card
    if record is not None:
        return record[0]
    return alternatives[0] if pod.bound else None


def _count(pod: Pod, card: str, resources: frozenset[str]) -> tuple[str, int] | AskError:
    return count_of(card, pod.limits, pod.requests, resources)


def count_of(
    card: str, limits: Mapping[str, int], requests: Mapping[str, int], resources: frozenset[str]
) -> tuple[str, int] | AskError:
    """(resource, thousandths) of a card, from the limits, else from the requests; rounded up to whole cards.

    Limits come first because the templates inside a Volcano Job are not defaulted by the API server.
    """
    if not resources:
        return AskError(f"no resource name found for card <{card}>")
    candidates = sorted(resources)
    for amounts in (limits, requests):
        for resource in candidates:
            if resource in amounts:
                return resource, _whole(amounts[resource])
    return AskError(f"no resource <{candidates[0]}> defined in requests/limits for card <{card}>")


def _whole(milli: int) -> int:
    return -(-milli // 1000) * 1000


def _fall_back(
    pod: Pod, card: str, resources: frozenset[str], record: tuple[str, int] | None
) -> tuple[str, int] | None:
    """The count of a card that cannot be counted any more: by the record, else by the only extended resource.

    The second only for a card without any resource; one whose resource the pod does not ask for is simply not used.
    """
    only = None if resources else _only_extended(pod)
    if record is not None and record[0] == card:
        return "" if only is None else only[0], record[1] * 1000
    return only


def _only_extended(pod: Pod) -> tuple[str, int] | None:
    asked = {**pod.requests, **pod.limits}
    extended = [name for name in asked if "/" in name and name not in names.MGPU_RESOURCES]
    return (extended[0], _whole(asked[extended[0]])) if len(extended) == 1 else None
