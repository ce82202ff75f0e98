"""The flat keys of the scheduler plugins' own configuration, so that an existing one can be pasted in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Path = tuple[str, ...]

IGNORED: Final = "predicate.MGPUMaxContainersNumPolicyValid"
"""Accepted because existing configurations carry it; nothing depends on it."""

EXACT: Final[Mapping[str, Path]] = {
    "cardUnlimitedCpuMemory": ("cards", "unlimitedCpuMemory"),
    "predicate.MGPUEnable": ("features", "mgpu"),
    "predicate.MGPUPolicy": ("mgpu", "policy"),
    "predicate.MGPUWeightOfCore": ("mgpu", "weightOfCore"),
    "predicate.MGPUScheduleMode": ("mgpu", "scheduleMode"),
    "predicate.MGPUMaxContainersPerCard": ("mgpu", "maxContainersPerCard"),
    "gpu-resource-names": ("crossQuota", "gpuResourceNames"),
    "quota-resources": ("crossQuota", "quotaResources"),
    "crossQuotaWeight": ("crossQuota", "weight"),
    "label-selector": ("crossQuota", "labelSelector"),
}
"""Flat key -> path of the key that it stands for."""
PREFIXES: Final[Mapping[str, Path]] = {
    "quota-percentage.": ("crossQuota", "quotaPercentage"),
    "quota.": ("crossQuota", "quota"),
    "weight.": ("crossQuota", "weights"),
}
"""What such a flat key begins with -> path of the mapping of which the rest of it is a key."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A flat key of the document, the path that it stands for, and its value."""

    key: str
    path: Path
    value: Any


def target(key: object) -> Path | None:
    """The path that a flat key stands for; None when it is no alias."""
    if not isinstance(key, str):
        return None
    if key in EXACT:
        return EXACT[key]
    for prefix, path in PREFIXES.items():
        if key.startswith(prefix) and len(key) > len(prefix):
            return (*path, key[len(prefix) :])
    return None


def split(document: Mapping[Any, Any]) -> tuple[dict[Any, Any], list[Alias]]:
    """The document without its flat keys, and the flat keys."""
    own: dict[Any, Any] = {}
    found: list[Alias] = []
    for key, value in document.items():
        path = target(key)
        if path is not None:
            found.append(Alias(key, path, value))
        elif key != IGNORED:
            own[key] = value
    return own, found


def has(document: Mapping[Any, Any], path: Path) -> bool:
    """Whether the document sets the value at `path`."""
    raw: Any = document
    for key in path:
        if not isinstance(raw, dict) or key not in raw:
            return False
        raw = raw[key]
    return True


def put(document: Mapping[Any, Any], path: Path, value: Any) -> dict[Any, Any]:
    """A copy of the document with `value` at `path`; what stands in the way and is no mapping is kept as it is.

    Keeping it lets the model name the real mistake.
    """
    key, rest = path[0], path[1:]
    if not rest:
        return {**document, key: value}
    inner = document.get(key)
    if inner is not None and not isinstance(inner, dict):
        return dict(document)
    return {**document, key: put(inner or {}, rest, value)}


def shared(document: Mapping[Any, Any], aliases: list[Alias]) -> Iterator[Alias]:
    """The aliases whose own key is set as well."""
    return (alias for alias in aliases if has(document, alias.path))
