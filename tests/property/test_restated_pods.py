"""A state of a pod that changes nothing in the books is only put beside them: they are those that are made anew of what is last seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st

from core.names import QUEUE_NAME_ANNOTATION
from core.objects import DeviceClass, Pod
from core.queues.account import Account
from core.queues.ledger import Ledger
from core.settings import Settings
from core.usage.course import Sight
from core.usage.seen import sight_of
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.books import books_of
from tests.builders.claims import a_claim, a_template
from tests.builders.pods import PodBuilder

SERVED: Final = "example.com/gpu"
QUEUES: Final = ("q", "r", "default")
CARDS: Final = {"A": 1}

State = Callable[[PodBuilder], PodBuilder]

KINDS: Final[Mapping[str, State]] = {
    "cards": lambda pod: pod.card("A").gpu(1),
    "a choice": lambda pod: pod.card("A|B").gpu(1),
    "a card that nobody knows": lambda pod: pod.card("C").gpu(1),
    "a card without its resource": lambda pod: pod.card("A"),
    "shares": lambda pod: pod.mgpu(core=50, memory=1024),
    "a claim": lambda pod: pod.claim("e", name="c"),
    "a claim and an extended resource": lambda pod: pod.claim("e", name="c").limit(SERVED, 1),
    "cards and a claim": lambda pod: pod.card("A").gpu(1).claim("e", name="c"),
    "cards and a template": lambda pod: pod.card("A").gpu(1).claim("e", template="t"),
    "a template": lambda pod: pod.claim("e", template="t"),
    "an extended resource": lambda pod: pod.limit(SERVED, 2),
    "cards and an extended resource": lambda pod: pod.card("A").gpu(1).limit(SERVED, 1),
    "cards of no queue": lambda pod: pod.card("A").gpu(1).annotation(QUEUE_NAME_ANNOTATION, ""),
    "cards in a gang": lambda pod: pod.card("A").gpu(1).in_gang("gang", 2, owner="rs").recorded_in_gang(),
    "cards in a PodGroup": lambda pod: pod.card("A").gpu(1).in_group("g"),
    "CPU": lambda pod: pod.request("cpu", 2),
}


def lifted(pod: PodBuilder) -> PodBuilder:
    return pod.assigned(CARDS).charged("q")


STATES: Final[Sequence[State]] = (
    lambda pod: pod.gated(),
    lambda pod: pod,
    lifted,
    lambda pod: lifted(pod).needs_node("gpu", "A").written_by("cardquota", "2024-01-01T00:00:09Z"),
    lambda pod: lifted(pod).bound_to("n", phase="Pending"),
    lambda pod: lifted(pod).bound_to("n", phase="Pending").started(),
    lambda pod: lifted(pod).bound_to("n").started(),
    lambda pod: lifted(pod).bound_to("n").generated_claim("e", "c"),
    lambda pod: lifted(pod).bound_to("n", phase="Unknown"),
    lambda pod: lifted(pod).bound_to("n").terminating(),
    lambda pod: lifted(pod).bound_to("n", phase="Succeeded"),
    lambda pod: pod.bound_to("n", phase="Pending"),
    lambda pod: pod.bound_to("n"),
    lambda pod: pod.charged("q").bound_to("n", phase="Pending"),
    lambda pod: pod.charged("q").bound_to("n"),
)
"""Some are seen of nobody in this order; the books take each as it is."""


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[str, int, State]]:
    """States of a few pods of few kinds: kind, number, state."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2))
    seen = st.tuples(st.sampled_from(kinds), st.integers(0, 1), st.sampled_from(STATES))
    return draw(st.lists(seen, max_size=12))


def seen(kind: str, number: int, state: State, version: int) -> Pod:
    built = state(KINDS[kind](a_pod(f"{kind[:3]}{number}".replace(" ", "-")).in_queue("q")))
    return replace(
        built.put("metadata", "resourceVersion", value=str(version)).view(), uid=f"{kind} {number}"
    )


def empty() -> Ledger:
    nodes = [a_node("n").card("A", 64).mgpu(8, memory=81920).view(), a_node("m").card("B", 64).view()]
    queues = [a_queue(name).cards({"A": 64, "B": 64}).view() for name in QUEUES]
    claims = a_claim("c").exactly("r", "gpu", count=2).view(), a_template("t").exactly("r", "gpu").view()
    return books_of(Settings(), (*nodes, *queues, *claims, a_group("g").min_member(2).view()))


def books(ledger: Ledger) -> dict[str, Any]:
    """All that is kept of pods, but for the order in which they came."""
    accounts = [(name, ledger.accounts.get(name, Account())) for name in QUEUES]
    devices, parts = (
        ledger.devices,
        ("allocated", "reserved", "waiting", "unlifted", "uncounted_pods", "waiting_pods"),
    )
    return {
        "entries": {entry.pod.uid: entry for entry in ledger.entries()},
        "sums": {name: {part: dict(getattr(account, part)) for part in parts} for name, account in accounts},
        "devices": {
            name: (devices.allocated(name), devices.reserved(name), devices.waiting(name)) for name in QUEUES
        },
        "counted": {
            entry.pod.uid: (devices.counted(entry.pod), devices.concerns(entry.pod))
            for entry in ledger.entries()
        },
        "on the node": sorted(ledger.occupants.on("n")),
        "beside": sorted(ledger.occupants.beside("n")),
        "reserved": {card: ledger.reserved(card) for card in ("A", "B")},
        "shares": dict(ledger.reserved_shares),
        "group": ledger.groups.progress(a_group("g").min_member(2).view()),
        "cpu": {name: ledger.cpu_memory.used(name, "cpu") for name in QUEUES},
    }


def one_then(kind: str, *states: int) -> list[tuple[str, int, State]]:
    return [(kind, 0, STATES[state]) for state in states]


@given(lives(), st.lists(st.integers(0, 12), max_size=2))
@example(one_then("cards and an extended resource", 4, 6), [])
@example(one_then("cards and an extended resource", 4, 6), [0])
@example(one_then("cards and an extended resource", 4, 6), [1])
@example(one_then("cards and an extended resource", 6, 4), [0])
@example(one_then("an extended resource", 4, 6), [])
@example(one_then("shares", 2, 3), [])
@example(one_then("shares", 4, 6), [])
@example(one_then("a claim", 4, 6), [])
@example(one_then("a claim and an extended resource", 4, 6), [0])
@example(one_then("cards", 0, 0), [])
@example(one_then("cards of no queue", 0, 3), [])
@example(one_then("cards", 3, 4, 6), [])
@example(one_then("a card without its resource", 13, 14), [])
def test_whatever_states_pods_are_seen_in_the_books_are_those_of_the_last(
    states: list[tuple[str, int, State]], classes: list[int]
) -> None:
    """DeviceClasses that serve a resource come meanwhile, and once more in the end."""
    ledger, latest, known = empty(), dict[str, Pod](), list[DeviceClass]()
    told: dict[str, Sight | None] = {}

    def follows(uid: str) -> None:
        told[uid] = sight_of(ledger, uid, (), 0)

    ledger.follow(follows)
    for version, (kind, number, state) in enumerate(states, 1):
        if version - 1 in classes:
            known.append(DeviceClass("gpu", extended=SERVED))
            ledger.put_class(known[-1])
        pod = seen(kind, number, state, version)
        last, latest[pod.uid] = latest.get(pod.uid), pod
        # Who is let in is booked so before that is seen.
        if last is not None and last.gated and pod.let_in and not pod.bound:
            ledger.assume(last.ungated(pod.annotations))
        ledger.put_pod(pod)
    anew = empty()
    for device_class in known:
        anew.put_class(device_class)
    for pod in latest.values():
        anew.put_pod(pod)
    for _ in range(2):
        assert books(ledger) == books(anew)
        for entry in ledger.entries():
            assert told[entry.pod.uid] == sight_of(ledger, entry.pod.uid, (), 0), (
                "whoever follows usage is told of all that he goes by"
            )
        for either in (ledger, anew):
            either.put_class(DeviceClass("late", extended=SERVED))
