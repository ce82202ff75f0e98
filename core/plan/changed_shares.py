"""Which of the pods that are lifted and about to take mGPU shares somebody has to look at again."""

from collections.abc import Iterable

from core.queues.entry import ShareKey
from core.queues.ledger import Ledger


class ChangedShares:
    """Those that have come, changed or gone since they were taken last; to begin with all of them.

    `known` are, at any time, those that are remembered: where more has changed than the ledger remembers they are named too.
    """

    def __init__(self, ledger: Ledger, known: Iterable[Iterable[ShareKey]]) -> None:
        self._ledger = ledger
        self._known = known
        self._keys: dict[ShareKey, None] = dict.fromkeys(ledger.reserved_shares)
        self._seen = ledger.shares_changed.changes

    def __bool__(self) -> bool:
        """Whether there is any."""
        journal = self._ledger.shares_changed
        if self._seen != journal.changes:
            changed = journal.since(self._seen)
            for keys in (self._ledger.reserved_shares, *self._known) if changed is None else (changed,):
                self._keys.update(dict.fromkeys(keys))
            self._seen = journal.changes
        return bool(self._keys)

    def take(self) -> ShareKey:
        """One of them; to be asked only while there is one."""
        key = next(iter(self._keys))
        del self._keys[key]
        return key
