"""The guard at bind time: the same limit, for schedulers that do not ask beforehand."""

import pytest

from core.crossquota.book import guest_book
from core.crossquota.filter import bind_excess, guards_binds, is_limited
from core.settings import Settings, parse
from tests.builders.objects import a_node, a_pod
from tests.builders.pods import PodBuilder
from tests.unit.core.crossquota.ruling import gpu_node, ruled

GUARDED = ruled(quota={"cpu": 4}, guardBind=True)
NODES = [gpu_node("gpu").view(), a_node("cpu").view()]


def running(cpu: int) -> PodBuilder:
    return a_pod("there").request("cpu", cpu).bound_to("gpu")


def refused(pod: PodBuilder, node: str, *there: PodBuilder, settings: Settings = GUARDED) -> str:
    book = guest_book(NODES, [other.view() for other in there], settings)
    found = bind_excess(pod.view(), node, book, settings)
    return found.message if found is not None else ""


@pytest.mark.parametrize(
    ("cpu", "node", "message"),
    [
        (1, "gpu", ""),
        (2, "gpu", "cpu quota exceeded: required 2, used 3, quota 4"),
        (2, "cpu", ""),
        (2, "who", ""),
    ],
)
def test_a_bind_that_breaks_the_limit_is_refused(cpu: int, node: str, message: str) -> None:
    assert refused(a_pod("new").request("cpu", cpu), node, running(3)) == message


def test_gpu_pods_are_never_refused() -> None:
    assert refused(a_pod("new").request("cpu", 9).gpu(1), "gpu", running(3)) == ""


def test_the_pod_itself_is_not_counted_when_its_bind_is_asked_for_again() -> None:
    assert refused(running(3), "gpu", running(3)) == ""


def test_the_pods_of_a_daemon_set_count_and_are_never_refused() -> None:
    """They have to be on every node, and have nowhere else to go."""
    daemon = a_pod("d").request("cpu", 9).owned_by("DaemonSet", "d")
    assert refused(daemon, "gpu", running(3)) == ""
    assert refused(a_pod("new").request("cpu", 1), "gpu", daemon.bound_to("gpu")).startswith(
        "cpu quota exceeded"
    )


@pytest.mark.parametrize("version", ["made.up/v1", "apps.made.up/v1", "v1", ""])
def test_a_daemon_set_of_another_group_lets_nobody_pass(version: str) -> None:
    pod = a_pod("p").request("cpu", 9).owned_by("DaemonSet", "d", api_version=version)
    assert refused(pod, "gpu").startswith("cpu quota exceeded")
    assert is_limited(pod.view(), "gpu", guest_book(NODES, [], GUARDED), GUARDED)


@pytest.mark.parametrize(
    ("pod", "node", "limited"),
    [
        (a_pod("p").request("cpu", 1), "gpu", True),
        (a_pod("p").owned_by("ReplicaSet", "r"), "gpu", True),
        (a_pod("p").request("cpu", 1), "cpu", False),
        (a_pod("p").request("cpu", 1), "who", False),
        (a_pod("p").gpu(1), "gpu", False),
        (a_pod("p").owned_by("DaemonSet", "d"), "gpu", False),
    ],
)
def test_only_pods_without_gpu_on_nodes_with_gpus_depend_on_others(
    pod: PodBuilder, node: str, *, limited: bool
) -> None:
    assert is_limited(pod.view(), node, guest_book(NODES, [], GUARDED), GUARDED) is limited


@pytest.mark.parametrize(
    ("settings", "guards"),
    [
        (GUARDED, True),
        (ruled(), False),
        (ruled(guardBind=True, gpuResourceNames=[]), False),
        (parse({"crossQuota": {"guardBind": True}})[0], False),
    ],
)
def test_binds_are_guarded_where_the_guard_is_on_and_there_is_a_rule(
    settings: Settings, *, guards: bool
) -> None:
    assert guards_binds(settings) is guards


def test_without_the_guard_every_bind_goes_through() -> None:
    assert refused(a_pod("new").request("cpu", 9), "gpu", settings=ruled(quota={"cpu": 4})) == ""
