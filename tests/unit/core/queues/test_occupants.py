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
