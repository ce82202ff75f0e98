"""Whether the queue that an object charges could ever serve it, as that queue is written now.

Never more than a hint: a queue may be created, and a quota may grow. What is in use at the moment plays no part.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from core import names, reasons
from core.admission.destination import Destination
from core.admission.view import Context
from core.cards import expression
from core.cards.ask import CardAsk, open_ask
from core.cards.inventory import Inventory
from core.objects import Queue
from core.objects.draft import Draft
from core.queues.limits import limits_of
from core.violations import Hint, show

_ONE_CARD: Final = 1000


def pod_hints(draft: Draft, destination: Destination, context: Context) -> Iterator[Hint]:
    """The outlook of a pod, or of the pods made from a template, that ask for something of ours; queues are in view."""
    cards = draft.cards if context.settings.features.cards else ""
    queue = (context.view.queues or {}).get(destination.queue)
    # Shares and claims that come to the default queue while it does not exist are not limited, and do not wait.
    if queue is None and (cards or destination.named):
        yield _missing(destination)
    if queue is not None and cards:
        yield from _pod_beyond(draft, queue, context.inventory)


def request_hints(requested: Mapping[str, int], queue: str, path: str, context: Context) -> Iterator[Hint]:
    """The outlook of what stands at `path`: card expression -> whole cards that a group declares for its queue."""
    if context.view.queues is None or not requested:
        return
    found = context.view.queues.get(queue or context.settings.queue.default)
    if found is None:
        yield _missing(
            Destination(queue or context.settings.queue.default, bool(queue), "spec.queue", certain=True)
        )
        return
    quota = limits_of(found).cards
    for cards, count in requested.items():
        # A group may lie on several cards, so their quotas add up.
        limit = sum(quota.get(card, 0) for card in expression.every_alternative(cards)) // 1000
        if count > limit:
            yield _beyond(cards, count, limit, found, path)


def _pod_beyond(draft: Draft, queue: Queue, inventory: Inventory) -> Iterator[Hint]:
    """One pod gets all its cards under one name, so the largest quota among the alternatives counts."""
    cards = draft.cards
    asked = open_ask(cards, draft.limits, draft.requests, inventory.resources_of)
    # What cannot be counted, since no node carries the card now, is at least one card.
    milli = asked.milli if isinstance(asked, CardAsk) else _ONE_CARD
    quota, most = limits_of(queue).cards, 0
    for card in expression.split(cards):
        most = max(most, quota.get(card, 0))
    if milli > most:
        path = draft.path_of(names.CARD_NAME_ANNOTATION)
        yield _beyond(cards, milli // 1000, most // 1000, queue, path)


def _missing(destination: Destination) -> Hint:
    name = show(destination.queue)
    said = (
        f"no queue has the name {name}" if destination.named else f"no queue is named, and there is no {name}"
    )
    return Hint(
        reasons.QUEUE_NOT_FOUND, destination.path, f"{said} now; what is sent to it waits until it is created"
    )


def _beyond(cards: str, count: int, limit: int, queue: Queue, path: str) -> Hint:
    if limit:
        said = f"{show(cards)}: {count} are more than the whole quota of queue {queue.name} ({limit})"
    else:
        said = f"queue {queue.name} has no quota for {show(cards)}"
    return Hint(reasons.BEYOND_QUOTA, path, f"{said}; what asks for that waits until the quota grows")
