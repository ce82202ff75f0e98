"""What of a cluster may not be listed, and which answers rest on it: every command asks here.

Nodes, queues and the pods of all decide on everybody. Any other kind decides on the pods that refer to an object of it which
is not there to be seen: which queue they charge, with whom they start, what their claims cost. One of those that waits may be
before everybody else in line, and one that holds something may hold it of any queue.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cli.state import State
    from core.objects import Pod
    from core.queues.entry import Entry
    from core.queues.ledger import Ledger
    from core.settings import Settings

_NAMESPACE: Final = "Namespace"
_GROUP: Final = "PodGroup"
_JOB: Final = "Job"
_CLAIM: Final = "ResourceClaim"
_TEMPLATE: Final = "ResourceClaimTemplate"
_REFERRED: Final = frozenset({_NAMESPACE, _GROUP, _JOB, _CLAIM, _TEMPLATE})


class Sight:
    """What a state shows of what decides. Where nothing is hidden nothing is looked through."""

    def __init__(self, state: "State", settings: "Settings") -> None:
        self._state = state
        self._settings = settings
        self._unseen = state.unseen & _REFERRED

    @cached_property
    def ledger(self) -> "Ledger":
        """The books of what is seen; nothing is assumed in them."""
        from cli import books
        from core.steps import finish

        ledger = books.of(self._state, self._settings)
        finish(ledger.settle())
        return ledger

    def missing(self, pods: Iterable["Pod"]) -> str:
        """What may not be listed of what decides on any of these; empty where all of that is known."""
        return ", ".join(self._named({kind for pod in pods for kind in self._of_pod(pod)}))

    def uncounted(self) -> str:
        """What may not be listed of what says how much queues use; empty where all of that is known."""
        return ", ".join(self._named(self._of_holders))

    def to_be_let_in(self, queue: str) -> list["Pod"]:
        """Those who wait in a queue, as far as is seen; none where nothing is hidden that any of them might refer to."""
        from core.stage import Stage

        if not self._unseen:
            return []
        entries = self.ledger.entries()
        return [one.pod for one in entries if one.queue == queue and one.stage is Stage.WAITING]

    def doubts(self, pod: "Pod") -> list[str]:
        """The kinds that may not be listed and decide on a pod."""
        return self._named(self._of_pod(pod))

    def knows_queue(self, pod: "Pod") -> bool:
        """Whether nothing that is hidden may name another queue for the pod."""
        return not self._unseen or next(self._naming(pod), None) is None

    @cached_property
    def unclear(self) -> frozenset[str]:
        """The UIDs of the pods in the books that refer to what is hidden: where they belong, or what they hold, is not known."""
        return frozenset(one.pod.uid for one in self._entries() if self._referred(one.pod))

    def _named(self, kinds: Iterable[str]) -> list[str]:
        return [*self._state.all_hidden, *sorted(kinds)]

    def _of_pod(self, pod: "Pod") -> set[str]:
        """Without those that decide on everybody anyway."""
        from core.stage import Stage

        if not self._unseen:
            return set()
        entry, own = self.ledger.entry(pod.uid), self._referred(pod)
        waits = entry is not None and entry.stage is Stage.WAITING
        if waits and self.ledger.devices.concerns(pod):
            return own | self._of_others | self._of_holders
        return own | self._of_others if waits else own

    @cached_property
    def _of_others(self) -> set[str]:
        """What decides on whoever waits, since others refer to it who wait as well, or who may hold something of any queue."""
        from core.stage import Stage

        waiting = {
            kind for one in self._entries() if one.stage is Stage.WAITING for kind in self._referred(one.pod)
        }
        return waiting | {kind for one in self._entries() for kind in self._naming(one.pod)}

    @cached_property
    def _of_holders(self) -> set[str]:
        """What says how much those use who have a node."""
        from core.stage import Stage

        return {
            kind
            for one in self._entries()
            if one.stage is Stage.ALLOCATED
            for kind in (*self._naming(one.pod), *self._costing(one.pod))
        }

    def _entries(self) -> Iterable["Entry"]:
        return self.ledger.entries() if self._unseen else ()

    def _referred(self, pod: "Pod") -> set[str]:
        return {*self._naming(pod), *self._admitting(pod), *self._costing(pod)} if self._unseen else set()

    def _naming(self, pod: "Pod") -> Iterator[str]:
        """What may name another queue for the pod: it comes before what is seen to name one."""
        from core.queues.attribution import Source, owned_by_job

        source = self.ledger.queue_source(pod)
        if source is Source.RECORD:
            return
        group = self.ledger.pod_group_of(pod)
        if pod.group_name and group is None and _GROUP in self._unseen:
            yield _GROUP
        # Its controller copies the queue of a Job to its pods.
        by_job = owned_by_job(pod) and source not in (Source.GROUP, Source.JOB, Source.JOB_ANNOTATION)
        if by_job and _JOB in self._unseen:
            yield _JOB
        if source is Source.DEFAULT and self._no_namespace(pod):
            yield _NAMESPACE

    def _admitting(self, pod: "Pod") -> Iterator[str]:
        """What the pod waits for at the gate besides quota: its group, and that its queue is open to its namespace."""
        from core.queues.access import access_of

        if pod.let_in:
            return
        if _GROUP in self._unseen and self.ledger.missing_group(pod) is not None:
            yield _GROUP
        queue = self.ledger.queues.get(self.ledger.attribution(pod).queue)
        selects = queue is not None and access_of(queue).selected is not None
        if self._no_namespace(pod) and (selects or self.ledger.naming.lacks_card(pod)):
            yield _NAMESPACE

    def _costing(self, pod: "Pod") -> Iterator[str]:
        """What says how many devices the pod asks for, but for what is on its record."""
        from core.dra.wants import record_on

        recorded, source = record_on(pod) or {}, self.ledger.devices.book.source
        for entry, claim, template in pod.claims if self._settings.features.dra else ():
            name = claim or pod.generated_claims.get(entry)
            if entry in recorded:
                continue
            if name:
                missing, kind = source.claim(f"{pod.namespace}/{name}") is None, _CLAIM
            else:
                # One for which no claim was needed is in the status without a name.
                needed = entry not in pod.generated_claims
                missing, kind = needed and source.template(f"{pod.namespace}/{template}") is None, _TEMPLATE
            if missing and kind in self._unseen:
                yield kind

    def _no_namespace(self, pod: "Pod") -> bool:
        """Whether the pod's namespace may have something to say that is hidden."""
        return _NAMESPACE in self._unseen and pod.namespace not in self._namespaces

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        return frozenset(namespace.name for namespace in self._state.namespaces)
