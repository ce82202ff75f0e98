"""What a queue may use of CPU and memory follows every change of nodes and queues, and is not worked out again without one."""

from hypothesis import given
from hypothesis import strategies as st

from core.queues.capacity import Capacity, Unset
from tests.builders import a_node, a_queue
from tests.builders.objects import NodeBuilder, QueueBuilder

names = st.sampled_from(["a", "b"])
amounts = st.integers(0, 3)


def node(name: str, cpu: int) -> NodeBuilder:
    built = a_node(name)
    return built.allocatable("cpu", cpu) if cpu else built


def queue(name: str, cpu: int, guarantee: int) -> QueueBuilder:
    built = a_queue(name)
    if cpu:
        built = built.capability(cpu=cpu, memory="1Gi")
    return built.guarantee(cpu=guarantee) if guarantee else built


changes = st.one_of(
    st.tuples(st.just("node"), names, amounts, amounts),
    st.tuples(st.just("no node"), names, amounts, amounts),
    st.tuples(st.just("queue"), names, amounts, amounts),
    st.tuples(st.just("no queue"), names, amounts, amounts),
)


@given(st.lists(changes, max_size=12), st.sampled_from(["cluster", "zero"]))
def test_the_limit_is_that_of_the_nodes_and_queues_that_there_are(
    events: list[tuple[str, str, int, int]], unset: Unset
) -> None:
    capacity = Capacity(unset)
    nodes: dict[str, NodeBuilder] = {}
    queues: dict[str, QueueBuilder] = {}
    for kind, name, first, second in events:
        match kind:
            case "node":
                nodes[name] = node(name, first)
                capacity.put_node(nodes[name].view())
            case "no node":
                nodes.pop(name, None)
                capacity.drop_node(name)
            case "queue":
                queues[name] = queue(name, first, second)
                capacity.put_queue(queues[name].view())
            case _:
                queues.pop(name, None)
                capacity.drop_queue(name)
        anew = Capacity(unset)
        for each in nodes.values():
            anew.put_node(each.view())
        for one in queues.values():
            anew.put_queue(one.view())
        assert {key: capacity.limit(key) for key in "ab"} == {key: anew.limit(key) for key in "ab"}
