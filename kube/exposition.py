"""The metrics page of a process, made in steps.

prometheus_client renders a registry in one go: half a second for the series of two thousand queues.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, Literal

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric, Sample
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from core.steps import Steps
from kube import answers
from kube.turns import Turns

Encoder = Callable[[Collector], bytes]

_ESCAPING: Final = re.compile(r"escaping=(?:dots|values)\b")
"""Ways to write names beyond letters, digits and underscores. There are none of these here, so nothing has to be escaped."""


class LongFamily(Metric, ABC):
    """A family that has so many samples that its lines are made in steps; of counters the samples end in `_total`, the name does not."""

    def __init__(self, name: str, documentation: str, kind: Literal["gauge", "counter"] = "gauge") -> None:
        super().__init__(name, documentation, kind)
        del self.samples

    @cached_property
    def samples(self) -> list[Sample]:  # type: ignore[override] # nobody but the base class ever sets it
        """All samples in one go, for whoever collects the registry by other means than a `Page`."""
        return self.all_samples()

    @abstractmethod
    def all_samples(self) -> list[Sample]:
        """What the lines show."""

    @abstractmethod
    def lines(self) -> Steps[list[str]]:
        """The lines below those of help and type, many in each text."""


class Page:
    """The page of one registry. One is made at a time; whoever asks meanwhile waits, and gets the next one with all others.

    So however many ask, each waits for two of them to be made.
    """

    def __init__(self, registry: CollectorRegistry, turns: Turns | None = None) -> None:
        self._registry = registry
        self._turns = turns or Turns()
        self._making = asyncio.Lock()
        self._next: dict[str, _Next] = {}
        """By format, those that are not begun yet."""

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answers in the format (text or OpenMetrics) that the scraper asks for."""
        accepted = _ESCAPING.sub("escaping=underscores", request.headers.get("Accept", ""))
        encode, content_type = choose_encoder(accepted)
        return await answers.in_parts(
            request, await self.made(encode, content_type), {"Content-Type": content_type}
        )

    async def made(self, encode: Encoder, content_type: str = "") -> list[bytes]:
        """The page in parts. It shows what there is while it is made, so its series may differ by some milliseconds."""
        page = self._next.setdefault(content_type, _Next())
        async with self._making:
            if page.parts is None:
                # Whoever comes from here on might miss what has just happened: it gets another one.
                if self._next.get(content_type) is page:
                    del self._next[content_type]
                page.parts = await self._turns.finish(_page(self._registry, encode))
        return page.parts


class _Next:
    """A page that somebody waits for."""

    def __init__(self) -> None:
        self.parts: list[bytes] | None = None


def _page(registry: Collector, encode: Encoder) -> Steps[list[bytes]]:
    """What the encoder makes of the registry, family by family."""
    end, parts = encode(_Families()), list[bytes]()
    for family in registry.collect():
        if isinstance(family, LongFamily):
            head = Metric(family.name, family.documentation, family.type)
            parts.append(encode(_Families(head)).removesuffix(end))
            parts.extend(text.encode() for text in (yield from family.lines()))
        else:
            parts.append(encode(_Families(family)).removesuffix(end))
        yield
    return [*parts, end]


class _Families(Collector):
    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
