"""A pod is deleted and made again under its name while an answer about the first one is on its way: of that nothing stays booked."""

from controller.caches import Caches
from core.objects import Pod, pod
from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.controller.cluster import caches, show


def named(uid: str, version: str) -> PodBuilder:
    made = a_pod("p").uid(uid).gpu(1).card("A").in_queue("q")
    return made.put("metadata", "resourceVersion", value=version)


def lifted(uid: str, version: str) -> PodBuilder:
    return named(uid, version).assigned({"A": 1}).charged("q")


def world() -> Caches:
    found = caches([a_node("n").card("A", 8).view()], [named("one", "10").gated().view()])
    show(found.queues, "q", a_queue("q").cards({"A": 1}).view())
    return found


def made_again(of: Caches) -> None:
    """The watch shows that the pod is gone, and another one of its name."""
    show(of.pods, "ml/p", None)
    show(of.pods, "ml/p", named("two", "12").gated().view())


def booked_at_last(of: Caches) -> list[str]:
    """Who is booked when the other one is gone as well, and nobody is granted anything any more."""
    show(of.pods, "ml/p", None)
    of.give_back()
    return [each.pod.uid for each in of.ledger.entries()]


def test_the_answer_to_its_lift_comes_after_that() -> None:
    found = world()
    decided: Pod = lifted("one", "10").view()
    found.ledger.assume(decided)
    made_again(found)
    found.answered(decided, lifted("one", "11").build())
    assert found.ledger.used("q", "A") == 0
    assert booked_at_last(found) == []


async def test_a_read_is_answered_after_that() -> None:
    found = world()
    granted = lifted("one", "10").bound_to("n").view()
    found.ledger.assume(granted)

    async def read(_: Pod) -> Pod | None:
        made_again(found)
        return pod.project(lifted("one", "11").bound_to("n").build())

    await found.look_up(granted, read)
    assert booked_at_last(found) == []


async def test_a_read_that_finds_the_other_one_first_leaves_that_to_the_watch() -> None:
    found = world()
    granted = lifted("one", "10").bound_to("n").view()
    found.ledger.assume(granted)

    async def read(_: Pod) -> Pod | None:
        return pod.project(named("two", "12").gated().build())

    await found.look_up(granted, read)
    assert [each.pod.uid for each in found.ledger.entries()] == []
    made_again(found)
    assert [each.pod.uid for each in found.ledger.entries()] == ["two"]
    assert booked_at_last(found) == []
