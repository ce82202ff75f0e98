"""What is used on the nodes: of each that carries cards, and summed up over all of them."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector

from controller.series import BookSeries, Values, escaped
from core.crossquota.book import GuestBook
from core.crossquota.quota import Quota
from core.display.fill import FILLS, NodeUse, use_of
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish
from kube.metrics import LongFamily

_UNACCOUNTED: Final = "cardquota_cards_unaccounted"
_FILL: Final = "cardquota_mgpu_cards"
_SUMS: Final = {
    _UNACCOUNTED: (
        "card",
        "Cards on nodes that pods use without naming the card, so that no queue is charged with them; in cards.",
    ),
    _FILL: (
        "fill",
        "mGPU cards by how much of each is taken, of its core or its memory, whichever is more; in hundredths from - to.",
    ),
}
_CARDS: Final = {
    "cardquota_node_cards": "Cards that the node shows, whatever its state, in cards.",
    "cardquota_node_cards_used": "Cards of the node that pods on it use, with the card's name or without, in cards.",
}
_TAKEN: Final = {
    "cardquota_node_mgpu_card_taken": "Which part of an mGPU card is taken, of its core or its memory, whichever is more; 1 is "
    "all of it.",
}
_CROSS: Final = {
    "cardquota_node_cross_quota": "What pods without GPU may use of a node with GPUs; in the unit of the resource, cores or bytes.",
    "cardquota_node_cross_used": "What pods without GPU use of a node with GPUs; in the same unit.",
}
_NODES_IN_A_STEP: Final = 2


class NodeSeries(Collector):
    """Read from the books when the page is asked for, while `leading` says so: the nodes that have changed since the last time."""

    def __init__(self, ledger: Ledger, guests: GuestBook, leading: Callable[[], bool]) -> None:
        self._uses = _Uses(ledger, leading)
        self._cards = _CardGauges(_CARDS, "card", ledger, self._uses)
        self._taken = _TakenGauges(_TAKEN, "index", ledger, self._uses)
        self._guests = _GuestGauges(guests, leading)

    @property
    def label_names(self) -> dict[str, tuple[str, ...]]:
        """The labels of the families that are sums."""
        return {name: (label,) for name, (label, _) in _SUMS.items()}

    def collect(self) -> Iterator[Metric]:
        """The sums, and the families by node."""
        for name, (label, text) in _SUMS.items():
            yield _Sums(name, text, label, self._uses)
        for series in (self._cards, self._taken, self._guests):
            yield from series.families()


class _Uses:
    """The use of each node that has any cards, and its sums; kept up by what has changed."""

    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        self._ledger = ledger
        self._leading = leading
        self._uses: dict[str, NodeUse] = {}
        self._unaccounted: dict[str, int] = {}
        self._fills = [0] * len(FILLS)
        self._pending: dict[str, None] = {}
        self._changes = 0
        self._epoch: int | None = None

    def sums(self, name: str) -> Steps[Mapping[str, float]]:
        """What a family of sums shows, by its label."""
        if not self._leading():
            return {}
        yield from self._catch_up()
        if name == _FILL:
            return dict(zip(FILLS, map(float, self._fills), strict=True)) if any(self._fills) else {}
        cards = self._ledger.inventory.totals().keys() | self._unaccounted.keys()
        return {card: self._unaccounted.get(card, 0) / 1000 for card in sorted(cards)}

    def by_node(self) -> Iterator[tuple[str, NodeUse] | None]:
        """For `BookSeries.sources`."""
        if not self._leading():
            return
        for _ in self._catch_up():
            yield None
        for name in tuple(self._uses):
            if (use := self._uses.get(name)) is not None:
                yield name, use

    def _catch_up(self) -> Steps[None]:
        occupants, pace = self._ledger.occupants, Pace(_NODES_IN_A_STEP)
        if self._epoch != occupants.epoch:
            self._uses, self._unaccounted, self._fills = {}, {}, [0] * len(FILLS)
            self._pending, self._changes, self._epoch = {}, 0, occupants.epoch
        # What changes meanwhile is looked at the next time, and what is not reached because nobody waits any more, too.
        self._pending.update(dict.fromkeys(occupants.changed_since(self._changes)))
        self._changes = occupants.changes
        for node in tuple(self._pending):
            if pace.due():
                yield
            if node not in self._pending:
                # Whoever else catches up has come to it meanwhile.
                continue
            version = occupants.version(node)
            self._put(node, (yield from use_of(self._ledger, node)))
            if occupants.version(node) == version:
                self._pending.pop(node, None)
            else:
                # The next page looks at it once more, also where a second scrape has shown meanwhile what is newer.
                self._pending[node] = None

    def _put(self, node: str, use: NodeUse) -> None:
        old = self._uses.get(node, NodeUse())
        for sign, one in ((-1, old), (1, use)):
            for card, milli in one.unaccounted.items():
                self._unaccounted[card] = self._unaccounted.get(card, 0) + sign * milli
            for place, number in enumerate(one.fills):
                self._fills[place] += sign * number
        for card in [card for card, milli in self._unaccounted.items() if not milli]:
            del self._unaccounted[card]
        if use != NodeUse():
            self._uses[node] = use
        else:
            self._uses.pop(node, None)


class _Sums(LongFamily):
    def __init__(self, name: str, documentation: str, label: str, uses: _Uses) -> None:
        super().__init__(name, documentation)
        self._label = label
        self._uses = uses

    def all_samples(self) -> list[Sample]:
        found = finish(self._uses.sums(self.name))
        return [Sample(self.name, {self._label: key}, value) for key, value in found.items()]

    def lines(self) -> Steps[list[str]]:
        found = yield from self._uses.sums(self.name)
        return [f'{self.name}{{{self._label}="{escaped(key)}"}} {value}\n' for key, value in found.items()]


class _UseGauges(BookSeries[NodeUse]):
    def __init__(self, families: Mapping[str, str], label: str, ledger: Ledger, uses: _Uses) -> None:
        super().__init__(families, "node", label)
        self._ledger = ledger
        self._uses = uses

    def sources(self) -> Iterator[tuple[str, NodeUse] | None]:
        return self._uses.by_node()

    def existing(self) -> Container[str]:
        return self._ledger.nodes


class _CardGauges(_UseGauges):
    def values(self, source: NodeUse) -> Sequence[Values]:
        return _whole(source.cards), _whole(source.used)


class _TakenGauges(_UseGauges):
    def values(self, source: NodeUse) -> Sequence[Values]:
        return ({(str(number),): float(taken) for number, taken in enumerate(source.taken)},)


_Site = tuple[Quota, Mapping[str, int]]
"""The limits of a node and what is used, by resource in thousandths."""


class _GuestGauges(BookSeries[_Site]):
    def __init__(self, book: GuestBook, leading: Callable[[], bool]) -> None:
        super().__init__(_CROSS, "node", "resource")
        self._book = book
        self._leading = leading

    def sources(self) -> Iterator[tuple[str, _Site] | None]:
        if not self._leading():
            return
        for name in self._book.nodes():
            quota = self._book.quota(name)
            if quota is not None:
                # Copies: the book goes on.
                used = self._book.used(name)
                yield name, (dict(quota), {resource: used.get(resource, 0) for resource in quota})

    def values(self, source: _Site) -> Sequence[Values]:
        quota, used = source
        return _whole(quota), _whole(used)

    def existing(self) -> Container[str]:
        return {*self._book.nodes()}


def _whole(milli: Mapping[str, int] | Quota) -> Values:
    """Of thousandths."""
    return {(name,): float(amount / 1000) for name, amount in milli.items()}
