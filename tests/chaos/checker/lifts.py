"""At every lift: by whom, with what record, and within every quota of the chain."""

from collections.abc import Iterator

from tests.chaos.checker import books, devices, terms
from tests.chaos.checker.history import Change, World
from tests.chaos.checker.log import Object
from tests.chaos.checker.terms import Terms, Violation
from tests.chaos.checker.times import Calm


class Lifts:
    """Feed every change in order."""

    def __init__(self, calm: Calm, given: Terms) -> None:
        self._calm = calm
        self._terms = given
        self._limits: dict[str, list[tuple[float, dict[str, int]]]] = {}
        self.seen = 0

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
            self.seen += 1
            yield from self._author(change)
            yield from self._quota(change, change.after, world)

    def _author(self, change: Change) -> Iterator[Violation]:
        """Whoever is past the gate was let by the controller, and has the record of that."""
        assert change.after is not None
        entry = change.entry
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
        for queue in chain:
            for key in charged:
                if queue in before and used[queue][key] <= before[queue][key]:
                    # The claim is held already: whoever joins takes nothing, also where the quota was cut meanwhile.
                    continue
                allowed = self._most(queue, key, change, own=queue == chain[0])
                if allowed is not None and used[queue][key] > allowed:
                    held = [p for p in holding if key in books.charge(p, nodes) or books.claiming(p)]
                    proof = tuple(sorted(world.shown_by[p["metadata"]["uid"]].number for p in held))
                    text = f"queue {queue} is let use {used[queue][key]} of {key}, its quota is {allowed}"
                    yield Violation("quota", change.entry.ended, change.about, text, proof)

    def _most(self, queue: str, key: str, change: Change, *, own: bool) -> int | None:
        """The most that the queue allowed at any time that the leader may have known last; None: no limit."""
        since = self._calm.known_since(change.entry.began, self._terms.known_after_s)
        known = self._limits.get(queue, [])
        ends = [at for at, _ in known[1:]] + [float("inf")]
        in_force = [allowed for (_, allowed), until in zip(known, ends, strict=False) if until >= since]
        values = [books.limited(queue, key, own, allowed) for allowed in in_force or [{}]]
        return None if None in values else max(value for value in values if value is not None)
