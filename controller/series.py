"""Series that are read off the books when the page is asked for."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, Literal, TypeVar

from prometheus_client.core import Sample
from prometheus_client.utils import floatToGoString

from core.steps import Steps, finish
from kube.metrics import LongFamily

Labels = tuple[str, ...]
Values = Mapping[Labels, float]
"""By the labels that follow the first one."""

S = TypeVar("S")
T = TypeVar("T")

_PER_TEXT: Final = 200


class BookSeries(ABC, Generic[S]):
    """Families whose first label names an object, as a queue; `S` is what the values of one object are made of.

    A series that is gone is shown once more with 0 and then dropped, so that a sum over time does not keep its last
    value; those of a deleted object are dropped at once.
    """

    def __init__(
        self, families: Mapping[str, str], *labels: str, kind: Literal["gauge", "counter"] = "gauge"
    ) -> None:
        """`families` are their help texts by name; of counters the name has no `_total`, and their samples have."""
        self._documentation = families
        self.kind: Literal["gauge", "counter"] = kind
        self._labels = labels
        self._order = sorted(range(len(self._labels)), key=self._labels.__getitem__)
        self._blocks: dict[str, _Block[S]] = {}

    @property
    def label_names(self) -> Labels:
        """The names of the labels, the object's first."""
        return self._labels

    @abstractmethod
    def sources(self) -> Iterator[tuple[str, S] | None]:
        """What the values of each object are made of, in a lasting order; while it is equal, they are not made anew.

        Anything may change between two of them. None is a place where others may come to their turn besides.
        """

    @abstractmethod
    def values(self, source: S) -> Sequence[Values]:
        """What is shown of an object, for each of the families."""

    @abstractmethod
    def existing(self) -> Container[str]:
        """The objects that are there."""

    def families(self) -> list[LongFamily]:
        """The families of one page; they are filled when the first of them is asked for what it shows."""
        sheet = _Sheet(self)
        return [
            _Family(name, text, number, sheet)
            for number, (name, text) in enumerate(self._documentation.items())
        ]

    def fill(self) -> Steps["_Filled[S]"]:
        """Brings the values up to date; those of an object of which nothing has changed are taken over as they are."""
        before, blocks = self._blocks, dict[str, _Block[S]]()
        for found in self.sources():
            if found is not None:
                name, source = found
                known = before.get(name)
                same = known is not None and known.source == source
                blocks[name] = known if known and same else self._block(name, source)
            yield
        gone: list[list[tuple[Labels, float]]] = [[] for _ in self._documentation]
        existing = self.existing()
        for name, old in before.items():
            new = blocks.get(name)
            if new is not old and name in existing:
                for number, had in enumerate(old.values):
                    has = new.values[number] if new is not None else {}
                    gone[number] += (((name, *labels), 0.0) for labels in sorted(had.keys() - has.keys()))
            yield
        self._blocks = blocks
        return _Filled(blocks, gone)

    def line(self, family: str, labels: Labels, value: float) -> str:
        """One line of the page, as prometheus_client writes it."""
        pairs = ",".join(f'{self._labels[place]}="{escaped(labels[place])}"' for place in self._order)
        number: str = floatToGoString(value)  # type: ignore[no-untyped-call] # the only one that the library leaves out
        return f"{self._sampled(family)}{{{pairs}}} {number}\n"

    def sample(self, family: str, labels: Labels, value: float) -> Sample:
        """The same for prometheus_client."""
        return Sample(self._sampled(family), dict(zip(self._labels, labels, strict=True)), value)

    def _sampled(self, family: str) -> str:
        return f"{family}_total" if self.kind == "counter" else family

    def _block(self, name: str, source: S) -> "_Block[S]":
        values = self.values(source)
        texts = tuple(
            "".join(self.line(family, (name, *labels), value) for labels, value in sorted(some.items()))
            for family, some in zip(self._documentation, values, strict=True)
        )
        return _Block(source, values, texts)


@dataclass(frozen=True, slots=True)
class _Block(Generic[S]):
    """What is shown of one object, family by family."""

    source: S
    values: Sequence[Values]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Filled(Generic[S]):
    """The objects in their order, and for each family what is shown for the last time."""

    blocks: Mapping[str, _Block[S]]
    gone: Sequence[Sequence[tuple[Labels, float]]]


class _Sheet(Generic[S]):
    """What the families of one page have in common."""

    def __init__(self, series: BookSeries[S]) -> None:
        self.series = series
        self._filled: _Filled[S] | None = None

    def filled(self) -> Steps[_Filled[S]]:
        if self._filled is None:
            self._filled = yield from self.series.fill()
        return self._filled


class _Family(LongFamily, Generic[S]):
    def __init__(self, name: str, documentation: str, number: int, sheet: _Sheet[S]) -> None:
        super().__init__(name, documentation, sheet.series.kind)
        self._number = number
        self._sheet = sheet

    def all_samples(self) -> list[Sample]:
        page, number = finish(self._sheet.filled()), self._number
        there = [
            ((name, *labels), value)
            for name, block in page.blocks.items()
            for labels, value in sorted(block.values[number].items())
        ]
        return [self._sheet.series.sample(self.name, *shown) for shown in (*page.gone[number], *there)]

    def lines(self) -> Steps[list[str]]:
        page, number = (yield from self._sheet.filled()), self._number
        line, texts = self._sheet.series.line, list[str]()
        for some in _parts(page.gone[number]):
            texts.append("".join(line(self.name, *shown) for shown in some))
            yield
        for blocks in _parts(page.blocks.values()):
            texts.append("".join(block.texts[number] for block in blocks))
            yield
        return texts


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, _PER_TEXT)):
        yield some


def escaped(text: str) -> str:
    """The value of a label as the page has it."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
