"""Pods that are let in as the one before them that asked for the same: as if each had been judged by itself.

The same decisions in the same order, with the same patches, and the same books; and what is taken back leaves nothing.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.objects import DeviceClass, Pod
from core.plan.decision import Decision
from core.plan.judge import Judge
from core.plan.lift import Planner
from core.queues.audit import audit
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_group, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import QueueBuilder

QUEUES = ("red", "blue")
PARENTS = {"red": "team", "blue": "team", "team": "org", "org": ""}
"""The tree that stands where quotas hold through it; pods are in all of its queues."""
PRODUCTS = ("A", "B", "A|B", "")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"cards": {"unlimitedCpuMemory": True}},
    {"cards": {"podsWithoutCardName": "infer"}},
    {"cards": {"multiCardJob": "uniform"}},
    {"features": {"dra": False}},
]
TREES: list[dict[str, Any]] = [
    {"cards": {"hierarchy": True}},
    {"cards": {"hierarchy": True, "equivalents": {"A": ["c"]}}},
    {"cards": {"hierarchy": True}, "mgpu": {"cardQuota": True}},
]

# queue, card, count, cpu, whether it asks for shares, its PodGroup or `job` for a Volcano Job, namespace, how many such pods
crowds = st.tuples(
    st.sampled_from((*QUEUES, *QUEUES, "team")),
    st.sampled_from(PRODUCTS),
    st.integers(1, 2),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(("", "", "g", "missing", "job")),
    st.sampled_from(("ml", "other")),
    st.integers(1, 6),
)
Crowd = tuple[str, str, int, int, bool, str, str, int]
alike = st.tuples(
    st.sampled_from((*QUEUES, "team")),
    st.sampled_from(("A", "B")),
    st.just(1),
    st.integers(0, 2),
    st.just(False),
    st.just(""),
    st.just("ml"),
    st.integers(3, 8),
)
"""Many of whom all but the first are let in like the one before them."""
events = st.sampled_from(
    ("node", "no node", "quota", "closed", "class", "no class", "namespace", "groups", "gone", "new")
)
above = st.sampled_from(("more above", "less above", "moved", "gap", "end of gap"))
limits = st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
"""Of one of the queues above: how many of each card, and how much CPU, may be used below it."""
Limits = tuple[int | None, int | None]


def a_member(name: str, crowd: Crowd) -> Pod:
    queue, card, count, cpu, share, group, namespace, _ = crowd
    pod = a_pod(name, namespace=namespace).request("cpu", cpu).gated().gpu(count)
    pod = pod.card(card) if card else pod
    pod = pod.mgpu(core=30, memory=512) if share else pod
    if group == "job":
        pod = pod.owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
    return (pod.in_group(group) if group not in {"", "job"} else pod.in_queue(queue)).view()


def listed(settings: dict[str, Any], crowds: list[Crowd], quota: int, cpu: int | None) -> Ledger:
    ledger = Ledger(Settings.model_validate(settings))
    ledger.put_node(a_node("a").card("A", 8).allocatable("cpu", 99).view())
    ledger.put_node(a_node("b").card("B", 5).view())
    ledger.put_node(a_node("m").mgpu(2, memory=4096).view())
    ledger.put_namespace(a_namespace("ml").put("metadata", "annotations", value=_default("A")).view())
    for queue in QUEUES:
        built = (
            a_queue(queue).cards({"A": quota, "B": quota - 1}).devices({"capability": {"c": {"count": 3}}})
        )
        ledger.put_queue((built if cpu is None else built.capability(cpu=cpu)).view())
    ledger.put_group(a_group("g").in_queue("red").min_member(2).view())
    number = 0
    for crowd in crowds:
        for _ in range(crowd[-1]):
            ledger.put_pod(a_member(f"p{number:02}", crowd))
            number += 1
    return ledger


def above_all(name: str, limits: Limits) -> QueueBuilder:
    """One of the queues that have others below them."""
    count, cpu = limits
    built = a_queue(name).cards({} if count is None else {"A": count, "B": count})
    built = built if cpu is None else built.capability(cpu=cpu)
    return built.child_of(PARENTS[name]) if PARENTS[name] else built


def in_a_tree(settings: dict[str, Any], crowds: list[Crowd], quota: int, team: Limits, org: Limits) -> Ledger:
    """The same below two more levels of queues, and everybody anew in line."""
    ledger = listed(settings, crowds, quota, None)
    ledger.put_queue(above_all("team", team).view())
    ledger.put_queue(above_all("org", org).view())
    for queue in QUEUES:
        ledger.put_queue(a_queue(queue).cards({"A": quota, "B": quota - 1}).child_of("team").view())
    return ledger


def _default(card: str) -> dict[str, str]:
    return {"cardquota.io/default-card": card}


def happen(ledger: Ledger, event: str) -> None:
    """One of the things on which it depends whether a pod is let in."""
    happening: dict[str, Callable[[], object]] = {
        "node": lambda: ledger.put_node(a_node("c").card("A", 2, prefix="amd.com/gpu").view()),
        "no node": lambda: ledger.drop_node("b"),
        "quota": lambda: ledger.put_queue(a_queue("red").cards({"A": 2}).view()),
        "closed": lambda: ledger.put_queue(a_queue("blue").cards({"A": 9}).state("Closed").view()),
        "class": lambda: ledger.put_class(DeviceClass("c", extended="nvidia.com/gpu")),
        "no class": lambda: ledger.drop_class("c"),
        "namespace": lambda: ledger.put_namespace(a_namespace("ml").in_queue("blue").view()),
        "groups": lambda: ledger.serve_groups(True),
        "gone": lambda: ledger.drop_pod(min((entry.pod.uid for entry in ledger.entries()), default="")),
        "new": lambda: ledger.put_pod(a_member("new", ("red", "A", 1, 1, False, "", "ml", 1))),
        "more above": lambda: ledger.put_queue(above_all("org", (9, None)).view()),
        "less above": lambda: ledger.put_queue(above_all("team", (2, 3)).view()),
        "moved": lambda: ledger.put_queue(a_queue("red").cards({"A": 5}).child_of("org").view()),
        "gap": lambda: ledger.drop_queue("team"),
        "end of gap": lambda: ledger.put_queue(above_all("team", (6, 6)).view()),
    }
    happening[event]()


def passes(ledger: Ledger, planned: dict[int, str]) -> list[Decision]:
    """All passes to the end; something happens at some of the pauses and decisions."""
    planner, found, steps = Planner(ledger), list[Decision](), 0
    queues = ledger.wakeups.take_queues()
    while queues:
        for decision in planner.run(queues):
            found += [decision] if decision is not None else []
            if steps in planned:
                happen(ledger, planned[steps])
            steps += 1
            assert steps < 3000, "passes without end"
        queues = ledger.wakeups.take_queues()
    finish(ledger.settle())
    return found


def figures(ledger: Ledger) -> dict[str, object]:
    """Everything in the books that comes of who has been let in."""
    found: dict[str, object] = {
        name: (account.allocated, account.reserved, account.waiting, account.offline, account.unlifted)
        for name, account in ledger.accounts.items()
    }
    found |= {
        f"line of {name}": (
            [e.pod.uid for e in finish(account.line.entries())],
            account.line.grouped,
            account.line.by_wish,
        )
        for name, account in ledger.accounts.items()
    }
    found |= {f"entry {entry.pod.uid}": entry for entry in ledger.entries()}
    found |= {f"reserved {card}": ledger.reserved(card) for card in ("A", "B")}
    found["weights"] = {uid: weight for uid, *weight in ledger.cpu_memory.weights()}
    found |= {
        f"waiting {key}": dict(ledger._entries._waiting_members._counts.get(key, {}))
        for key in ("ml/g", "other/g")
    }
    found |= {f"devices {name}": dict(ledger.devices.book.accounts.used(name)) for name in QUEUES}
    found |= {f"members {key}": ledger.groups.lacks(key) for key in ("ml/g", "other/g")}
    candidates = ledger.devices.book._candidates
    found["served"] = dict(candidates._booked)
    found["shares"] = dict(ledger.reserved_shares)
    found["to be let in"] = {
        (queue, namespace): set(pair.pods)
        for queue, pairs in ledger.access._by_queue.items()
        for namespace, pair in pairs.items()
    }
    found["to be published"] = ledger.wakeups.take_figures()
    return found


@given(
    settings=st.sampled_from(SETTINGS),
    crowds=st.lists(crowds, min_size=1, max_size=6),
    quota=st.integers(1, 8),
    cpu=st.none() | st.integers(0, 9),
    planned=st.dictionaries(st.integers(0, 30), events, max_size=4),
)
def test_as_if_each_were_judged_by_itself(
    settings: dict[str, Any], crowds: list[Crowd], quota: int, cpu: int | None, planned: dict[int, str]
) -> None:
    together, each = (listed(settings, crowds, quota, cpu) for _ in range(2))
    judged_alike(together, each, planned)


@given(
    settings=st.sampled_from(TREES),
    crowds=st.lists(alike, min_size=1, max_size=3) | st.lists(crowds | alike, min_size=1, max_size=5),
    quota=st.integers(1, 8),
    team=limits,
    org=limits,
    planned=st.dictionaries(st.integers(0, 15), events | above, max_size=4),
)
@example(
    settings=TREES[0],
    crowds=[("blue", "A", 1, 2, False, "", "ml", 3)],
    quota=3,
    team=(2, None),
    org=(None, 4),
    planned={2: "less above"},
)
def test_as_if_each_were_judged_by_itself_and_by_every_queue_above(
    settings: dict[str, Any],
    crowds: list[Crowd],
    quota: int,
    team: Limits,
    org: Limits,
    planned: dict[int, str],
) -> None:
    together, each = (in_a_tree(settings, crowds, quota, team, org) for _ in range(2))
    judged_alike(together, each, planned)
    assert together.subtrees is not None
    assert each.subtrees is not None
    for queue in PARENTS:
        for key in ("A", "B"):
            assert together.subtrees.used(queue, key) == each.subtrees.used(queue, key)
        assert together.subtrees.cpu_memory_used(queue, "cpu") == each.subtrees.cpu_memory_used(queue, "cpu")


@pytest.mark.parametrize("step", [2, 3, 6])
@pytest.mark.parametrize(
    "event", ["quota", "closed", "less above", "moved", "gap", "no node", "class", "gone"]
)
def test_what_happens_among_many_who_are_alike_holds_for_those_behind(event: str, step: int) -> None:
    crowd: list[Crowd] = [("red", "A", 1, 1, False, "", "ml", 8)]
    together, each = (in_a_tree(TREES[0], crowd, 8, (9, 9), (9, 9)) for _ in range(2))
    judged_alike(together, each, {step: event})


def judged_alike(together: Ledger, each: Ledger, planned: dict[int, str]) -> None:
    """One pass lets pods in like one another, the other judges each: nobody can tell them apart."""
    found = passes(together, planned)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "like", lambda *_: None)
        patch.setattr(Ledger, "let_in", Ledger.assume)
        expected = passes(each, planned)
    assert found == expected
    assert figures(together) == figures(each)
    observed = (together.observed(entry.pod.uid) for entry in together.entries())
    assert finish(audit(together, {pod.key: pod for pod in observed if pod is not None})) == []


@given(crowds=st.lists(crowds, min_size=1, max_size=6), quota=st.integers(1, 8))
def test_what_is_taken_back_leaves_nothing(crowds: list[Crowd], quota: int) -> None:
    ledger, untouched = (listed({}, crowds, quota, None) for _ in range(2))
    passes(ledger, {})
    ledger.forget_all()
    finish(ledger.settle())
    ledger.wakeups.publish(*QUEUES)
    untouched.wakeups.publish(*QUEUES)
    assert figures(ledger) == figures(untouched)
