"""Whether a Volcano Job may start at all: what it declares as a whole, against what is left of its queue.

Asked once, before the first pod of the job is lifted; afterwards its pods count and the declaration is ignored. Only the
numbers of the queue are compared: whether the pods can be laid onto cards is the gang's question. Whether the queue is
open at all is asked before.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core import names
from core.cards import expression
from core.cards.quota import CardJsonError, parse_request
from core.objects import Group
from core.queues.amounts import Amounts
from core.queues.attribution import is_job
from core.queues.cpu_memory import cpu_memory_shortfall
from core.queues.limits import Limits
from core.queues.shortfall import card_shortage, uncountable
from core.queues.usage import min_cpu_memory
from core.queues.whole import Use
from core.refusal import Refusal, first_above
from core.settings import Settings

_TOO_MANY: Final = (
    f"{names.CARD_REQUEST_ANNOTATION}: a key names more than {expression.MAX_ALTERNATIVES} cards, or has more than "
    f"{expression.MAX_LENGTH} characters; shorten it"
)


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What a group declares, in thousandths: cards by expression, and its minimum of CPU and memory."""

    cards: Amounts
    cpu_memory: Amounts = field(default_factory=dict)


def declared_request(
    group: Group, queue: str, known: Container[str], settings: Settings
) -> GroupRequest | Refusal | None:
    """What the group of a Volcano Job declares, or why that cannot be read; `known` as by `usage.card_resources`.

    None for a group that declares no cards, and for every other owner: there the pods exist first, and they count.
    """
    if not (settings.features.cards and group.card_request and is_job(group.owner)):
        return None
    try:
        cards = {card: count * 1000 for card, count in parse_request(group.card_request).items()}
    except CardJsonError as error:
        return uncountable(queue, f"{names.CARD_REQUEST_ANNOTATION}: {error}")
    if any(expression.is_excessive(card) for card in cards):
        return uncountable(queue, _TOO_MANY)
    minimum = min_cpu_memory(group, known, settings, has_cards=bool(cards))
    return GroupRequest(cards, minimum or {})


@dataclass(frozen=True, slots=True)
class GroupBalance:
    """A queue's limits, and what is allocated plus reserved of them, in thousandths.

    `cpu_memory` and `cpu_memory_used` as of `check.Balance`. `used` has a card under its name, and under the whole
    expression what a pod without record may still put on any of several cards. `uniform` says that all pods of a group
    get one card. `above` are the queues above whose limits hold as well: a card that is not listed is not limited there
    (`listed_only`). `short` as of `check.Balance`.
    """

    queue: str
    limits: Limits
    cpu_memory: Amounts
    used: Amounts
    cpu_memory_used: Callable[[str], int]
    uniform: bool = False
    listed_only: bool = False
    above: tuple["GroupBalance", ...] = ()
    short: set[str] | None = None

    def shortfall(self, request: GroupRequest) -> Refusal | None:
        """None when all of the request fits; else the first that does not: CPU, memory, cards in the order of names.

        Several alternatives are judged by their sums: what is used of them, asked for of each by name, and asked for
        together; unless one of them must serve all pods, then each is judged by itself. What is booked with its choice
        still open may land on any of its cards, so it counts for each of them.
        """
        return self.here(request) or first_above(self.queue, (level.here(request) for level in self.above))

    def here(self, request: GroupRequest) -> Refusal | None:
        """The same of this queue alone."""
        short = cpu_memory_shortfall(self.queue, self.cpu_memory, self.cpu_memory_used, request.cpu_memory)
        if short is not None:
            self._told(request.cpu_memory)
            return short
        demand = _Demand(self.used, request.cards)
        for card, milli in sorted(request.cards.items()):
            short = self._card_shortfall(demand, card, milli) if milli > 0 else None
            if short is not None:
                self._told(expression.split(card))
                return short
        return None

    def _told(self, keys: Iterable[str]) -> None:
        if self.short is not None:
            self.short.update(keys)

    def _card_shortfall(self, demand: "_Demand", card: str, milli: int) -> Refusal | None:
        names = tuple(dict.fromkeys(expression.split(card)))
        ways = [frozenset((name,)) for name in names] if self.uniform else [frozenset(names)]
        total = limit = 0
        uses: list[Use] = []
        for cards in ways:
            if self.listed_only and any(self._limit(name) is None for name in cards):
                return None
            total = demand.total(cards, milli if len(cards) < len(names) else 0)
            limit = sum(self._limit(name) or 0 for name in cards)
            if total <= limit:
                return None
            uses.append(Use(expression.BAR.join(sorted(cards)), total - milli, limit))
        return card_shortage(self.queue, self.limits, card, milli, total, limit, denied="enqueue", uses=uses)

    def _limit(self, card: str) -> int | None:
        return 0 if self.limits.malformed else self.limits.cards.get(card)


class _Demand:
    """What would be used of cards with the request added. A question costs what bears on its cards."""

    def __init__(self, used: Mapping[str, int], asked: Mapping[str, int]) -> None:
        self._used = used
        # A|B and B|A are one and the same; so is A beside A.
        self._asked: defaultdict[frozenset[str], int] = defaultdict(int)
        for key, milli in asked.items():
            self._asked[frozenset(expression.split(key))] += milli
        self._open = _open_bookings(used)

    def total(self, cards: frozenset[str], more: int) -> int:
        """Used of these cards, asked for of each by name, where there are several, of them together, and `more`."""
        names_alone = sum(self._used.get(card, 0) + self._asked.get(frozenset((card,)), 0) for card in cards)
        together = self._asked.get(cards, 0) if len(cards) > 1 else 0
        may_land = {key for card in cards for key in self._open.get(card, ())}
        return names_alone + together + more + sum(self._used[key] for key in may_land)


def _open_bookings(used: Iterable[str]) -> dict[str, list[str]]:
    """Card -> the expressions that something is booked under and that may land on it."""
    found: dict[str, list[str]] = {}
    for key in used:
        if expression.BAR in key:
            for card in expression.split(key):
                found.setdefault(card, []).append(key)
    return found
