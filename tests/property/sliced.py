"""Passes in slices: books that are made up one pod at a time, and what is assumed in them."""

import pytest

from core.queues import backlog
from core.queues.ledger import Ledger


def books_of(ledger: Ledger) -> set[str]:
    """The pods about which something is assumed."""
    return {entry.pod.uid for entry in ledger.entries() if ledger.assumed(entry.pod.uid) is not None}


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Pods that are booked anew are so one in each step, however few they are."""
    patch.setattr(backlog, "AT_ONCE", 0)
    patch.setattr(backlog, "_IN_ONE_STEP", 1)
    patch.setattr(backlog, "SIFTED_AT_ONCE", 0)
    patch.setattr(backlog, "_SIFTED_IN_ONE_STEP", 1)
