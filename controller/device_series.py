"""Device quota and its use as gauges, per queue, DeviceClass and dimension."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller.series import BookSeries, Values
from core.dra.amounts import NANO, Amounts
from core.dra.carriers import NO_LIMITS
from core.names import ROOT_QUEUE
from core.queues.devices import Devices

_OF: Final = "of the queue and those below it; in devices, or in units of the dimension."
_FAMILIES: Final = {
    "cardquota_queue_device_limit": "Device quota of the queue; in devices, or in units of the dimension.",
    "cardquota_queue_device_allocated": f"Devices claimed by bound pods {_OF}",
    "cardquota_queue_device_reserved": f"Devices claimed by pods that are lifted and have no node yet, {_OF}",
}


class DeviceSeries(Collector):
    """Read from the books when the page is asked for, while `leading` says so. `dimension` is empty for devices."""

    def __init__(self, devices: Devices, leading: Callable[[], bool]) -> None:
        self._gauges = _DeviceGauges(devices, leading)

    def collect(self) -> Iterator[Metric]:
        """The three families."""
        yield from self._gauges.families()


_Sums = tuple[Amounts, Amounts, Amounts]
"""The limits, what is allocated and what is reserved."""


class _DeviceGauges(BookSeries[_Sums]):
    def __init__(self, devices: Devices, leading: Callable[[], bool]) -> None:
        super().__init__(_FAMILIES, "queue_name", "device_class", "dimension")
        self._devices = devices
        self._leading = leading

    def sources(self) -> Iterator[tuple[str, _Sums] | None]:
        book = self._devices.book
        for queue in sorted(self.existing()) if self._leading() else ():
            # Copies: the books go on.
            limit = dict(book.limits.get(queue, NO_LIMITS).bounds)
            uses = (book.accounts.allocated(queue), book.accounts.reserved(queue))
            allocated, reserved = (self._devices.shown(queue, _of_classes(amounts)) for amounts in uses)
            yield queue, (limit, allocated, reserved)

    def values(self, source: _Sums) -> Sequence[Values]:
        return tuple(map(_values, source))

    def existing(self) -> Collection[str]:
        # The root is there whether it is an object or not.
        return {*self._devices.book.limits, ROOT_QUEUE}


def _of_classes(amounts: Amounts) -> Amounts:
    """Those of devices; what is used of cards has series of its own."""
    return {key: amount for key, amount in amounts.items() if key.device_class}


def _values(amounts: Amounts) -> Values:
    return {(key.device_class, key.dimension): amount / NANO for key, amount in amounts.items()}
