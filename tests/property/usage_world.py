"""A cluster whose truth is known: pods that begin and end, replicas that hear of it sooner or later, one place to write to."""

from dataclasses import dataclass, field, replace

from core.steps import finish
from core.usage.checkpoint import Scribe, Written, decode
from core.usage.course import Charge, Sight
from core.usage.courses import Courses
from core.usage.sums import Series, What

MILLI = 2000


@dataclass
class Object:
    """A pod as the API server has it."""

    uid: str
    series: Series
    created: int
    scheduled: int = 0
    ended: int = 0
    """When its last container ended; the API server may hear of it later."""
    deleted: int = 0
    reported: bool = False
    beside: Charge = ()
    """What it is charged with besides `MILLI` of its series."""

    @property
    def charge(self) -> Charge:
        return ((self.series, MILLI), *self.beside)

    def used(self) -> int:
        """Seconds from bind to end."""
        return self.end() - self.scheduled if self.scheduled else 0

    def waited(self) -> int:
        return (self.scheduled or self.end()) - self.created

    def end(self) -> int:
        return min(moment for moment in (self.ended, self.deleted) if moment)


@dataclass
class World:
    now: int = 1_790_000_000
    objects: dict[str, Object] = field(default_factory=dict)
    all: dict[str, Object] = field(default_factory=dict)
    log: list[tuple[int, str, Object | None]] = field(default_factory=list)
    """What has changed, in order: when, the UID, and the pod as it was then; None for one that is gone."""

    def _changed(self, pod: Object) -> None:
        self.log.append((self.now, pod.uid, replace(pod)))

    def create(self, series: Series, beside: Charge = ()) -> Object:
        uid = f"pod-{len(self.all)}"
        self.objects[uid] = self.all[uid] = Object(uid, series, self.now, beside=beside)
        self._changed(self.objects[uid])
        return self.objects[uid]

    def bind(self, pod: Object) -> None:
        pod.scheduled = self.now
        self._changed(pod)

    def finish(self, pod: Object) -> None:
        """Its containers have ended; the kubelet has not said so yet."""
        pod.ended = self.now

    def report(self, pod: Object) -> None:
        pod.reported = True
        self._changed(pod)

    def delete(self, pod: Object) -> None:
        pod.deleted = self.now
        self._changed(pod)

    def remove(self, pod: Object) -> None:
        del self.objects[pod.uid]
        self.log.append((self.now, pod.uid, None))


class Replica:
    """One process: what it has heard, and, while it leads, what it sums up and writes down."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.courses = Courses()
        self.courses.settled = True
        self.scribe = Scribe()
        self.heard = len(world.log)
        self.version = 0
        for uid, pod in world.objects.items():
            self._look(uid, pod)

    def hear(self, number: int | None = None) -> None:
        """Takes in the next changes, all by default."""
        until = len(self.world.log) if number is None else min(len(self.world.log), self.heard + number)
        for _, uid, pod in self.world.log[self.heard : until]:
            self._look(uid, pod)
        self.heard = until

    @property
    def behind_s(self) -> int:
        """The age of the oldest news that it has not heard."""
        unheard = self.world.log[self.heard : self.heard + 1]
        return self.world.now - unheard[0][0] if unheard else 0

    def _look(self, uid: str, pod: Object | None) -> None:
        now, known = self.world.now, self.courses.charge_of(uid)
        if pod is None:
            if known:
                self.courses.see(uid, Sight(known, 0, 0, now), now)
            return
        ends = [pod.deleted] if pod.deleted else []
        ends += [pod.ended] if pod.reported else []
        end = min(ends) if ends else None
        self.courses.see(uid, Sight(pod.charge, pod.created, pod.scheduled, end), now)

    def total(self, what: What) -> int:
        tally = self.courses.tally
        assert tally is not None
        return sum(tally.now(series, what, self.world.now) for series in tally.series())


class Store:
    """The ConfigMap: a write with an old version is refused."""

    def __init__(self) -> None:
        self.version = 0
        self.written = Written({}, {}, 0)

    def begin(self, replica: Replica) -> None:
        replica.version = self.version
        finish(replica.courses.begin(decode(self.written.data, self.written.binary), replica.world.now))

    def write(self, replica: Replica, *, answered: bool = True) -> bool:
        tally = replica.courses.tally
        assert tally is not None
        tally.cut(replica.world.now)
        written = replica.scribe.write(tally, replica.courses.listed(replica.world.now))
        if replica.version != self.version:
            return False
        self.version += 1
        self.written = written
        if answered:
            replica.version = self.version
        return True
