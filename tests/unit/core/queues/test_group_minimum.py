"""How far a group is from its minimum, and its place among the groups."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.names import GANG_ANNOTATION, GROUP_NAME_ANNOTATION
from core.objects import Group, Pod
from core.queues.group_book import GroupBook
from core.queues.group_minimum import (
    Minimum,
    Progress,
    Standing,
    Tally,
    counts,
    minimum_of,
    waits,
)
from core.settings import GateSettings, Settings
from core.stage import Stages
from tests.builders import a_group, a_pod
from tests.builders.objects import GroupBuilder, PodBuilder

POD = a_pod().gpu(1).card("A")
GATED = POD.gated()
GANG = a_group().min_member(3)
IN = POD.together(3)
STAGES = Stages(Settings(gates=GateSettings(wait_for_us=("example.com/after",))))


def progress_of(group: Group | None, pods: Iterable[Pod], stages: Stages) -> Progress:
    """How far a group is, from all its pods."""
    return Tally.of(pods, stages).progress(minimum_of(group))


def with_gates(pod: PodBuilder, *gates: str) -> PodBuilder:
    return pod.put("spec", "schedulingGates", value=[{"name": gate} for gate in gates])


@pytest.mark.parametrize(
    ("group", "members", "tasks"),
    [
        (None, 1, {}),
        (a_group(), 1, {}),
        (a_group().min_member(0), 1, {}),
        (a_group().min_member(-2), 1, {}),
        (GANG, 3, {}),
        (GANG.min_task("w", 2).min_task("ps", 1), 3, {"w": 2, "ps": 1}),
        (GANG.min_task("w", 1), 3, {"w": 1}),
        (GANG.min_task("w", 4), 3, {}),
        (GANG.min_task("w", 2).min_task("ps", 2), 3, {}),
        (GANG.min_task("w", 0).min_task("ps", 3), 3, {"ps": 3}),
    ],
)
def test_task_minimums_hold_only_while_their_sum_does_not_exceed_the_minimum(
    group: GroupBuilder | None, members: int, tasks: Mapping[str, int]
) -> None:
    found = minimum_of(None if group is None else group.view())
    assert found == Minimum(members, tasks)
    assert found.alone is (members == 1)


@pytest.mark.parametrize(
    ("pod", "counted", "waiting"),
    [
        pytest.param(GATED, False, True, id="gated"),
        pytest.param(POD, True, False, id="lifted"),
        pytest.param(with_gates(POD, "x"), False, False, id="never ours, another gate"),
        pytest.param(with_gates(POD.charged("q"), "x"), True, False, id="lifted, another gate"),
        pytest.param(GATED.gated("x"), False, False, id="gated, another gate"),
        pytest.param(
            GATED.gated("example.com/after"), False, True, id="gated, and a gate that waits for ours"
        ),
        pytest.param(POD.scheduler("nobody"), False, False, id="a scheduler that nobody knows"),
        pytest.param(a_pod(), True, False, id="asks for nothing"),
        pytest.param(a_pod().scheduler("nobody"), True, False, id="asks for nothing, any scheduler"),
        pytest.param(with_gates(a_pod(), "x"), False, False, id="asks for nothing, another gate"),
        pytest.param(
            with_gates(a_pod(), "example.com/after"), True, False, id="a gate that the gang takes away"
        ),
        pytest.param(POD.bound_to("n"), True, False, id="bound"),
        pytest.param(POD.bound_to("n", phase="Succeeded"), True, False, id="succeeded"),
        pytest.param(GATED.phase("Succeeded"), True, False, id="succeeded, whatever the gate says"),
        pytest.param(GATED.put("spec", "nodeName", value="n"), True, False, id="bound in spite of the gate"),
        pytest.param(POD.bound_to("n", phase="Failed"), False, False, id="failed"),
        pytest.param(POD.phase("Failed"), False, False, id="failed before it was bound"),
        pytest.param(GATED.phase("Failed"), False, False, id="failed at the gate"),
        pytest.param(POD.bound_to("n").terminating(), False, False, id="terminating"),
        pytest.param(POD.terminating(), False, False, id="lifted and terminating"),
        pytest.param(GATED.terminating(), False, False, id="gated and terminating"),
    ],
)
def test_lifted_bound_and_succeeded_members_count_and_gated_ones_wait(
    pod: PodBuilder, counted: bool, waiting: bool
) -> None:
    assert (counts(pod.view(), STAGES), waits(pod.view(), STAGES)) == (counted, waiting)


@pytest.mark.parametrize(
    ("group", "pods", "missing", "possible", "admitted", "unfinished"),
    [
        pytest.param(GANG, [GATED] * 3, 3, True, False, False, id="all wait"),
        pytest.param(GANG, [GATED] * 2, 3, False, False, False, id="too few exist"),
        pytest.param(GANG, [GATED, GATED, IN], 2, True, True, True, id="stopped in the middle"),
        pytest.param(GANG, [GATED, GATED, POD], 2, True, True, False, id="alone, and not of a gang"),
        pytest.param(GANG, [IN.bound_to("n"), IN], 1, False, True, True, id="a member is lost"),
        pytest.param(GANG, [POD.together(2), POD, GATED], 1, True, True, False, id="a raised minimum"),
        pytest.param(GANG, [POD.together(9), GATED, GATED], 2, True, True, True, id="a lowered minimum"),
        pytest.param(
            a_group().min_member(5), [IN, IN, *[GATED] * 3], 1, True, True, True, id="raised, and cut short"
        ),
        pytest.param(
            GANG, [IN, GATED.together(3), GATED], 2, True, True, True, id="a record before the lift"
        ),
        pytest.param(GANG, [GATED.together(3), POD, GATED], 2, True, True, False, id="and no other one"),
        pytest.param(
            GANG, [POD.annotation(GANG_ANNOTATION, "x3"), GATED, GATED], 2, True, True, False, id="no number"
        ),
        pytest.param(
            GANG,
            [POD.annotation(GANG_ANNOTATION, "9" * 5000), GATED, GATED],
            2,
            True,
            True,
            False,
            id="absurd",
        ),
        pytest.param(
            GANG, [IN.phase("Succeeded"), IN.phase("Succeeded"), GATED], 1, True, False, False, id="all ended"
        ),
        pytest.param(GANG, [POD, POD, POD.bound_to("n"), GATED], 0, True, True, False, id="at the minimum"),
        pytest.param(GANG, [POD] * 4, 0, True, True, False, id="above it"),
        pytest.param(
            GANG, [POD.phase("Succeeded")] * 2 + [GATED], 1, True, False, False, id="ended ones admit nobody"
        ),
        pytest.param(
            GANG, [POD.phase("Succeeded")] * 2 + [POD], 0, True, True, False, id="ended ones still count"
        ),
        pytest.param(
            GANG, [POD.phase("Failed"), GATED, GATED], 3, False, False, False, id="failed ones do not"
        ),
        pytest.param(GANG, [POD.terminating(), GATED], 3, False, False, False, id="nor do terminating ones"),
        pytest.param(GANG, [], 3, False, False, False, id="no pods yet"),
        pytest.param(None, [GATED], 1, True, False, False, id="a pod alone"),
        pytest.param(None, [POD], 0, True, True, False, id="a pod alone, lifted"),
        pytest.param(a_group(), [GATED] * 5, 1, True, False, False, id="a group of pods that start alone"),
    ],
)
def test_a_group_is_as_far_as_its_members_that_count(
    group: GroupBuilder | None,
    pods: list[PodBuilder],
    missing: int,
    possible: bool,
    admitted: bool,
    unfinished: bool,
) -> None:
    found = progress_of(None if group is None else group.view(), [pod.view() for pod in pods], STAGES)
    assert (found.missing, found.possible, found.admitted, found.unfinished) == (
        missing,
        possible,
        admitted,
        unfinished,
    )


TASKS = GANG.min_task("ps", 1).min_task("w", 2)
PS, W = GATED.task("ps"), GATED.task("w")


@pytest.mark.parametrize(
    ("pods", "missing", "tasks", "possible"),
    [
        ([PS, W, W], 3, {"ps": 1, "w": 2}, True),
        ([W, W, W], 3, {"ps": 1, "w": 2}, False),
        ([POD.task("ps"), W, W], 2, {"w": 2}, True),
        ([POD.task("w")] * 3 + [PS], 0, {"ps": 1}, True),
        ([POD.task("w")] * 3, 0, {"ps": 1}, False),
        ([POD.task("w").phase("Failed"), PS, W, W], 3, {"ps": 1, "w": 2}, True),
        ([POD.task("ps"), POD.task("w"), POD.task("w")], 0, {}, True),
    ],
)
def test_each_task_needs_its_own_members(
    pods: list[PodBuilder], missing: int, tasks: Mapping[str, int], possible: bool
) -> None:
    found = progress_of(TASKS.view(), [pod.view() for pod in pods], STAGES)
    assert (found.missing, found.missing_tasks, found.possible) == (missing, tasks, possible)


def test_a_gang_that_was_cut_short_is_finished_with_the_tasks_that_it_lacks() -> None:
    found = progress_of(TASKS.view(), [IN.task("w").view()] * 2 + [PS.view(), W.view()], STAGES)
    assert (found.unfinished, found.missing, found.missing_tasks) == (True, 1, {"ps": 1})


def test_tasks_whose_minimum_was_raised_afterwards_do_not_come_first_with_it() -> None:
    raised = a_group().min_member(6).min_task("ps", 4).min_task("w", 2)
    found = progress_of(raised.view(), [IN.task("w").view()] * 2 + [PS.view()] * 4, STAGES)
    assert (found.unfinished, found.missing, found.missing_tasks) == (False, 4, {"ps": 4})
    assert found.short, "one that was let in is gone, and what is left holds quota for nothing"


@pytest.mark.parametrize("minimum", [4, 5, 6])
def test_a_raised_minimum_makes_no_gang_come_first_that_lost_what_a_task_has_to_have(minimum: int) -> None:
    """Of four three are in, beyond their task's minimum: the one that would make it four again starts nothing."""
    group = a_group().min_member(minimum).min_task("v", 2).min_task("w", 2)
    held, lost = POD.together(4).task("w").bound_to("n"), GATED.task("v")
    found = progress_of(group.view(), [held.view()] * 3 + [lost.view()] * 2, STAGES)
    assert (found.unfinished, found.missing_tasks, found.short) == (False, {"v": 2}, True)
    assert found.possible is (minimum < 6)
    whole = progress_of(group.view(), [held.view()] * 2 + [held.task("v").view(), lost.view()], STAGES)
    assert (whole.unfinished, whole.missing, whole.missing_tasks) == (True, 1, {"v": 1})


@pytest.mark.parametrize(
    ("group", "pods", "short"),
    [
        pytest.param(GANG, [POD, GATED, GATED], True, id="one let in before the PodGroup was known"),
        pytest.param(GANG, [POD, POD], True, id="those that are not there yet are lacking all the same"),
        pytest.param(GANG, [POD, POD.bound_to("n"), GATED], True, id="one has a node, one waits for it"),
        pytest.param(GANG, [POD.bound_to("n"), GATED, GATED], False, id="whoever has a node runs"),
        pytest.param(GANG, [POD] * 3, False, id="as many as have to start together"),
        pytest.param(
            GANG, [POD.together(2), POD, GATED], True, id="a minimum that was raised above the record"
        ),
        pytest.param(GANG, [IN, GATED, GATED], True, id="an unfinished gang is one too"),
        pytest.param(a_group(), [POD, GATED], False, id="each starts alone"),
        pytest.param(GANG, [POD.terminating(), GATED], False, id="what goes holds nothing"),
        pytest.param(GANG, [POD.phase("Succeeded"), GATED], False, id="nor does what has ended"),
    ],
)
def test_members_let_in_one_by_one_make_a_gang_short_and_give_it_no_precedence(
    group: GroupBuilder, pods: list[PodBuilder], short: bool
) -> None:
    found = progress_of(group.view(), [pod.view() for pod in pods], STAGES)
    assert found.short is short
    assert found.unfinished is (short and IN in pods)


def test_a_group_whose_members_start_alone_is_never_unfinished() -> None:
    found = progress_of(a_group().min_task("ps", 1).view(), [POD.task("w").view(), PS.view()], STAGES)
    assert (found.admitted, found.missing_tasks, found.unfinished) == (True, {"ps": 1}, False)


def test_a_gang_of_three_is_possible_although_its_task_names_all_four_replicas() -> None:
    found = progress_of(GANG.min_task("w", 4).view(), [W.view()] * 3, STAGES)
    assert (found.missing, found.missing_tasks, found.possible) == (3, {}, True)


def test_the_priority_of_a_group_is_the_highest_of_its_members_that_have_not_ended() -> None:
    ended = POD.priority(100).bound_to("n", phase="Succeeded")
    assert Tally.of([pod.view() for pod in (POD, POD.priority(7), ended)], STAGES).priority == 7
    assert Tally.of([POD.priority(-5).view()], STAGES).priority == -5
    assert Tally.of([ended.view()], STAGES).priority == 0
    assert Tally.of([], STAGES).priority == 0


members = st.sampled_from(
    [POD, IN, POD.together(2), GATED, POD.bound_to("n"), POD.phase("Failed"), GATED.terminating()]
)
tasked = st.builds(lambda pod, task: pod.task(task).view(), members, st.sampled_from(["", "w", "ps"]))


@given(
    pods=st.lists(tasked, max_size=8),
    minimum=st.integers(0, 5),
    tasks=st.dictionaries(st.sampled_from(["w", "ps"]), st.integers(0, 3)),
)
def test_lifting_what_waits_reaches_the_minimum_exactly_when_that_is_possible(
    pods: list[Pod], minimum: int, tasks: dict[str, int]
) -> None:
    builder = a_group().min_member(minimum)
    for task, count in tasks.items():
        builder = builder.min_task(task, count)
    group = builder.view()
    before = progress_of(group, pods, STAGES)
    after = progress_of(
        group, [replace(pod, gates=()) if waits(pod, STAGES) else pod for pod in pods], STAGES
    )
    if before.unfinished:
        # It is finished when as many are in as were let in together, whatever the minimum is by now.
        assert not (before.possible and after.unfinished)
    else:
        assert before.possible is (after.missing == 0 and not after.missing_tasks)
    assert sum(before.minimum.tasks.values()) <= before.minimum.members


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.none() | tasked), max_size=20), minimum=st.integers(0, 4)
)
def test_a_tally_kept_member_by_member_is_that_of_all_members(
    steps: list[tuple[int, Pod | None]], minimum: int
) -> None:
    group = a_group().min_member(minimum).min_task("w", 1).view()
    book, present = GroupBook(STAGES), dict[str, Pod]()
    book.put_group(group)
    for number, pod in steps:
        uid = f"u{number}"
        if pod is None:
            present.pop(uid, None)
            book.drop_pod(uid)
        else:
            annotations = {**pod.annotations, GROUP_NAME_ANNOTATION: group.name}
            present[uid] = replace(pod, uid=uid, namespace=group.namespace, annotations=annotations)
            book.put_pod(present[uid])
        assert book.progress(group) == progress_of(group, present.values(), STAGES)
        assert book.priority(group) == Tally.of(present.values(), STAGES).priority
        progress = book.progress(group)
        assert (group.key in book.unfinished) is (progress.unfinished and progress.possible)
    for uid in tuple(present):
        book.drop_pod(uid)
    assert not book.unfinished
    assert not book._tallies


def test_a_task_of_which_nobody_is_left_leaves_nothing_behind() -> None:
    tally = Tally()
    standings = [Standing.of(GATED.in_group("g").task(f"t{number}").view(), STAGES) for number in range(9)]
    for standing in standings:
        tally.add(standing, 1)
    for standing in standings[1:]:
        tally.add(standing, -1)
    assert (tally.waiting.total, tally.waiting["t0"], tally.waiting._of) == (1, 1, {"t0": 1})
