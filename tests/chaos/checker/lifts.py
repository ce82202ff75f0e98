"""At every lift: by whom, with what record, and within every quota of the chain."""

from collections.abc import Iterator, Sequence

from tests.chaos.checker import books, devices, terms
from tests.chaos.checker.history import Change, World
from tests.chaos.checker.log import Object
from tests.chaos.checker.terms import Terms, Violation
from tests.chaos.checker.times import Calm, Term, followed_since


class Lifts:
    """Feed every change in order."""

    def __init__(self, calm: Calm, reigns: Sequence[Term], given: Terms) -> None:
        self._calm = calm
        self._reigns = reigns
        self._terms = given
        self._limits: dict[str, list[tuple[float, dict[str, int]]]] = {}
        self.forgiven = 0
        """How many were let in beyond a quota of which their leader may not have known."""

    def at(self, change: Change, world: World) -> Iterator[Violation]:
        """What is wrong with this change."""
        if change.kind == "queues":
            name = (change.after or change.before or {})["metadata"]["name"]
            now = books.limits(change.after)
            known = self._limits.setdefault(name, [])
            if not known or known[-1][1] != now:
                known.append((change.entry.ended, now))
        if change.kind != "pods" or change.after is None:
            return
        if books.holds(change.after) and (change.before is None or books.gated(change.before)):
            yield from self._author(change)
            yield from self._quota(change, change.after, world)

    def _author(self, change: Change) -> Iterator[Violation]:
        """Whoever is past the gate was created at it, was let by the controller, and has the record of that."""
        assert change.after is not None
        entry = change.entry
        if (entry.verb, entry.resource) == ("create", "pods") and not books.node_of(change.after):
            yield Violation("lift", entry.ended, change.about, "is created past the gate", change.proof)
        seen_late = entry.verb == "list" or entry.resource != "pods"
        if change.before is not None and not seen_late and entry.user != self._terms.controller:
            text = f"the gate was taken away by {entry.user}"
            yield Violation("lift", entry.ended, change.about, text, change.proof)
        if change.before is not None and terms.CHARGED not in books.annotations(change.after):
            text = "past the gate without a record of its queue"
            yield Violation("lift", entry.ended, change.about, text, change.proof)

    def _quota(self, change: Change, pod: Object, world: World) -> Iterator[Violation]:
        nodes, queues = world.named("nodes"), world.named("queues")
        charged = books.charge(pod, nodes) + devices.together([devices.claims(pod, world)])
        holding = [each for each in world.all("pods") if books.holds(each)]
        others = [each for each in holding if each is not pod]
        used = books.usage(world, holding, self._terms.default_queue, nodes)
        before = books.usage(world, others, self._terms.default_queue, nodes)
        chain = books.chain(books.queue_of(pod, world, self._terms.default_queue), queues)
        forgiven = False
        for queue in chain:
            for key in charged:
                if queue in before and used[queue][key] <= before[queue][key]:
                    # The claim is held already: whoever joins takes nothing, also where the quota was cut meanwhile.
                    continue
                allowed = self._allowed(queue, key, change, own=queue == chain[0])
                if used[queue][key] > max(allowed):
                    held = [p for p in holding if key in books.charge(p, nodes) or books.claiming(p)]
                    proof = tuple(sorted(world.shown_by[p["metadata"]["uid"]].number for p in held))
                    text = (
                        f"queue {queue} is let use {used[queue][key]} of {key}, its quota is {max(allowed)}"
                    )
                    yield Violation("quota", change.entry.ended, change.about, text, proof)
                forgiven |= allowed[-1] < used[queue][key] <= max(allowed)
        self.forgiven += forgiven

    def _allowed(self, queue: str, key: str, change: Change, *, own: bool) -> list[float]:
        """What the queue allowed at any time that the leader may have known last, the latest at the end."""
        since = max(
            self._calm.known_since(change.entry.began, self._terms.known_after_s),
            followed_since(change.entry.began, self._reigns, self._terms),
        )
        known = self._limits.get(queue, [])
        ends = [at for at, _ in known[1:]] + [float("inf")]
        in_force = [limits for (_, limits), until in zip(known, ends, strict=False) if until >= since]
        found = (books.limited(queue, key, own, limits) for limits in in_force or [{}])
        return [float("inf") if each is None else each for each in found]
