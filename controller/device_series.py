"""Device quota and its use as gauges, per queue, DeviceClass and dimension."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller.series import Labels, QueueGauges
from core.dra.amounts import NANO, Amounts
from core.dra.book import DeviceBook
from core.names import ROOT_QUEUE

_OF = "of the queue and those below it; in devices, or in units of the dimension."


class DeviceSeries(Collector):
    """Read from the books when the page is asked for, while `leading` says so. `dimension` is empty for devices."""

    def __init__(self, book: DeviceBook, leading: Callable[[], bool]) -> None:
        self._book = book
        self._leading = leading
        self._limit = _gauges("limit", "Device quota of the queue; in devices, or in units of the dimension.")
        self._allocated = _gauges("allocated", f"Devices claimed by bound pods {_OF}")
        self._reserved = _gauges(
            "reserved", f"Devices claimed by pods that are lifted and have no node yet, {_OF}"
        )

    def collect(self) -> Iterator[Metric]:
        """The three families."""
        book = self._book
        limited = book.limits if self._leading() else ()
        charged = tuple(book.queues()) if self._leading() else ()
        # The root is there whether it is an object or not.
        existing = {*book.limits, ROOT_QUEUE}
        yield self._limit.page(_values({name: book.limits[name].bounds for name in limited}), existing)
        yield self._allocated.page(_values({name: book.allocated(name) for name in charged}), existing)
        yield self._reserved.page(_values({name: book.reserved(name) for name in charged}), existing)


def _gauges(what: str, documentation: str) -> QueueGauges:
    return QueueGauges(f"cardquota_queue_device_{what}", documentation, "device_class", "dimension")


def _values(queues: Mapping[str, Amounts]) -> dict[Labels, float]:
    return {
        (queue, key.device_class, key.dimension): amount / NANO
        for queue, amounts in queues.items()
        for key, amount in amounts.items()
    }
