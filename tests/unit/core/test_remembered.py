"""What is remembered to be found again is bounded in size, not only in number: whoever sends long texts must not fill the memory."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from core import names
from core.admission.dispatch import PATHS, answer
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.cards.shares import stands_for_share
from core.crossquota.guest import holds_gpu
from core.dra.extended import DeviceClasses
from core.mgpu.ask import pod_policy
from core.objects import node, pod
from core.queues import spelling
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_pod, a_queue
from tests.unit.core.admission.samples import a_node
from tests.unit.core.admission.test_admission_cost import of_kind

MIB = 2**20
TIMES = 20


def kept(act: Callable[[str], object]) -> int:
    """Bytes that are left after so many calls with another text of a mebibyte each."""
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(TIMES):
            act(f"{number}-" + "a" * MIB)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def reviewed(path: str, group: str, resource: str, spec: Callable[[Any], Any], context: Context) -> int:
    rule = next(each for each in PATHS[path] if (each.group, each.resource) == (group, resource))

    def review(text: str) -> None:
        template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {f"x.com/{text}": "1"}}}]}}
        raw = {"metadata": {"name": "x", "namespace": "ml"}, **spec(template)}
        answer(of_kind(path, group, resource, raw), context, rule)

    return kept(review)


@pytest.mark.parametrize(
    ("group", "resource", "spec"),
    [
        (
            "batch.volcano.sh",
            "jobs",
            lambda made: {"spec": {"tasks": [{"name": "t", "replicas": 1, "template": made}]}},
        ),
        ("ray.io", "rayclusters", lambda made: {"spec": {"headGroupSpec": {"template": made}}}),
        (
            "argoproj.io",
            "workflows",
            lambda made: {"spec": {"templates": [{"container": made["spec"]["containers"][0]}]}},
        ),
    ],
)
def test_reviews_of_workloads_leave_no_long_names(
    group: str, resource: str, spec: Callable[[Any], Any]
) -> None:
    inventory = Inventory.of(Settings())
    inventory.put(node.project(a_node()))
    view = ClusterView(inventory=inventory, queues={}, namespaces={}, serving=DeviceClasses())
    assert reviewed("/validate/workloads", group, resource, spec, Context(view, Settings())) < 4 * MIB


def test_reviews_of_pods_leave_no_long_names() -> None:
    """The API server asks about a pod before it looks at its names itself."""
    settings = Settings.model_validate({"cards": {"podsWithoutCardName": "infer"}})
    context = Context(ClusterView(serving=None), settings)
    assert reviewed("/mutate/pods", "", "pods", lambda made: made, context) < 4 * MIB


@pytest.mark.parametrize(
    "act",
    [
        lambda text: pod.project({"metadata": {"name": "x", "creationTimestamp": text}, "spec": {}}),
        lambda text: pod.project(
            a_pod("x").mgpu(core=1, memory=1).add("spec", "tolerations", item={"key": text}).build()
        ),
        lambda text: holds_gpu({text: 1000}, ("nvidia",)),
    ],
    ids=["time", "toleration", "resource"],
)
def test_whoever_asks_an_extender_leaves_no_long_texts(act: Callable[[str], object]) -> None:
    """Its port takes what is sent to it, and the pod need not exist."""
    assert kept(act) < 4 * MIB


def test_of_a_policy_that_is_none_no_more_is_kept_than_is_shown() -> None:
    """Asks are remembered with what came of them on a node."""
    assert pod_policy(a_pod("x").annotation(names.MGPU_POLICY_KEY, "a" * MIB).view()) == "a" * 64


def test_names_of_queues_that_do_not_exist_are_not_kept_if_no_queue_could_have_them() -> None:
    ledger = Ledger(Settings())
    ledger.put_queue(a_queue("research").view())
    assert spelling.nearest("reserch", "ml", ledger) == "research"
    assert kept(lambda text: spelling.nearest(text, "ml", ledger)) < 4 * MIB


def test_the_longest_names_that_can_be_stored_are_judged_as_ever() -> None:
    domain = ".".join(["a" * 63] * 3 + ["a" * 61])
    longest = f"{domain}/{'b' * 63}"
    assert len(longest) == names.LONGEST_RESOURCE
    built = a_pod("x").request(longest, 1)
    assert built.view().extended == [longest]
    assert a_pod("x").request(longest + "c", 1).view().extended == []
    assert holds_gpu({longest: 1000}, ("b+$",))
    assert stands_for_share("nvidia.com/mig-" + "1" * (names.LONGEST_RESOURCE - 15))
    assert not stands_for_share("nvidia.com/mig-" + "1" * (names.LONGEST_RESOURCE - 14))
