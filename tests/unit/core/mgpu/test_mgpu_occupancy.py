"""The state of a node from the pods on it, with every irregularity of the records."""

from itertools import permutations

import pytest

from core import names
from core.mgpu import records
from core.mgpu.node import idle_state
from core.mgpu.occupancy import Irregular, Occupancy, counts, occupancy
from core.settings import MgpuSettings
from tests.builders import a_pod
from tests.builders.objects import PodBuilder
from tests.unit.core.mgpu.cases import a_model, a_state

MODEL = a_model(2)
IDLE = (100, 10_000)


def a_bound(name: str = "p", **record: str) -> PodBuilder:
    """A running pod on n1, container `main` with 30/2000, with these records."""
    pod = a_pod(name).mgpu(core=30, memory=2000).bound_to("n1")
    for container, text in record.items():
        pod = pod.annotation(records.key(container), text)
    return pod


def occupied(*pods: PodBuilder) -> Occupancy:
    return occupancy(MODEL, [pod.view() for pod in pods], MgpuSettings())


def kinds(found: Occupancy) -> list[Irregular]:
    return [irregularity.kind for irregularity in found.irregularities]


@pytest.mark.parametrize(
    ("pod", "cards"),
    [
        (a_bound(main="1"), [IDLE, (70, 8000)]),
        (a_bound(main="1").annotation(names.ASSUMED_ANNOTATION, "true"), [IDLE, (70, 8000)]),
        (a_bound(main="1").phase("Pending"), [IDLE, (70, 8000)]),
        (a_bound(main="1").phase("Unknown"), [IDLE, (70, 8000)]),
        (a_bound(main="1").terminating(), [IDLE, (70, 8000)]),
        (a_bound(main="1").phase("Succeeded"), [IDLE, IDLE]),
        (a_bound(main="1").phase("Failed"), [IDLE, IDLE]),
        (a_bound(main="1").put("spec", "nodeName", value=""), [IDLE, IDLE]),
        (a_pod().annotation(records.key("main"), "1").bound_to("n1"), [IDLE, IDLE]),
        (a_bound(main="0,1").mgpu(core=60, memory=4000).cards_per_container(2), [(70, 8000), (70, 8000)]),
        (a_pod().mgpu(core=100).bound_to("n1").annotation(records.key("main"), "1"), [IDLE, (0, 0)]),
        (a_bound(b="0").only("b").mgpu("b", core=10, memory=500), [(90, 9500), IDLE]),
        (a_bound(b="0").only().container("main").mgpu("b", core=10, memory=500), [(90, 9500), IDLE]),
        (a_bound(main="0", b="0").mgpu("b", core=10, memory=500), [(60, 7500, 2), IDLE]),
    ],
)
def test_what_counts(pod: PodBuilder, cards: list[tuple[int, int]]) -> None:
    """Bound, not ended, with a record: the container takes its part on the listed cards, and one seat on each."""
    found = occupied(pod)
    assert found.state == a_state(*cards)
    assert found.irregularities == ()


@pytest.mark.parametrize(
    ("pod", "cards", "expected"),
    [
        (a_bound(main="1,7"), [IDLE, (70, 8000)], [Irregular.UNKNOWN_CARD, Irregular.WRONG_COUNT]),
        (a_bound(main="2"), [IDLE, IDLE], [Irregular.UNKNOWN_CARD]),
        (a_bound(main="0,1"), [(70, 8000), (70, 8000)], [Irregular.WRONG_COUNT]),
        (
            a_bound(main="1").mgpu(core=60, memory=4000).cards_per_container(2),
            [IDLE, (70, 8000)],
            [Irregular.WRONG_COUNT],
        ),
        (a_bound(main="x"), [(70, 8000), IDLE], [Irregular.UNREADABLE, Irregular.MISSING]),
        (a_bound(main=""), [(70, 8000), IDLE], [Irregular.UNREADABLE, Irregular.MISSING]),
        (a_bound(), [(70, 8000), IDLE], [Irregular.MISSING]),
        (a_bound().mgpu(core=300), [IDLE, IDLE], [Irregular.NO_ROOM]),
        (
            a_bound(main="1").mgpu("b", core=10, memory=500),
            [IDLE, (60, 7500, 2)],
            [Irregular.MISSING],
        ),
    ],
)
def test_irregular_records(pod: PodBuilder, cards: list[tuple[int, int]], expected: list[Irregular]) -> None:
    """What is wrong is said, and what can be counted is counted."""
    found = occupied(pod)
    assert found.state == a_state(*cards)
    assert kinds(found) == expected
    assert {(irregularity.pod, irregularity.uid) for irregularity in found.irregularities} == {
        ("ml/p", "uid-ml-p")
    }


def test_a_card_that_is_overbooked() -> None:
    """Nothing is free on it, never less; it is said once, and the order of the pods does not matter."""
    pods = [
        a_bound("a", main="0").mgpu(core=70, memory=6000),
        a_bound("b", main="0").mgpu(core=60, memory=1000),
        a_bound("c", main="0").mgpu(core=10, memory=1000),
    ]
    for order in permutations(pods):
        found = occupied(*order)
        assert found.state == a_state((0, 2000, 3), IDLE)
        assert kinds(found) == [Irregular.OVERBOOKED]


def test_pods_without_record_are_held_in_order_of_creation() -> None:
    """By creation time, then UID; the room of the older one is safe, the younger one gets what is left."""
    old = a_bound("old").mgpu(core=60, memory=100).created("2024-01-01T00:00:00Z")
    young = a_bound("young").mgpu(core=60, memory=100).created("2024-01-01T00:00:01Z")
    late = a_bound("late").mgpu(core=60, memory=100).created("2024-01-01T00:00:02Z")
    for order in permutations((old, young, late)):
        found = occupied(*order)
        assert found.held == {"uid-ml-old": {"main": (0,)}, "uid-ml-young": {"main": (1,)}}
        assert kinds(found) == [Irregular.MISSING, Irregular.MISSING, Irregular.NO_ROOM]


def test_a_recreated_pod_is_another_pod() -> None:
    """Pods are told apart by their UID, never by name."""
    first, second = a_bound("p", main="0").uid("one"), a_bound("p", main="0").uid("two")
    assert occupied(first, second).state == a_state((40, 6000, 2), IDLE)
    assert occupied(first, first).state == a_state((70, 8000), IDLE)


def test_a_node_that_lost_its_cards() -> None:
    """While the device plugin is away nothing is free, and nothing fails."""
    found = occupancy(a_model(0), [a_bound(main="0").view(), a_bound("q").view()], MgpuSettings())
    assert found.state == idle_state(a_model(0))
    assert kinds(found) == [Irregular.UNKNOWN_CARD, Irregular.NO_ROOM]


def test_counting_is_the_same_question_everywhere() -> None:
    """`counts` is what the ledger of physical room asks."""
    assert counts(a_bound().view())
    assert not counts(a_pod().mgpu(core=30, memory=2000).view())
    assert not counts(a_pod().bound_to("n1").view())
    assert not counts(a_bound().phase("Failed").view())
