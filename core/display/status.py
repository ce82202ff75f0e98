"""What Queue status should show, and the smallest patch that makes it so.

`status.allocated` is shared with the Volcano scheduler, which replaces the whole map about once a second and
drops what it does not know; a webhook puts our keys back. So after a while nobody owns them in managedFields, and
a key that is to go needs an explicit null.
"""

from collections.abc import Mapping
from typing import Any

from core.objects import Queue
from core.quantity import QuantityError, milli, render_milli
from core.queues.amounts import is_card


def published(allocated: Mapping[str, int]) -> dict[str, str]:
    """The keys we answer for: card names with their allocated number of cards; zero is left out.

    mGPU amounts are not among them: the Volcano scheduler writes those under their resource names itself.
    """
    return {key: render_milli(amount) for key, amount in allocated.items() if amount and is_card(key)}


def status_patch(queue: Queue, wanted: Mapping[str, str]) -> dict[str, Any] | None:
    """The JSON merge patch for the status subresource, None when the status is right already.

    A key of the stored map that is not wanted goes, unless another manager owns it: what is left ownerless after a
    put-back was ours. Should a live key of another writer ever be ownerless, its next write brings it back, owned.
    """
    changes: dict[str, str | None] = {
        key: value for key, value in wanted.items() if not _equal(queue.allocated.get(key), value)
    }
    changes |= {
        key: None for key in queue.allocated if key not in wanted and key not in queue.foreign_allocated
    }
    return {"status": {"allocated": changes}} if changes else None


def _equal(stored: str | None, wanted: str) -> bool:
    if stored is None:
        return False
    try:
        return milli(stored) == milli(wanted)
    except QuantityError:
        return False
