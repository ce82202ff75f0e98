"""What must hold when nothing happens any more: nobody lost, no gang in part, nobody held for nothing, status true."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.chaos.checker import books, devices, line, rooms, terms
from tests.chaos.checker.history import Change, History, World
from tests.chaos.checker.log import Object
from tests.chaos.checker.terms import Terms, Violation
from tests.chaos.checker.times import Calm, Term


class AtRest:
    """A world in which nothing happens any more, as the last lists show it."""

    def __init__(self, world: World, given: Terms) -> None:
        self._world = world
        self._terms = given
        self._nodes = world.named("nodes")
        self._queues = world.named("queues")
        self._pods = [pod for pod in world.all("pods") if books.is_ours(pod)]
        self._held = [pod for pod in self._pods if books.holds(pod)]
        self._used = books.usage(world, self._held, given.default_queue, self._nodes)
        self._limits = {name: books.limits(queue) for name, queue in self._queues.items()}

    def starving(self) -> Iterator[tuple[Object, str]]:
        """Pods at the gate for whom there is room, and what it is."""
        for pod in self._pods:
            if not books.gated(pod) or books.terminating(pod) or len(pod["spec"]["schedulingGates"]) > 1:
                continue
            if self._stands_behind(pod):
                continue
            count = self._to_start_with(pod)
            room = count and self._room(pod, count)
            if room:
                yield pod, f"waits at the gate, and there is room for {count} like it: {room}"

    def _stands_behind(self, pod: Object) -> bool:
        """Whether the pod has to wait for others of its queue, whatever there is room for."""
        default = self._terms.default_queue
        queue = self._queues.get(books.queue_of(pod, self._world, default))
        return line.fifo(queue) and any(True for _ in line.ahead(pod, self._world, default))

    def halves(self) -> Iterator[tuple[Object, list[Object], str]]:
        """Gangs of which some members were let in and not enough of them, with those members."""
        for group in self._world.all("podgroups"):
            inside = [pod for pod in self._members(group) if not books.gated(pod)]
            live = [pod for pod in inside if not books.ended(pod)]
            together = [int(books.annotations(pod).get(terms.GANG, 0)) for pod in inside]
            needed = min(max(together, default=0) or _minimum(group), _minimum(group))
            counted = len(inside) - sum(_failed(pod) for pod in inside)
            if live and counted < needed:
                yield group, inside, f"{counted} of the {needed} that start together are in"

    def untrue(self) -> Iterator[tuple[Object, str]]:
        """Queues whose status does not show the cards of the pods that are bound."""
        bound = [pod for pod in self._held if books.node_of(pod)]
        truth = books.usage(self._world, bound, self._terms.default_queue, self._nodes)
        cards = {key for used in truth.values() for key in used} | {
            k for each in self._limits.values() for k in each
        }
        cards -= {terms.CORE, terms.MEMORY}
        for name, queue in self._queues.items():
            shown = ((queue.get("status") or {}).get("allocated")) or {}
            for card in sorted(cards):
                used = truth.get(name, Counter())[card]
                if books.whole(shown.get(card, 0)) != used:
                    yield queue, f"status shows {shown.get(card, 0)} of {card}, in use are {used}"

    def counted(self) -> Counter[str]:
        """How many pods wait and run, and how many gangs and queues there are: what the rules are asked of."""
        waiting = sum(books.gated(pod) and not books.terminating(pod) for pod in self._pods)
        gangs = sum(
            any(not books.gated(pod) for pod in self._members(g)) for g in self._world.all("podgroups")
        )
        halves = sum(1 for _ in self.halves())
        return Counter(
            {
                "pods that wait": waiting,
                "pods that hold quota": len(self._held),
                "gangs that were let in": gangs,
                "gangs in part, excused or not": halves,
                "queues": len(self._queues),
            }
        )

    def orphans(self) -> Iterator[tuple[Object, str]]:
        """Pods on nodes that are gone: they are about to be deleted, which lets others in."""
        for pod in self._held:
            if books.node_of(pod) and books.node_of(pod) not in self._nodes:
                yield pod, f"is on node {books.node_of(pod)}, which is gone"

    # -- gangs ---------------------------------------------------------------------------------------------------

    def _members(self, group: Object) -> list[Object]:
        wanted = (group["metadata"]["name"], group["metadata"].get("namespace"))
        return [
            pod
            for pod in self._pods
            if (books.annotations(pod).get(terms.GROUP_NAME), pod["metadata"].get("namespace")) == wanted
            and not books.terminating(pod)
        ]

    def _to_start_with(self, pod: Object) -> int:
        """How many like the pod have to start together for it to start; 0 when they never can."""
        if terms.GROUP_NAME not in books.annotations(pod):
            return 1
        group = books.group_of(pod, self._world)
        if group is None:
            return 0
        members = [each for each in self._members(group) if not _failed(each)]
        inside = sum(not books.gated(each) for each in members)
        if len(members) < _minimum(group):
            return 0
        return max(1, _minimum(group) - inside)

    # -- room ----------------------------------------------------------------------------------------------------

    def _room(self, pod: Object, count: int) -> str:
        """Where so many pods like this one would have room; "" where it is not certain."""
        if books.shares(pod):
            return self._share_room(pod) if count == 1 else ""
        if books.claiming(pod):
            return self._device_room(pod)
        each = books.asked(pod, terms.GPU)
        cards = books.alternatives(pod)
        for card in cards:
            stocked = [node for node in self._nodes.values() if books.product(node) == card]
            enough = stocked if len(cards) == 1 else self._in_stock(stocked, card, each, count)
            if enough and self._quota(pod, {card: each * count}):
                return f"{each * count} of {card}"
        return ""

    def _quota(self, pod: Object, asks: Mapping[str, int]) -> bool:
        chain = books.chain(books.queue_of(pod, self._world, self._terms.default_queue), self._queues)
        if chain[0] not in self._queues:
            return False
        for queue in chain:
            for key, amount in asks.items():
                allowed = books.limited(queue, key, queue == chain[0], self._limits.get(queue, {}))
                if allowed is not None and self._used.get(queue, Counter())[key] + amount > allowed:
                    return False
        return True

    def _device_room(self, pod: Object) -> str:
        """What the pod's claims ask for where every queue above it has that left, with those counted that others hold already."""
        chain = books.chain(books.queue_of(pod, self._world, self._terms.default_queue), self._queues)
        used = books.usage(self._world, [*self._held, pod], self._terms.default_queue, self._nodes)
        mine = devices.together([devices.claims(pod, self._world)])
        for queue in chain:
            limits = self._limits.get(queue, {})
            if queue not in self._queues or any(
                used[queue][key] > limits.get(key, used[queue][key]) for key in mine
            ):
                return ""
        return ", ".join(f"{count} of {key}" for key, count in mine.items())

    def _in_stock(self, nodes: Sequence[Object], card: str, each: int, count: int) -> bool:
        """Whether nodes that take pods have so many of a card free, those on their way to them counted."""
        free = [self._free(node) for node in nodes if _takes_pods(node)]
        waiting = [pod for pod in self._held if not books.node_of(pod)]
        coming = sum(books.charge(pod, self._nodes)[card] for pod in waiting)
        return sum(amount // each for amount in free) >= count and sum(free) - coming >= each * count

    def _free(self, node: Object) -> int:
        there = [
            pod
            for pod in self._world.all("pods")
            if books.node_of(pod) == node["metadata"]["name"] and not books.ended(pod)
        ]
        given = sum(books.asked(pod, terms.GPU) for pod in there)
        return books.whole((node.get("status") or {}).get("allocatable", {}).get(terms.GPU, 0)) - given

    def _share_room(self, pod: Object) -> str:
        """A card that is free enough on a node to which nobody is on the way; for pods of one container."""
        asks = books.shares(pod)
        on_their_way = any(books.shares(each) and not books.node_of(each) for each in self._held)
        whole = sum(share.core for share in asks)
        quota = {terms.CORE: whole, terms.MEMORY: sum(share.memory or 0 for share in asks)}
        if on_their_way or len(asks) != 1 or not self._quota(pod, quota):
            return ""
        for name, node in self._nodes.items():
            cards, memory = rooms.cards_of(node)
            there = [p for p in self._world.all("pods") if books.node_of(p) == name and not books.ended(p)]
            if not _takes_pods(node) or any(books.unrecorded(each) for each in there):
                continue
            taken, needs = (
                rooms.taken(there, memory),
                whole if asks[0].memory is not None else terms.CORE_OF_A_CARD,
            )
            for card in range(cards):
                fits = taken.core[card] + needs <= terms.CORE_OF_A_CARD
                room = taken.memory[card] + (memory if asks[0].memory is None else asks[0].memory) <= memory
                if fits and room and taken.containers[card] < terms.CONTAINERS_OF_A_CARD and whole <= needs:
                    return f"card {card} of node {name}"
        return ""


def _minimum(group: Object) -> int:
    return int((group.get("spec") or {}).get("minMember") or 0)


def _failed(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Failed"


def _takes_pods(node: Object) -> bool:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    return ready and not spec.get("unschedulable") and not spec.get("taints")


class Losses:
    """Feed every change in order: who disappeared without anybody having deleted it, and whom the controller deleted."""

    def __init__(self, history: History, calm: Calm, given: Terms) -> None:
        self._history = history
        self._calm = calm
        self._terms = given

    def at(self, change: Change) -> Iterator[Violation]:
        """What is wrong with this change."""
        if change.kind != "pods" or change.after is not None:
            return
        entry = change.entry
        since = change.known_by.ended if change.known_by else 0.0
        deleted = self._history.deletes.get(change.about, [])
        if entry.verb == "list" and not deleted and not self._calm.blind(since, entry.ended):
            text = "is not there any more, and nobody has deleted it"
            yield Violation("lost", entry.ended, change.about, text, change.proof)
        for delete in deleted:
            if delete.user == self._terms.controller and delete.accepted:
                text = "was deleted by the controller"
                yield Violation("lost", delete.ended, change.about, text, (*change.proof, delete.number))


class Rest:
    """The world that the last lists show, and what is wrong with it; nothing where there is no list at the end.

    Who waits and what status shows is judged only where nothing has happened for so long that it has to be as it should:
    Kubernetes itself may have deleted a pod just before, whose node is gone.
    """

    def __init__(
        self, history: History, world: World, calm: Calm, reigns: Sequence[Term], given: Terms
    ) -> None:
        self._history = history
        self._world = world
        self._given = given
        self._proof = {uid: entry.number for uid, entry in world.shown_by.items()}
        self._resting = AtRest(world, given)
        self._excused = _excused(history, given)
        self._census = max((entry.ended for entry in history.censuses), default=float("-inf"))
        # Whoever ends the processes after that has another one lead.
        before = [reign for reign in reigns if reign.began <= self._census]
        self._settled, self._by = _settled_at(history, calm, before)
        self._at_rest = self._census >= self._settled + given.prompt_s

    def covered(self) -> dict[str, int]:
        """How much there was to be judged."""
        if not self._at_rest:
            return {"at rest: judged": 0}
        return {"at rest: judged": 1, **{f"at rest: {k}": n for k, n in self._resting.counted().items()}}

    def unrest(self) -> str:
        """Why nothing was judged at rest; "" where it was."""
        if self._at_rest:
            return ""
        if not self._history.censuses:
            return "the log has no list of everything at its end"
        return f"{self._census - self._settled:.1f} s before the last lists: {self._by}"

    def violations(self) -> Iterator[Violation]:
        """Of all rules that hold at rest."""
        if not self._history.censuses:
            return
        for pod, text in self._resting.starving() if self._at_rest else ():
            yield self._violation("starving", pod, text)
        for group, inside, text in self._resting.halves():
            if group["metadata"]["uid"] not in self._excused:
                yield self._violation("gang", group, text, *inside)
        for queue, text in self._resting.untrue() if self._at_rest else ():
            yield self._violation("status", queue, text)
        for claim, other, text in devices.held_twice(self._world):
            yield self._violation("card", claim, text, other)
        yield from self._late()

    def _violation(self, rule: str, thing: Object, text: str, *others: Object) -> Violation:
        about = f"{thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}".lstrip("/")
        numbers = sorted({self._proof[each["metadata"]["uid"]] for each in (thing, *others)})
        return Violation(rule, self._census, about, text, tuple(numbers))

    def _late(self) -> Iterator[Violation]:
        for change, _ in self._history.changes():
            late_s = change.entry.ended - self._settled
            by_us = change.entry.user == self._given.controller and change.kind == "queues"
            if by_us and late_s > self._given.prompt_s:
                text = f"written {late_s:.1f} s late, after the last of what it follows: {self._by}"
                yield Violation("status", change.entry.ended, change.about, text, change.proof)


def _settled_at(history: History, calm: Calm, reigns: Sequence[Term]) -> tuple[float, str]:
    """Since when nothing happens that lifts and status would have to follow, and somebody leads; and what was the last."""
    last = max(
        [(0.0, "nothing"), (calm.last, "the echo of a fault ended")]
        + [(reign.began, f"{reign.holder} began to lead") for reign in reigns]
    )
    for change, _ in history.changes():
        if change.kind in ("resourceclaims", "resourceclaimtemplates"):
            # Kubernetes goes on writing who uses a claim that is shared; neither lifts nor status follow that.
            continue
        entry = change.entry
        by_hand = change.kind == "queues" and "status" not in entry.resource
        if entry.verb != "list" and (change.kind != "queues" or by_hand):
            did = f"{entry.user}: {entry.verb} {entry.resource} {change.about} (entry {entry.number})"
            last = max(last, (entry.ended, did))
    return last


def _excused(history: History, given: Terms) -> set[str]:
    """Gangs that lost a member that had been let in, or whose quota was cut after the first had been."""
    begun: dict[str, str] = {}
    found: set[str] = set()
    for change, world in history.changes():
        if change.kind == "queues" and change.after is not None and _cut(change):
            queues = world.named("queues")
            name = change.after["metadata"]["name"]
            found |= {uid for uid, queue in begun.items() if name in books.chain(queue, queues)}
        pod = change.after or change.before
        if change.kind != "pods" or pod is None:
            continue
        group = books.group_of(pod, world)
        if group is None:
            continue
        uid = group["metadata"]["uid"]
        if change.after is not None and books.holds(change.after):
            begun.setdefault(uid, books.queue_of(change.after, world, given.default_queue))
        elif change.before is not None and books.holds(change.before) and not _succeeded(change.after):
            found.add(uid)
    return found


def _cut(change: Change) -> bool:
    was, now = books.limits(change.before), books.limits(change.after)
    return any(now.get(key, 0) < amount for key, amount in was.items())


def _succeeded(pod: Object | None) -> bool:
    return ((pod or {}).get("status") or {}).get("phase") == "Succeeded"
