"""A Deployment that rolls out while its queue is full waits for the quota of its own older pods."""

import pytest

from core import reasons
from core.names import MGPU_CORE
from core.queues.ledger import Ledger
from core.queues.rollouts import Rollouts
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder

NEW = a_pod("new").gpu(1).card("A").in_queue("q").gated().of_deployment("web", "bbb")
NEW = NEW.created("2024-01-01T01:00:00Z")
OLD = a_pod("old").gpu(1).card("A").in_queue("q").of_deployment("web", "aaa")
RUNNING = OLD.bound_to("n")
NOTE = (
    "Queue <q>: Deployment ml/web rolls out, and the quota of <A> that this pod waits for is held by pods of its older "
    "ReplicaSet web-aaa; set maxSurge 0 and maxUnavailable 1, or raise the quota"
)


class World:
    def __init__(self, *pods: PodBuilder) -> None:
        self.ledger = Ledger(Settings())
        self.ledger.put_node(a_node("n").card("A", 8).view())
        self.ledger.put_queue(a_queue("q").cards({"A": 1}).view())
        self.rollouts = Rollouts(self.ledger)
        for pod in pods:
            self.shows(pod)

    def shows(self, pod: PodBuilder) -> None:
        self.ledger.put_pod(pod.view())
        self.rollouts.put_pod(pod.view())

    def drops(self, uid: str) -> None:
        self.ledger.drop_pod(uid)
        self.rollouts.drop_pod(uid)

    def told(self, pod: PodBuilder, reason: str = reasons.INSUFFICIENT_SCALAR_QUOTA) -> str:
        return self.rollouts.obstacle(pod.view(), reason)


@pytest.mark.parametrize("old", [RUNNING, OLD], ids=["bound", "reserved"])
def test_the_note_names_deployment_queue_card_and_the_way_out(old: PodBuilder) -> None:
    assert World(old, NEW).told(NEW) == NOTE


def test_a_choice_waits_for_whichever_of_its_cards_is_held() -> None:
    new = NEW.card("B|A")
    assert "the quota of <B|A> that this pod waits for" in World(RUNNING, new).told(new)


def test_shares_are_waited_for_as_well() -> None:
    share = a_pod("s").mgpu(core=30).in_queue("q")
    old, new = (
        share.of_deployment("web", "aaa").bound_to("n"),
        share.uid("t").of_deployment("web", "bbb").gated(),
    )
    assert f"the quota of <{MGPU_CORE}> that this pod waits for" in World(old, new).told(new)


@pytest.mark.parametrize(
    "old",
    [
        RUNNING.of_deployment("web", "bbb"),
        RUNNING.of_deployment("other", "aaa"),
        RUNNING.owned_by("ReplicaSet", "web-of-nobody"),
        a_pod("old", namespace="there")
        .gpu(1)
        .card("A")
        .in_queue("q")
        .of_deployment("web", "aaa")
        .bound_to("n"),
        RUNNING.in_queue("elsewhere"),
        RUNNING.card("B"),
        RUNNING.created("2024-01-01T02:00:00Z"),
        RUNNING.terminating(),
        RUNNING.phase("Succeeded"),
        OLD.gated(),
    ],
    ids=[
        "its own ReplicaSet",
        "another Deployment",
        "no Deployment",
        "another namespace",
        "another queue",
        "another card",
        "a younger ReplicaSet",
        "quota on its way back",
        "ended",
        "waits as well",
    ],
)
def test_who_does_not_hold_what_it_waits_for_is_not_blamed(old: PodBuilder) -> None:
    assert World(old, NEW).told(NEW) == ""


def test_other_reasons_to_wait_are_no_matter_of_rollouts() -> None:
    assert World(RUNNING, NEW).told(NEW, reasons.QUEUE_NOT_FOUND) == ""


def test_the_last_old_pod_ends_it() -> None:
    world = World(RUNNING, RUNNING.put("metadata", "name", value="old2").uid("second"), NEW)
    world.drops("uid-ml-old")
    assert world.told(NEW) == NOTE
    world.shows(RUNNING.uid("second").terminating())
    assert world.told(NEW) == ""
    world.drops("second")
    world.drops("second")
    assert world.told(NEW) == ""
