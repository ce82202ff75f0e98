"""How much of its queue's quota a workload needs with all its pods: more than there is means that some of them wait."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core import reasons
from core.admission.destination import destination_of
from core.admission.levels import cards_within
from core.admission.view import Context
from core.cards import expression
from core.cards.ask import CardAsk, open_ask
from core.objects import job
from core.objects import raw as read
from core.objects.draft import Draft
from core.violations import Hint, show
from core.workloads import kinds_with, pod_sets


def hints(group: str, kind: str, raw: Mapping[str, Any], context: Context) -> Iterator[Hint]:
    """A hint for each card expression of which all pods together need more than the quota, while one pod does not.

    `nodes` of a DaemonSet are not counted. Of a queue that is not in view nothing is said.
    """
    queues = context.view.queues
    kinds = kinds_with(context.settings.workloads)
    if queues is None or (group, kind) not in kinds or not context.settings.features.cards:
        return
    named = kinds[group, kind].queue_of(raw)
    volcano_job = replace(job.project(raw), queue=named) if named or group == "batch.volcano.sh" else None
    namespace = read.text(read.mapping(raw, "metadata"), "namespace")
    needs: dict[tuple[str, str], tuple[int, int]] = {}
    for made in pod_sets(group, kind, raw, nodes=0, kinds=kinds):
        draft = Draft.of(made.template, namespace=namespace, job=volcano_job)
        cards, destination = draft.cards, destination_of(draft, context)
        if not cards or destination is None:
            continue
        asked = open_ask(cards, draft.limits, draft.requests, context.inventory.resources_of)
        each = asked.milli // 1000 if isinstance(asked, CardAsk) else 1
        total, largest = needs.get((destination.queue, cards), (0, 0))
        needs[destination.queue, cards] = total + made.count * each, max(largest, each)
    for (name, cards), (total, largest) in needs.items():
        queue = queues.get(name)
        quota = cards_within(queue, context) if queue is not None else {}
        limit = sum(quota.get(card, 0) for card in expression.every_alternative(cards))
        if queue is not None and largest <= limit < total:
            detail = (
                f"all pods together ask for {total} of {show(cards)}, the quota of queue {name} is {limit}: "
                "some of them wait for others to end"
            )
            yield Hint(reasons.BEYOND_QUOTA, "spec", detail)
