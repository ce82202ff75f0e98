"""Where a pod stands between creation and its end, as far as quota is concerned."""

from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final

from core import names
from core.objects import Pod
from core.settings import Settings


class Stage(StrEnum):
    """Where a pod stands between creation and its end, as far as quota is concerned."""

    WAITING = "waiting"
    RESERVED = "reserved"
    ALLOCATED = "allocated"
    IGNORED = "ignored"


_UNCOUNTED_PHASES: Final = frozenset({"Succeeded", "Failed", "Unknown"})


def _may_get_devices(pod: Pod) -> bool:
    """Whether a pod was let in for devices of which its scheduler makes the claim, if it has to, with the bind.

    Once the pod runs, its status names the claim; a device plugin serves one without.
    """
    return not (pod.bound and pod.phase == "Running") and pod.let_in and bool(pod.extended)


class Stages:
    """Derives where pods stand from the pods and the settings, so that a restarted controller comes to the same answer.

    The one thing that pods do not show is that time has passed: `overrun` has those that run on long after they had to be
    gone, by UID. Nobody but a live controller, which has a clock, puts any there.
    """

    def __init__(self, settings: Settings) -> None:
        self._overrun: set[str] = set()
        self._schedulers = frozenset(settings.scheduler_names)
        self._volcano = frozenset(settings.volcano.scheduler_names)
        self._wait_for_us = frozenset(settings.gates.wait_for_us)
        self._max_free_grace_s = settings.quota.max_free_grace_s

    @property
    def overrun(self) -> AbstractSet[str]:
        """The UIDs of the deleted pods that count again."""
        return self._overrun

    def count_again(self, uid: str) -> bool:
        """From now on a deleted pod counts that runs on. Returns whether that is new; whoever has it booked books it anew."""
        new = uid not in self._overrun
        self._overrun.add(uid)
        return new

    def count_no_more(self, uid: str) -> bool:
        """Takes that back. Returns whether it had been so."""
        counted = uid in self._overrun
        self._overrun.discard(uid)
        return counted

    def of(self, pod: Pod) -> Stage:
        """Where a pod stands.

        Without a node a pod holds quota that was let in, or that its scheduler may bind any moment, whoever took its gate
        away. Who can be bound by nobody we know holds nothing: else whoever names a scheduler that does not exist would
        keep a queue's quota for ever. A pod that carries our gate waits even if it asks for nothing (any more): somebody has
        to lift it.
        """
        if not (pod.asks or pod.gated or _may_get_devices(pod)) or pod.phase in _UNCOUNTED_PHASES:
            return Stage.IGNORED
        if pod.bound:
            return Stage.IGNORED if self.gave_back(pod) else Stage.ALLOCATED
        if pod.deleting:
            # No API server binds it any more.
            return Stage.IGNORED
        if pod.gated:
            return Stage.WAITING
        return Stage.RESERVED if pod.let_in or self._may_be_bound(pod) else Stage.IGNORED

    def holds(self, pod: Pod) -> bool:
        """Whether a pod, whatever it asks for, is bound and has neither ended nor given its quota back."""
        return pod.bound and pod.phase not in _UNCOUNTED_PHASES and not self.gave_back(pod)

    def gave_back(self, pod: Pod) -> bool:
        """Whether a pod with a node has given its quota back because it is being deleted, though its cards may still be busy.

        That is how the Volcano scheduler counts. But how long a pod may run on is what its owner says, and nobody gets
        quota twice by saying a year.
        """
        return pod.deleting and self._soon_gone(pod) and pod.uid not in self._overrun

    def may_overrun(self, pod: Pod) -> bool:
        """Whether a pod gave its quota back when it was deleted and has not ended: it has to be looked after."""
        return pod.deleting and pod.bound and self._soon_gone(pod) and pod.phase not in _UNCOUNTED_PHASES

    def other_gates(self, pod: Pod) -> tuple[str, ...]:
        """The gates that have to go before ours may."""
        if len(pod.gates) == pod.gated:
            return ()
        return tuple(gate for gate in pod.gates if gate != names.GATE and not self._waits_for_us(gate, pod))

    def counts_in_group(self, pod: Pod) -> bool:
        """Whether a pod without a node may start as a member of its group as soon as a scheduler has room for it."""
        if pod.asks:
            return self.of(pod) is Stage.RESERVED
        return not pod.gated and not self.other_gates(pod)

    def _soon_gone(self, pod: Pod) -> bool:
        return pod.grace_s <= self._max_free_grace_s

    def _may_be_bound(self, pod: Pod) -> bool:
        return not pod.gates and pod.scheduler_name in self._schedulers

    def _waits_for_us(self, gate: str, pod: Pod) -> bool:
        """Whether somebody takes the gate away once ours is gone; Volcano's own only Volcano does."""
        ours_first = gate in self._wait_for_us
        return ours_first and (gate != names.VOLCANO_GATE or pod.scheduler_name in self._volcano)
