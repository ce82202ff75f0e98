"""Groups whose pods are all served by one card: the setting `multiCardJob: uniform`.

It is about gangs and Volcano Jobs. The pods of a Deployment have a PodGroup too, but nothing that binds them together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.cards.expression import split
from core.plan.gang import Member
from core.plan.trial import NO_CARD
from core.plan.units import Unit
from core.queues.attribution import is_job
from core.queues.ledger import Ledger
from core.stage import Stage


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


def choices(ledger: Ledger, unit: Unit, members: Sequence[Member]) -> Iterable[Sequence[Member]]:
    """The ways in which the search may look at a gang: each confines the members to one card, from left to right."""
    if not applies(ledger, unit):
        return [members]
    common = common_cards(ledger, unit)
    cards = dict.fromkeys(card for member in members for card in member.alternatives if card != NO_CARD)
    usable = [card for card in cards if common is None or card in common]
    return [_confined(members, card) for card in usable] or [_confined(members, NO_CARD)]


def _confined(members: Sequence[Member], card: str) -> Sequence[Member]:
    found = []
    for member in members:
        if member.alternatives == (NO_CARD,):
            found.append(member)
        elif card in member.alternatives:
            found.append(replace(member, alternatives=(card,)))
    return found
