"""The words of an event: a message, and at its end the way out where the message does not say it itself."""

from typing import Final

from core import reasons
from core.catalogue import CATALOGUE, remedy

_TOLD: Final = {
    reasons.INSUFFICIENT_SCALAR_QUOTA: ("In cards:", "In whole units:"),
    reasons.INSUFFICIENT_CPU_QUOTA: ("In cores:",),
    reasons.INSUFFICIENT_MEMORY_QUOTA: ("In Gi:",),
    reasons.EMPTY_QUEUE_CAPABILITY: ("The queue has no card quota:",),
    reasons.NO_FREE_CARD: ("were it empty",),
    reasons.INSUFFICIENT_DEVICE_QUOTA: ("more than the whole quota",),
}
"""What begins the part of a message that says the way out with the numbers of the moment."""

_TELLING: Final = frozenset(
    {
        reasons.CARD_NAME_MISSING,
        reasons.MGPU_NODE_FULL,
        reasons.MGPU_ROOM_GONE,
        reasons.ROLLOUT_NEEDS_QUOTA,
        reasons.RESERVATION_EVICTED,
        reasons.GANG_GIVEN_BACK,
        reasons.LIFTED,
    }
)
"""Codes whose messages always say it themselves."""

EVENT_LIMIT: Final = 1024
"""Bytes that the API server takes for the note of an event."""

_CUT: Final = "..."


def event_note(code: str, message: str) -> str:
    """The words of an event: the message, as far as there is room for it, and at its end the way out.

    Raises KeyError for a code that the catalogue does not hold.
    """
    if code in _TELLING or any(start in message for start in _TOLD.get(code, ())):
        return message
    end = _ending(code)
    begin = message if message.endswith((".", "!", "?")) else f"{message}."
    room = EVENT_LIMIT - len(end.encode())
    raw = begin.encode("utf-8", errors="replace")
    if len(raw) > room:
        begin = raw[: room - len(_CUT)].decode("utf-8", errors="ignore") + _CUT
    return begin + end


def message_of(code: str, note: str) -> str:
    """The message of an event, whether or not the way out stands at its end: earlier versions did not write it."""
    return note.removesuffix(_ending(code)).removesuffix(".") if code in CATALOGUE else note


def _ending(code: str) -> str:
    out = remedy(code)
    return f" {out[0].upper()}{out[1:]}."
