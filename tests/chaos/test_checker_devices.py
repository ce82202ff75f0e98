"""The judge counts the devices of claims: each claim once, those of queues below as well, and what status shows of them."""

import json
from collections.abc import Callable

import pytest

from tests.chaos.checker import terms
from tests.chaos.handmade import Log, Object


@pytest.fixture
def log() -> Log:
    """A queue of three devices; a claim of two, and a template of one."""
    made = Log()
    made.lead()
    made.node("n")
    made.queue("q", devices={"gpu": 3})
    made.claim("ours", gpu=2)
    made.template("one", gpu=1)
    return made


def cut_to(count: int) -> Callable[[Object], None]:
    """Queue `q` has so many devices from now on."""

    def cut(queue: Object) -> None:
        limits = {"capability": {"gpu": {"count": count}}}
        queue["metadata"]["annotations"][terms.DEVICE_QUOTA] = json.dumps(limits)

    return cut


def test_devices_within_the_quota_are_fine_and_one_more_is_found(log: Log) -> None:
    log.claiming_pod("a", claims=["ours"])
    log.claiming_pod("b", templates=["one"])
    log.claiming_pod("c", templates=["one"])
    log.lift("a", "b")
    assert log.rules() == []
    log.lift("c")
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("quota", "ns/c")
    assert "is let use 4 of deviceclass/gpu, its quota is 3" in found.text


def test_a_claim_that_pods_share_counts_once_and_one_of_their_own_for_each(log: Log) -> None:
    for name in ("a", "b", "c"):
        log.claiming_pod(name, claims=["ours"])
    log.claiming_pod("d", claims=["ours"], templates=["one"])
    log.lift("a", "b", "c", "d")
    assert log.rules() == []


def test_the_devices_of_a_queue_above_are_those_of_all_below_it(log: Log) -> None:
    """Where it is listed alone: a class that a queue does not list is not limited by it."""
    log.queue("above", devices={"gpu": 1})
    for name in ("left", "right"):
        log.queue(name, parent="above")
        log.claiming_pod(name, queue=name, templates=["one"])
        log.lift(name, queue=name)
    (found,) = log.verdict().violations
    assert "queue above is let use 2 of deviceclass/gpu" in found.text


def test_devices_are_free_again_when_the_last_pod_with_the_claim_has_gone(log: Log) -> None:
    for name in ("a", "b"):
        log.claiming_pod(name, claims=["ours"])
    log.template("two", gpu=2)
    log.claiming_pod("c", templates=["two"])
    log.lift("a", "b")
    log.delete("a")
    log.delete("b")
    log.lift("c")
    assert log.rules() == []


def test_a_pod_that_is_bound_without_a_record_of_its_claims_is_found(log: Log) -> None:
    log.claiming_pod("a", claims=["ours"])
    log.lift("a")
    del log.objects["pods"]["a"]["metadata"]["annotations"][terms.CLAIMS]
    log.bind("a", "n")
    log.census()
    assert "bind" in log.rules()


def test_at_rest_nobody_waits_for_devices_that_are_left_and_status_shows_those_in_use(log: Log) -> None:
    log.claiming_pod("a", claims=["ours"])
    log.claiming_pod("b", templates=["one"])
    log.lift("a")
    log.bind("a", "n")
    log.wait(20)
    log.census()
    assert log.rules() == ["starving", "status"]
    log.lift("b")
    log.show("q", **{"deviceclass/gpu": 2})
    log.wait(20)
    log.census()
    assert log.rules() == []


def test_whoever_joins_a_claim_that_is_held_takes_nothing_also_beyond_a_quota_that_was_cut(log: Log) -> None:
    log.claiming_pod("a", claims=["ours"])
    log.lift("a")
    log.change("queues", "q", cut_to(1))
    log.wait(20)
    log.claiming_pod("b", claims=["ours"])
    log.claiming_pod("c", claims=["ours"], templates=["one"])
    log.lift("b")
    assert log.rules() == []
    log.lift("c")
    (found,) = log.verdict().violations
    assert (found.rule, found.about) == ("quota", "ns/c")


def test_what_kubernetes_writes_about_claims_does_not_put_off_the_rest(log: Log) -> None:
    log.claiming_pod("a", claims=["ours"])
    log.wait(20)
    log.change("resourceclaims", "ours", lambda claim: claim.update(status={}), "kube-controller-manager")
    log.wait(1)
    log.census()
    assert log.rules() == ["starving"]


def holding(device: str, **how: object) -> Callable[[Object], None]:
    """The scheduler has given the claim a device."""
    result = {"driver": "gpu", "pool": "n", "device": device, **how}

    def allocated(claim: Object) -> None:
        claim["status"] = {"allocation": {"devices": {"results": [result]}}}

    return allocated


@pytest.mark.parametrize(
    ("device", "how", "broken"),
    [("d0", {}, ["card"]), ("d1", {}, []), ("d0", {"adminAccess": True}, []), ("d0", {"shareID": "s"}, [])],
    ids=["the same", "another", "for administration", "a part of it"],
)
def test_a_device_that_two_claims_hold_is_found_at_rest(
    log: Log, device: str, how: dict[str, object], broken: list[str]
) -> None:
    log.claim("theirs", gpu=1)
    log.change("resourceclaims/status", "ours", holding("d0"), "scheduler", seen=False)
    log.change("resourceclaims/status", "theirs", holding(device, **how), "scheduler", seen=False)
    log.wait(10)
    log.census(["pods", "nodes", "queues", "podgroups", "resourceclaims"])
    found = log.verdict().violations
    assert [violation.rule for violation in found] == broken
    assert [violation.about for violation in found] == ["ns/theirs"] * len(broken)
