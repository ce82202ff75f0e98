"""A gang that changes while it is decided on holds up others for so many turns of its queue and no more."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core import names
from core.objects import Pod
from core.plan import together
from core.plan.decision import Decision, Lift
from core.plan.lift import Planner
from core.plan.patience import MOST
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_group, a_node, a_pod, a_queue

SIZE = 30


@pytest.fixture(autouse=True)
def _many_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small gang is decided on with as many pauses as one of hundreds."""
    for size in ("_IN_ONE_STEP", "_COPIED_IN_A_STEP"):
        monkeypatch.setattr(together, size, 2)


def books(*, hierarchy: bool = False, fifo: bool = False, let_in: int = 2) -> Ledger:
    """A gang of which a few are in, and pods behind it: one in its queue, and one in a queue beside it."""
    ledger = Ledger(Settings.model_validate({"cards": {"hierarchy": hierarchy}}))
    ledger.put_node(a_node("n").card("A", 1000).view())
    ledger.put_queue(a_queue("top").cards({"A": 900}).view())
    for name in ("q", "r"):
        queue = a_queue(name).cards({"A": 900}).put("spec", "parent", value="top")
        strategy = "fifo" if fifo else "traverse"
        ledger.put_queue(queue.put("spec", "dequeueStrategy", value=strategy).view())
    ledger.put_group(a_group("g").in_queue("q").min_member(SIZE).view())
    for number in range(SIZE):
        pod = a_pod(f"m{number}").gpu(1).card("A").in_group("g").in_queue("q")
        lifted = pod.charged("q").assigned({"A": 1}).together(SIZE)
        ledger.put_pod((lifted if number < let_in else pod.gated()).view())
    for name in ("q", "r"):
        behind = a_pod(f"behind-{name}").gpu(1).card("A").in_queue(name).gated()
        ledger.put_pod(behind.created("2025-01-01T00:00:00Z").view())
    return ledger


def passes(ledger: Ledger, planner: Planner, meddle: Callable[[], None], wanted: set[str]) -> int:
    """After how many passes these pods are lifted, somebody meddling at each pause of each of them."""
    ledger.wakeups.look_at(*ledger.queues)
    lifted: set[str] = set()
    for number in range(1, 3 * MOST):
        decisions: list[Decision] = []
        for decision in planner.run(ledger.wakeups.take_queues()):
            if decision is None:
                meddle()
            else:
                decisions.append(decision)
        lifted |= {one.pod.name for one in decisions if isinstance(one, Lift)}
        if wanted <= lifted:
            return number
    raise AssertionError(f"not within {3 * MOST} passes: {wanted - lifted}")


class Churn:
    """A member at the gate that somebody writes to all the time."""

    def __init__(self, ledger: Ledger, name: str = "m5") -> None:
        self._ledger = ledger
        self._version = 1
        self._pod: Pod = next(entry.pod for entry in ledger.entries() if entry.pod.name == name)

    def __call__(self) -> None:
        self._version += 1
        text = str(self._version)
        annotations = {**self._pod.annotations, names.TASK_SPEC_ANNOTATION: text}
        self._pod = replace(self._pod, resource_version=text, revision=text, annotations=annotations)
        self._ledger.put_pod(self._pod)


@pytest.mark.parametrize("hierarchy", [False, True])
@pytest.mark.parametrize("behind", ["q", "r"])
def test_others_come_to_their_turn_though_an_unfinished_gang_changes_all_the_time(
    behind: str, *, hierarchy: bool
) -> None:
    """Those of its own queue, and of all queues that are below the same one."""
    ledger = books(hierarchy=hierarchy)
    taken = passes(ledger, Planner(ledger), Churn(ledger), {f"behind-{behind}"})
    assert taken <= MOST + 1
    if hierarchy or behind == "q":
        assert taken > MOST, "the gang comes before it as long as there is hope"


def test_so_they_do_behind_a_gang_at_the_head_of_a_fifo_queue() -> None:
    ledger = books(fifo=True, let_in=0)
    assert MOST < passes(ledger, Planner(ledger), Churn(ledger), {"behind-q"}) <= MOST + 1


def test_a_gang_made_anew_under_another_name_each_time_gains_nothing() -> None:
    """The turns of the queue are counted, not those of a gang."""
    ledger = books()
    churn = Churn(ledger)
    made = 0

    def meddle() -> None:
        nonlocal made
        churn()
        made += 1
        ledger.put_group(
            a_group("g").in_queue("q").min_member(SIZE).put("metadata", "uid", value=f"g{made}").view()
        )

    assert passes(ledger, Planner(ledger), meddle, {"behind-q"}) <= MOST + 1


def test_once_it_is_left_alone_the_gang_is_finished_first() -> None:
    ledger = books()
    left, churn = 5, Churn(ledger)

    def meddle() -> None:
        nonlocal left
        if left:
            left -= 1
            churn()

    planner = Planner(ledger)
    gang = {f"m{number}" for number in range(2, SIZE)}
    assert passes(ledger, planner, meddle, gang) < MOST


def test_what_a_queue_shows_of_its_use_interrupts_no_decision_on_its_gangs() -> None:
    """The Volcano scheduler writes the status of every queue each second."""
    ledger = books()
    written = 0

    def meddle() -> None:
        nonlocal written
        written += 1
        queue = ledger.queues["q"]
        ledger.put_queue(replace(queue, resource_version=f"v{written}", allocated={"cpu": str(written)}))

    gang = {f"m{number}" for number in range(2, SIZE)}
    assert passes(ledger, Planner(ledger), meddle, gang) == 1
    assert written > 0


@pytest.mark.parametrize("change", [{"state": "Closed"}, {"card_quota": '{"A": 3}'}, {"fifo": True}])
def test_what_a_queue_says_does(change: dict[str, object]) -> None:
    queue = a_queue("q").cards({"A": 4}).view()
    assert queue.says_the_same(replace(queue, resource_version="2", allocated={"A": "1"}))
    assert not queue.says_the_same(replace(queue, **change))  # type: ignore[arg-type]
    assert not queue.says_the_same(None)
