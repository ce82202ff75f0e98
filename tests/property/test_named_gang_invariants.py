"""No gang without PodGroup is partial at rest: late members, restarts, lost lifts, members made anew and quota that changes."""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from core import names
from core.objects import Pod
from core.plan.lift import Planner
from core.queues.group_minimum import counts
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.property.stored_pods import OnePlanner

CHOICES = ("A", "B", "A|B", "B|A")
OWNERS = ("", "j", "k")


def key_of(pod: Pod) -> str:
    """What a person would say which gang it is, whatever the books think."""
    assert pod.gang is not None
    return f"{pod.gang.name} of {pod.gang.owner.name if pod.gang.owner is not None else 'nobody'}"


class NamedGangs(OnePlanner):
    """Owners that make members of gangs one by one, a watch that lags, an API that refuses writes, a controller that is killed."""

    def __init__(self) -> None:
        super().__init__()
        self.quota = {"A": 4, "B": 3}
        self.made = 0
        self.cut: set[str] = set()
        """The gangs of which a member was taken away after some were let in, all of them or those whose lifts came through; or
        before, and the watch had not shown it yet when they were."""
        self.lost: dict[str, str] = {}
        """Of each member that was taken away, its gang."""
        self.steady = False
        """Whether quota stays as it is and no member is lost."""
        self.start()

    @initialize(steady=st.booleans(), a=st.integers(0, 6), b=st.integers(0, 4))
    def begin(self, steady: bool, a: int, b: int) -> None:
        self.set_quota(a, b)
        self.steady = steady

    def start(self) -> None:
        """A controller that knows nothing but what it lists."""
        self.ledger = Ledger(Settings())
        for card in ("A", "B"):
            self.ledger.put_node(a_node(card.lower()).card(card, 16).view())
        self.ledger.put_queue(a_queue("q").cards(self.quota).view())
        for pod in self.stored.values():
            self.ledger.put_pod(pod)
        self.unseen.clear()
        self.planner = Planner(self.ledger)

    @rule(
        name=st.sampled_from("gh"),
        owner=st.sampled_from(OWNERS),
        sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
        choice=st.sampled_from(CHOICES),
        priority=st.integers(0, 2),
    )
    def create(self, name: str, owner: str, sizes: list[int], choice: str, priority: int) -> None:
        """Some members; others may come later, and may say another size."""
        for size in sizes:
            self.made += 1
            pod = a_pod(f"p{self.made}").gpu(1).card(choice).gated().in_queue("q").priority(priority)
            self.store(pod.in_gang(name, size, owner=owner).view())

    @precondition(lambda self: self.stored and not self.steady)
    @rule(data=st.data(), anew=st.booleans())
    def lose(self, data: st.DataObject, anew: bool) -> None:
        """A member is deleted, and perhaps made anew by its owner."""
        pod = data.draw(st.sampled_from(sorted(self.stored.values(), key=lambda each: each.uid)))
        if not all(member.gated for member in self.gangs()[key_of(pod)]):
            self.cut.add(key_of(pod))
        del self.stored[pod.uid]
        self.unseen.append(pod.uid)
        self.lost[pod.uid] = key_of(pod)
        assert pod.gang is not None
        if anew:
            self.made += 1
            fresh = (
                a_pod(f"p{self.made}").gpu(1).card(pod.card_name).gated().in_queue("q").priority(pod.priority)
            )
            owner = pod.gang.owner.name if pod.gang.owner is not None else ""
            self.store(fresh.in_gang(pod.gang.name, pod.gang.size, owner=owner).view())

    def decide(self, accepted: Callable[[], bool], *, forget: bool = True) -> bool:
        """Whoever has gone without being seen to is counted on: others of its gang may be let in, and it never comes."""
        counted_on = {self.lost[uid] for uid in self.unseen if uid in self.lost}
        decided = super().decide(accepted, forget=forget)
        gangs = self.gangs()
        self.cut |= {key for key in counted_on if not all(pod.gated for pod in gangs.get(key, ()))}
        return decided

    @precondition(lambda self: not self.steady)
    @rule(a=st.integers(0, 6), b=st.integers(0, 6))
    def change_quota(self, a: int, b: int) -> None:
        self.set_quota(a, b)

    def set_quota(self, a: int, b: int) -> None:
        self.quota = {"A": a, "B": b}
        self.ledger.put_queue(a_queue("q").cards(self.quota).view())

    def gangs(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.stored.values():
            found.setdefault(key_of(pod), []).append(pod)
        return found

    def teardown(self) -> None:
        """All is shown and every write goes through: no gang is partial. With quota for everybody each has its size, or nobody."""
        self.watch(len(self.unseen) or 1)
        while self.decide(lambda: True):
            self.watch(len(self.unseen))
        for key, pods in self.gangs().items() if self.steady else ():
            let_in = [int(pod.annotations.get(names.GANG_ANNOTATION, 0)) for pod in pods]
            started = sum(counts(pod, self.ledger.stages) for pod in pods)
            least = min(pod.gang.size for pod in pods if pod.gang is not None)
            assert started in (0, *range(max(least, *let_in), len(pods) + 1)), (key, started, let_in)
        self.set_quota(200, 200)
        for card in ("A", "B"):
            self.ledger.put_node(a_node(card.lower()).card(card, 200).view())
        while self.decide(lambda: True):
            self.watch(len(self.unseen))
        for key, pods in self.gangs().items():
            sizes = [pod.gang.size for pod in pods if pod.gang is not None]
            started = sum(counts(pod, self.ledger.stages) for pod in pods)
            if len(pods) >= max(sizes):
                assert started == len(pods), (key, started, sizes)
            elif key not in self.cut and len({*sizes}) == 1:
                assert started == 0, (key, started, sizes)


TestNamedGangs = NamedGangs.TestCase
