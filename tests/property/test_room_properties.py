"""Room for mGPU pods, kept up to date change by change, is what somebody who looks for the first time sees."""

from hypothesis import given
from hypothesis import strategies as st

from core.mgpu import records
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.plan.admitted import AdmittedNodes
from core.plan.room import ShareRoom
from core.queues.ledger import Ledger
from core.refusal import Refusal
from core.settings import Settings
from core.steps import finish
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import NodeBuilder, PodBuilder

NODES = ("m1", "m2", "m3")
POLICIES = ("fixed-share", "native-burst-share")


@st.composite
def a_share_node(draw: st.DrawFn) -> NodeBuilder:
    """A node of one or two cards; some take no pods."""
    node = a_node(draw(st.sampled_from(NODES)))
    node = node.mgpu(draw(st.integers(0, 2)), memory=8192, policy=draw(st.sampled_from(POLICIES)))
    node = node.label("zone", draw(st.sampled_from("ab")))
    return draw(st.sampled_from([node, node, node.cordoned(), node.not_ready()]))


@st.composite
def a_bound_pod(draw: st.DrawFn) -> PodBuilder:
    """A pod on one of the cards, or ended there."""
    pod = a_pod(draw(st.sampled_from("pqrs"))).mgpu(core=draw(st.sampled_from([40, 60, 100])), memory=1000)
    pod = pod.bound_to(draw(st.sampled_from(NODES))).annotation(
        records.key("main"), draw(st.sampled_from("01"))
    )
    return draw(st.sampled_from([pod, pod, pod.phase("Succeeded")]))


ASKING = a_pod("asking").mgpu(core=60, memory=2048)
WISHES = [
    wish.view()
    for wish in (
        ASKING,
        ASKING.selects("zone", "a"),
        ASKING.needs_node("zone", "a"),
        ASKING.needs_node("zone", "b"),
        ASKING.mgpu_policy(POLICIES[1]),
        a_pod("asking").mgpu(core=200),
    )
]
CHANGES = st.lists(
    st.one_of(
        a_share_node(), a_bound_pod(), st.sampled_from([f"uid-ml-{name}" for name in "pqrs"] + [*NODES])
    ),
    max_size=25,
)


def answers(room: ShareRoom) -> list[Refusal | None]:
    """What is said to each wish; each is asked twice, the second time from memory."""
    found: list[Refusal | None] = []
    for pod in (*WISHES, *WISHES):
        ask = mgpu_ask(pod)
        assert isinstance(ask, MgpuAsk)
        found.append(finish(room.shortfall(pod, ask, "q")))
    assert found[: len(WISHES)] == found[len(WISHES) :]
    return found


@given(CHANGES)
def test_what_is_remembered_is_never_out_of_date(changes: list[NodeBuilder | PodBuilder | str]) -> None:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("default").view())
    room = ShareRoom(ledger, AdmittedNodes(ledger))
    for change in changes:
        if isinstance(change, NodeBuilder):
            ledger.put_node(change.view())
        elif isinstance(change, PodBuilder):
            ledger.put_pod(change.view())
        elif change in NODES:
            ledger.drop_node(change)
        else:
            ledger.drop_pod(change)
        assert answers(room) == answers(ShareRoom(ledger, AdmittedNodes(ledger)))
