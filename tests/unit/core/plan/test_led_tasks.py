"""Tasks in Volcano's scheduler, which takes the nodes that refuse one pod of a task for refused to all of them."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.mgpu.destination import led_to
from core.plan.task_nodes import TaskNodes, nodes_of_tasks
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from tests.unit.core.plan.volcano_cluster import RECORD, Cluster, host, member, taken


def test_a_task_is_led_to_the_node_that_has_room_for_all_of_it() -> None:
    """By sums the first node has room for one of them, by cards for none: its bind would be refused for ever."""
    cluster = Cluster(2, host("m0"), host("m1"))
    cluster.put(taken("x", "m0", 0, 40), taken("y", "m0", 1, 40))
    cluster.put(member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "m1", "p1": "m1"}
    bound = cluster.cycles()
    assert (bound["p0"], bound["p1"]) == ("m1", "m1")
    assert cluster.denied == Counter()


def test_what_would_be_filled_up_first_does_not_part_a_task_that_another_node_takes_whole() -> None:
    """Binpack has room for one of them on the first node."""
    cluster = Cluster(4, host("m0"), host("m1"), host("m2"))
    cluster.put(taken("x", "m0", 0, 40))
    cluster.put(*(member(f"p{n}", 80, task="w" if n < 2 else "v") for n in range(4)))
    assert cluster.lift() == {"p0": "m1", "p1": "m1", "p2": "m2", "p3": "m2"}
    assert len(cluster.cycles()) == 5
    assert cluster.denied == Counter()


def test_tasks_are_led_each_to_a_node_of_its_own() -> None:
    cluster = Cluster(4, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 50, task="w" if n < 2 else "v") for n in range(4)))
    found = cluster.lift()
    assert found["p0"] == found["p1"] != found["p2"] == found["p3"]
    assert len(cluster.cycles()) == 4


def test_a_member_that_is_made_anew_follows_those_of_its_task_that_have_no_node_yet() -> None:
    """Led elsewhere, it would be refused by their node and they by its: none would ever start."""
    cluster = Cluster(2, host("m0"), host("m1"))
    full = [taken("x", "m0", 0, 40), taken("y", "m0", 1, 40)]
    cluster.put(*full, member("p0", 80), member("p1", 80))
    assert cluster.lift() == {"p0": "m1", "p1": "m1"}
    del cluster.stored["p1"]
    cluster.ledger.drop_pod("uid-ml-p1")
    # With one of these gone binpack prefers the other node.
    del cluster.stored["x"]
    cluster.ledger.drop_pod("uid-ml-x")
    cluster.put(member("p2", 80))
    assert cluster.lift() == {"p2": "m1"}
    assert {*cluster.cycles().items()} >= {("p0", "m1"), ("p2", "m1")}
    assert cluster.denied == Counter()


def test_a_member_above_the_minimum_waits_until_those_before_it_have_their_node() -> None:
    cluster = Cluster(2, host("m0"), host("m1"))
    cluster.put(*(member(f"p{n}", 80) for n in range(3)))
    assert cluster.lift() == {"p0": "m0", "p1": "m0"}
    assert "node m0 has none for it" in cluster.held["p2"].why.message
    cluster.cycles(1)
    assert cluster.lift() == {"p2": "m1"}
    assert len(cluster.cycles()) == 3


def test_a_member_above_the_minimum_is_not_held_for_those_of_another_task() -> None:
    """Both ask for the same, but nobody of its own task is on the way."""
    cluster = Cluster(2, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 50) for n in range(3)), member("p3", 50, task="v"))
    lifted = cluster.lift()
    assert (lifted["p0"], lifted["p1"], lifted["p3"]) == ("m0", "m0", "m1")
    assert "node m0 has none for it" in cluster.held["p2"].why.message
    assert {*cluster.cycles()} == {"p0", "p1", "p3"}


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
def test_pods_that_start_alone_and_other_schedulers_are_led_each_to_its_node(scheduler: str) -> None:
    minimum = 2 if scheduler == "default-scheduler" else 1
    cluster = Cluster(minimum, host("m0", 1), host("m1", 1))
    cluster.put(*(member(f"p{n}", 80).scheduler(scheduler) for n in range(2)))
    assert cluster.lift() == {"p0": "m0", "p1": "m1"}


def looked_up(extra: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries of members are gone through in a pass that lifts `extra` members beside 20 that are bound."""
    cluster = Cluster(2, host("m0", 20))
    cluster.put(*(member(f"b{n}", 10).bound_to("m0").annotation(RECORD, str(n)) for n in range(20)))
    cluster.put(*(member(f"p{n}", 10 + n, task="v") for n in range(extra)))
    gone_through = 0

    def counted(ledger: Ledger, group: str) -> list[Entry]:
        nonlocal gone_through
        found = [entry for uid in ledger.members_of(group) if (entry := ledger.entry(uid)) is not None]
        gone_through += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "entries_of", counted)
        assert len(cluster.lift()) == extra
    return gone_through


def test_nobody_goes_through_all_members_for_each_of_those_above_the_minimum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (looked_up(extra, monkeypatch) for extra in (2, 20))
    assert many <= few + 2 * 18, "the work of a pass grows with the square of the members"


def on_the_way(ledger: Ledger) -> dict[str, TaskNodes]:
    """What `nodes_of_tasks` says, found by looking at each member."""
    led: dict[str, set[str]] = {}
    for entry in ledger.entries_of("ml/g"):
        if entry.holds_share:
            led.setdefault(entry.pod.task, set()).update(led_to(entry.pod) or ("",))
    return {task: TaskNodes(tuple(sorted(nodes - {""})), "" not in nodes) for task, nodes in led.items()}


def kept(ledger: Ledger) -> dict[str, TaskNodes]:
    found = nodes_of_tasks(ledger, member("p0", 1).view())
    return {task: replace(nodes, within=tuple(sorted(nodes.within))) for task, nodes in found.items()}


@given(st.data())
def test_gangs_that_are_led_start_and_no_bind_of_theirs_is_refused(data: st.DataObject) -> None:
    hosts = [host(f"m{n}", data.draw(st.integers(1, 3))) for n in range(data.draw(st.integers(1, 3)))]
    size = data.draw(st.integers(2, 5))
    cluster = Cluster(data.draw(st.integers(2, size)), *hosts)
    cluster.put(
        *(
            taken(f"x{n}", f"m{n}", 0, data.draw(st.sampled_from([10, 40, 70])))
            for n in range(len(hosts))
            if data.draw(st.booleans())
        )
    )
    for number in range(size):
        core = data.draw(st.sampled_from([30, 50, 60, 80]))
        cluster.put(member(f"p{number}", core, task=data.draw(st.sampled_from("wv"))))
    for _ in range(size):
        lifts = cluster.lift()
        assert kept(cluster.ledger) == on_the_way(cluster.ledger)
        for task in "wv":
            led = [
                raw["metadata"]["annotations"].get(names.NODE_ANNOTATION, "")
                for raw in cluster.stored.values()
                if not raw["spec"].get("nodeName")
                and not raw["spec"].get("schedulingGates")
                and raw["metadata"]["annotations"].get(names.TASK_SPEC_ANNOTATION) == task
            ]
            assert len({*led}) <= 1, "all of a task to one node, or none to any"
        bound = cluster.cycles(2)
        assert {*lifts} <= bound.keys()
        assert kept(cluster.ledger) == {}
    assert cluster.denied == Counter()
