"""The card quota of a queue: refused where it cannot be read, hinted at where it promises what may not come true."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from core import names, quantity, reasons
from core.admission.levels import QUOTA_PATH as _PATH
from core.admission.levels import Tree
from core.admission.request import UPDATE, AdmissionRequest, Context
from core.cards.quota import parse_quota, quota_findings
from core.cards.rules import unknown_cards
from core.objects import Queue, queue
from core.objects import raw as read
from core.queues.limits import cards_of
from core.violations import Findings, Hint, Violation, show


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for the quota of a new queue, and of a stored one whose quota changes."""
    now, was = _text(request.object), _text(request.old_object)
    if not context.settings.features.cards or (request.operation == UPDATE and now == was):
        return
    if now == "":
        # Of a stored queue it counts as no cards. Whoever writes it wants all of them, or has lost a value on the way.
        detail = (
            'is empty: leave the annotation out for no card quota, or write one, such as {"NVIDIA-H200": 8}'
        )
        found.violations.append(Violation(reasons.CARD_QUOTA_MALFORMED, _PATH, detail, value=now))
        return
    found += quota_findings(now or "", _PATH)
    if not found.violations:
        before = queue.project(request.old_object)
        found.hints += _remarks(parse_quota(now or ""), request, before, context)


def _text(raw: Mapping[str, Any]) -> str | None:
    return read.texts(raw, "metadata", "annotations").get(names.CARD_QUOTA_ANNOTATION)


def _remarks(
    quota: Mapping[str, int], request: AdmissionRequest, before: Queue, context: Context
) -> Iterator[Hint]:
    had = cards_of(before)
    raised = {card: count for card, count in quota.items() if count > had.get(card, 0)}
    lowered = {card: quota.get(card, 0) for card, count in had.items() if quota.get(card, 0) < count}
    if context.view.inventory is not None:
        shared = context.view.inventory.shared_products() if context.settings.mgpu.card_quota else ()
        named = {card: count for card, count in raised.items() if card not in shared}
        yield from unknown_cards(named, context.view.inventory, _PATH)
        yield from _beyond_cluster(raised, request, context)
    yield from _below_use(lowered, before)


def _beyond_cluster(raised: Mapping[str, int], request: AdmissionRequest, context: Context) -> Iterator[Hint]:
    """Overselling is a choice, so only what a write raises is mentioned; an unknown card has its own hint."""
    inventory = context.inventory
    totals = inventory.totals()
    all_promised = _promised(queue.project(request.object), context)
    for card in raised:
        shared = inventory.shared_cards(card) if context.settings.mgpu.card_quota else 0
        promised, present = all_promised[card], totals.get(card, 0) // 1000 + shared
        if promised > present and (shared or inventory.resources_of(card)):
            detail = (
                f"{show(card)}: the quotas of all queues add up to {promised}, and the nodes have {present}"
            )
            yield Hint(reasons.QUOTA_BEYOND_CLUSTER, _PATH, detail)


def _promised(own: Queue, context: Context) -> Counter[str]:
    """What all queues are promised together; where quotas hold through the tree, nothing twice."""
    queues = {**(context.view.queues or {}), own.name: own}
    if context.settings.cards.hierarchy:
        return Tree.of(queues).total()
    promised: Counter[str] = Counter()
    for each in queues.values():
        promised.update(cards_of(each))
    return promised


def _below_use(lowered: Mapping[str, int], before: Queue) -> Iterator[Hint]:
    for card, count in lowered.items():
        used = _used(before.allocated.get(card, "0"))
        if used > count * 1000:
            detail = f"{show(card)}: lowered to {count} while {quantity.render_milli(used)} are in use"
            yield Hint(
                reasons.QUOTA_BELOW_USE,
                _PATH,
                f"{detail}; nothing is evicted, and nothing lifted until they fit",
            )


def _used(text: str) -> int:
    """Thousandths; a text that is no quantity was not written by us, and says nothing."""
    try:
        return quantity.milli(text)
    except quantity.QuantityError:
        return 0
