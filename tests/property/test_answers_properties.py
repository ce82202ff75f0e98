"""What `explain` says would help is true: applied to a cluster as it is, and nothing else, it lifts the pod."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from core import names
from core.answers.beyond import EmptyCluster
from core.answers.explain import explain
from core.answers.fitting import fit
from core.answers.quota import with_limit
from core.answers.raising import QUOTA
from core.answers.whatif import Change
from core.answers.would_run import verdicts
from core.objects import Claim, Group, Node, Pod, Queue
from core.objects.taints import Toleration, Tolerations
from core.plan import offline
from core.queues.ledger import Ledger
from core.settings import Settings
from core.settings.model import CardSettings, PoolSettings
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.books import books_of
from tests.builders.claims import a_claim
from tests.builders.objects import NodeBuilder, QueueBuilder
from tests.builders.pods import GPU, PodBuilder

_CARDS = ("A", "B")
_CLASS = "gpu.example.com"


def _of_size(pod: Pod, sizes: Mapping[str, int]) -> Pod:
    """The pod as one whose template gives its gang another size."""
    gang = pod.gang
    return (
        pod
        if gang is None or gang.key not in sizes
        else replace(pod, gang=replace(gang, size=sizes[gang.key]))
    )


@dataclass(frozen=True)
class World:
    """A cluster as it is stored."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    groups: tuple[Group, ...]
    pods: tuple[Pod, ...]
    hierarchy: bool = False
    """Whether the limits of queues hold for all below them."""
    claims: tuple[Claim, ...] = ()
    tolerations: Mapping[str, Tolerations] = field(default_factory=dict)
    """Of some of the pods, by UID."""
    pools: bool = False
    """Whether an autoscaler may bring nodes of one of the cards that no node has."""

    def changed(self, change: Change) -> "World":
        """As somebody who follows the advice leaves it."""
        queues = {queue.name: queue for queue in self.queues} | dict(change.queues)
        stored = {key: group for key, group in change.groups.items() if group.stored}
        sizes = {key: group.min_member for key, group in change.groups.items() if not group.stored}
        groups = {group.key: group for group in self.groups} | stored
        pods = tuple(
            _of_size(change.pods.get(pod.uid, pod), sizes) for pod in self.pods if pod.uid not in change.gone
        )
        nodes = tuple(change.nodes.get(node.name, node) for node in self.nodes)
        return replace(
            self, nodes=nodes, queues=tuple(queues.values()), groups=tuple(groups.values()), pods=pods
        )

    def ledger(self) -> Ledger:
        """Books that have taken in all of it, and nothing before."""
        pools = {"C": PoolSettings(labels={"pool": "c"}, resource=GPU)} if self.pools else {}
        found = Settings(cards=CardSettings(hierarchy=self.hierarchy, pools=pools))
        return books_of(found, [*self.nodes, *self.queues, *self.groups, *self.claims, *self.pods])

    def decision(self, pod: Pod) -> str:
        """What the leader would do with a pod."""
        return offline.plan(self.ledger(), self.pods).pods[pod.key].decision


@st.composite
def pods(draw: st.DrawFn, number: int) -> PodBuilder:
    """One that runs, or waits: cards or shares, in a group or alone, with gates of others, in some order of age."""
    name = f"p{number}"
    pod = a_pod(name).created(f"2024-01-01T00:00:{draw(st.integers(0, 59)):02d}Z")
    # The last two are deleted, or misspelt.
    pod = pod.in_queue(draw(st.sampled_from(("q", "q", "q", "q", "r", "gone", "qq"))))
    if draw(st.integers(0, 6)) == 0:
        pod = pod.claim("d", name=f"claim-{number}")
    if draw(st.integers(0, 9)) == 0:
        pod = pod.selects("zone", draw(st.sampled_from(("sun", "moon"))))
    share = draw(st.integers(0, 6)) == 0
    if share:
        # More than a card has, now and then.
        memory = draw(st.sampled_from((1000, 1000, 9000)))
        pod = pod.mgpu("c1", core=draw(st.sampled_from((20, 60))), memory=memory).only("c1")
        pod = pod.mgpu_policy("native-burst-share") if draw(st.integers(0, 5)) == 0 else pod
    else:
        # Some misspell a card, name one that no node has, or none at all.
        card = draw(st.sampled_from(("A", "A", "A", "B", "A|B", "A|B", "a", "C", "C|A", "")))
        pod = pod.gpu(draw(st.integers(1, 4)))
        pod = pod.card(card) if card else pod
    if draw(st.booleans()):
        group = draw(st.sampled_from(("", "", "g", "h", "nowhere", "gang", "gang")))
        if group == "gang":
            pod = pod.in_gang("t", draw(st.sampled_from((2, 2, 3))), owner=draw(st.sampled_from(("", "j"))))
        elif group:
            pod = pod.in_group(group)
        others = draw(st.sampled_from(((), (), (), ("example.com/check",))))
        return pod.gated(*others).put("spec", "priority", value=draw(st.sampled_from((0, 0, 0, 10))))
    # On record, as the leader leaves everybody whom it lets in or finds running.
    pod = pod.charged(draw(st.sampled_from(("q", "q", "r"))))
    card = draw(
        st.sampled_from(pod.raw["metadata"]["annotations"].get(names.CARD_NAME_ANNOTATION, "A").split("|"))
    )
    if not share and draw(st.integers(0, 5)) == 0:
        # Let in, and no scheduler has found it a node yet.
        return pod.put("status", "phase", value="Pending")
    if not share:
        pod = pod.assigned({card: int(pod.raw["spec"]["containers"][0]["resources"]["limits"][GPU])})
    node = "shared" if share else f"n-{card}" if card in _CARDS else "bare"
    return pod.put("spec", "nodeName", value=node).put("status", "phase", value="Running")


@st.composite
def levels(draw: st.DrawFn, name: str) -> QueueBuilder:
    """A queue above others; a card that it does not list is not limited by it."""
    listed = draw(st.sampled_from(((), ("A",), ("A",), ("B",), ("A", "B"))))
    queue = a_queue(name).cards({card: draw(st.integers(0, 8)) for card in listed})
    return queue.shares(core=draw(st.integers(0, 150))) if draw(st.integers(0, 3)) == 0 else queue


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A queue with pods, and another one beside it; in every other world both are in a tree whose limits hold."""
    tree = draw(st.booleans())
    count = draw(st.integers(2, 9))
    made = [draw(pods(number)) for number in range(count)]
    quota = {"A": draw(st.integers(0, 6)), "B": draw(st.integers(0, 3))}
    # Somebody may have given quota for a card that no node has.
    queue = a_queue("q").cards(quota | draw(st.sampled_from(({}, {}, {"C": 2}))))
    if draw(st.booleans()):
        queue = queue.devices({"capability": {_CLASS: {"count": draw(st.integers(0, 4))}}})
    if draw(st.booleans()):
        queue = queue.shares(core=draw(st.integers(0, 150)))
    if draw(st.integers(0, 3)) == 0:
        queue = queue.fifo()
    if draw(st.integers(0, 5)) == 0:
        queue = queue.used_by("others")
    other = a_queue("r").cards({"A": 2}).state(draw(st.sampled_from(("Open", "Closed"))))
    above = list[QueueBuilder]()
    if tree:
        queue, other = queue.child_of("p"), other.child_of("p")
        above = [draw(levels("p")).child_of("top"), draw(levels("top"))]

    def kept_for_some(name: str) -> NodeBuilder:
        node = a_node(name)
        return node.tainted("dedicated") if draw(st.integers(0, 7)) == 0 else node

    nodes = (
        kept_for_some("n-A").card("A", draw(st.integers(2, 8))).label("zone", "sun"),
        kept_for_some("n-B").card("B", 4),
        a_node("shared").mgpu(1, memory=8000) if draw(st.integers(0, 5)) else a_node("shared"),
        # Its devices are of no card, for nothing says of which, or what says it is not understood.
        draw(
            st.sampled_from((a_node("bare"), a_node("bare").label("nvidia.com/gpu.product", "A")))
        ).allocatable(GPU, 4),
    )
    tolerant = draw(st.sets(st.sampled_from([pod.view().uid for pod in made])))
    groups = [a_group(name).in_queue("q").min_member(draw(st.integers(1, 4))) for name in ("g", "h")]
    return World(
        tuple(node.view() for node in nodes),
        tuple(one.view() for one in (queue, other, *above)),
        tuple(group.view() for group in groups),
        tuple(pod.view() for pod in made),
        hierarchy=tree,
        claims=tuple(
            a_claim(f"claim-{number}").exactly("r", _CLASS, count=draw(st.integers(1, 2))).view()
            for number in range(count)
        ),
        tolerations=dict.fromkeys(tolerant, (Toleration("dedicated", "Exists", "", ""),)),
        pools=draw(st.booleans()),
    )


def waiting(world: World) -> Iterable[Pod]:
    plan = offline.plan(world.ledger(), world.pods)
    return [pod for pod in world.pods if plan.pods[pod.key].decision == "hold"]


@settings(max_examples=60, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_what_would_help_lifts_the_pod(world: World, data: st.DataObject) -> None:
    """Every remedy, on books that never saw the search for it."""
    held = waiting(world)
    if not held:
        return
    pod = data.draw(st.sampled_from(list(held)))
    found = explain(world.ledger(), pod.uid, world.tolerations)
    assert found is not None
    assert found.decision == "hold"
    event(f"{found.hold.why.code if found.hold else ''}: {min(3, len(found.remedies))} remedies")
    for remedy in found.remedies:
        told = [step.text for step in remedy.steps]
        after = world.changed(remedy.change)
        assert after.decision(pod) == "lift", told
        named = [(step.action, step.object) for step in remedy.steps if step.action in ("card", "queue")]
        assert len(named) == len(set(named)), told
        ledger = after.ledger()
        entry = ledger.entry(pod.uid)
        assert entry is not None
        assert EmptyCluster(ledger, world.tolerations).beyond(entry) is None, told


@settings(max_examples=60, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_a_raise_is_the_smallest_one(world: World, data: st.DataObject) -> None:
    """Of a remedy that raises nothing but cards, of one queue or of several: with any less of any of them the pod still waits."""
    held = waiting(world)
    if not held:
        return
    pod = data.draw(st.sampled_from(list(held)))
    found = explain(world.ledger(), pod.uid, world.tolerations)
    assert found is not None
    for remedy in found.remedies:
        if any(step.action != "raise" or step.key not in _CARDS for step in remedy.steps):
            continue
        event(f"{len(remedy.steps)} raised together")
        for step in remedy.steps:
            queue = remedy.change.queues[step.object.removeprefix("Queue ")]
            for total in range(step.total - step.amount, step.total, 1000):
                less = with_limit(queue, step.key, total)
                assert less is not None
                changed = world.changed(remedy.change.queue(less))
                assert changed.decision(pod) != "lift", (step.text, total)


@settings(max_examples=60, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_where_more_quota_alone_would_do_a_raise_is_found(world: World, data: st.DataObject) -> None:
    """Of one queue, or of every queue that is short, up to the root; and none for a pod that no node could ever hold."""
    ample = Change.none()
    for queue in world.queues:
        cards = json.dumps(dict.fromkeys(_CARDS, 100))
        more = replace(queue, card_quota=cards, capability=dict.fromkeys(queue.capability, 10**9))
        ample = ample.queue(more)
    held = waiting(world)
    helped = [pod for pod in held if world.changed(ample).decision(pod) == "lift"]
    if not helped:
        return
    pod = data.draw(st.sampled_from(helped))
    found = explain(world.ledger(), pod.uid, world.tolerations)
    assert found is not None
    assert found.hold is not None
    if found.hold.why.code not in QUOTA or found.hold.behind is not None:
        return
    raises = [one for one in found.remedies if {step.action for step in one.steps} == {"raise"}]
    event(f"{min(len(one.steps) for one in raises) if raises else 0} raised")
    assert bool(raises) == (found.beyond_nodes is None), found.hold.why.message


@settings(max_examples=30, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), st.data())
def test_the_books_are_left_as_they_were(world: World, data: st.DataObject) -> None:
    """Asking changes nothing: the plan afterwards is the plan before."""
    held = waiting(world)
    if not held:
        return
    ledger = world.ledger()
    explain(ledger, data.draw(st.sampled_from(list(held))).uid, world.tolerations)
    assert offline.plan(ledger, world.pods) == offline.plan(world.ledger(), world.pods)


@settings(max_examples=60, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_the_quota_that_is_advised_lets_in_all_but_those_it_names(world: World) -> None:
    """And no less of any of its cards does, the others being so."""
    wanted = [pod for pod in waiting(world) if world.ledger().attribution(pod).queue == "q"]
    found = fit(world.ledger(), "q", [pod.uid for pod in wanted])
    event(f"{len(found.needs)} keys raised, {min(2, len(found.holds))} in vain")
    after = offline.plan(world.changed(found.change).ledger(), world.pods)
    held = {pod.uid for pod in wanted if after.pods[pod.key].decision == "hold"}
    assert held == set(found.holds)
    if not found.changed or not found.least:
        return
    for need in [one for one in found.needs if one.key in _CARDS]:
        less = with_limit(found.changed[need.queue], need.key, need.needed - 1000)
        assert less is not None
        changed = offline.plan(world.changed(found.change.queue(less)).ledger(), world.pods)
        # One that no quota helps may come in for one that is kept out then.
        assert not {pod.uid for pod in wanted if changed.pods[pod.key].decision == "hold"} <= held, need


@settings(max_examples=60, deadline=None, print_blob=False, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_who_can_run_is_who_is_lifted_and_finds_a_node(world: World) -> None:
    """The verdicts are the plan's, and whom everybody else leaves alone is lifted then, or is said never to be."""
    gated = [pod for pod in world.pods if pod.gated]
    plan = offline.plan(world.ledger(), world.pods)
    ledger = world.ledger()
    found = verdicts(ledger, gated, world.tolerations)
    assert [one.pod.uid for one in found] == [pod.uid for pod in gated]
    for one in found:
        assert (one.hold is not None) == (plan.pods[one.pod.key].decision == "hold")
        assert not (one.runs and one.never)
        assert one.runs or one.hold is not None or one.apart or one.seat.problem
        if one.seat.node and one.cards:
            assert {*one.cards} <= {*ledger.inventory.on_node(one.seat.node)}
    alone = replace(world, pods=tuple(gated))
    without = offline.plan(alone.ledger(), alone.pods)
    for one in found:
        if one.hold is not None and without.pods[one.pod.key].decision == "hold":
            assert one.never
    assert offline.plan(ledger, world.pods) == plan
