"""One event at any pause of a pass, wherever there is one in queues and gangs of any size: afterwards nobody waits for nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.objects import Group, Node, Pod, Queue
from core.plan.decision import Decision, Lift
from core.plan.lift import Planner
from core.queues import backlog
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.property.pieces import pieces
from tests.unit.core.plan.stepping import all_passes

QUEUES = ("red", "blue")
ABOVE = "top"
CHOICES = ("A", "B", "A|B", "B|A", "")
GROUPS = ("g0", "g1", "g2")
NODES = ("a", "b", "m")
MOST_PAUSES = 40
"""At which the event is tried; where a pass has more, at every second or third one."""


@dataclass(slots=True)
class World:
    """What is stored when the pass begins."""

    queues: dict[str, Queue] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)

    def ledger(self, settings: Settings) -> Ledger:
        ledger = Ledger(settings)
        ledger.put_namespace(a_namespace().view())
        for queue in self.queues.values():
            ledger.put_queue(queue)
        for group in self.groups.values():
            ledger.put_group(group)
        for node in self.nodes.values():
            ledger.put_node(node)
        for pod in self.pods.values():
            ledger.put_pod(pod)
        return ledger


Event = Callable[[Ledger], object]

counts = st.integers(0, 4)


@st.composite
def queue(draw: st.DrawFn, name: str) -> Queue:
    cards = draw(st.dictionaries(st.sampled_from("AB"), counts))
    built = a_queue(name).cards(cards).priority(draw(st.integers(0, 1)))
    built = built.child_of(ABOVE) if name in QUEUES and draw(st.booleans()) else built
    built = built.guarantee(cpu=draw(st.integers(0, 2)))
    cpu = draw(st.none() | st.integers(0, 8))
    built = built if cpu is None else built.capability(cpu=cpu)
    built = built.fifo() if draw(st.booleans()) else built
    return built.state(draw(st.sampled_from(("Open", "Open", "Open", "Closed")))).view()


@st.composite
def group(draw: st.DrawFn, name: str) -> Group:
    built = a_group(name).in_queue(draw(st.sampled_from(QUEUES))).min_member(draw(st.integers(0, 4)))
    declared = draw(st.none() | st.dictionaries(st.sampled_from(CHOICES[:4]), counts, max_size=2))
    if declared is not None:
        built = built.cards(declared).owned_by("Job", name, api_version="batch.volcano.sh/v1alpha1")
    for task in draw(st.sets(st.sampled_from("xy"), max_size=1)):
        built = built.min_task(task, draw(st.integers(0, 2)))
    return built.view()


@st.composite
def node(draw: st.DrawFn, name: str) -> Node:
    if name == "m":
        return a_node(name).mgpu(draw(st.integers(1, 2)), memory=4096).view()
    built = (
        a_node(name).card(name.upper(), draw(st.integers(0, 5))).allocatable("cpu", draw(st.integers(1, 9)))
    )
    return (built if draw(st.booleans()) else built.not_ready()).view()


@st.composite
def pod(draw: st.DrawFn, name: str) -> Pod:
    built = a_pod(name).request("cpu", draw(st.integers(0, 3))).priority(draw(st.integers(0, 1)))
    choice = draw(st.sampled_from(CHOICES))
    built = built.gpu(draw(st.integers(1, 2))).card(choice) if choice else built.mgpu(core=50, memory=512)
    home = draw(st.sampled_from((*QUEUES, *GROUPS, *GROUPS)))
    built = built.in_queue(home) if home in QUEUES else built.in_group(home)
    built = built.task(draw(st.sampled_from("xyz"))) if home in GROUPS else built
    if choice in ("A", "B") and draw(st.integers(0, 3)) == 0:
        charged = built.assigned({choice: 1}).bound_to(choice.lower())
        return (charged if home in GROUPS else charged.charged(home)).view()
    return built.gated(*(("other",) if draw(st.integers(0, 9)) == 0 else ())).view()


@st.composite
def worlds(draw: st.DrawFn) -> World:
    here = [name for name in GROUPS if draw(st.integers(0, 5))]
    return World(
        queues={name: draw(queue(name)) for name in (*QUEUES, ABOVE)},
        groups={name: draw(group(name)) for name in here},
        nodes={name: draw(node(name)) for name in NODES},
        pods={name: draw(pod(name)) for name in (f"p{number}" for number in range(draw(st.integers(1, 9))))},
    )


@st.composite
def events(draw: st.DrawFn, world: World) -> Event:
    """Something that may help somebody, or that changes for whom there is room."""
    uids = sorted(each.uid for each in world.pods.values())
    of_uid = {each.uid: each for each in world.pods.values()}

    def put(kind: str, view: Any) -> Event:
        return lambda ledger: getattr(ledger, f"put_{kind}")(view)

    match draw(
        st.sampled_from(
            ("queue", "group", "group", "minimum", "no group", "node", "end", "gone", "new", "pod")
        )
    ):
        case "queue":
            return put("queue", draw(queue(draw(st.sampled_from((*QUEUES, ABOVE))))))
        case "group":
            return put("group", draw(group(draw(st.sampled_from(GROUPS)))))
        case "minimum" if world.groups:
            lowered = world.groups[draw(st.sampled_from(sorted(world.groups)))]
            return put("group", replace(lowered, min_member=draw(st.integers(0, 2))))
        case "no group" if world.groups:
            key = world.groups[draw(st.sampled_from(sorted(world.groups)))].key
            return lambda ledger: ledger.drop_group(key)
        case "node":
            return put("node", draw(node(draw(st.sampled_from(NODES)))))
        case "end":
            ended = of_uid[draw(st.sampled_from(uids))]
            return put("pod", replace(ended, phase="Succeeded" if ended.bound else "Failed"))
        case "gone":
            uid = draw(st.sampled_from(uids))
            return lambda ledger: ledger.drop_pod(uid)
        case "pod":
            changed = draw(pod(of_uid[draw(st.sampled_from(uids))].name))
            return put("pod", changed)
        case _:
            return put("pod", draw(pod("new")))


def passes(ledger: Ledger) -> Iterator[Decision | None]:
    """As the controller goes about it when it begins to lead."""
    ledger.wakeups.look_at(*ledger.accounts)
    return all_passes(ledger)


def still_fitting(ledger: Ledger) -> list[str]:
    """Who would be let in if everybody were looked at once more."""
    finish(ledger.settle())
    planner = Planner(ledger)
    decisions = (each for queue in planner.order(QUEUES) for each in planner.decide(queue))
    return [each.pod.name for each in decisions if isinstance(each, Lift)]


@pytest.fixture(autouse=True, scope="module", params=[0, backlog.SIFTED_AT_ONCE])
def finely(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every pause that there may be, with those as well in which is found out who of a crowd holds something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backlog, "AT_ONCE", 0)
        patch.setattr(backlog, "SIFTED_AT_ONCE", request.param)
        for module, name in pieces():
            patch.setattr(module, name, 1)
        yield


@given(data=st.data(), uniform=st.booleans(), hierarchy=st.booleans())
def test_after_one_event_at_any_pause_nobody_is_held_who_fits(
    data: st.DataObject, uniform: bool, hierarchy: bool
) -> None:
    way = "uniform" if uniform else "spread"
    settings = Settings.model_validate({"cards": {"multiCardJob": way, "hierarchy": hierarchy}})
    world = data.draw(worlds())
    event = data.draw(events(world))
    pauses = sum(1 for _ in passes(world.ledger(settings)))
    for pause in range(0, pauses, 1 + pauses // MOST_PAUSES):
        ledger = world.ledger(settings)
        for number, _ in enumerate(passes(ledger)):
            if number == pause:
                event(ledger)
        assert still_fitting(ledger) == [], f"at pause {pause} of {pauses}"


@pytest.mark.parametrize("leaver", range(4))
def test_a_member_that_leaves_its_gang_at_any_pause_is_looked_at_by_itself(leaver: int) -> None:
    """Also while it is booked as if it were let in, for a trial that comes to nothing."""
    members = 4

    def begun() -> Ledger:
        ledger = Ledger(Settings())
        ledger.put_node(a_node("b").card("B", members).view())
        ledger.put_queue(a_queue("q").cards({"B": members - 1}).view())
        ledger.put_group(a_group("g").in_queue("q").min_member(members).view())
        for number in range(members):
            ledger.put_pod(a_pod(f"p{number}").gpu(1).card("A|B").in_group("g").gated().view())
        return ledger

    alone = a_pod(f"p{leaver}").gpu(1).card("A|B").in_queue("q").gated().view()
    decided = next(number for number, told in enumerate(passes(begun())) if told is not None)
    assert decided > 10, "it is decided on in many steps"
    for pause in range(decided):
        ledger, lifted = begun(), list[str]()
        for number, told in enumerate(passes(ledger)):
            if number == pause:
                ledger.put_pod(alone)
            lifted += [told.pod.name] if isinstance(told, Lift) else []
        assert lifted == [alone.name], f"at pause {pause}"
