"""What `verify --state` prints as a whole: read as a user does, from top to bottom."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import a_node, a_pod, a_queue
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import H200, a_node_of, a_state, running, waiting

NODE: Final = a_node_of(H200, "n1")
QUEUE: Final = a_queue("research").cards({H200: 4})
LEADER: Final = {
    "apiVersion": "cardquota.io/v1",
    "kind": "LeaderBooks",
    "metadata": {"name": "cardquota", "namespace": "cardquota-system"},
    "status": {
        "source": "answer",
        "drift": 1,
        "queues": {"research": {"allocated": {H200: "2", "A": "1"}}},
    },
}


def by_hand() -> dict[str, Any]:
    """The queue as somebody writes it into a file."""
    raw = QUEUE.build()
    del raw["metadata"]["uid"], raw["metadata"]["creationTimestamp"], raw["status"]
    return raw


SOUND: Final = (
    NODE,
    QUEUE.allocated({H200: "3", "cpu": "4"}),
    a_queue("serving").cards({H200: 1}),
    running("train-1", 3),
    waiting("p", 2),
)
EDITED: Final = (
    NODE,
    QUEUE.allocated({H200: "4"}),
    running("train-1", 3).assigned({H200: 2}),
    running("train-2", 1, queue="gone"),
)
BY_HAND: Final = (
    NODE,
    by_hand(),
    a_queue("serving").cards({H200: 4}).allocated({H200: "1"}),
    running("train-1", 3),
    running("web", 1, queue="serving"),
)
BOOKS: Final = (NODE, QUEUE.allocated({H200: "3"}), running("train-1", 3), LEADER)
SHARES: Final = (
    a_node("m1").mgpu(2, memory=8000),
    a_queue("research").shares(core=300, memory=20000),
    a_pod("s1").mgpu(core=60, memory=4000).in_queue("research").charged("research").bound_to("m1"),
)

SOUND_TOLD: Final = """\
CHECK          RESULT   FOUND
queue status   ok       2 queues show what their pods use
records        ok       those of 1 pod that was let in agree with it
"""
EDITED_TOLD: Final = """\
CHECK          RESULT   FOUND
queue status   WRONG    queue research: status.allocated shows 4 of NVIDIA-H200, and its pods use 3
records        WRONG    pod ml/train-1: cardquota.io/assigned says 2 of NVIDIA-H200, and the pod asks for 3
records        WRONG    pod ml/train-2: cardquota.io/queue names queue gone, which does not exist: create it, or delete the pod
"""
BY_HAND_TOLD: Final = """\
CHECK          RESULT    FOUND
queue status   ok        1 queue shows what its pods use
queue status   unknown   queue research: status.allocated shows 0 of NVIDIA-H200, and its pods use 3; the queue was never stored, so no controller has written a status
records        ok        those of 2 pods that were let in agree with the pods
"""
BOOKS_TOLD: Final = """\
CHECK            RESULT   FOUND
leader's books   WRONG    its own audit has found 1 places that are wrong
leader's books   WRONG    queue research: 1 of A, and its pods use 0
leader's books   WRONG    queue research: 2 of NVIDIA-H200, and its pods use 3
queue status     ok       1 queue shows what its pods use
records          ok       those of 1 pod that was let in agree with it
"""
SHARES_TOLD: Final = """\
CHECK          RESULT   FOUND
queue status   ok       1 queue shows what its pods use
records        WRONG    pod ml/s1: bound to node m1 without a complete record of its cards
"""


@pytest.mark.parametrize(
    ("objects", "expected", "status"),
    [
        (SOUND, SOUND_TOLD, 0),
        (EDITED, EDITED_TOLD, 1),
        (BY_HAND, BY_HAND_TOLD, 0),
        (BOOKS, BOOKS_TOLD, 1),
        (SHARES, SHARES_TOLD, 1),
    ],
    ids=[
        "all is well",
        "a status and records were edited",
        "a queue that was written by hand",
        "the leader's books differ",
        "a share without its cards",
    ],
)
def test_the_whole_answer(
    run: Run, tmp_path: Path, objects: tuple[Any, ...], expected: str, status: int
) -> None:
    state = tmp_path / "state.json"
    state.write_text(a_state(*objects))
    outcome = run("verify", "--state", state)
    assert (outcome.status, outcome.err) == (status, "")
    assert outcome.out == expected
