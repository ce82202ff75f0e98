"""The records on a pod of what was assigned to it: which card it got, and how many; or how much of one, for mGPU shares.

`cardquota.io/assigned` has whole cards. The other record is of the card whose quota mGPU shares count against as well, by
hundredths, where `mgpu.cardQuota` says so. Which card that is, the node decides: a product label names its cards. While a pod
waits nobody knows; its lift chooses a node and puts the card on record, and by that record the pod is charged from then on,
whatever becomes of labels. Who was bound without one is charged by what its node shows.
"""

import json
from functools import lru_cache
from typing import Final

from core import names
from core.cards.quota import CardJsonError, parse_request
from core.objects import Pod

NO_CARD: Final = "{}"
"""The record of a pod on a node that names no product: it is charged with no card, even if the node names one later."""

_MILLI_OF_HUNDREDTH: Final = 10
_SHORT: Final = 256
"""Longest text that is remembered, so that odd annotations cannot fill the memory."""


@lru_cache(maxsize=4096)
def render_assigned(card: str, count: int) -> str:
    """The annotation's text for so many whole cards."""
    return json.dumps({card: count}, separators=(",", ":"))


def read_assigned(text: str) -> tuple[str, int] | None:
    """(card, whole cards), or None for a text that we cannot have written: one card per pod, counted in whole cards."""
    return _remembered(text) if len(text) <= _SHORT else _read(text)


def _read(text: str) -> tuple[str, int] | None:
    try:
        entries = parse_request(text)
    except CardJsonError:
        return None
    return next(iter(entries.items())) if len(entries) == 1 else None


_remembered = lru_cache(maxsize=4096)(_read)
"""A cluster has few different records, and each is read again whenever its pod changes."""


def share_milli(pod: Pod) -> int:
    """What the shares of a pod are of a card, in thousandths: its cores, of which a card has a hundred, rounded up."""
    hundredths = -(-pod.requests.get(names.MGPU_CORE, 0) // 1000)
    return max(hundredths, 0) * _MILLI_OF_HUNDREDTH


def render_share(card: str, milli: int) -> str:
    """The text of the record: the card, and how many hundredths of it."""
    return json.dumps({card: milli // _MILLI_OF_HUNDREDTH}, separators=(",", ":"))


def recorded_share(pod: Pod) -> tuple[str, int] | None:
    """The card on record and how much of it, in thousandths; "" for none. None without a record that we can have written."""
    text = pod.annotations.get(names.SHARE_CARD_ANNOTATION)
    if text is None:
        return None
    if text == NO_CARD:
        return "", 0
    record = read_assigned(text)
    return None if record is None else (record[0], record[1] * _MILLI_OF_HUNDREDTH)
