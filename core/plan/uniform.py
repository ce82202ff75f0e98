"""Which members of a group get the same card.

Those of a gang that ask for the same do where one card serves them: Volcano's scheduler looks at one pod of a task for all,
so members of one task that wait for different cards may never start. With the setting `multiCardJob: uniform` all pods of a
gang, or of a Volcano Job, have to. The pods of a Deployment have a PodGroup too, but nothing that binds them together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final

from core.cards.expression import split
from core.plan.gang import Member
from core.plan.trial import NO_CARD
from core.plan.units import Unit
from core.queues.attribution import is_job
from core.queues.ledger import Ledger
from core.stage import Stage

_WAYS: Final = 16
"""So many ways to give each kind of member one card are tried before members of a kind are spread over several."""

_Ask = tuple[str, tuple[str, ...]]
"""The task of a member, and the cards that would serve it."""


def applies(ledger: Ledger, unit: Unit) -> bool:
    """Whether the pods of this unit must be served by one card."""
    if ledger.settings.cards.multi_card_job != "uniform" or unit.group is None or unit.progress is None:
        return False
    return not unit.progress.minimum.alone or is_job(unit.group.owner)


def common_cards(ledger: Ledger, unit: Unit) -> Sequence[str] | None:
    """The cards that the group's pods have got, None while the choice is open.

    They are several only where pods were lifted before the setting was; then each of them will do.
    """
    if unit.group is None or not applies(ledger, unit):
        return None
    entries = (ledger.entry(member.uid) for member in ledger.members(unit.group))
    held = {
        entry.demand.card.card
        for entry in entries
        if entry is not None and entry.stage is not Stage.WAITING and entry.demand.card is not None
    }
    # A pod that lost its gate without our record may still land on any of its cards.
    return sorted({card for expression in held for card in split(expression)}) or None


def choices(
    ledger: Ledger, unit: Unit, members: Sequence[Member], *, lacking: bool = False
) -> Iterable[Sequence[Member]]:
    """The ways in which the search may look at a gang, best first: members that ask for the same get one card, then any.

    Where all have to be served by one card each way confines them to one, from left to right. Where something is `lacking`
    however the cards are dealt out, they need not be.
    """
    if not applies(ledger, unit):
        return [members] if lacking else [*_one_card_each(members), members]
    common = common_cards(ledger, unit)
    cards = dict.fromkeys(card for member in members for card in member.alternatives if card != NO_CARD)
    usable = [card for card in cards if common is None or card in common]
    return [_confined(members, card) for card in usable] or [_confined(members, NO_CARD)]


def _one_card_each(members: Sequence[Member]) -> Iterable[Sequence[Member]]:
    """The ways in which members of one task that accept the same cards get the same one of these."""
    alike = Counter((member.task, member.alternatives) for member in members)
    asks = [ask for ask, count in alike.items() if count > 1 and len(ask[1]) > 1]
    for cards in islice(product(*(alternatives for _, alternatives in asks)) if asks else (), _WAYS):
        chosen: Mapping[_Ask, str] = dict(zip(asks, cards, strict=True))
        yield [_with_card(member, chosen.get((member.task, member.alternatives))) for member in members]


def _with_card(member: Member, card: str | None) -> Member:
    return member if card is None else replace(member, alternatives=(card,))


def _confined(members: Sequence[Member], card: str) -> Sequence[Member]:
    found = []
    for member in members:
        if member.alternatives == (NO_CARD,):
            found.append(member)
        elif card in member.alternatives:
            found.append(replace(member, alternatives=(card,)))
    return found
