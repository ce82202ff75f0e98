"""Whether the queue that an object charges, and the nodes, could ever serve it, as they are now.

Never more than a hint: a queue may be created, a quota may grow, a node may come. What is in use at the moment plays no part.
"""

from collections.abc import Iterable, Iterator, Mapping

from core import names, reasons
from core.admission.destination import Destination
from core.admission.levels import cards_within
from core.admission.view import Context
from core.cards import expression
from core.cards.ask import AskError, count_of
from core.cards.inventory import Inventory
from core.objects import Queue
from core.objects.draft import Draft
from core.quantity import render_milli
from core.violations import Findings, Hint, show


def judge_pod(
    draft: Draft,
    served: Mapping[str, frozenset[str]],
    destination: Destination,
    queue: Queue | None,
    context: Context,
    found: Findings,
) -> None:
    """The outlook of a pod, or of the pods made from a template, that ask for something of ours.

    `served` are the cards that it may get, with the resources of each; `queue` is that of the destination, None where there
    is none.
    """
    if queue is None:
        # Shares and claims that come to the default queue while it does not exist are not limited, and do not wait.
        if served or destination.named:
            found.hints.append(_missing(destination))
        return
    if not served:
        return
    asked: tuple[str, int] | AskError | None = None
    most, quota = 0, cards_within(queue, context)
    for card, resources in served.items():
        # One pod gets all its cards under one name, so the largest quota among the alternatives counts.
        most = max(most, quota.get(card, 0))
        if asked is None or isinstance(asked, AskError):
            asked = count_of(card, draft.limits, draft.requests, resources)
    # What cannot be counted, since no node carries the card now, is at least one card.
    count = asked[1] // 1000 if isinstance(asked, tuple) else 1
    nodes = context.view.inventory
    too_large = None if nodes is None or count < 2 else _too_large(draft, served, count, nodes)
    if too_large is not None:
        # More quota would not help.
        found.hints.append(too_large)
    elif count > most:
        path = draft.path_of(names.CARD_NAME_ANNOTATION)
        found.hints.append(_beyond(draft.cards, count, most, queue, path))


def _too_large(draft: Draft, served: Iterable[str], count: int, nodes: Inventory) -> Hint | None:
    """What is said of one pod that asks for more cards than any node has; of cards that no node has something else is said."""
    have, _ = nodes.largest(served)
    if not have or any(nodes.could_hold(card, count * 1000) for card in served):
        return None
    text = f"{show(draft.cards)}: {count} are more than any node has ({render_milli(have)}); a pod that asks for that never runs"
    return Hint(reasons.BEYOND_NODES, draft.path_of(names.CARD_NAME_ANNOTATION), text)


def request_hints(requested: Mapping[str, int], queue: str, path: str, context: Context) -> Iterator[Hint]:
    """The outlook of what stands at `path`: card expression -> whole cards that a group declares for its queue."""
    if context.view.queues is None or not requested:
        return
    found = context.view.queues.get(queue or context.settings.queue.default)
    if found is None:
        yield _missing(Destination(queue or context.settings.queue.default, bool(queue), "spec.queue"))
        return
    quota = cards_within(found, context)
    for cards, count in requested.items():
        # A group may lie on several cards, so their quotas add up.
        limit = sum(quota.get(card, 0) for card in expression.every_alternative(cards))
        if count > limit:
            yield _beyond(cards, count, limit, found, path)


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
