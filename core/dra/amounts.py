"""Amounts of devices: how many of a DeviceClass, and how much of each of their capacity dimensions.

All amounts are whole nano-units, numbers of devices too. Nothing finer can be written as a quantity, so sums, products and
comparisons are exact, and Python's integers have no end.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final, NamedTuple, Self

NANO: Final = 10**9
"""One unit: one device, one byte, one whatever the dimension counts."""

_PREFIX: Final = "deviceclass/"
_INFIX: Final = ".deviceclass/"
_SUFFIXES: Final = (("", NANO), ("m", 10**6), ("u", 10**3), ("n", 1))


class DeviceKey(NamedTuple):
    """What is counted: devices of a class, or one capacity dimension of them (`dimension` not empty).

    Without a class it is a card that is the same devices as some class, see core.dra.links; `dimension` is its name then.
    """

    device_class: str
    dimension: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The key that a resource list means by `deviceclass/C` or `D.deviceclass/C`; None for any other name."""
        # A class holds no slash, so the last one stands in front of it; a dimension may hold one.
        dimension, infix, device_class = text.rpartition(_INFIX)
        if not infix and text.startswith(_PREFIX):
            device_class = text.removeprefix(_PREFIX)
        elif not dimension:
            return None
        return cls(device_class, dimension) if device_class else None

    @property
    def resource(self) -> str:
        """The key as a name in a resource list, such as `status.allocated`."""
        if not self.device_class:
            return self.dimension
        return f"{self.dimension}{_INFIX if self.dimension else _PREFIX}{self.device_class}"

    @property
    def display(self) -> str:
        """The key as messages name it."""
        return f"{self.device_class}/{self.dimension}" if self.dimension else self.device_class


Amounts = Mapping[DeviceKey, int]
"""Nano-units; a key that is absent equals zero."""


def nano(value: Fraction | int) -> int:
    """A number of units, which is a multiple of a nano-unit, in nano-units."""
    return int(value * NANO)


def total(parts: Iterable[Amounts]) -> dict[DeviceKey, int]:
    """The sum of all parts."""
    sums: dict[DeviceKey, int] = {}
    for part in parts:
        for key, amount in part.items():
            sums[key] = sums.get(key, 0) + amount
    return sums


def most(parts: Iterable[Amounts]) -> dict[DeviceKey, int]:
    """The greatest amount that any part has, key by key."""
    greatest: dict[DeviceKey, int] = {}
    for part in parts:
        for key, amount in part.items():
            greatest[key] = max(greatest.get(key, 0), amount)
    return greatest


def render(amount: int) -> str:
    """Nano-units as the shortest plain quantity: two devices are `2`, half a unit is `500m`."""
    suffix, scale = next((suffix, scale) for suffix, scale in _SUFFIXES if amount % scale == 0)
    return f"{amount // scale}{suffix}"


def thousandths(amounts: Amounts) -> dict[str, int]:
    """The amounts by resource name in thousandths, rounded up, to stand beside those of cards."""
    return {key.resource: -(-amount // 10**6) for key, amount in amounts.items()}
