"""What the tests of a queue's usage share: a small cluster, pods of it, and random groups."""

from collections.abc import Sequence

from hypothesis import strategies as st

from core.cards.inventory import Inventory
from core.objects import Node
from core.queues.usage import GroupUsage, PodUsage, Status, card_resources, group_usage, pod_usage
from core.settings import Settings
from core.stage import Stages
from tests.builders import a_node, a_pod
from tests.builders.objects import GroupBuilder, PodBuilder

GI = 1000 * 2**30
NODES = (
    a_node("n1").card("H200", 8).allocatable("cpu", 64).allocatable("memory", "128Gi").view(),
    a_node("n2").card("V100", 8).allocatable("cpu", 36).allocatable("memory", "72Gi").view(),
)
POD = a_pod().request("cpu", 3).request("memory", "6Gi")
H200 = POD.gpu(1).card("H200")


def usage(
    group: GroupBuilder | None,
    *pods: PodBuilder,
    settings: Settings | None = None,
    nodes: Sequence[Node] = NODES,
) -> GroupUsage:
    settings = settings or Settings()
    inventory = Inventory(settings.cards.resources)
    for node in nodes:
        inventory.put(node)
    known = card_resources(inventory)
    counted = [pod_usage(pod.view(), inventory, known, settings, Stages(settings)) for pod in pods]
    return group_usage(None if group is None else group.view(), counted, known, settings)


pods = st.builds(
    PodUsage,
    st.sampled_from(Status),
    gated=st.booleans(),
    cpu_memory=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9000)),
    cards=st.dictionaries(st.sampled_from(["A", "B", "A|B"]), st.integers(0, 9000), max_size=1),
)
groups = st.builds(
    GroupUsage,
    st.sampled_from(["", "Pending", "Inqueue", "Running"]),
    st.integers(0, 4),
    st.none() | st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9000)),
    st.dictionaries(st.sampled_from(["A", "A|B"]), st.integers(0, 9000)),
    st.lists(pods, max_size=5),
)
