"""The books of claims equal a count from scratch, whatever happened before, and in whatever order."""

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.dra.amounts import DeviceKey, total
from core.dra.book import DeviceBook
from core.dra.carriers import device_limits_of
from core.dra.cost import cost_of
from core.dra.wants import claim_keys
from core.objects import Claim, ClaimTemplate, Pod, Queue
from core.settings import DraSettings
from core.stage import Stage
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.property.device_ways import classes, counts, ways

QUEUES = ("root", "a", "b", "c", "d")
CLAIMS = ("c1", "c2", "p1-x", "p2-x")
SHARED = ("c1", "c2", "c3")
TEMPLATES = ("t1", "t2")
PODS = ("p1", "p2", "p3", "p4")
STAGES = (Stage.WAITING, Stage.RESERVED, Stage.ALLOCATED, Stage.IGNORED)
USED = (Stage.RESERVED, Stage.ALLOCATED)

limits = st.dictionaries(
    classes,
    st.fixed_dictionaries(
        {"count": st.integers(0, 6)}, optional={"capacity": st.fixed_dictionaries({"m": counts})}
    ),
)
queues = st.builds(
    lambda name, parent, capability: (
        a_queue(name).child_of(parent).devices({"capability": capability}).view()
    ),
    st.sampled_from(QUEUES),
    st.sampled_from(["", "gone", *QUEUES]),
    limits,
)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """One of the claims, perhaps made for a pod, perhaps allocated."""
    name = draw(st.sampled_from(CLAIMS))
    built = a_claim(name).exactly("r", draw(classes), **draw(st.fixed_dictionaries({"count": counts})))
    if draw(st.booleans()):
        built = built.first_available("s", {**draw(ways), "name": "x"}, {**draw(ways), "name": "y"})
    if draw(st.booleans()):
        built = built.allocated("r", draw(st.sampled_from(["s/x", "s/y", "other"])))
    return built.made_for(draw(st.sampled_from(PODS))).view()


templates = st.builds(
    lambda name, way: a_template(name).request({"name": "r", "exactly": way}).view(),
    st.sampled_from(TEMPLATES),
    ways,
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """A pod with up to three entries, each by name, by template, or by template with its claim made."""
    name = draw(st.sampled_from(PODS))
    built = a_pod(name)
    for number in range(draw(st.integers(0, 3))):
        entry = f"e{number}"
        if draw(st.booleans()):
            built = built.claim(entry, name=draw(st.sampled_from(CLAIMS)))
            continue
        built = built.claim(entry, template=draw(st.sampled_from(TEMPLATES)))
        if draw(st.booleans()):
            built = built.generated_claim(entry, draw(st.sampled_from(CLAIMS)))
    return built.view()


Sums = Mapping[DeviceKey, int]


class Cluster:
    """All objects there are, and what queues use by counting every pod and every claim anew."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.claims: dict[str, Claim] = {}
        self.templates: dict[str, ClaimTemplate] = {}
        self.pods: dict[str, tuple[Pod, Stage, str]] = {}

    def held(self, pod: Pod) -> Iterable[tuple[str, Sums]]:
        """Each claim of a pod and its cost; what is to be made from a template is told apart by pod and entry."""
        for entry, named, template in pod.claims:
            made = None if named else pod.generated_claims.get(entry)
            claim = self.claims.get(f"ml/{named or made}")
            if claim is not None and (named or pod.uid in claim.owners):
                yield claim.key, cost_of(claim.requests, claim.allocated, count_admin_access=False).amounts
            elif not named and f"ml/{template}" in self.templates:
                requests = self.templates[f"ml/{template}"].requests
                yield f"{pod.name}.{entry}", cost_of(requests, None, count_admin_access=False).amounts

    def above(self, queue: str) -> set[str]:
        """The queue, all above it as far as there are any, and the root."""
        found = {queue}
        while queue in self.queues and queue != "root":
            queue = self.queues[queue].parent or "root"
            if queue in found or (queue not in self.queues and queue != "root"):
                break
            found.add(queue)
        return found | {"root"}

    def sums(self, queue: str, *stages: Stage) -> Sums:
        """What the pods of these stages hold in a queue and below it, each claim once."""
        together: dict[str, Sums] = {}
        for pod, stage, home in self.pods.values():
            if stage in stages and queue in self.above(home):
                together.update(self.held(pod))
        return {key: amount for key, amount in total(together.values()).items() if amount}

    def fill(self, book: DeviceBook, order: Any) -> None:
        """Tells a book all objects, in any order."""
        puts: list[Any] = [(book.put_queue, queue) for queue in self.queues.values()]
        puts += [(book.put_claim, claim) for claim in self.claims.values()]
        puts += [(book.put_template, template) for template in self.templates.values()]
        puts += [(book.put_pod, *pod) for pod in self.pods.values()]
        order(puts)
        for put, *values in puts:
            put(*values)


def seen(book: DeviceBook) -> dict[str, tuple[Sums, ...]]:
    """A copy of all sums; those of the book live on."""
    found = {
        name: (
            dict(book.accounts.allocated(name)),
            dict(book.accounts.reserved(name)),
            dict(book.accounts.waiting(name)),
        )
        for name in (*QUEUES, "gone", "lost")
    }
    return {name: sums for name, sums in found.items() if any(sums)}


class Followed(RuleBasedStateMachine):
    """A cluster, and a book that is told everything."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.book = DeviceBook(DraSettings())

    def refuses(self, pod: Pod, queue: str) -> bool:
        """Whether a waiting pod is kept out of a queue now."""
        return (self.book.obstacle(pod, queue) or self.book.excess(pod, queue)) is not None

    def shortfalls(self) -> dict[str, bool]:
        """Of each waiting pod, whether it is kept out."""
        waiting = [(pod, queue) for pod, stage, queue in self.cluster.pods.values() if stage is Stage.WAITING]
        return {pod.uid: self.refuses(pod, queue) for pod, queue in waiting if pod.claims}

    def then(self, put: Any, *values: Any) -> None:
        """An event; whoever may be let in by it is in a queue that it makes dirty."""
        before = self.shortfalls()
        sums = seen(self.book)
        effect = put(*values)
        now = seen(self.book)
        for uid, short in self.shortfalls().items():
            if before.get(uid, True) and not short:
                assert self.cluster.pods[uid][2] in effect.dirty, uid
        changed = {name for name in sums.keys() | now.keys() if sums.get(name) != now.get(name)}
        assert changed <= effect.touched

    @invariant()
    def who_waits_for_a_claim_is_known_by_queue(self) -> None:
        for claim in (f"ml/{name}" for name in (*CLAIMS, *SHARED)):
            waiting = {
                queue
                for pod, stage, queue in self.cluster.pods.values()
                if stage is Stage.WAITING and claim in claim_keys(pod)
            }
            assert self.book._bookings.sharing({("root", claim, True)}) == waiting

    def teardown(self) -> None:
        for uid in self.cluster.pods:
            self.book.drop_pod(uid)
        assert not any(vars(self.book._bookings._awaited).values()), "of claims nothing is kept without pods"


class Books(Followed):
    """Events of all kinds in any order, relists and missed deletions among them."""

    @rule(pod=pods(), stage=st.sampled_from(STAGES), queue=st.sampled_from([*QUEUES, "lost"]))
    def put_pod(self, pod: Pod, stage: Stage, queue: str) -> None:
        self.cluster.pods[pod.uid] = (pod, stage, queue)
        self.then(self.book.put_pod, pod, stage, queue)

    @rule(name=st.sampled_from(PODS))
    def drop_pod(self, name: str) -> None:
        self.cluster.pods.pop(f"uid-ml-{name}", None)
        self.then(self.book.drop_pod, f"uid-ml-{name}")

    @rule(claim=claims())
    def put_claim(self, claim: Claim) -> None:
        self.cluster.claims[claim.key] = claim
        self.then(self.book.put_claim, claim)

    @rule(name=st.sampled_from(CLAIMS))
    def drop_claim(self, name: str) -> None:
        self.cluster.claims.pop(f"ml/{name}", None)
        self.then(self.book.drop_claim, f"ml/{name}")

    @rule(template=templates)
    def put_template(self, template: ClaimTemplate) -> None:
        self.cluster.templates[template.key] = template
        self.then(self.book.put_template, template)

    @rule(name=st.sampled_from(TEMPLATES))
    def drop_template(self, name: str) -> None:
        self.cluster.templates.pop(f"ml/{name}", None)
        self.then(self.book.drop_template, f"ml/{name}")

    @rule(queue=queues)
    def put_queue(self, queue: Queue) -> None:
        self.cluster.queues[queue.name] = queue
        self.then(self.book.put_queue, queue)

    @rule(name=st.sampled_from(QUEUES))
    def drop_queue(self, name: str) -> None:
        self.cluster.queues.pop(name, None)
        self.then(self.book.drop_queue, name)

    @rule(pod=pods(), queue=st.sampled_from(QUEUES))
    def try_a_lift(self, pod: Pod, queue: str) -> None:
        """Booked and taken back, nothing is left of it."""
        known = self.cluster.pods.get(pod.uid)
        before = seen(self.book)
        self.book.put_pod(pod, Stage.RESERVED, queue)
        if known is None:
            self.book.drop_pod(pod.uid)
        else:
            self.book.put_pod(*known)
        assert seen(self.book) == before

    @rule(order=st.randoms(use_true_random=False))
    def restart(self, order: Any) -> None:
        """A book that is told all objects at once, in any order, has the same sums."""
        fresh = DeviceBook(DraSettings())
        self.cluster.fill(fresh, order.shuffle)
        assert seen(fresh) == seen(self.book)
        self.book = fresh

    @invariant()
    def the_books_equal_a_count_from_scratch(self) -> None:
        for name in (*QUEUES, "gone", "lost"):
            used = self.cluster.sums(name, *USED)
            everything = self.cluster.sums(name, Stage.WAITING, *USED)
            assert self.book.accounts.allocated(name) == self.cluster.sums(name, Stage.ALLOCATED)
            assert self.book.accounts.used(name) == used
            assert {
                key: amount
                for key, amount in total([used, self.book.accounts.waiting(name)]).items()
                if amount
            } == everything

    @invariant()
    def what_is_let_in_exceeds_no_limit(self) -> None:
        for pod, stage, queue in tuple(self.cluster.pods.values()):
            if stage is not Stage.WAITING or self.refuses(pod, queue):
                continue
            before = {name: dict(self.book.accounts.used(name)) for name in QUEUES}
            self.book.put_pod(pod, Stage.RESERVED, queue)
            for name, view in self.cluster.queues.items():
                for key, bound in device_limits_of(view).bounds.items():
                    amount = self.book.accounts.used(name).get(key, 0)
                    assert amount <= max(bound, before[name].get(key, 0)), (name, key)
            self.book.put_pod(pod, stage, queue)


class Crowded(Followed):
    """Three claims, few devices and pods that share both: nearly every event lets somebody in or keeps somebody out."""

    @initialize()
    def begin(self) -> None:
        for name, parent, count in (("a", "", 2), ("b", "a", 1), ("c", "a", 1)):
            self.put_queue(name, parent, count)
        for claim in SHARED:
            self.put_claim(claim, 1)

    @rule(
        name=st.sampled_from(PODS),
        wanted=st.sets(st.sampled_from(SHARED), min_size=1, max_size=2),
        stage=st.sampled_from((Stage.WAITING, Stage.WAITING, *USED)),
        queue=st.sampled_from("abc"),
    )
    def put_pod(self, name: str, wanted: set[str], stage: Stage, queue: str) -> None:
        built = a_pod(name)
        for claim in sorted(wanted):
            built = built.claim(claim, name=claim)
        self.book_pod(built.view(), stage, queue)

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data(), queue=st.sampled_from("abc"))
    def move(self, data: st.DataObject, queue: str) -> None:
        """A pod takes its claims to another queue."""
        pod, stage, _ = data.draw(st.sampled_from(list(self.cluster.pods.values())))
        self.book_pod(pod, stage, queue)

    def book_pod(self, pod: Pod, stage: Stage, queue: str) -> None:
        self.cluster.pods[pod.uid] = (pod, stage, queue)
        self.then(self.book.put_pod, pod, stage, queue)

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def drop_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.cluster.pods)))
        del self.cluster.pods[uid]
        self.then(self.book.drop_pod, uid)

    @rule(name=st.sampled_from(SHARED), count=st.integers(1, 2))
    def put_claim(self, name: str, count: int) -> None:
        self.then(self.book.put_claim, a_claim(name).exactly("r", "gpu", count=count).view())

    @rule(name=st.sampled_from("abc"), parent=st.sampled_from(("", "a", "b")), count=st.integers(0, 2))
    def put_queue(self, name: str, parent: str, count: int) -> None:
        limit = {"capability": {"gpu": {"count": count}}}
        self.then(self.book.put_queue, a_queue(name).child_of(parent).devices(limit).view())


TestBooks = Books.TestCase
TestCrowded = Crowded.TestCase
