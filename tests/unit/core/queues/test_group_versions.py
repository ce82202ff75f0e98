"""The version of a group: what makes it lack more or fewer members changes it, and nothing else does."""

from collections.abc import Callable

import pytest

from core.names import TASK_SPEC_ANNOTATION
from core.queues.group_book import GroupBook
from core.settings import Settings
from core.stage import Stages
from tests.builders import a_group, a_pod
from tests.builders.objects import PodBuilder

KEY = "ml/g"


def member(name: str, group: str = "g") -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_group(group)


def let_in(name: str, group: str = "g") -> PodBuilder:
    return member(name, group).charged("q").assigned({"A": 1}).together(3)


def book() -> GroupBook:
    """A gang of three, of which two are in and one waits."""
    found = GroupBook(Stages(Settings()))
    found.put_group(a_group("g").min_member(3).view())
    for pod in (let_in("a"), let_in("b"), member("c").gated()):
        found.put_pod(pod.view())
    return found


DIFFERENT: dict[str, Callable[[GroupBook], object]] = {
    "a member that was in goes": lambda found: found.drop_pod("uid-ml-a"),
    "one is in that was not there": lambda found: found.put_pod(let_in("d").view()),
    "one that waited is in": lambda found: found.put_pod(let_in("c").view()),
    "one that was in has failed": lambda found: found.put_pod(
        let_in("a").bound_to("n", phase="Failed").view()
    ),
    "one that was in has ended": lambda found: found.put_pod(
        let_in("a").bound_to("n", phase="Succeeded").view()
    ),
    "one that was in is of another task": lambda found: found.put_pod(
        let_in("a").annotation(TASK_SPEC_ANNOTATION, "worker").view()
    ),
    "one that was in is of another group": lambda found: found.put_pod(let_in("a", "other").view()),
    "more were let in together": lambda found: found.put_pod(let_in("a").together(4).view()),
    "its minimum": lambda found: found.put_group(a_group("g").min_member(2).view()),
    "the minimum of a task": lambda found: found.put_group(
        a_group("g").min_member(3).min_task("w", 1).view()
    ),
    "it goes": lambda found: found.drop_group(KEY),
}

EQUAL: dict[str, Callable[[GroupBook], object]] = {
    "another one waits": lambda found: found.put_pod(member("d").gated().view()),
    "nobody waits any more": lambda found: found.drop_pod("uid-ml-c"),
    "who waits has another priority": lambda found: found.put_pod(member("c").gated().priority(7).view()),
    "one that was in has a node": lambda found: found.put_pod(let_in("a").bound_to("n").view()),
    "one that was in is told of again": lambda found: found.put_pod(let_in("a").view()),
    "another group": lambda found: found.put_pod(let_in("x", "other").view()),
    "what else it says": lambda found: found.put_group(a_group("g").min_member(3).in_queue("q").view()),
}


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_it_differs_after_what_makes_a_group_lack_others(change: Callable[[GroupBook], object]) -> None:
    found = book()
    before = found.version(KEY)
    change(found)
    assert found.version(KEY) != before


@pytest.mark.parametrize("change", EQUAL.values(), ids=EQUAL)
def test_it_is_the_same_after_all_else(change: Callable[[GroupBook], object]) -> None:
    found = book()
    before = found.version(KEY)
    change(found)
    assert found.version(KEY) == before


def test_it_differs_when_all_members_have_been_others() -> None:
    found = book()
    before = found.version(KEY)
    for name in "abc":
        found.drop_pod(f"uid-ml-{name}")
    for pod in (let_in("a"), let_in("b"), member("c").gated()):
        found.put_pod(pod.view())
    assert found.version(KEY) != before


def test_nothing_is_kept_of_a_group_without_members() -> None:
    found = book()
    for name in "abc":
        found.drop_pod(f"uid-ml-{name}")
    assert found.version(KEY) == 0
    found.put_group(a_group("g").min_member(5).view())
    assert found.version(KEY) == 0
