"""The machine of claims once more, where each change of a claim, a template or a parent comes to its pods one at a time."""

from collections.abc import Callable, Collection
from itertools import islice

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from core.objects import Pod
from core.queues import backlog
from core.queues.device_audit import DeviceSnapshot, device_drifts
from core.queues.ledger import Ledger
from core.steps import finish
from tests.property.test_claim_invariants import WithClaims


class InSlices(WithClaims):
    """Whoever is left behind is decided on as little as quota is given away twice."""

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(backlog, "_IN_ONE_STEP", 1)
        super().__init__()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()

    def listed(self, pods: Collection[Pod] | None = None) -> Ledger:
        ledger = super().listed(pods)
        behind = ledger.devices.book.behind
        behind.defer = always(behind.defer)
        return ledger

    def known(self) -> Ledger:
        """Where a claim has grown of pods that are left behind, more is in use than is booked."""
        return self.listed([entry.pod for entry in self.ledger.entries()])

    @rule(steps=st.integers(1, 3))
    def settle_some(self, steps: int) -> None:
        for _ in islice(self.ledger.settle(), steps):
            pass

    @invariant()
    def what_is_booked_adds_up(self) -> None:
        book = self.ledger.devices.book
        assert finish(device_drifts(self.ledger, DeviceSnapshot.of(book))) == []
        for pod in self.stored.values():
            entry = self.ledger.entry(pod.uid)
            if entry is not None:
                anew = book.counted_anew(entry.pod, entry.stage, entry.queue)
                assert book.claims_of(entry.pod) == anew.wants.claims, (
                    "answers are right before the bookings are"
                )

    @precondition(lambda self: not self.unseen and self.ledger.settled)
    @invariant()
    def nothing_leaks(self) -> None:
        super().nothing_leaks()

    @precondition(lambda self: not self.unseen and self.ledger.settled)
    @invariant()
    def no_claim_leaks(self) -> None:
        super().no_claim_leaks()


def always(defer: Callable[[Collection[str]], bool]) -> Callable[[Collection[str]], bool]:
    """The same where two pods are too many for one event, and one as well."""

    def deferring(uids: Collection[str]) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backlog, "AT_ONCE", 0)
            return defer(uids)

    return deferring


TestClaimsInSlices = InSlices.TestCase
