"""CrossQuota settings are forgiving: a bad value is said once and the next source applies, as in Volcano's plugin.

Everything here turns what was written into values that the model accepts, and collects what was dropped.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from core import quantity
from core.label_selector import is_key, is_value
from core.settings.values import listed
from core.violations import show

DEFAULT_WEIGHT: Final = 10
DEFAULT_WEIGHTS: Final[Mapping[str, int]] = {"cpu": 10, "memory": 1}

_NUMBER: Final = re.compile(r"\+?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_BEYOND_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!>(]|<[=!]|P[=>])|\\[1-9])")


def soften(section: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The section with every forgivable value made good, and one line for each that was not.

    Unknown keys, and quotas and weights that are no mapping, are left for the model to refuse.
    """
    result, warnings = dict(section), list[str]()

    def use(key: str, read: Callable[[Any], Any], otherwise: str) -> None:
        if key not in result:
            return
        try:
            result[key] = read(result[key])
        except ValueError as error:
            warnings.append(f"crossQuota.{key}: {show(result[key])} {error}; {otherwise}")
            del result[key]

    if "gpuResourceNames" in result:
        result["gpuResourceNames"], dropped = _patterns(result["gpuResourceNames"])
        warnings += dropped
    use("quotaResources", _resources, "cpu alone is used")
    use("weight", _weight, f"{DEFAULT_WEIGHT} is used")
    use("labelSelector", _selector, "all pods are limited")
    for key, read in (("quota", _quota), ("quotaPercentage", percentage), ("weights", _weight)):
        if isinstance(result.get(key), dict):
            result[key], dropped = _entries(key, result[key], read)
            warnings += dropped
    if isinstance(result.get("weights"), dict):
        result["weights"] = {**DEFAULT_WEIGHTS, **result["weights"]}
    return result, warnings


def percentage(value: object) -> Fraction:
    """The exact value of a percentage: a decimal number above 0 and at most 100. Raises ValueError.

    Read by a grammar of its own: Python's `float` also takes `nan`, `inf` and `1_0`.
    """
    text = _text(value)
    number = Fraction(text) if _NUMBER.fullmatch(text) else Fraction(0)
    if not 0 < number <= 100:
        raise ValueError("is no number above 0 and at most 100")
    return number


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _quota(value: object) -> Fraction:
    amount = quantity.parse(value.strip() if isinstance(value, str) else value)
    if amount < 0:
        raise ValueError("is negative")
    return amount


def _weight(value: object) -> int:
    if isinstance(value, float) and abs(value) < 10**18:  # also false for NaN
        value = int(value)
    text = _text(value)
    if not _INTEGER.fullmatch(text) or int(text) < 0:
        raise ValueError("is no whole number of 0 or more")
    return int(text)


def _resources(value: object) -> tuple[str, ...]:
    items = listed(value)
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("is no list of resource names")
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip())) or ("cpu",)


def _patterns(value: object) -> tuple[tuple[str, ...], list[str]]:
    """The usable patterns; an item of a list may hold a comma, a comma-separated text is split first."""
    items = listed(value)
    kept: list[str] = []
    warnings: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        try:
            kept += _pattern(item)
        except ValueError as error:
            warnings.append(f"crossQuota.gpuResourceNames: {show(item)} {error}; the pattern is dropped")
    return tuple(dict.fromkeys(kept)), warnings


def _pattern(item: object) -> list[str]:
    if not isinstance(item, str):
        raise ValueError("is no regular expression")  # noqa: TRY004 - one kind of error for all bad values
    text = item.strip()
    if _BEYOND_RE2.search(text):
        raise ValueError("uses look-around or a back-reference, which these patterns do not have")
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return [text] if text else []


def _entries(
    key: str, section: Mapping[Any, Any], read: Callable[[Any], Any]
) -> tuple[dict[Any, Any], list[str]]:
    kept: dict[Any, Any] = {}
    warnings: list[str] = []
    for resource, value in section.items():
        try:
            kept[resource] = read(value)
        except ValueError as error:
            warnings.append(f"crossQuota.{key}.{resource}: {show(value)} {error}; it is not used")
    return kept, warnings


def _selector(value: object) -> dict[str, Any] | None:
    """A LabelSelector, checked as the API machinery checks it before it would be used."""
    if value is None:
        return None
    if not isinstance(value, dict) or not value.keys() <= {"matchLabels", "matchExpressions"}:
        raise ValueError("is no label selector")
    labels, expressions = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not isinstance(expressions, list) or not all(_is_expression(expression) for expression in expressions):
        raise ValueError("has an entry under matchExpressions that cannot be read")
    pairs = labels.items() if isinstance(labels, dict) else [(None, None)]
    if not all(is_key(key) and is_value(text) for key, text in pairs):
        raise ValueError("has a label that cannot exist under matchLabels")
    return value


def _is_expression(entry: object) -> bool:
    if not isinstance(entry, dict) or not entry.keys() <= {"key", "operator", "values"}:
        return False
    values, operator = entry.get("values") or [], entry.get("operator")
    if not is_key(entry.get("key")) or not isinstance(values, list):
        return False
    if operator in ("Exists", "DoesNotExist"):
        return not values
    return operator in ("In", "NotIn") and bool(values) and all(is_value(text) for text in values)
