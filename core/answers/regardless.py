"""Who waits whatever else is so: also where part of those who hold or want something are not known."""

from collections.abc import Collection

from core.answers.whatif import Change, SpentError, WhatIf
from core.plan.decision import Hold
from core.queues.ledger import Ledger
from core.stage import Stage


def held_regardless(ledger: Ledger, unclear: Collection[str] = ()) -> dict[str, Hold]:
    """Why each of those waits, by UID, who would wait were nobody else let in; without those of whom nothing is known for sure.

    Whoever might be let in may wait in truth, and then holds up nobody; so he is taken away, with those who wait to start with
    him, until nobody is left who might. Where that takes too many tries nothing is said. The books are as they were afterwards.
    """
    whatif = WhatIf(ledger)
    gone = _with_their_groups(ledger, unclear)
    try:
        while True:
            holds = whatif.holds(Change.none().without(*gone))
            lifted = _waiting(ledger) - gone - holds.keys()
            if not lifted:
                return holds
            gone |= _with_their_groups(ledger, lifted)
    except SpentError:
        return {}


def _waiting(ledger: Ledger) -> set[str]:
    return {entry.pod.uid for entry in ledger.entries() if entry.stage is Stage.WAITING}


def _with_their_groups(ledger: Ledger, uids: Collection[str]) -> set[str]:
    """These, and who waits to start with any of them."""
    entries = [entry for uid in uids if (entry := ledger.entry(uid)) is not None]
    groups = {entry.pod.group_key for entry in entries if entry.pod.group_key}
    return {*uids, *(one.pod.uid for group in groups for one in ledger.entries_of(group))}
