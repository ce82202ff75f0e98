"""The exact words on pods and PodGroups."""

from collections.abc import Sequence

import pytest

from tests.builders import a_group, a_pod, a_queue
from tests.unit.controller.announcing import (
    BOUND,
    GROUP,
    H200,
    H800,
    JOB,
    MEMBER,
    NODE,
    OTHER,
    POD,
    QUEUE,
    Thing,
    World,
)

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("things", "reason", "message"),
    [
        (
            (QUEUE, POD.card("X")),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: no resource name found for card <X>. "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (NODE, OTHER, QUEUE, POD.card("NVIDIA-H20O|X")),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: no resource name found for card <NVIDIA-H20O>; "
                "did you mean <NVIDIA-H200>? "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (QUEUE, a_pod("p").card(H200).in_queue("q").gated()),
            "GetTaskRequestResourceFailed",
            (
                "Get request resource failed, Queue <q>, error: "
                "no resource <nvidia.com/gpu> defined in requests/limits for card <NVIDIA-H200>. "
                "Give the pod limits for the card's resource, or wait for a node that carries the card."
            ),
        ),
        (
            (a_queue("q"), POD),
            "EmptyQueueCapability",
            (
                "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to allocate: "
                "requested <2000> of <NVIDIA-H200>. "
                "The queue has no card quota: set volcano.sh/card.quota on it."
            ),
        ),
        (
            (QUEUE.cards({H200: 8}).capability(cpu=4), POD.request("cpu", "4500m")),
            "InsufficientCPUQuota",
            (
                "Queue <q> has insufficient CPU quota: requested <4500>, total would be <4500>, but capability is <4000>. "
                "In cores: asks for 4.5, more than the whole capability (4); "
                "ask for less, or raise spec.capability.cpu."
            ),
        ),
        (
            (QUEUE.cards({H200: 8}).capability(memory="1536Mi"), POD.request("memory", "2Gi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <2048 Mi>, total would be <2048 Mi>, "
                "but capability is <1536 Mi>. "
                "In Gi: asks for 2, more than the whole capability (1.5); "
                "ask for less, or raise spec.capability.memory."
            ),
        ),
        (
            (QUEUE, BOUND, POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <3000>, "
                "but capability is <1000>. "
                "In cards: asks for 2, more than the whole quota (1); ask for fewer, or raise the quota."
            ),
        ),
        (
            (QUEUE.capability(cpu=4).cards(""), POD),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>. "
                "In cards: asks for 2, more than the whole quota (0); raise the quota."
            ),
        ),
        (
            (QUEUE, POD.card(f"{H200}|{H800}")),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <2000>, total would be <2000>, "
                "but capability is <0>. "
                "In cards: asks for 2, more than the whole quota (1 <NVIDIA-H200>, 0 <NVIDIA-H800>); ask for fewer, or raise the quota."
            ),
        ),
    ],
    ids=[
        "unknown card",
        "misspelt card",
        "no resource",
        "no capability",
        "cpu",
        "memory",
        "card",
        "capability without the card",
        "the last alternative",
    ],
)
async def test_the_words_on_a_pod(things: Sequence[Thing], reason: str, message: str) -> None:
    assert await World(NODE, OTHER, *things).decides() == [("Pod p", reason, message)]


@pytest.mark.parametrize(
    ("things", "reason", "message"),
    [
        (
            (QUEUE, GROUP.cards("[")),
            "GetTaskRequestResourceFailed",
            "Get request resource failed, Queue <q>, error: volcano.sh/card.request: ",
        ),
        (
            (a_queue("q"), GROUP.cards({H200: 5})),
            "EmptyQueueCapability",
            (
                "Queue <q> capability <cpu 0.00, memory 0.00> is empty, deny it to enqueue: "
                "requested <5000> of <NVIDIA-H200>. "
                "The queue has no card quota: set volcano.sh/card.quota on it."
            ),
        ),
        (
            (QUEUE.capability(cpu=4), GROUP.cards({H200: 1}).min_resources(cpu=5)),
            "InsufficientCPUQuota",
            (
                "Queue <q> has insufficient CPU quota: requested <5000>, total would be <5000>, but capability is <4000>. "
                "In cores: asks for 5, more than the whole capability (4); "
                "ask for less, or raise spec.capability.cpu."
            ),
        ),
        (
            (QUEUE.capability(memory="1Gi"), GROUP.cards({H200: 1}).min_resources(memory="1536Mi")),
            "InsufficientMemoryQuota",
            (
                "Queue <q> has insufficient memory quota: requested <1536 Mi>, total would be <1536 Mi>, "
                "but capability is <1024 Mi>. "
                "In Gi: asks for 1.5, more than the whole capability (1); "
                "ask for less, or raise spec.capability.memory."
            ),
        ),
        (
            (QUEUE.cards({H200: 3}), GROUP.cards({H200: 5})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200> quota: requested <5000>, total would be <5000>, "
                "but capability is <3000>. "
                "In cards: asks for 5, more than the whole quota (3); ask for fewer, or raise the quota."
            ),
        ),
        (
            (QUEUE.cards({H200: 3, H800: 3}), GROUP.cards({f"{H200}|{H800}": 8})),
            "InsufficientScalarQuota",
            (
                "Queue <q> has insufficient <NVIDIA-H200|NVIDIA-H800> quota: requested <8000>, total would be <8000>, "
                "but capability is <6000>. "
                "In cards: asks for 8, more than the whole quota (6); ask for fewer, or raise the quota."
            ),
        ),
    ],
    ids=["unreadable", "no capability", "cpu", "memory", "card", "the sums of a choice"],
)
async def test_the_words_on_a_podgroup_whose_job_declares_too_much(
    things: Sequence[Thing], reason: str, message: str
) -> None:
    """On the PodGroup and on each of its pods, never on the Volcano Job."""
    second = MEMBER.put("metadata", "name", value="p2").uid("p2")
    said = await World(NODE, OTHER, JOB, *things, MEMBER, second).decides()
    assert [event[:2] for event in said] == [("PodGroup g", reason), ("Pod p", reason), ("Pod p2", reason)]
    assert all(text.startswith(message) for *_, text in said)
    assert message.endswith(": ") or all(text == message for *_, text in said)


async def test_a_gang_that_does_not_fit_is_told_what_is_short_and_how_many_it_needs() -> None:
    gang = a_group("g").in_queue("q").min_member(2)
    members = [POD.in_group("g").uid(f"u{n}").put("metadata", "name", value=f"p{n}") for n in range(2)]
    said = await World(NODE, QUEUE.cards({H200: 3}), gang, *members).decides()
    text = (
        "Queue <q> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <4000>, but capability is "
        "<3000>. In cards: asks for 2, 2 of 3 are in use; wait for cards to come back, or raise the quota; PodGroup ml/g needs 2 more members at once, 1 fit"
    )
    assert said == [(name, "InsufficientScalarQuota", text) for name in ("PodGroup g", "Pod p0", "Pod p1")]
