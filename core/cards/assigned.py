"""The record of an assignment on a pod, `cardquota.io/assigned`: which card the pod got, and how many."""

import json
from collections.abc import Mapping

from core.cards.quota import CardJsonError, parse_request


def render_assigned(assigned: Mapping[str, int]) -> str:
    """The annotation's text; counts are whole cards."""
    return json.dumps(dict(assigned), separators=(",", ":"))


def read_assigned(text: str) -> tuple[str, int] | None:
    """(card, whole cards), or None for a text that we cannot have written: one card per pod, counted in whole cards."""
    try:
        entries = parse_request(text)
    except CardJsonError:
        return None
    return next(iter(entries.items())) if len(entries) == 1 else None
