"""What a queue may use."""

from collections.abc import Mapping
from dataclasses import dataclass

from core import names
from core.cards.quota import CardJsonError, parse_quota
from core.objects import Queue


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits in thousandths.

    A card that is not listed may not be used at all; a share key that is not listed is not limited.
    """

    cards: Mapping[str, int]
    shares: Mapping[str, int]
    malformed: str
    """Why the card quota cannot be read; empty when it can. A queue with an unreadable quota has no cards."""
    declared: bool
    """Whether the queue has any usable card quota or capability at all."""


def cards_of(queue: Queue) -> Mapping[str, int]:
    """The quota of each card, in whole cards; none where it cannot be read."""
    try:
        return parse_quota(queue.card_quota)
    except CardJsonError:
        return {}


def limits_of(queue: Queue) -> Limits:
    """The limits of a queue as it is stored; never raises, since a bad quota may have been stored without us."""
    malformed = ""
    cards: dict[str, int] = {}
    try:
        cards = {card: count * 1000 for card, count in parse_quota(queue.card_quota).items()}
    except CardJsonError as error:
        malformed = str(error)
    return Limits(
        cards=cards,
        shares={key: queue.capability[key] for key in names.MGPU_RESOURCES if key in queue.capability},
        malformed=malformed,
        declared=bool(cards) or queue.has_capability,
    )
