"""The words for a capability that is smaller than the card quota beside it."""

from typing import Final

from core.quantity import render_milli
from core.queues.narrowed import Narrowed

_NAMED: Final = 3


def contradiction(found: Narrowed) -> str:
    """What both say, and which of them holds."""
    cards = [f"{card} {count}" for card, count in found.cards.items()]
    more = f" and {len(cards) - _NAMED} more" if len(cards) > _NAMED else ""
    promised = f"{found.promised} card{'' if found.promised == 1 else 's'}"
    return (
        f"allows {render_milli(found.milli)} of {found.resource}, and the card quota has {promised} of it "
        f"({', '.join(cards[:_NAMED])}{more}): the smaller holds, so Volcano's quota keeps pods without a node that have their "
        "card quota"
    )
