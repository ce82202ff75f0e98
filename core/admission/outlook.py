"""Whether the queue that an object charges, and the nodes, could ever serve it, as they are now.

Never more than a hint: a queue may be created, a quota may grow, a node may come. What is in use at the moment plays no part.
Of a workload it is said how much of the quota all its pods need: where that is more than there is, some of them wait, or all of a gang.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core import names, reasons
from core.admission.destination import Destination, destination_of
from core.admission.gangs import gang_named
from core.admission.levels import cards_within
from core.admission.request import Context
from core.cards import expression
from core.cards.ask import AskError, CardAsk, count_of, open_ask
from core.cards.inventory import Inventory
from core.objects import Queue, job
from core.objects import raw as read
from core.objects.draft import Draft
from core.pod_sets import PodSet
from core.quantity import render_milli
from core.violations import Findings, Hint, show
from core.workloads import Workload, kinds_with, pod_sets


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


def workload_hints(group: str, kind: str, raw: Mapping[str, Any], context: Context) -> Iterator[Hint]:
    """A hint for each card expression of which all pods together need more than the quota, while one pod does not.

    Of pods that start together none starts where the fewest of them that could need more. `nodes` of a DaemonSet are not
    counted. Of a queue that is not in view nothing is said.
    """
    queues = context.view.queues
    kinds = kinds_with(context.settings.workloads)
    if queues is None or (group, kind) not in kinds or not context.settings.features.cards:
        return
    row = kinds[group, kind]
    named = row.queue_of(raw)
    volcano_job = replace(job.project(raw), queue=named) if named or group == "batch.volcano.sh" else None
    namespace = read.text(read.mapping(raw, "metadata"), "namespace")
    needs: dict[tuple[str, str], list[_Need]] = {}
    every: list[PodSet] = []
    for made in pod_sets(group, kind, raw, nodes=0, kinds=kinds):
        every.append(made)
        draft = Draft.of(made.template, namespace=namespace, job=volcano_job)
        cards, destination = draft.cards, destination_of(draft, context)
        if not cards or destination is None:
            continue
        asked = open_ask(cards, draft.limits, draft.requests, context.inventory.resources_of)
        each = asked.milli // 1000 if isinstance(asked, CardAsk) else 1
        needs.setdefault((destination.queue, cards), []).append(_Need(made, each))
    for (name, cards), found in needs.items():
        total, largest = sum(one.made.count * one.each for one in found), max(one.each for one in found)
        queue = queues.get(name)
        quota = cards_within(queue, context) if queue is not None else {}
        limit = sum(quota.get(card, 0) for card in expression.every_alternative(cards))
        if queue is None or not largest <= limit < total:
            continue
        together, least = max(_gangs(row, raw, every, found), key=lambda one: one[1], default=(0, 0))
        if least > limit:
            who, then = f"the {together} pods that start together", "none of them ever starts"
        else:
            who, then, least = "all pods together", "some of them wait for others to end", total
        quota_is = f"the quota of queue {name} is {limit}"
        yield Hint(
            reasons.BEYOND_QUOTA, "spec", f"{who} ask for {least} of {show(cards)}, {quota_is}: {then}"
        )


class _Need(NamedTuple):
    """How many cards each pod of a template asks for."""

    made: PodSet
    each: int


def _gangs(
    row: Workload, raw: Mapping[str, Any], every: Sequence[PodSet], needs: Sequence[_Need]
) -> Iterator[tuple[int, int]]:
    """Of each gang: how many members start together, and the fewest cards that so many of them ask for."""
    asked = {id(need.made): need.each for need in needs}
    if row.gang:
        pods = sum(made.count for made in every)
        size = min(row.gang_of(raw, pods), pods)
        yield size, _fewest(size, [(asked.get(id(made), 0), made.count) for made in every])
        return
    members: dict[tuple[str, str], list[PodSet]] = {}
    for made in every:
        name, size = gang_named(made)
        if size:
            members.setdefault((made.replicas[0] if made.replicas else "", name), []).append(made)
    for sets in members.values():
        size = max(gang_named(made)[1] for made in sets)
        counts = [made.count // max(1, made.replicas[1] if made.replicas else 1) for made in sets]
        each = [asked.get(id(made), 0) for made in sets]
        yield size, _fewest(size, list(zip(each, counts, strict=True)))


def _fewest(size: int, pods: Sequence[tuple[int, int]]) -> int:
    """The cards of so many pods, those first that ask for the fewest; `pods` are (cards of one, how many)."""
    cards = 0
    for each, count in sorted(pods):
        taken = min(size, count)
        cards, size = cards + taken * each, size - taken
    return cards
