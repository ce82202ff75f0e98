"""Changes of what very many pods refer to that come faster than those pods can be booked."""

from functools import partial

import pytest

from core.objects import Claim
from core.queues.backlog import AT_ONCE
from core.queues.breaks import Breaks
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template

MANY = AT_ONCE + 1


class Changes:
    """What has been taken in."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.breaks = Breaks()
        self.breaks.pace()

    def come(self, *changes: str, pods: int = MANY) -> None:
        """Each is the name of an object and a number."""
        for change in changes:
            name = change[0]
            self.breaks.come(name, change, pods, partial(self.taken.append, change))

    def end(self) -> None:
        finish(self.breaks.end())


def test_after_one_change_the_others_are_kept_until_the_break_is_ended_and_the_last_of_each_object_counts() -> (
    None
):
    changes = Changes()
    changes.come("a1", "a2", "b1", "a3")
    assert (changes.taken, bool(changes.breaks)) == (["a1"], True)
    assert ("a" in changes.breaks, "b" in changes.breaks, "c" in changes.breaks) == (True, True, False)
    changes.end()
    assert (changes.taken, bool(changes.breaks)) == (["a1", "a3", "b1"], True), (
        "with these the next one begins"
    )
    changes.end()
    assert (changes.taken[3:], bool(changes.breaks)) == ([], False)


def test_what_few_pods_refer_to_is_taken_in_at_once_unless_an_earlier_change_of_it_is_kept() -> None:
    changes = Changes()
    changes.come("a1", pods=AT_ONCE)
    assert not changes.breaks
    changes.come("a2", "b1", pods=MANY)
    changes.come("b2", "c1", pods=0)
    assert changes.taken == ["a1", "a2", "c1"]
    changes.end()
    assert changes.taken == ["a1", "a2", "c1", "b2"]


def test_what_comes_while_a_break_ends_is_kept_for_the_next_and_never_overtaken() -> None:
    changes = Changes()
    changes.come("a1", "b1", "c1")
    steps = changes.breaks.end()
    next(steps)
    changes.come("b2", "c2")
    finish(steps)
    assert changes.taken == ["a1", "b1", "c2"]
    changes.end()
    assert changes.taken == ["a1", "b1", "c2", "b2"]


def test_two_may_end_a_break_at_once() -> None:
    changes = Changes()
    changes.come("a1", "a2", "b1", "c1")
    steps = changes.breaks.end()
    next(steps)
    changes.end()
    finish(steps)
    assert changes.taken == ["a1", "a2", "b1", "c1"]


def test_where_nobody_ends_breaks_there_are_none() -> None:
    changes = Changes()
    changes.breaks = Breaks()
    changes.come("a1", "a2", "a3")
    assert (changes.taken, bool(changes.breaks)) == (["a1", "a2", "a3"], False)


# -- in the ledger -----------------------------------------------------------------------------------------------


def claim(number: int) -> Claim:
    return a_claim("c").exactly("r", "gpu", count=number).uid(f"uid-{number}").view()


def change(ledger: Ledger, number: int) -> None:
    """Makes claim and template anew."""
    ledger.devices.drop_claim("ml/c")
    ledger.devices.put_claim(claim(number))
    ledger.devices.drop_template("ml/c")
    ledger.devices.put_template(a_template("c").exactly("r", "gpu", count=number).view())


@pytest.mark.parametrize("kind", ["name", "template"])
def test_whoever_changes_again_and_again_what_very_many_pods_refer_to_is_not_waited_for_without_end(
    kind: str,
) -> None:
    """They came with their node, so that they are charged by what is there now."""
    ledger = Ledger(Settings())
    ledger.devices.breaks.pace()
    ledger.put_queue(a_queue("q").devices({"capability": {"gpu": {"count": 0}}}).view())
    for number in range(200):
        built = a_pod(f"p{number}").claim("dev", **{kind: "c"}).in_queue("q")
        ledger.put_pod(built.bound_to("n", phase="Pending").view())
    for number in range(1, 10):
        change(ledger, number)
    for step, _ in enumerate(ledger.settle_sums()):
        assert step < 200
        change(ledger, step)
    assert ledger.sums_settled
    change(ledger, 7)
    while ledger.devices.breaks:
        finish(ledger.devices.breaks.end())
        finish(ledger.settle())
    assert ledger.devices.allocated("q") == {"deviceclass/gpu": 7000 * (200 if kind == "template" else 1)}


def test_what_a_pod_s_claim_is_now_is_not_certain_before_the_change_is_taken_in() -> None:
    ledger = Ledger(Settings())
    ledger.devices.breaks.pace()
    holders = [a_pod(f"p{number}").claim("dev", name="c").in_queue("q").view() for number in range(MANY)]
    other = a_pod("other").claim("dev", name="d").in_queue("q").view()
    for pod in (*holders, other):
        ledger.put_pod(pod)
    ledger.devices.put_claim(claim(1))
    assert ledger.devices.certain(holders[0])
    ledger.devices.put_claim(claim(2))
    assert ledger.devices.awaits("ml/c")
    assert not ledger.devices.certain(holders[0])
    assert ledger.devices.certain(other)
    let_in = a_pod("let-in").claim("dev", name="c").charged("q").view()
    assert not ledger.devices.certain(let_in)
    ledger.devices.put_claim(a_claim("c").exactly("r", "gpu").uid("uid-1").allocated("r").view())
    assert ledger.devices.certain(let_in), "it is the claim that was asked for"
    assert not ledger.devices.certain(holders[0])
    ledger.devices.drop_claim("ml/c")
    assert not ledger.devices.certain(let_in)
    finish(ledger.devices.breaks.end())
    assert ledger.devices.certain(holders[0])
