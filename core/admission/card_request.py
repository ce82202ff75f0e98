"""The card request of a Volcano Job or a PodGroup: what the group declares before its pods exist."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.admission import outlook
from core.admission.request import CREATE, AdmissionRequest, Context
from core.cards.ask import CardAsk, open_ask
from core.cards.expression import every_alternative
from core.cards.inventory import Inventory
from core.cards.quota import CardJsonError, parse_request, request_findings
from core.cards.rules import unknown_cards
from core.objects import raw as read
from core.objects.draft import Draft
from core.violations import Findings, Hint, child, show

_PATH: Final = child("metadata.annotations", names.CARD_REQUEST_ANNOTATION)


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for the request of a group as a whole: its grammar, its cards, and what its queue could ever serve."""
    now = _text(request.object)
    if not context.settings.features.cards or now is None or not _changed(request):
        return
    found += request_findings(now, _PATH)
    if not found.violations:
        found.hints += _remarks(request, now, context)


def tasks_hints(
    job: Mapping[str, Any], tasks: Iterable[tuple[int, Draft]], context: Context
) -> Iterator[Hint]:
    """Where the request of a Volcano Job differs from its tasks: replicas times cards, by card expression.

    `tasks` are their replicas and templates. Once the job is admitted its pods count and the request is forgotten, so a wrong one misleads only at the start.
    """
    text = _text(job)
    if not text or not context.settings.features.cards:
        return
    try:
        declared = parse_request(text)
    except CardJsonError:
        return
    asked, uncounted = _asked(tasks, context.inventory)
    for cards in sorted((declared.keys() | asked.keys()) - uncounted):
        count, total = declared.get(cards, 0), asked.get(cards, 0)
        if count != total:
            detail = f"{show(cards)}: {count} declared, but the tasks ask for {total} (replicas times cards of a pod)"
            yield Hint(reasons.CARD_REQUEST_DIFFERS, _PATH, detail)


def _text(raw: Mapping[str, Any]) -> str | None:
    return read.texts(raw, "metadata", "annotations").get(names.CARD_REQUEST_ANNOTATION)


def _queue(raw: Mapping[str, Any]) -> str:
    return read.text(read.mapping(raw, "spec"), "queue")


def _changed(request: AdmissionRequest) -> bool:
    return request.operation == CREATE or _text(request.object) != _text(request.old_object)


def _remarks(request: AdmissionRequest, text: str, context: Context) -> Iterator[Hint]:
    requested = parse_request(text)
    if context.view.inventory is not None:
        cards = dict.fromkeys(card for cards in requested for card in every_alternative(cards))
        yield from unknown_cards(cards, context.view.inventory, _PATH)
    yield from outlook.request_hints(requested, _queue(request.object), _PATH, context)


def _asked(tasks: Iterable[tuple[int, Draft]], inventory: Inventory) -> tuple[dict[str, int], set[str]]:
    """Card expression -> whole cards of all tasks, and the expressions that cannot be counted now."""
    asked: dict[str, int] = {}
    uncounted: set[str] = set()
    for replicas, draft in tasks:
        cards = draft.cards
        if not cards:
            continue
        found = open_ask(cards, draft.limits, draft.requests, inventory.resources_of)
        if isinstance(found, CardAsk):
            asked[cards] = asked.get(cards, 0) + max(0, replicas) * found.milli // 1000
        else:
            uncounted.add(cards)
    return asked, uncounted
