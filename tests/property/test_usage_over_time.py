"""Card-seconds over time: whatever comes in whatever order, and whoever leads, each second is counted once."""

from collections.abc import Callable, Iterator
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from core.usage.checkpoint import decode
from core.usage.courses import LATE_S, REMEMBERED_S
from core.usage.sums import DAY_S, Series, What
from tests.property.usage_world import MILLI, Object, Replica, Store, World

SERIES = [Series(queue, "A", namespace, "online") for queue in ("q1", "q2") for namespace in ("n1", "n2")]


def going(pod: Object) -> bool:
    return not pod.ended and not pod.deleted


class Story:
    """Things happen at random; `lost` is what ran unseen: counted until the last checkpoint, and gone before anybody looked."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.world = World()
        self.store = Store()
        self.leader, self.standby = Replica(self.world), Replica(self.world)
        self.lost = {What.USED: 0, What.WAITED: 0}
        self.gone_unseen: set[str] = set()
        self.in_sums: dict[str, tuple[int, int]] = {}
        self.written_at = self.world.now
        self.store.begin(self.leader)
        self.write()

    def pods(self, fits: Callable[[Object], bool]) -> list[Object]:
        return [pod for pod in self.world.objects.values() if fits(pod)]

    def some(self, fits: Callable[[Object], bool]) -> Object | None:
        found = self.pods(fits)
        return self.rng.choice(found) if found else None

    def live(self) -> None:
        """One thing happens to one pod."""
        world = self.world
        match self.rng.randrange(6):
            case 0:
                world.create(self.rng.choice(SERIES))
            case 1:
                if pod := self.some(lambda pod: going(pod) and not pod.scheduled):
                    world.bind(pod)
            case 2:
                if pod := self.some(lambda pod: going(pod) and bool(pod.scheduled)):
                    world.finish(pod)
            case 3:
                if pod := self.some(lambda pod: bool(pod.ended) and not pod.reported):
                    world.report(pod)
            case 4:
                if pod := self.some(going):
                    world.delete(pod)
            case _:
                if pod := self.some(lambda pod: pod.reported or bool(pod.deleted)):
                    world.remove(pod)

    def pass_time(self, most: int) -> None:
        self.world.now += self.rng.randrange(most)

    def write(self, *, answered: bool = True) -> None:
        """What the sums then have of each pod is noted, as the leader knows it."""
        if self.leader.behind_s < LATE_S and self.store.write(self.leader, answered=answered):
            self.written_at = self.world.now
            self.in_sums = {uid: self.of(self.leader, uid) for uid in self.world.all} | {
                uid: sums for uid, sums in self.in_sums.items() if not self.leader.courses.knows(uid)
            }

    def write_in_time(self) -> None:
        """Somebody writes before those are forgotten who have ended since it was done last."""
        if self.world.now - self.written_at > REMEMBERED_S // 2:
            self.leader.hear()
            self.write()

    def of(self, replica: Replica, uid: str) -> tuple[int, int]:
        course = replica.courses._courses.get(uid)
        sums = [0, 0]
        for piece in course.pieces if course is not None else ():
            sums[piece.what] += (self.world.now if piece.end is None else piece.end) - piece.start
        return sums[0], sums[1]

    def change_leader(self) -> None:
        """The standby hears all that there is to hear, and goes on from what was written down."""
        self.leader.courses.end()
        self.leader, self.standby = self.standby, self.leader
        self.leader.hear()
        self.store.begin(self.leader)

    def kill_leader(self) -> None:
        """The standby goes on; what it has never seen, because it is younger than the pod's end, is lost."""
        self.leader = Replica(self.world)
        self.change_leader()
        for uid, pod in self.world.all.items():
            if not self.leader.courses.knows(uid) and uid not in self.gone_unseen:
                self.gone_unseen.add(uid)
                used, waited = self.in_sums.get(uid, (0, 0))
                self.lost[What.USED] += pod.used() - used
                self.lost[What.WAITED] += pod.waited() - waited

    def kill_both(self) -> None:
        """Nobody is there for a while."""
        for _ in range(self.rng.randrange(8)):
            self.live()
            self.pass_time(200)
        self.standby = Replica(self.world)
        self.kill_leader()

    def moments(self, sides: int) -> Iterator[int]:
        """Moments of a story, with a dice of so many sides for what happens at each."""
        for _ in range(self.rng.randrange(1, 120)):
            self.live()
            self.pass_time(self.rng.choice((2, 60, LATE_S // 2)))
            yield self.rng.randrange(sides)

    def come_to_an_end(self) -> None:
        for pod in self.pods(lambda pod: not pod.ended and not pod.deleted):
            self.world.delete(pod)
        for pod in self.pods(lambda pod: bool(pod.ended) and not pod.reported and not pod.deleted):
            self.world.report(pod)
        self.leader.hear()


def truth(world: World, what: What) -> int:
    pods = world.all.values()
    return sum(pod.used() if what is What.USED else pod.waited() for pod in pods)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_every_second_is_counted_once_but_what_ran_unseen(seed: int) -> None:
    """Late news, lost writes and answers, leaders that change or die at any moment, replicas that start anew."""
    story = Story(seed)
    rng = story.rng
    for dice in story.moments(12):
        story.write_in_time()
        match dice:
            case 0 | 1 | 2:
                story.leader.hear(rng.randrange(6))
                story.standby.hear(rng.randrange(6))
            case 3 | 4:
                story.leader.hear()
            case 5:
                story.write()
            case 6:
                story.write(answered=False)
                # The next write is refused, so what is there is read again, and it begins anew from that.
                story.store.begin(story.leader)
            case 7:
                story.kill_leader()
            case 8:
                story.standby = Replica(story.world)
            case 9:
                story.kill_both()
            case _:
                pass
    story.come_to_an_end()
    for what in (What.USED, What.WAITED):
        assert story.leader.total(what) == MILLI * (truth(story.world, what) - story.lost[what])


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_nothing_is_lost_while_somebody_is_there_who_saw_it(seed: int) -> None:
    """Leaders change at any moment, and one that led before and was away leads again."""
    story = Story(seed)
    rng = story.rng
    for dice in story.moments(6):
        story.write_in_time()
        match dice:
            case 0:
                story.leader.hear(rng.randrange(6))
            case 1:
                story.standby.hear(rng.randrange(6))
            case 2:
                story.write(answered=rng.random() < 0.5)
            case 3:
                story.change_leader()
            case _:
                pass
        if story.leader.version != story.store.version:
            story.store.begin(story.leader)
    story.come_to_an_end()
    for what in (What.USED, What.WAITED):
        assert story.leader.total(what) == MILLI * truth(story.world, what)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_who_leads_again_counts_nothing_that_another_leader_had_counted_and_never_seen(seed: int) -> None:
    """A young replica leads in between: of pods that were gone before it came it has nothing but their sums."""
    story = Story(seed)
    rng = story.rng
    for dice in story.moments(6):
        match dice:
            case 0:
                story.standby.hear(rng.randrange(6))
            case 1:
                story.standby = Replica(story.world)
            case 2:
                story.leader.hear()
                for pod in story.pods(lambda pod: bool(pod.ended) and not pod.reported):
                    story.world.report(pod)
                story.leader.hear()
                story.write()
            case 3:
                story.change_leader()
            case _:
                pass
    story.come_to_an_end()
    for what in (What.USED, What.WAITED):
        assert story.leader.total(what) <= MILLI * truth(story.world, what)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_days_make_up_the_total_whatever_was_put_right_later(seed: int) -> None:
    """Also of what was written down and read again."""
    story = Story(seed)
    for _ in range(60):
        story.live()
        story.pass_time(DAY_S // 4)
        if story.rng.random() < 0.5:
            story.leader.hear()
        if story.rng.random() < 0.3:
            story.write()
    story.come_to_an_end()
    story.write()
    read = decode(story.store.written.data, story.store.written.binary)
    assert read is not None
    tally = story.leader.courses.tally
    assert tally is not None
    for sums in (read.sums, tally.sums):
        tables = [sums.before, *sums.days.values()]
        for series, total in sums.total.items():
            assert [sum(t.get(series, [0, 0, 0])[what] for t in tables) for what in What] == total
    assert {s: t for s, t in read.sums.total.items() if any(t)} == {
        s: t for s, t in tally.sums.total.items() if any(t)
    }
