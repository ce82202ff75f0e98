"""What is used on the nodes, summed up over all of them: cards that nobody is charged with, and how full mGPU cards are."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector

from controller.series import escaped
from core.display.node_use import FILLS, NodeUse, use_of
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish
from kube.exposition import LongFamily

_UNACCOUNTED: Final = "cardquota_cards_unaccounted"
_FILL: Final = "cardquota_mgpu_cards"
_FAMILIES: Final = {
    _UNACCOUNTED: (
        "card",
        "Cards on nodes that pods use without naming the card, so that no queue is charged with them; in cards.",
    ),
    _FILL: (
        "fill",
        "mGPU cards by how much of each is taken, of its core or its memory, whichever is more; in hundredths from - to.",
    ),
}
_NODES_IN_A_STEP: Final = 2


class NodeSeries(Collector):
    """Read from the ledger when the page is asked for, while `leading` says so: the nodes that have changed since the last time."""

    def __init__(self, ledger: Ledger, leading: Callable[[], bool]) -> None:
        self._ledger = ledger
        self._leading = leading
        self._uses: dict[str, NodeUse] = {}
        self._unaccounted: dict[str, int] = {}
        self._fills = [0] * len(FILLS)
        self._pending: dict[str, None] = {}
        self._changes = 0
        self._epoch: int | None = None

    @property
    def label_names(self) -> dict[str, tuple[str, ...]]:
        """The labels of each family."""
        return {name: (label,) for name, (label, _) in _FAMILIES.items()}

    def collect(self) -> Iterator[Metric]:
        """Both families."""
        for name, (label, text) in _FAMILIES.items():
            yield _Family(name, text, label, self)

    def values(self, name: str) -> Steps[dict[str, float]]:
        """What a family shows, by its label."""
        if not self._leading():
            return {}
        yield from self._catch_up()
        if name == _FILL:
            return dict(zip(FILLS, map(float, self._fills), strict=True)) if any(self._fills) else {}
        cards = self._ledger.inventory.totals().keys() | self._unaccounted.keys()
        return {card: self._unaccounted.get(card, 0) / 1000 for card in sorted(cards)}

    def _catch_up(self) -> Steps[None]:
        occupants, pace = self._ledger.occupants, Pace(_NODES_IN_A_STEP)
        if self._epoch != occupants.epoch:
            self._uses, self._unaccounted, self._fills = {}, {}, [0] * len(FILLS)
            self._pending, self._changes, self._epoch = {}, 0, occupants.epoch
        # What changes meanwhile is looked at the next time, and what is not reached because nobody waits any more, too.
        self._pending.update(dict.fromkeys(occupants.changed_since(self._changes)))
        self._changes = occupants.changes
        while self._pending:
            if pace.due():
                yield
            node = next(iter(self._pending))
            self._put(node, use_of(self._ledger, node))
            del self._pending[node]

    def _put(self, node: str, use: NodeUse) -> None:
        old = self._uses.pop(node, NodeUse())
        for sign, one in ((-1, old), (1, use)):
            for card, milli in one.unaccounted.items():
                self._unaccounted[card] = self._unaccounted.get(card, 0) + sign * milli
            for place, number in enumerate(one.fills):
                self._fills[place] += sign * number
        for card in [card for card, milli in self._unaccounted.items() if not milli]:
            del self._unaccounted[card]
        if use != NodeUse():
            self._uses[node] = use


class _Family(LongFamily):
    def __init__(self, name: str, documentation: str, label: str, series: NodeSeries) -> None:
        super().__init__(name, documentation)
        self._label = label
        self._series = series

    def all_samples(self) -> list[Sample]:
        found = finish(self._series.values(self.name))
        return [Sample(self.name, {self._label: key}, value) for key, value in found.items()]

    def lines(self) -> Steps[list[str]]:
        found = yield from self._series.values(self.name)
        return [f'{self.name}{{{self._label}="{escaped(key)}"}} {value}\n' for key, value in found.items()]
