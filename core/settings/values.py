"""The field types of the settings: how text that people write becomes an exact value, and back.

Every type renders to text that it reads again, so that a rendered document is a valid settings file.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, StrictStr, ValidationInfo

from core import quantity

_DURATION: Final = re.compile(r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?", re.ASCII)
_DURATION_LENGTH: Final = 20
_RESOURCE: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_PRODUCT: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHARE: Final = re.compile(r"[!-{}-~]+")
_LABEL_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PEM: Final = re.compile(
    r"(-----BEGIN CERTIFICATE-----\s+[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+", re.ASCII
)
_OBJECT_NAME_LENGTH: Final = 253


WRITTEN: Final = "written"
"""The context of a validation of what somebody has written, where a number by itself has no unit."""


def _seconds(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        if info.context == WRITTEN and isinstance(value, int | float) and not isinstance(value, bool):
            raise ValueError("must be a duration with its unit, such as 90s, 10m or 1h30m")
        return value
    match = _DURATION.fullmatch(value.strip()) if 0 < len(value.strip()) <= _DURATION_LENGTH else None
    if match is None:
        raise ValueError("must be a duration, such as 90s, 10m or 1h30m")
    hours, minutes, seconds = (int(match[unit] or 0) for unit in ("h", "m", "s"))
    return hours * 3600 + minutes * 60 + seconds


def _bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return quantity.units(value.strip())
    except quantity.QuantityError as error:
        raise ValueError(str(error)) from None


def listed(value: object) -> object:
    """The items of a comma-separated text, trimmed, empty ones dropped; anything else as it stands."""
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


def _filled(names: tuple[str, ...]) -> tuple[str, ...]:
    if any(not name or name != name.strip() for name in names):
        raise ValueError("must hold names without surrounding blanks")
    return tuple(dict.fromkeys(names))


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _product(value: str) -> str:
    if _PRODUCT.fullmatch(value) is None:
        raise ValueError("must be the product of a whole card, as the node label has it")
    return value


def _card_name(value: str) -> str:
    product, slash, share = value.partition("/")
    if _PRODUCT.fullmatch(product) is None or (slash and _SHARE.fullmatch(share) is None):
        raise ValueError("must be the name of a card, as quotas and pods have it")
    return value


def _resource(value: str) -> str:
    if _RESOURCE.fullmatch(value) is None:
        raise ValueError("must be an extended resource, such as nvidia.com/gpu")
    return value


def _some(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("must not be empty")
    return values


def _label_key(value: str) -> str:
    if _LABEL_KEY.fullmatch(value) is None:
        raise ValueError("must be the key of a label, such as nvidia.com/gpu.product")
    return value


def _label_value(value: str) -> str:
    if value and _PRODUCT.fullmatch(value) is None:
        raise ValueError("must be the value of a label")
    return value


def _object_name(value: str) -> str:
    if len(value) > _OBJECT_NAME_LENGTH or _OBJECT_NAME.fullmatch(value) is None:
        raise ValueError("must be the name of an object")
    return value


def _of_one_card(value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    cards: dict[str, str] = {}
    for card, classes in value.items():
        for name in classes:
            if cards.setdefault(name, card) != card:
                raise ValueError(
                    f"must give a DeviceClass to one card, and gives {name} to {cards[name]} and {card}"
                )
    return {card: tuple(dict.fromkeys(classes)) for card, classes in value.items()}


def _certificates(value: str) -> str:
    if _PEM.fullmatch(value.strip()) is None:
        raise ValueError("must be certificates as PEM, and nothing else")
    return value


def decimal_text(value: Fraction) -> str:
    """The value as plain decimal text; exact, since no setting holds a value without a finite expansion."""
    digits = 0
    while value * 10**digits % 1 != 0:
        digits += 1
    scaled = str(abs(value.numerator * 10**digits // value.denominator)).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{scaled[:-digits]}.{scaled[-digits:]}" if digits else sign + scaled


Seconds = Annotated[
    int,
    BeforeValidator(_seconds),
    Field(strict=True, ge=1, le=10**9),
    PlainSerializer(lambda value: f"{value}s", return_type=str, when_used="json"),
]
"""A duration in seconds, written as `90s`, `10m` or `1h30m`; in Python a number of seconds."""

Bytes = Annotated[int, BeforeValidator(_bytes), Field(strict=True, ge=1024)]
"""A size in bytes, written as a plain number or a quantity such as `64Mi`."""

Names = Annotated[tuple[StrictStr, ...], BeforeValidator(listed), AfterValidator(_filled)]
"""A list of names, or one comma-separated text; repetitions are dropped."""

Certificates = Annotated[StrictStr, AfterValidator(_certificates)]
"""Certificates in their text form. What is in them is not looked at here."""

Product = Annotated[StrictStr, AfterValidator(_product)]
ResourceName = Annotated[StrictStr, AfterValidator(_resource)]
CardName = Annotated[StrictStr, AfterValidator(_card_name)]
LabelKey = Annotated[StrictStr, AfterValidator(_label_key)]
LabelValue = Annotated[StrictStr, AfterValidator(_label_value)]
ResourceNames = Annotated[tuple[ResourceName, ...], AfterValidator(_some)]
ObjectName = Annotated[StrictStr, AfterValidator(_object_name)]

Equivalents = Annotated[
    Mapping[CardName, Annotated[tuple[ObjectName, ...], AfterValidator(_some)]], AfterValidator(_of_one_card)
]
"""Card -> names of DeviceClasses; no class belongs to two cards."""

AnyCase = BeforeValidator(_lower)
"""Marks a word that may be written in any case."""

Exact = Annotated[Fraction, PlainSerializer(decimal_text, return_type=str, when_used="json")]
"""An exact number, rendered as decimal text."""
