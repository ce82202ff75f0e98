"""How much one object may ask us to look at: what is beyond is refused in plain words, before anything is compared.

What is stored past us costs more time than one object should take, but nobody else's: the quota pass decides in slices.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core import reasons
from core.objects import raw as read
from core.objects.node_rules import REQUIRED
from core.violations import Violation

MAX_EXPRESSIONS: Final = 2000
"""Conditions in the required node affinity of a pod; each is compared with each node that carries its cards."""
MAX_TEMPLATES: Final = 500
"""Pod templates of one object that are judged in one review."""


def expressions(spec: Mapping[str, Any], prefix: str) -> Iterator[Violation]:
    """A pod whose required node affinity has more conditions than may be looked at."""
    required = read.mapping(spec, "affinity", "nodeAffinity", REQUIRED)
    count = sum(
        len(read.sequence(term, kind))
        for term in read.sequence(required, "nodeSelectorTerms")
        for kind in ("matchExpressions", "matchFields")
    )
    if count > MAX_EXPRESSIONS:
        path = f"{prefix}spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
        detail = (
            f"must have at most {MAX_EXPRESSIONS:,} expressions in all its terms; label the nodes that are meant, "
            "and select that label"
        )
        yield Violation(reasons.AFFINITY_TOO_LARGE, path, detail, kind="Too many", value=count)


def templates(count: int, path: str) -> Iterator[Violation]:
    """An object with more new or changed pod templates, at `path`, than are judged in one review."""
    if count > MAX_TEMPLATES:
        detail = f"must have at most {MAX_TEMPLATES} new or changed templates; make several objects of it"
        yield Violation(reasons.TOO_MANY_TEMPLATES, path, detail, kind="Too many", value=count)
