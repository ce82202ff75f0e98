"""The binding hook's decision."""

from collections.abc import Mapping
from typing import Any

import pytest

from core import catalogue, names, reasons
from core.binding.shares import Granted, decide
from core.mgpu import records
from core.mgpu.ask import MgpuAsk, Part, mgpu_ask
from core.objects import Node, Pod
from core.refusal import Refusal
from core.settings import MgpuSettings, Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder

NODE = a_node("n1").mgpu(2, memory=10_000).view()


def decided(
    pod: PodBuilder,
    *bound: PodBuilder,
    node: Node = NODE,
    settings: Settings | None = None,
) -> Granted | Refusal:
    view = pod.view()
    ask = mgpu_ask(view)
    assert ask is not None
    return decide(view, ask, node, [other.view() for other in bound], settings or Settings())


def granted(answer: Granted | Refusal) -> Mapping[str, str]:
    assert isinstance(answer, Granted), answer
    return answer.annotations


def a_share(name: str = "p", core: int = 60, memory: int = 5000) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=memory)


def on_card(pod: PodBuilder, card: int, node: str = "n1") -> PodBuilder:
    return pod.bound_to(node).annotation(records.key("main"), str(card))


def test_the_record_of_a_grant() -> None:
    """One key per asking container, and the marker; other containers get none."""
    pod = a_share().container("plain").mgpu("b", core=100)
    assert granted(decided(pod)) == {
        "vke.volcengine.com/gpu-index-container-main": "0",
        "vke.volcengine.com/gpu-index-container-b": "1",
        "vke.volcengine.com/assumed": "true",
    }


def test_what_is_bound_is_in_the_way() -> None:
    """Pods on the node take their cards; those elsewhere, ended ones and the pod itself do not."""
    assert granted(decided(a_share(), on_card(a_share("q"), 0)))[records.key("main")] == "1"
    for harmless in (
        on_card(a_share("q"), 0, node="n2"),
        on_card(a_share("q"), 0).phase("Succeeded"),
        on_card(a_share(), 0),
    ):
        assert granted(decided(a_share(), harmless))[records.key("main")] == "0"


@pytest.mark.parametrize(
    ("pod", "node", "bound", "code"),
    [
        (a_share(), a_node("n1"), [], reasons.MGPU_NODE_TYPE),
        (
            a_share(),
            a_node("n1").mgpu(2, memory=9000).label(names.MGPU_NODE_TYPE_LABEL, "nvidia"),
            [],
            reasons.MGPU_NODE_TYPE,
        ),
        (
            a_share(),
            a_node("n1").mgpu(2, memory=9000, policy="native-burst-share"),
            [],
            reasons.MGPU_POLICY_MISMATCH,
        ),
        (a_pod().mgpu(core=300), a_node("n1").mgpu(2, memory=9000), [], reasons.MGPU_TOO_FEW_CARDS),
        (
            a_share(),
            a_node("n1").mgpu(2, memory=9000),
            [on_card(a_share("q"), 0), on_card(a_share("r"), 1)],
            reasons.MGPU_NO_ROOM,
        ),
        (
            a_share(),
            a_node("n1").mgpu(1, memory=9000),
            [a_share("q").bound_to("n1")],
            reasons.MGPU_NO_ROOM,
        ),
        (a_pod().mgpu(core=150), a_node("n1").mgpu(2, memory=9000), [], reasons.MGPU_CORE),
        (
            a_pod().mgpu("c" * 44, core=100),
            a_node("n1").mgpu(2, memory=9000),
            [],
            reasons.MGPU_CONTAINER_NAME,
        ),
    ],
)
def test_refusals(pod: PodBuilder, node: Any, bound: list[PodBuilder], code: str) -> None:
    """The node is judged as it is now; a pod without record holds its room; every refusal has a code."""
    answer = decided(pod, *bound, node=node.view())
    assert isinstance(answer, Refusal)
    assert answer.code == code
    assert answer.message
    assert answer.code in catalogue.CATALOGUE


def test_no_key_over_63_characters_is_ever_written() -> None:
    """Also when somebody computed the ask in another way: the pod could never be written again."""
    ask = MgpuAsk((Part("c" * 44, 1, 100, None),), multi=False, policy="fixed-share")
    answer = decide(a_pod().mgpu("c" * 44, core=100).view(), ask, NODE, [], Settings())
    assert isinstance(answer, Refusal)
    assert answer.code == reasons.MGPU_CONTAINER_NAME
    longest = decided(a_pod().mgpu("c" * 43, core=100))
    assert max(len(key.partition("/")[2]) for key in granted(longest)) == 63


def test_the_settings_are_heeded() -> None:
    """Policy and the limit of containers per card."""
    spread = Settings(mgpu=MgpuSettings(policy="spread"))
    used = on_card(a_share("q", 10, 100), 0)
    assert granted(decided(a_share("p", 10, 100), used))[records.key("main")] == "0"
    assert granted(decided(a_share("p", 10, 100), used, settings=spread))[records.key("main")] == "1"
    single = Settings(mgpu=MgpuSettings(max_containers_per_card=1))
    assert granted(decided(a_share("p", 10, 100), used, settings=single))[records.key("main")] == "1"


def test_many_binds_on_one_node_never_overbook_it() -> None:
    """Fifty pods one after the other: each card is filled to the last share, then the rest is refused."""
    node = a_node("n1").mgpu(4, memory=10_000).view()
    bound: list[PodBuilder] = []
    taken = dict.fromkeys(range(4), 0)
    answers: list[bool] = []
    for number in range(50):
        pod = a_share(f"p{number}", 10, 1000)
        answer = decided(pod, *bound, node=node)
        answers.append(isinstance(answer, Granted))
        if isinstance(answer, Granted):
            (card,) = answer.placement.indexes["main"]
            bound.append(on_card(pod, card))
            taken[card] += 1
    assert answers == [True] * 40 + [False] * 10
    assert set(taken.values()) == {10}


def test_a_problem_is_passed_on() -> None:
    """A pod that can be served nowhere is refused with its own reason."""
    pod: Pod = a_pod().view()
    problem = Refusal(reasons.MGPU_CARD_COUNTS, "pod: no")
    assert decide(pod, problem, NODE, [], Settings()) == Refusal(problem.code, problem.message)
