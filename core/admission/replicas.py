"""How much of its queue's quota a workload needs with all its pods: more than there is means that some of them wait, or all of a gang."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from core import reasons
from core.admission.destination import destination_of
from core.admission.gangs import gang_named
from core.admission.levels import cards_within
from core.admission.view import Context
from core.cards import expression
from core.cards.ask import CardAsk, open_ask
from core.objects import job
from core.objects import raw as read
from core.objects.draft import Draft
from core.pod_sets import PodSet
from core.violations import Hint, show
from core.workloads import Workload, kinds_with, pod_sets


def hints(group: str, kind: str, raw: Mapping[str, Any], context: Context) -> Iterator[Hint]:
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
