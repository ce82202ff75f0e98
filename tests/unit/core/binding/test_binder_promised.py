"""A bind takes no room that is booked for pods on their way to the node, and those find theirs in whatever order they come."""

from itertools import permutations

import pytest

from core import names, reasons
from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.objects import Pod
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

INDEX = names.GPU_INDEX_PREFIX + "main"


def books(node: NodeBuilder, *pods: PodBuilder, settings: Settings | None = None) -> Binder:
    ledger = Ledger(settings or Settings())
    ledger.put_queue(a_queue("default").view())
    ledger.put_node(node.view())
    for pod in pods:
        ledger.put_pod(pod.view())
    return Binder(ledger, guest_book((), (), ledger.settings), ledger.settings, lambda: None)


def share(name: str, core: int, memory: int = 1000) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=memory)


def led(name: str, core: int, memory: int = 1000) -> PodBuilder:
    return share(name, core, memory).led_to("n1")


def bind(binder: Binder, pod: PodBuilder) -> str:
    """Binds the pod; its cards, or the code of the refusal."""
    view = pod.view()
    answer = binder.decide(view, "n1")
    if isinstance(answer, Refusal):
        return answer.code
    binder.book(view, "n1", answer)
    return answer[INDEX]


TWO = a_node("n1").mgpu(2, memory=10_000)


def test_room_that_is_booked_is_given_to_nobody_else() -> None:
    binder = books(TWO, led("a", 60), led("b", 60), share("late", 60), share("small", 40))
    assert bind(binder, share("late", 60)) == reasons.MGPU_NO_ROOM
    assert bind(binder, share("small", 40)) == "0"
    assert {bind(binder, led("a", 60)), bind(binder, led("b", 60))} == {"0", "1"}


def test_the_refusal_says_for_whom_the_room_is() -> None:
    for others, words in (
        (("a",), "a pod that was let in for it"),
        (("a", "b"), "2 pods that were let in for it"),
    ):
        binder = books(TWO, *(led(name, 90) for name in others), share("late", 100, 0))
        late = a_pod("late").mgpu(core=200)
        answer = binder.decide(late.view(), "n1")
        assert isinstance(answer, Refusal)
        assert f"what is free is booked for {words} (node n1)" in answer.message


@pytest.mark.parametrize("order", [*permutations((60, 40, 51, 49))])
def test_the_cards_leave_room_for_those_to_come_in_whatever_order(order: tuple[int, ...]) -> None:
    """Binpack alone would put 40 beside 51 or 49, and then neither card takes 60."""
    binder = books(TWO, *(led(f"p{size}", size) for size in order))
    cards = {size: bind(binder, led(f"p{size}", size)) for size in order}
    assert cards[60] == cards[40] != cards[51] == cards[49], cards


def test_spread_cards_leave_room_as_well() -> None:
    spread = Settings(mgpu=MgpuSettings(policy="spread"))
    binder = books(
        TWO, led("a", 20), led("b", 20), a_pod("whole").mgpu(core=100).led_to("n1"), settings=spread
    )
    cards = [
        bind(binder, led("a", 20)),
        bind(binder, led("b", 20)),
        bind(binder, a_pod("whole").mgpu(core=100)),
    ]
    assert cards == ["0", "0", "1"]


def test_a_pod_that_was_led_here_gets_its_cards_even_where_not_all_fit_any_more() -> None:
    """Somebody was bound past us; first come, first served."""
    stranger = share("s", 90).bound_to("n1").annotation(INDEX, "0")
    binder = books(TWO, led("a", 60), led("b", 60), stranger)
    assert [bind(binder, led("a", 60)), bind(binder, led("b", 60))] == ["1", reasons.MGPU_NO_ROOM]


def test_promises_that_the_node_cannot_keep_hold_nobody_up() -> None:
    relabelled = a_node("n1").mgpu(2, memory=10_000, policy="native-burst-share")
    binder = books(relabelled, led("a", 90), led("b", 90))
    assert (
        bind(binder, share("other", 100).mgpu_policy("native-burst-share").mgpu(core=60, memory=1000)) == "0"
    )


def test_who_is_bound_elsewhere_or_gone_has_nothing_booked_any_more() -> None:
    ledger = Ledger(Settings())
    for node in (TWO, a_node("n2").mgpu(1, memory=10_000)):
        ledger.put_node(node.view())
    pods: list[Pod] = [share(name, 60).led_to("n1").view() for name in ("a", "b")]
    for pod in pods:
        ledger.put_pod(pod)
    assert [*ledger.led_to("n1")] == ["uid-ml-a", "uid-ml-b"]
    ledger.put_pod(share("a", 60).led_to("n1").bound_to("n2").view())
    ledger.drop_pod("uid-ml-b")
    assert not ledger.led_to("n1")
    assert not ledger.led_to("n2")


def mate(name: str, core: int, node: str = "n1") -> PodBuilder:
    return share(name, core).in_group("g").task("w").nominated_for(node)


def test_a_member_may_have_the_place_for_which_another_one_of_its_task_was_nominated() -> None:
    binder = books(a_node("n1").mgpu(1, memory=10_000), mate("a", 60), mate("b", 60, "n2"))
    assert bind(binder, share("late", 50).in_group("g").task("v")) == reasons.MGPU_NO_ROOM
    assert bind(binder, mate("b", 60, "n2")) == "0"
    assert bind(binder, mate("a", 60)) == reasons.MGPU_NO_ROOM


@pytest.mark.parametrize("order", [*permutations((60, 40, 51, 49))])
def test_members_that_were_nominated_for_one_node_all_find_their_cards_there(order: tuple[int, ...]) -> None:
    binder = books(TWO, *(mate(f"p{size}", size) for size in order))
    cards = {size: bind(binder, mate(f"p{size}", size)) for size in order}
    assert cards[60] == cards[40] != cards[51] == cards[49], cards
