"""Who is on a node, and when whatever was derived from that has to be derived anew."""

import pytest

from core.queues.occupants import Occupants
from tests.builders import a_pod
from tests.builders.objects import PodBuilder

BOUND = a_pod("p").bound_to("n1")


@pytest.mark.parametrize(
    ("pod", "there"),
    [
        (BOUND, True),
        (BOUND.terminating(), True),
        (BOUND.phase("Succeeded"), False),
        (a_pod("p"), False),
    ],
)
def test_a_pod_is_there_while_its_containers_may_run(pod: PodBuilder, there: bool) -> None:
    occupants = Occupants()
    occupants.put(pod.view())
    assert list(occupants.on("n1")) == ([pod.view().uid] if there else [])


@pytest.mark.parametrize(
    ("then", "left"),
    [
        (BOUND, False),
        (BOUND.terminating(), False),
        (BOUND.phase("Failed"), True),
        (a_pod("p").bound_to("n2"), True),
        (a_pod("p"), True),
    ],
)
def test_room_comes_free_when_a_pod_leaves_a_node(then: PodBuilder, left: bool) -> None:
    """A bind that was assumed and is taken back leaves its node as well."""
    occupants = Occupants()
    assert not occupants.put(BOUND.view())
    before = occupants.version("n1")
    assert occupants.put(then.view()) == ("n1" if left else "")
    assert occupants.version("n1") > before


def test_a_pod_that_is_gone_has_left() -> None:
    occupants = Occupants()
    occupants.put(BOUND.view())
    before = occupants.version("n1")
    assert occupants.drop(BOUND.view().uid) == "n1"
    assert occupants.version("n1") > before
    assert not occupants.drop(BOUND.view().uid)


def test_a_version_is_of_one_node_and_changes_are_of_all() -> None:
    occupants = Occupants()
    occupants.put(BOUND.view())
    first, changes = occupants.version("n1"), occupants.changes
    occupants.node_changed("n2")
    assert occupants.version("n1") == first
    assert occupants.changes > changes
    occupants.put(a_pod("waiting").view())
    assert occupants.changes == changes + 1


def test_what_changed_is_told_by_node_the_latest_first_and_nothing_else() -> None:
    occupants = Occupants()
    for node in ("n1", "n2", "n3"):
        occupants.node_changed(node)
    assert occupants.changed_since(-1) == ["n3", "n2", "n1"]
    seen = occupants.changes
    assert occupants.changed_since(seen) == []
    occupants.put(BOUND.view())
    assert occupants.changed_since(seen) == ["n1"]
    occupants.put(a_pod("p").bound_to("n2").view())
    assert sorted(occupants.changed_since(seen)) == ["n1", "n2"]
    occupants.node_changed("n1")
    assert occupants.changed_since(seen) == ["n1", "n2"]


def strangers(occupants: Occupants, count: int) -> None:
    """Pods that name a node of their own, which never was, and are gone again."""
    for number in range(count):
        pod = a_pod(f"p{number}").bound_to(f"never-{number}").view()
        occupants.put(pod)
        occupants.drop(pod.uid)


def test_nodes_that_never_were_are_forgotten_once_they_are_many_and_nobody_is_on_them() -> None:
    occupants = Occupants()
    occupants.node_changed("there")
    occupants.put(a_pod("stays").bound_to("never-there").view())
    versions = {node: occupants.version(node) for node in ("there", "never-there")}
    strangers(occupants, 5000)
    assert len(occupants.changed_since(0)) <= 1003
    assert versions == {node: occupants.version(node) for node in versions}


def test_pods_on_nodes_that_never_were_have_nobody_begin_anew_while_they_stay() -> None:
    """However many there are: who follows the changes would go through all nodes each time."""
    occupants = Occupants()
    for number in range(3000):
        occupants.put(a_pod(f"p{number}").bound_to(f"never-{number}").view())
    assert occupants.epoch == 0
    for number in range(2000):
        occupants.drop(a_pod(f"p{number}").view().uid)
    assert occupants.epoch == 1


def test_a_node_that_went_with_a_pod_on_it_is_forgotten_after_the_pod() -> None:
    occupants = Occupants()
    occupants.node_changed("n1")
    occupants.put(BOUND.view())
    occupants.node_gone("n1")
    strangers(occupants, 2000)
    assert occupants.version("n1")
    occupants.drop(BOUND.view().uid)
    strangers(occupants, 2000)
    assert not occupants.version("n1")
