"""What a pod asks, read from its view."""

from weakref import ref

import pytest

from core import names, reasons
from core.mgpu.ask import CardCountsError, MgpuAsk, Part, booked_parts, mgpu_ask, parse_counts
from core.refusal import Refusal
from tests.builders import a_pod
from tests.builders.objects import PodBuilder

NATIVE = "native-burst-share"


def asked(pod: PodBuilder) -> MgpuAsk:
    ask = mgpu_ask(pod.view())
    assert isinstance(ask, MgpuAsk), ask
    return ask


def test_a_pod_without_shares_asks_nothing() -> None:
    """The annotations alone do not make it ask."""
    assert mgpu_ask(a_pod().gpu(1).cards_per_container(1).view()) is None


@pytest.mark.parametrize(
    ("pod", "parts", "multi", "pure_full", "any_policy"),
    [
        (a_pod().mgpu(core=30, memory=2048), [Part("main", 1, 30, 2048)], False, False, False),
        (a_pod().mgpu(core=100), [Part("main", 1, 100, None)], False, True, True),
        (a_pod().mgpu(core=300), [Part("main", 3, 100, None)], False, True, True),
        (
            a_pod().mgpu(core=100).mgpu("b", core=1, memory=256),
            [Part("main", 1, 100, None), Part("b", 1, 1, 256)],
            False,
            False,
            False,
        ),
        (
            a_pod().mgpu("b", core=50, memory=1000),
            [Part("b", 1, 50, 1000)],
            False,
            False,
            False,
        ),
        (
            a_pod().mgpu(core=100, memory=8192).cards_per_container(2),
            [Part("main", 2, 50, 4096)],
            True,
            False,
            False,
        ),
        (
            a_pod().mgpu(core=100, memory=2).cards_per_container(2),
            [Part("main", 2, 50, 1)],
            True,
            False,
            False,
        ),
        (a_pod().mgpu(core=200).cards_per_container(2), [Part("main", 2, 100, None)], True, True, False),
        (
            a_pod().mgpu(core=50, memory=1024).container("b").cards_per_container(1, 0),
            [Part("main", 1, 50, 1024)],
            True,
            False,
            False,
        ),
    ],
)
def test_parts(pod: PodBuilder, parts: list[Part], multi: bool, pure_full: bool, any_policy: bool) -> None:
    """One part per asking container, amounts per card; only whole cards without counts fit every policy."""
    ask = asked(pod)
    assert list(ask.parts) == parts
    assert (ask.multi, ask.pure_full, ask.any_policy) == (multi, pure_full, any_policy)


def test_the_policy_and_its_default() -> None:
    """Missing means fixed-share; what is written stays as it is, also when nobody knows it."""
    pod = a_pod().mgpu(core=50, memory=1024)
    assert asked(pod).policy == "fixed-share"
    assert asked(pod.mgpu_policy("native-burst-share")).policy == "native-burst-share"
    assert asked(pod.mgpu_policy("")).policy == ""


def test_values_come_from_requests_first() -> None:
    """The API server copies limits to requests, so the request is what counts where both are there."""
    pod = a_pod().container(requests={names.MGPU_CORE: 50, names.MGPU_MEMORY: 1024})
    assert asked(pod).parts == (Part("main", 1, 50, 1024),)


@pytest.mark.parametrize(
    ("pod", "code", "words"),
    [
        (
            a_pod().init_container("s", limits={names.MGPU_CORE: 1}),
            reasons.MGPU_INIT_CONTAINER,
            "init container",
        ),
        (a_pod().mgpu(memory=1024), reasons.MGPU_QUANTITY, "greater than 0"),
        (a_pod().mgpu(core="x", memory=1024), reasons.MGPU_QUANTITY, "greater than 0"),
        (a_pod().mgpu(core=0, memory=1024), reasons.MGPU_QUANTITY, "greater than 0"),
        (a_pod().mgpu(core=50), reasons.MGPU_MEMORY, "at least 1 MiB"),
        (a_pod().mgpu(core=100, memory=1).cards_per_container(2), reasons.MGPU_MEMORY, "1 over 2 cards is 0"),
        (a_pod().mgpu(core=150), reasons.MGPU_CORE, "multiple of 100"),
        (a_pod().mgpu(core=100, memory=1), reasons.MGPU_MEMORY, "must not be set"),
        (a_pod().mgpu("c" * 44, core=100), reasons.MGPU_CONTAINER_NAME, "43"),
        (
            a_pod().mgpu(core=100).annotation(names.MGPU_MULTIPLE_ANNOTATION, "x"),
            reasons.MGPU_CARD_COUNTS,
            "not a whole number",
        ),
        (a_pod().mgpu(core=100).cards_per_container(1, 1), reasons.MGPU_CARD_COUNTS, "number of containers"),
        (a_pod().mgpu(core=100).cards_per_container(-1), reasons.MGPU_CARD_COUNTS, "negative"),
        (a_pod().mgpu(core=100).cards_per_container(0), reasons.MGPU_CARD_COUNTS, "0 cards"),
        (
            a_pod().mgpu(core=100).container("b").cards_per_container(1, 1),
            reasons.MGPU_CARD_COUNTS,
            "greater than 0",
        ),
        (a_pod().mgpu(core=50, memory=1025).cards_per_container(2), reasons.MGPU_MEMORY, "divisible by 2"),
        (a_pod().mgpu(core=150, memory=1024).cards_per_container(1), reasons.MGPU_CORE, "100 per card"),
    ],
)
def test_pods_that_can_be_served_nowhere(pod: PodBuilder, code: str, words: str) -> None:
    """A pod that got past admission with impossible amounts has a reason, and never an exception."""
    problem = mgpu_ask(pod.view())
    assert isinstance(problem, Refusal)
    assert problem.code == code
    assert words in problem.message


def test_floors_are_admissions_business() -> None:
    """A pod admitted under a lower floor is still placed."""
    assert asked(a_pod().mgpu(core=1, memory=1)).parts == (Part("main", 1, 1, 1),)


@pytest.mark.parametrize(
    ("pod", "parts"),
    [
        (a_pod().mgpu(core=150, memory=1), (Part("main", 1, 100, None),)),
        (a_pod().mgpu(memory=1024), (Part("main", 1, 1, 1024),)),
        (a_pod().mgpu(core="x", memory="y"), (Part("main", 1, 1, 0),)),
        (a_pod().mgpu(core=-5, memory=-5), (Part("main", 1, 1, 0),)),
        (a_pod().mgpu(core=51, memory=1001).cards_per_container(2), (Part("main", 2, 26, 501),)),
        (
            a_pod().mgpu(core=50, memory=9).annotation(names.MGPU_MULTIPLE_ANNOTATION, "x"),
            (Part("main", 1, 50, 9),),
        ),
        (a_pod().mgpu(core=50, memory=9).cards_per_container(0), (Part("main", 1, 50, 9),)),
        (a_pod().container("b").mgpu("b", core=50, memory=9).cards_per_container(2), (Part("b", 1, 50, 9),)),
    ],
)
def test_what_runs_is_counted_whatever_is_wrong_with_it(pod: PodBuilder, parts: tuple[Part, ...]) -> None:
    """Booking never fails: amounts are rounded up, what cannot be read takes next to nothing but a seat."""
    assert booked_parts(pod.view()) == parts


@pytest.mark.parametrize(
    ("text", "counts"), [("1", (1,)), ("2,0,-3", (2, 0, -3)), ("007", (7,)), ("999999999", (999_999_999,))]
)
def test_card_counts(text: str, counts: tuple[int, ...]) -> None:
    """Whole numbers, as many as there are."""
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", ",", "1,,1", "1 ", "--1", "-", "\uff11", "1000000000", "1\n"])
def test_no_card_counts(text: str) -> None:
    """Whatever `int()` would read beyond plain digits is refused."""
    with pytest.raises(CardCountsError, match="comma-separated whole numbers"):
        parse_counts(text)


def test_a_pod_of_very_many_containers() -> None:
    """The number of containers is bounded by nothing but the size of the object."""
    pod = a_pod().put(
        "spec",
        "containers",
        value=[
            {"name": f"c{number}", "resources": {"limits": {names.MGPU_CORE: "100"}}}
            for number in range(1500)
        ],
    )
    assert len(asked(pod).parts) == 1500


def test_native_is_what_multi_pods_run_on() -> None:
    """The policy of a pod with counts is what it says, not what it should say."""
    assert asked(a_pod().mgpu(core=100).cards_per_container(1).mgpu_policy(NATIVE)).policy == NATIVE


def test_pods_alike_share_one_ask_that_goes_with_the_last_of_them() -> None:
    """What is known of it can go with it too."""
    first, second = (asked(a_pod(name).mgpu(core=31, memory=2048)) for name in ("a", "b"))
    assert first is second
    assert asked(a_pod("c").mgpu(core=32, memory=2048)) is not first
    gone = ref(first)
    del first
    assert gone() is second
    del second
    assert gone() is None
