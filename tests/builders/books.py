"""The books over objects at hand."""

from collections.abc import Iterable

from core.objects.kinds import View
from core.queues.intake import put
from core.queues.ledger import Ledger
from core.settings import Settings


def books_of(settings: Settings, views: Iterable[View]) -> Ledger:
    """A ledger that has taken in these objects, in their order, and nothing before."""
    ledger = Ledger(settings)
    for view in views:
        put(ledger, view)
    return ledger
