"""The deletion of a queue that is in use: allowed, and told."""

from collections.abc import Iterator
from typing import Final

from core import quantity, reasons
from core.admission.request import AdmissionRequest
from core.objects import Queue, queue
from core.violations import Findings, Hint, show

_PATH: Final = "status.allocated"
_OF_EVERY_POD: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""The scheduler's own keys: they say nothing about cards."""
_TOLD: Final = 4


def judge(request: AdmissionRequest, found: Findings) -> None:
    """A warning with what is in use; never a refusal: nobody has to wait for pods before a queue may go."""
    deleted = queue.project(request.old_object)
    used = list(_in_use(deleted))
    if not used:
        return
    more = f" and {len(used) - _TOLD} more" if len(used) > _TOLD else ""
    detail = (
        f"{', '.join(used[:_TOLD])}{more} in use; what runs goes on, and what is created for this queue from now on waits "
        "until there is a queue of this name again"
    )
    found.hints.append(Hint(reasons.QUEUE_IN_USE, _PATH, detail))


def _in_use(deleted: Queue) -> Iterator[str]:
    for key, text in sorted(deleted.allocated.items()):
        if key in _OF_EVERY_POD:
            continue
        try:
            amount = quantity.milli(text)
        except quantity.QuantityError:
            continue
        if amount > 0:
            yield f"{quantity.render_milli(amount)} {show(key)}"
