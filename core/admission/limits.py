"""How much one object may ask us to look at: what is beyond is refused in plain words, before anything is compared.

What is stored past us costs more time than one object should take, but nobody else's: the quota pass decides in slices.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core import names, reasons
from core.objects import raw as read
from core.objects.node_rules import REQUIRED
from core.violations import Violation

MAX_EXPRESSIONS: Final = 2000
"""Conditions in the required node affinity of a pod; each is compared with each node that carries its cards."""
MAX_TEMPLATES: Final = 500
"""Pod templates of one object that are judged in one review."""
MAX_PLACES: Final = 1000
"""Pod templates that one object has, stored ones too: each is compared with what it was."""
MAX_ENTRIES: Final = 5000
"""Entries of one quota."""
MAX_PARTS: Final = 20_000
"""Parts of all these templates together."""


def expressions(spec: Mapping[str, Any], prefix: str) -> Iterator[Violation]:
    """A pod whose required node affinity has more conditions than may be looked at."""
    required = read.mapping(spec, "affinity", "nodeAffinity", REQUIRED)
    terms = read.sequence(required, "nodeSelectorTerms")
    # Terms without any are looked at as well.
    count = len(terms) if len(terms) > MAX_EXPRESSIONS else 0
    count = count or sum(
        len(read.sequence(term, kind)) for term in terms for kind in ("matchExpressions", "matchFields")
    )
    if count > MAX_EXPRESSIONS:
        path = f"{prefix}spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
        detail = (
            f"must have at most {MAX_EXPRESSIONS:,} expressions in all its terms; label the nodes that are meant, "
            "and select that label"
        )
        yield Violation(reasons.AFFINITY_TOO_LARGE, path, detail, kind="Too many", value=count)


def parts(count: int, most: int, path: str) -> tuple[Violation, ...]:
    """What stands at `path` and has more parts than are looked at; `core.objects.draft` says what a part is."""
    if count <= most:
        return ()
    detail = f"must have at most {most:,} containers, amounts, claims, gates and owners, a container counting as five"
    return (Violation(reasons.OBJECT_TOO_LARGE, path, detail, kind="Too many"),)


def device_quota(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Violation]:
    """A queue that is written with more resources and DeviceClasses than are looked at."""
    spec, was = read.mapping(new, "spec"), read.mapping(old, "spec")
    counts = {"capability": len(read.mapping(spec, "capability")), "dra": _entries(read.mapping(spec, "dra"))}
    detail = f"must have at most {MAX_ENTRIES:,} entries"
    annotation, before = (
        read.text(read.mapping(each, "metadata", "annotations"), names.DRA_QUOTA_ANNOTATION)
        for each in (new, old)
    )
    # Each entry is an object of its own, and so is what holds them.
    if annotation != before and annotation.count("{") > MAX_ENTRIES + 4:
        path = f"metadata.annotations[{names.DRA_QUOTA_ANNOTATION}]"
        yield Violation(reasons.OBJECT_TOO_LARGE, path, detail, kind="Too many")
    for key, count in counts.items():
        if count > MAX_ENTRIES and spec[key] != was.get(key):
            yield Violation(reasons.OBJECT_TOO_LARGE, f"spec.{key}", detail, kind="Too many")


def _entries(quota: Mapping[str, Any]) -> int:
    """How many classes and dimensions there are, as far as it matters."""
    count = 0
    for classes in quota.values():
        for entry in classes.values() if isinstance(classes, dict) else ():
            count += 1 + len(read.mapping(entry, "capacity"))
            if count > MAX_ENTRIES:
                return count
    return count


def places(count: int, before: int, path: str) -> Iterator[Violation]:
    """An object that is to have more pod templates, at `path`, than are looked at, and more than it had `before`."""
    if count > max(MAX_PLACES, before):
        yield _too_many(count, path)


def templates(count: int, path: str) -> Iterator[Violation]:
    """An object with more new or changed pod templates, at `path`, than are judged in one review."""
    if count > MAX_TEMPLATES:
        yield _too_many(count, path)


def _too_many(count: int, path: str) -> Violation:
    """Of both limits, so that nobody who keeps the one is refused for the other."""
    detail = (
        f"must have at most {MAX_TEMPLATES} new or changed templates, and {MAX_PLACES:,} in all; "
        "make several objects of it"
    )
    return Violation(reasons.TOO_MANY_TEMPLATES, path, detail, kind="Too many", value=count)
