"""What `explain` prints as a whole, in the situations in which people ask: read as a user does, from top to bottom."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli import situations
from tests.unit.cli.conftest import Run

FOR_QUOTA: Final = """\
Pod ml/p waits in queue research: InsufficientScalarQuota
  Queue <research> has insufficient <NVIDIA-H200> quota: requested <1000>, total would be <5000>, but
  capability is <4000>. In cards: asks for 1, 4 of 4 are in use; wait for cards to come back, or raise the
  quota.

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       1 NVIDIA-H200 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       2 of 2 (whoever fits goes)
              behind Pod ml/train-3 (2 NVIDIA-H200): InsufficientScalarQuota
Quota         NVIDIA-H200: asks for 1, 4 of 4 in use, 1 missing
Held by       ml/train-1: 3 NVIDIA-H200, on n1
              ml/train-2: 1 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 4 of 8 are free, at most 4 of a node's 8 (n1)
May start     in 32 s to 9 h (1 NVIDIA-H200 has to come free; lately 5 ends gave back 5 in 3 h)

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue research for NVIDIA-H200 by 1 (4 -> 5)
       kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 5}'
  2. 1 pod ending: ml/train-2
"""
BY_STOCK: Final = """\
Pod ml/p waits in queue research: NoFreeCard
  Queue <research> has quota, but no node has 4 of <NVIDIA-H200|NVIDIA-A100> free

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       4 NVIDIA-H200|NVIDIA-A100 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         NVIDIA-A100: asks for 4, 0 of 8 in use
Quota         NVIDIA-H200: asks for 4, 0 of 16 in use
Held by       ml/web: 6 NVIDIA-H200, on n1, queue serving
Cards         NVIDIA-H200: 2 of 8 are free, at most 2 of a node's 8 (n1)
Cards         NVIDIA-A100: 0 of 0 are free; 4 more on nodes that take no pods now

What would help (each was tried, and lifts the pod; the smallest first):
  1. 1 pod ending: ml/web
"""
GANG: Final = """\
Pod ml/p waits in queue research: GangIncomplete
  Queue <research>: PodGroup ml/g needs 3 more members at once, with only 2 ready

Queue         research, named by its PodGroup
Counted       2 NVIDIA-H200 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         NVIDIA-H200: 2 of its gang are there and ask for 4, 0 of 8 in use
Cards         NVIDIA-H200: 8 of 8 are free, at most 8 of a node's 8 (n1)

What would help (each was tried, and lifts the pod; the smallest first):
  1. minMember 2 instead of 3 in PodGroup ml/g, which lacks 1 member
"""
CHOICE: Final = """\
Pod ml/p waits in queue research: InsufficientScalarQuota
  Queue <research> has insufficient <NVIDIA-H200|NVIDIA-A100> quota: requested <2000>, total would be <5000>,
  but capability is <4000>. In cards: asks for 2, 2 of 2 <NVIDIA-H200>, 3 of 4 <NVIDIA-A100> are in use; wait
  for cards to come back, or raise the quota.

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       2 NVIDIA-H200|NVIDIA-A100 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         NVIDIA-A100: asks for 2, 3 of 4 in use, 1 missing
Quota         NVIDIA-H200: asks for 2, 2 of 2 in use, 2 missing
Held by       ml/train-2: 3 NVIDIA-A100, on n2
              ml/train-1: 2 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 6 of 8 are free, at most 6 of a node's 8 (n1)
Cards         NVIDIA-A100: 5 of 8 are free, at most 5 of a node's 8 (n2)
May start     nobody can say: no end is to be seen that gave back NVIDIA-H200 or NVIDIA-A100 in this queue,
              and it takes 5

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue research for NVIDIA-A100 by 1 (4 -> 5)
       kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 2, "NVIDIA-A100": 5}'
  2. 1 pod ending: ml/train-1
"""
NO_CARD_NAME: Final = """\
Pod ml/p holds nothing and waits for nothing of cardquota's

Noticed       CardNameMissing: metadata.annotations[volcano.sh/card.name]: nvidia.com/gpu is asked for without
              a card name (such as NVIDIA-H200), so no card quota counts it -- add the annotation
              volcano.sh/card.name to the pod template
Noticed       KeyUnread: metadata.annotations[volcano.sh/card-name]: is never read; did you mean
              volcano.sh/card.name? -- write it as the message says, and where it is read
"""
MISSPELT: Final = """\
Pod ml/p waits in queue research: GetTaskRequestResourceFailed
  Get request resource failed, Queue <research>, error: no resource name found for card <nvidia-h200>; did you
  mean <NVIDIA-H200>?

Noticed       CardUnknown: metadata.annotations[volcano.sh/card.name]: no node carries the card "nvidia-h200"
              now; did you mean NVIDIA-H200? -- check the spelling against `cardquota cards`
Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)

What would help (each was tried, and lifts the pod; the smallest first):
  1. name NVIDIA-H200 instead of nvidia-h200: volcano.sh/card.name=NVIDIA-H200
"""
UNSCHEDULED: Final = """\
Pod ml/p has its quota and no node yet: it waits for its scheduler

Queue         research, on record since it was let in
Counted       1 NVIDIA-H200 (nvidia.com/gpu)
Cards         NVIDIA-H200: 8 of 8 are free, at most 8 of a node's 8 (n1); 1 for pods without a node yet
Scheduler     Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available.
"""
SHARES: Final = """\
Pod ml/p waits in queue research: NoFreeCard
  Queue <research> lets the pod in, but no node has room; node m1: not enough mGPU: no room for container
  "main", which asks for mgpu-core 50 and mgpu-memory 6000 on 1 card

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       50 vke.volcengine.com/mgpu-core, 6000 MiB vke.volcengine.com/mgpu-memory
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         vke.volcengine.com/mgpu-core: asks for 50, 140 of 300 in use
Quota         vke.volcengine.com/mgpu-memory: asks for 6000 MiB, 8000 MiB of 20000 MiB in use
Node          m1: not enough mGPU: no room for container "main", which asks for mgpu-core 50 and mgpu-memory
              6000 on 1 card
Node          m2: not enough mGPU: no room for container "main", which asks for mgpu-core 50 and mgpu-memory
              6000 on 1 card, not even on idle cards

What would help (each was tried, and lifts the pod; the smallest first):
  1. 1 pod ending: ml/s1
"""
CLAIMS: Final = """\
Pod ml/p waits in queue research: InsufficientDeviceQuota
  queue research: DeviceClass gpu.example.com quota exceeded: requested 2, used 1, limit 2

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       2 deviceclass/gpu.example.com
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         deviceclass/gpu.example.com: asks for 2, 1 of 2 in use, 1 missing
Held by       ml/train: 1 deviceclass/gpu.example.com, on n1

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue research for deviceclass/gpu.example.com by 1 (2 -> 3)
  2. 1 pod ending: ml/train
"""
TREE: Final = """\
Pod ml/p waits in queue research: InsufficientScalarQuota
  Queue <all> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <7000>, but capability is
  <5000>. In cards: asks for 2, 5 of 5 are in use; wait for cards to come back, or raise the quota (queue
  research is below it).

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       2 NVIDIA-H200 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         NVIDIA-H200: asks for 2, 5 of 5 in use in queue all above, 2 missing
Held by       ml/web: 4 NVIDIA-H200, on n1, queue serving
              ml/train: 1 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 3 of 8 are free, at most 3 of a node's 8 (n1)

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue all (above research) for NVIDIA-H200 by 2 (5 -> 7)
       kubectl annotate queue all --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 7}'
  2. 1 pod ending: ml/web
"""
NEVER: Final = """\
Pod ml/p waits in queue research and can never run: no node has 12 NVIDIA-H200: the largest has 8
  InsufficientScalarQuota: Queue <research> has insufficient <NVIDIA-H200> quota: requested <12000>, total
  would be <12000>, but capability is <8000>. In cards: asks for 12, more than the whole quota (8); ask for
  fewer, or raise the quota.

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       12 NVIDIA-H200 (nvidia.com/gpu)
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Quota         NVIDIA-H200: asks for 12, 0 of 8 in use, 4 missing
Cards         NVIDIA-H200: 8 of 8 are free, at most 8 of a node's 8 (n1)

What would help: ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12; let in now, the pod
                 would find no node
"""
PASSED_OVER: Final = """\
Pod ml/p waits in queue research: GetTaskRequestResourceFailed
  Get request resource failed, Queue <research>, error: no resource name found for card <NVIDIA-H200>

Noticed       CardUnknown: metadata.annotations[volcano.sh/card.name]: no node carries the card "NVIDIA-H200"
              now -- check the spelling against `cardquota cards`
Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Waits since   2024-01-01T01:00:00Z (2 h)
In line       1 of 1 (whoever fits goes)
Passed over   node n1: labels contradict status.allocatable: NVIDIA-H200 has a label, but no resource in
              status.allocatable; docs/cards.md says what a node has to show

What would help (each was tried, and lifts the pod; the smallest first):
  1. mend 1 node, n1, so that 8 NVIDIA-H200 (nvidia.com/gpu) are there: labels contradict status.allocatable:
     NVIDIA-H200 has a label, but no resource in status.allocatable; docs/cards.md says what a node has to
     show
  Or: a node with NVIDIA-H200, for which queue research has quota; `cardquota cards` lists what the nodes
      show, and with cards.pools pods are let in for nodes that are still to come
"""


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (situations.FOR_QUOTA, FOR_QUOTA),
        (situations.BY_STOCK, BY_STOCK),
        (situations.GANG, GANG),
        (situations.CHOICE, CHOICE),
        (situations.NO_CARD_NAME, NO_CARD_NAME),
        (situations.MISSPELT, MISSPELT),
        (situations.UNSCHEDULED, UNSCHEDULED),
        (situations.SHARES, SHARES),
        (situations.CLAIMS, CLAIMS),
        (situations.TREE, TREE),
        (situations.NEVER, NEVER),
        (situations.PASSED_OVER, PASSED_OVER),
    ],
    ids=[
        "waits for quota",
        "waits for free cards",
        "its gang is incomplete",
        "a choice of cards",
        "no card name",
        "a misspelt card",
        "let in, and no node takes it",
        "shares of mGPU cards",
        "claims",
        "a tree of queues",
        "more than any node has",
        "a node that lacks its resource",
    ],
)
def test_the_whole_answer(run: Run, tmp_path: Path, objects: tuple[Any, ...], expected: str) -> None:
    state, settings = tmp_path / "state.json", tmp_path / "cardquota.yaml"
    state.write_text(situations.a_state(*objects))
    settings.write_text(f"cards: {{hierarchy: {str(objects is situations.TREE).lower()}}}")
    outcome = run("explain", "ml/p", "--state", state, "--config", settings)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == expected
