"""What becomes of one waiting pod, and the booking of one that is lifted."""

from collections.abc import Mapping

from core import names, reasons
from core.affinity import Expression, NodeRequirement
from core.cards.assigned import recorded_share, render_assigned, render_share
from core.cards.expression import BAR
from core.cards.inventory import suggestion
from core.mgpu.node import node_requirement
from core.objects import Gang, Pod
from core.objects.group import pod_group_title
from core.plan.awaited import Awaited, note
from core.plan.choice import Choice
from core.plan.confinement import Confinement
from core.plan.decision import Decision, Hold, Lift
from core.plan.placement import CardPlacement
from core.plan.pools import share_pool_requirement
from core.plan.precedent import Precedent
from core.plan.room import Destination
from core.plan.task_nodes import ANYWHERE, TaskNodes, nodes_of_tasks, starts_in_cycles
from core.queues.check import balance_of, chain_problem
from core.queues.entry import Entry
from core.queues.group_minimum import minimum_of
from core.queues.ledger import Ledger
from core.queues.queue_records import gang_record
from core.queues.shortfall import (
    card_not_named,
    gang_malformed,
    gang_too_small,
    queue_closed,
    queue_missing,
    uncountable,
    waits_for_others,
)
from core.queues.spelling import nearest
from core.refusal import Refusal
from core.steps import Steps


class Judge:
    """Decides on single pods. `refused` are those whose lift the API server refuses, by UID, and why."""

    def __init__(self, ledger: Ledger, choice: Choice) -> None:
        self.refused: dict[str, str] = {}
        self._ledger = ledger
        self._choice = choice
        self._placement = CardPlacement(ledger)

    def judge(
        self, entry: Entry, choice: Choice, confined: Confinement | None, together: int = 1
    ) -> Steps[Decision | None]:
        """What becomes of a pod; None when it is not any more what it was when this began.

        `together` as for `lift`.
        """
        ledger = self._ledger
        asks = entry.pod.asks or ledger.devices.wanted(entry.pod) or ledger.naming.lacks_card(entry.pod)
        if not asks and entry.pod.uid not in self.refused:
            # Gated by hand, or the card name was taken away while it waited.
            return self.lift(entry, None)
        while True:
            changes = ledger.changes
            obstacle = self.obstacle(entry)
            if obstacle is not None:
                return obstacle
            task = self._task_nodes(entry.pod, together)
            card = yield from choice.choose(entry, balance_of(ledger, entry.queue), confined, task.within)
            if isinstance(card, str):
                yield from self.prepare(card)
            if ledger.changes == changes:
                break
            now = ledger.current(entry) if ledger.sums_settled else None
            if now is None:
                return None
            entry = now
        if not isinstance(card, Refusal):
            return self.lift(entry, card, together, task)
        note(ledger, Awaited.by(entry), {card.code})
        return Hold(entry.pod, entry.queue, card)

    def prepare(self, card: str) -> Steps[None]:
        """Finds out what nodes of a card look like, so that `lift` has it at hand."""
        yield from self._placement.find(card)

    def obstacle(self, entry: Entry) -> Hold | None:
        """Why the pod cannot be lifted however much is left, None when it can."""
        others = self._ledger.stages.other_gates(entry.pod)
        if others:
            return Hold(entry.pod, entry.queue, waits_for_others(entry.queue, others))
        apart = self._apart(entry.pod, entry.queue)
        if apart is not None:
            return apart
        closed = self.closed(entry)
        if closed is not None:
            return closed
        gang = entry.pod.gang
        why = self._no_gang(entry, gang) if gang is not None else None
        if why is not None:
            return Hold(entry.pod, entry.queue, why)
        if self._ledger.naming.lacks_card(entry.pod):
            why = card_not_named(entry.queue, entry.pod)
        elif entry.pod.uid in self.refused:
            why = Refusal(reasons.LIFT_REFUSED, self.refused[entry.pod.uid])
        elif entry.demand.problem:
            spelling = suggestion(entry.pod.card_name, self._ledger.inventory)
            why = uncountable(entry.queue, f"{entry.demand.problem}{spelling}")
        else:
            why = self._broken(entry) or self._ledger.devices.obstacle(entry.pod, entry.queue)
        return None if why is None else Hold(entry.pod, entry.queue, why)

    def _no_gang(self, entry: Entry, gang: Gang) -> Refusal | None:
        """Why a gang would not start, let in whole: nobody can tell who it is, or its scheduler goes by a PodGroup that has it larger."""
        if gang.problem:
            return gang_malformed(entry.queue, gang.problem)
        groups = (self._ledger.group(key) for key in entry.pod.pod_groups)
        larger = (group for group in groups if group is not None and group.min_member > gang.size)
        return next((gang_too_small(entry.queue, group, gang.size) for group in larger), None)

    def _broken(self, entry: Entry) -> Refusal | None:
        """Why nobody knows which limits hold for the cards and shares of the pod; None when that is known, or it has none."""
        return chain_problem(self._ledger, entry.queue) if entry.demand.cards else None

    def goes_alone(self, pod: Pod) -> bool:
        """Whether the pod may be lifted without others: it is known to which group it belongs, which needs no more members."""
        if self._apart(pod, ""):
            return False
        group = self._ledger.group_of(pod)
        return group is None or minimum_of(group).alone

    def _apart(self, pod: Pod, queue: str) -> Hold | None:
        """Why it is not known yet to which group the pod belongs, and with it to which queue; None when it is."""
        ledger = self._ledger
        missing = ledger.missing_group(pod)
        if missing is not None:
            text = f"{pod_group_title(missing)} is not there; the pod waits for it"
        elif pod.group_name:
            return None
        elif (
            names.VOLCANO_GROUPS in ledger.groups_served
            and pod.scheduler_name in ledger.settings.volcano.scheduler_names
        ):
            text = (
                f"scheduler {pod.scheduler_name} starts pods by their PodGroup, and this one names none yet"
            )
        else:
            return None
        return Hold(pod, queue, Refusal(reasons.POD_GROUP_NOT_FOUND, text))

    def closed(self, entry: Entry) -> Hold | None:
        """Why the queue takes in nobody, or nobody of the namespace of the pod; None when it does.

        A missing default queue is no obstacle for a pod that nothing sent there and that needs no card quota.
        """
        queue = self._ledger.queues.get(entry.queue)
        if queue is None:
            if not entry.attribution.named and not entry.pod.card_name:
                return None
            near = nearest(entry.queue, entry.pod.namespace, self._ledger)
            return Hold(entry.pod, entry.queue, queue_missing(entry.queue, near))
        refusal = self._ledger.access.refusal(entry.queue, entry.pod.namespace)
        if refusal is not None:
            return Hold(entry.pod, entry.queue, refusal)
        if not queue.open:
            return Hold(entry.pod, entry.queue, queue_closed(queue), announced=False)
        if entry.queue == names.ROOT_QUEUE and entry.pod.card_name:
            text = "Queue <root> stands above all queues; pods with cards need a queue of their own"
            return Hold(entry.pod, entry.queue, Refusal(reasons.QUEUE_NOT_OPEN, text))
        return None

    def _task_nodes(self, pod: Pod, together: int) -> TaskNodes:
        if pod.asks_mgpu and starts_in_cycles(self._ledger, pod, together):
            return nodes_of_tasks(self._ledger, pod).get(pod.task, ANYWHERE)
        return ANYWHERE

    def lift(self, entry: Entry, card: str | None, together: int = 1, task: TaskNodes = ANYWHERE) -> Lift:
        """Books a pod as lifted, for this card, None for one without cards.

        So many of its group have to be in for it to be of use: those that are lifted together, with those before them; of one
        that comes to a gang which is whole, the gang's minimum. For mGPU shares it must just have been found out that there
        is room, where the others of its `task` leave it.
        """
        pod, asked = entry.pod, entry.demand.card
        assigned: dict[str, int] = {}
        records = {names.CHARGED_QUEUE_ANNOTATION: entry.queue}
        if card is not None and asked is not None:
            count = asked.milli // 1000
            assigned[card] = count
            records[names.ASSIGNED_ANNOTATION] = render_assigned(card, count)
        records |= self._ledger.naming.records(pod)
        records |= self._ledger.devices.records(pod)
        if together > 1:
            records[names.GANG_ANNOTATION] = str(together)
        records |= gang_record(pod)
        room = self._room(entry, card, task)
        displaces = room is not None and room.displaces
        if room is not None and task.led:
            records[names.NODE_ANNOTATION] = room.node
        elif room is not None and not displaces:
            records[names.NOMINATED_ANNOTATION] = room.node
        requirement = self._requirement(entry, card, room if task.led else None)
        share_card = self._choice.share_card(entry, card, task.within)
        pool = self._choice.share_pool(entry)
        if share_card:
            records[names.SHARE_CARD_ANNOTATION] = render_share(share_card, entry.demand.share_milli)
            if names.NODE_ANNOTATION not in records and not pool:
                requirement &= self._of_shares(share_card)
        requirement &= self._of_pool(pool)
        claims = self._ledger.devices.wanted(pod)
        return self._booked(entry, assigned, records, requirement, claims=claims, displaces=displaces)

    def lift_apart(self, entry: Entry, lift: Lift, *, nominated: bool) -> Lift:
        """Books a pod anew that was led to a node: it may go to others, and is `nominated` for that one."""
        records = dict(lift.records)
        node = records.pop(names.NODE_ANNOTATION, "")
        if node and nominated:
            records[names.NOMINATED_ANNOTATION] = node
        required = lift.requirement
        if node:
            required = self._requirement(entry, next(iter(lift.assigned), None), None)
            recorded = recorded_share(entry.pod.ungated(records))
            if recorded is not None:
                required &= self._of_shares(recorded[0])
        claims = self._ledger.devices.wanted(entry.pod)
        return self._booked(entry, lift.assigned, records, required, claims=claims, displaces=lift.displaces)

    def precedent(self, entry: Entry, lift: Lift, together: int) -> Precedent | None:
        """What holds for others of the same wish as this pod, which was lifted just now; None where each has to be judged.

        As whoever chooses among cards, or asks for more than cards, CPU and memory: what is left of that changes with each.
        """
        ledger, asked, balance = self._ledger, entry.demand.card, balance_of(self._ledger, entry.queue)
        plain = asked is not None and BAR not in asked.expression and entry.demand.mgpu is None
        if not plain or asked is None or balance is None or ledger.naming.records(entry.pod):
            return None
        as_of = ledger.changes - ledger.admissions
        return Precedent(lift, asked.card, asked.milli, entry.demand.cpu_memory, balance, together, as_of)

    def like(self, precedent: Precedent | None, entry: Entry, together: int) -> Lift | None:
        """Lifts a pod as another one of its wish was, if there is enough for it too; None when it has to be judged itself.

        Nothing has happened since then but that others were let in.
        """
        ledger = self._ledger
        if precedent is None or precedent.as_of != ledger.changes - ledger.admissions:
            return None
        first, pod = precedent.lift, entry.pod
        fits = together == precedent.together and precedent.balance.covers(
            precedent.card, precedent.milli, precedent.cpu_memory
        )
        # A DeviceClass that came meanwhile is no change of the books while it serves nobody.
        if not fits or ledger.devices.concerns(pod) or ledger.naming.records(pod):
            return None
        return self._booked(entry, first.assigned, first.records, first.requirement, claims=False)

    def _booked(
        self,
        entry: Entry,
        assigned: Mapping[str, int],
        records: Mapping[str, str],
        required: NodeRequirement,
        *,
        claims: bool,
        displaces: bool = False,
    ) -> Lift:
        """Books a lift; `claims` says whether the pod has any, or will have."""
        pod, ledger = entry.pod, self._ledger
        lifted = pod.ungated({**pod.annotations, **records})
        with ledger.wakeups.muted():
            # What it takes from the others of its queue helps none of them, and those behind it are decided on next.
            if assigned and BAR not in pod.card_name and names.SHARE_CARD_ANNOTATION not in records:
                ledger.let_in(lifted)
            else:
                ledger.assume(lifted)
        ledger.wakeups.publish(entry.queue)
        if claims:
            ledger.devices.tell_again((pod.uid,))
        return Lift(pod, entry.queue, assigned, records, required, lifted, displaces=displaces)

    def _room(self, entry: Entry, card: str | None, task: TaskNodes) -> Destination | None:
        """Where the room of a pod with mGPU shares is; None where its scheduler has to find a node.

        It has to for a card beside shares: the room was looked for on nodes that may lack the card.
        """
        return self._choice.destination(entry, task.within) if card is None else None

    def _of_shares(self, card: str) -> NodeRequirement:
        """Nodes with shares of this card: whoever is led to no node may go to each of them, and to no others."""
        told = sorted(self._ledger.inventory.labels_of_shared(card))
        alternatives = tuple((Expression(label, "In", (value,)),) for label, value in told)
        return NodeRequirement(alternatives, alternatives[0] if alternatives else ())

    def _of_pool(self, card: str) -> NodeRequirement:
        """Nodes of the pool that brings shares of this card; any for ""."""
        pool = self._ledger.inventory.share_pools.get(card)
        return NodeRequirement() if pool is None else share_pool_requirement(pool)

    def _requirement(self, entry: Entry, card: str | None, led: Destination | None) -> NodeRequirement:
        required = NodeRequirement() if card is None else self._placement.requirement(card)
        share = entry.demand.mgpu
        if share is not None:
            required &= node_requirement(share)
        return required if led is None else required & led.requirement
