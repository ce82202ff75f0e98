"""What `can-run` and `advise` print as a whole, in the situations in which people ask: read as a user does, from top to bottom."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import a_pod
from tests.builders.pods import PodBuilder
from tests.unit.cli import situations
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import A100, H200


def new(count: int = 1, cards: str = H200, name: str = "new") -> PodBuilder:
    return a_pod(name).gpu(count).card(cards).in_queue("research")


def several(*pods: PodBuilder) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [pod.build() for pod in pods]}


def in_gang(count: int) -> dict[str, Any]:
    return several(*(new(2, name=f"new-{number}").in_gang("t", 3) for number in range(count)))


ASKED: Final[dict[str, tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "it fits": (situations.CHOICE, new(1, A100).build()),
    "quota is short": (situations.FOR_QUOTA, new().build()),
    "cards are not free": (situations.BY_STOCK, new(4).build()),
    "its gang is incomplete": (situations.GANG, in_gang(2)),
    "its gang is whole": (situations.GANG, in_gang(3)),
    "a misspelt card": (situations.MISSPELT, new(1, "nvidia-h200").build()),
    "a tree of queues": (situations.TREE, new(2).build()),
    "more than any node has": (situations.NEVER, new(12).build()),
    "refused": (situations.FOR_QUOTA, new(1, "A||B").build()),
}


def told(run: Run, folder: Path, command: str, case: str) -> tuple[int, str, str]:
    objects, manifest = ASKED[case]
    state, settings = folder / "state.json", folder / "cardquota.yaml"
    state.write_text(situations.a_state(*objects))
    settings.write_text(f"cards: {{hierarchy: {str(objects is situations.TREE).lower()}}}")
    asked = (command, "-") if command == "can-run" else (command, "research", "--fits", "-")
    outcome = run(*asked, "--state", state, "--config", settings, stdin=json.dumps(manifest))
    return outcome.status, outcome.out, outcome.err


CAN_RUN: Final = {
    "it fits": (
        0,
        """\
runs: Pod ml/new in queue research: it is let in now on 1 NVIDIA-A100, room on n2
""",
    ),
    "quota is short": (
        3,
        """\
waits: Pod ml/new in queue research: InsufficientScalarQuota

Pod ml/new waits in queue research: InsufficientScalarQuota
  Queue <research> has insufficient <NVIDIA-H200> quota: requested <1000>, total would be <5000>, but
  capability is <4000>. In cards: asks for 1, 4 of 4 are in use; wait for cards to come back, or raise the
  quota.

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       1 NVIDIA-H200 (nvidia.com/gpu)
In line       3 of 3 (whoever fits goes)
              behind Pod ml/train-3 (2 NVIDIA-H200): InsufficientScalarQuota
              behind Pod ml/p (1 NVIDIA-H200): InsufficientScalarQuota
Quota         NVIDIA-H200: asks for 1, 4 of 4 in use, 1 missing
Held by       ml/train-1: 3 NVIDIA-H200, on n1
              ml/train-2: 1 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 4 of 8 are free, at most 4 of a node's 8 (n1)
May start     in 28 min to 11 h (4 NVIDIA-H200 have to come free; lately 5 ends gave back 5 in 3 h)

What would help (each was tried, and lifts the pod; the smallest first):
  1. raise the quota of queue research for NVIDIA-H200 by 4 (4 -> 8)
       kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 8}'
  2. 2 pods ending: ml/train-1, ml/train-2
""",
    ),
    "cards are not free": (
        3,
        """\
waits: Pod ml/new in queue research: NoFreeCard
  is let in, and no node has room: node n1: it has not enough nvidia.com/gpu left

Pod ml/new is let in by the next pass of the controller

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       4 NVIDIA-H200 (nvidia.com/gpu)
Cards         NVIDIA-H200: 2 of 8 are free, at most 2 of a node's 8 (n1); 4 for pods without a node yet
Nodes         none has room now: node n1: it has not enough nvidia.com/gpu left
""",
    ),
    "its gang is incomplete": (
        3,
        """\
waits: Pod ml/new-0 in queue research: GangIncomplete
waits: Pod ml/new-1 in queue research: GangIncomplete

Not all of these would run even if everybody else were gone.

Pod ml/new-0 waits in queue research: GangIncomplete
  Queue <research>: gang ml/t needs 3 more members at once, with only 2 ready

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       2 NVIDIA-H200 (nvidia.com/gpu)
In line       2 of 2 (whoever fits goes)
              behind PodGroup ml/g, 2 pods (4 NVIDIA-H200): GangIncomplete
Quota         NVIDIA-H200: 2 of its gang are there and ask for 4, 0 of 8 in use
Cards         NVIDIA-H200: 8 of 8 are free, at most 8 of a node's 8 (n1)

What would help (each was tried, and lifts the pod; the smallest first):
  1. cardquota.io/gang-size 2 instead of 3 in the pod template of gang ml/t, which lacks 1 member; its pods
     have to be made anew for that
""",
    ),
    "its gang is whole": (
        0,
        """\
runs: Pod ml/new-0 in queue research: it is let in now on 2 NVIDIA-H200, room on n1
runs: Pod ml/new-1 in queue research: it is let in now on 2 NVIDIA-H200, room on n1
runs: Pod ml/new-2 in queue research: it is let in now on 2 NVIDIA-H200, room on n1
""",
    ),
    "a misspelt card": (
        3,
        """\
waits: Pod ml/new in queue research: GetTaskRequestResourceFailed

Not all of these would run even if everybody else were gone.

Pod ml/new waits in queue research: GetTaskRequestResourceFailed
  Get request resource failed, Queue <research>, error: no resource name found for card <nvidia-h200>; did you
  mean <NVIDIA-H200>?

Noticed       CardUnknown: metadata.annotations[volcano.sh/card.name]: no node carries the card "nvidia-h200"
              now; did you mean NVIDIA-H200? -- check the spelling against `cardquota cards`
Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
In line       2 of 2 (whoever fits goes)
              behind Pod ml/p (nothing counted): GetTaskRequestResourceFailed

What would help (each was tried, and lifts the pod; the smallest first):
  1. name NVIDIA-H200 instead of nvidia-h200: volcano.sh/card.name=NVIDIA-H200
--
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: no node carries the card "nvidia-h200" now; did you mean NVIDIA-H200?
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: queue research has no quota for "nvidia-h200"; what asks for that waits until the quota grows
""",
    ),
    "a tree of queues": (
        3,
        """\
waits: Pod ml/new in queue research: InsufficientScalarQuota

Pod ml/new waits in queue research: InsufficientScalarQuota
  Queue <all> has insufficient <NVIDIA-H200> quota: requested <2000>, total would be <7000>, but capability is
  <5000>. In cards: asks for 2, 5 of 5 are in use; wait for cards to come back, or raise the quota (queue
  research is below it).

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       2 NVIDIA-H200 (nvidia.com/gpu)
In line       2 of 2 (whoever fits goes)
              behind Pod ml/p (2 NVIDIA-H200): InsufficientScalarQuota
Quota         NVIDIA-H200: asks for 2, 5 of 5 in use in queue all above, 2 missing
Held by       ml/web: 4 NVIDIA-H200, on n1, queue serving
              ml/train: 1 NVIDIA-H200, on n1
Cards         NVIDIA-H200: 3 of 8 are free, at most 3 of a node's 8 (n1)

What would help (each was tried, and lifts the pod; the smallest first):
  1. 2 pods ending: ml/train, ml/web
  2. raise the quota of queue research for NVIDIA-H200 by 1 (4 -> 5)
       kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 5}'
     and raise the quota of queue all (above research) for NVIDIA-H200 by 4 (5 -> 9)
       kubectl annotate queue all --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 9}'
""",
    ),
    "more than any node has": (
        3,
        """\
waits: Pod ml/new in queue research: InsufficientScalarQuota

Not all of these would run even if everybody else were gone.

Pod ml/new waits in queue research and can never run: no node has 12 NVIDIA-H200: the largest has 8
  InsufficientScalarQuota: Queue <research> has insufficient <NVIDIA-H200> quota: requested <12000>, total
  would be <12000>, but capability is <8000>. In cards: asks for 12, more than the whole quota (8); ask for
  fewer, or raise the quota.

Queue         research, named by the pod's annotation scheduling.volcano.sh/queue-name
Counted       12 NVIDIA-H200 (nvidia.com/gpu)
In line       2 of 2 (whoever fits goes)
              behind Pod ml/p (12 NVIDIA-H200): InsufficientScalarQuota
Quota         NVIDIA-H200: asks for 12, 0 of 8 in use, 4 missing
Cards         NVIDIA-H200: 8 of 8 are free, at most 8 of a node's 8 (n1)

What would help: ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12; let in now, the pod
                 would find no node
--
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: "NVIDIA-H200": 12 are more than any node has (8); a pod that asks for that never runs
""",
    ),
    "refused": (
        1,
        """\
refused: Pod ml/new
  <stdin>:1: CardNameMalformed metadata.annotations[volcano.sh/card.name]: Invalid value: "A||B": has an empty
  alternative: | stands between two card names
    -> write names as `cardquota cards` shows them, joined by | without blanks
""",
    ),
}
ADVISE: Final = {
    "it fits": (
        0,
        """\
Queue research: its quota is enough for 1 pod
""",
    ),
    "quota is short": (
        0,
        """\
Queue research needs this quota for 1 pod, with those before them in line served first:
  NVIDIA-H200: 8 instead of 4 (4 more)
  kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 8}'
""",
    ),
    "cards are not free": (
        3,
        """\
Queue research: its quota is enough for 1 pod
1 pod would be let in then, and find no node now:
  ml/new: node n1: it has not enough nvidia.com/gpu left
""",
    ),
    "its gang is incomplete": (
        3,
        """\
2 pods would wait even so, for no quota helps:
  ml/new-0 and 1 more: GangIncomplete: Queue <research>: gang ml/t needs 3 more members at once, with only 2
    ready
    -> wait for the missing pods, lower minMember, or make the pods anew with a smaller cardquota.io/gang-size
""",
    ),
    "its gang is whole": (
        0,
        """\
Queue research: its quota is enough for 3 pods
""",
    ),
    "a misspelt card": (
        3,
        """\
1 pod would wait even so, for no quota helps:
  ml/new: GetTaskRequestResourceFailed: Get request resource failed, Queue <research>, error: no resource name
    found for card <nvidia-h200>; did you mean <NVIDIA-H200>?
    -> name a card that the nodes carry (`cardquota cards` lists them), or wait for a node with nvidia-h200
--
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: no node carries the card "nvidia-h200" now; did you mean NVIDIA-H200?
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: queue research has no quota for "nvidia-h200"; what asks for that waits until the quota grows
""",
    ),
    "a tree of queues": (
        3,
        """\
Queue research needs this quota for 1 pod, with those before them in line served first:
  NVIDIA-H200: 5 instead of 4 (1 more)
  NVIDIA-H200 in queue all above: 9 instead of 5 (4 more)
  kubectl annotate queue research --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 5}'
  kubectl annotate queue all --overwrite 'volcano.sh/card.quota={"NVIDIA-H200": 9}'
  The nodes have 8 NVIDIA-H200 in all.
1 pod would be let in then, and find no node now:
  ml/new: node n1: it has not enough nvidia.com/gpu left
""",
    ),
    "more than any node has": (
        3,
        """\
1 pod can never run, whatever the quota:
  ml/new: no node has 12 NVIDIA-H200: the largest has 8
    -> ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12; let in now, the pod would find no
       node
--
warning: <stdin>:1: metadata.annotations[volcano.sh/card.name]: "NVIDIA-H200": 12 are more than any node has (8); a pod that asks for that never runs
""",
    ),
    "refused": (
        1,
        """\
refused: Pod ml/new
  <stdin>:1: CardNameMalformed metadata.annotations[volcano.sh/card.name]: Invalid value: "A||B": has an empty
  alternative: | stands between two card names
    -> write names as `cardquota cards` shows them, joined by | without blanks
""",
    ),
}


@pytest.mark.parametrize("case", ASKED)
@pytest.mark.parametrize(("command", "expected"), [("can-run", CAN_RUN), ("advise", ADVISE)])
def test_the_whole_answer(
    run: Run, tmp_path: Path, command: str, expected: dict[str, tuple[int, str]], case: str
) -> None:
    """Below a line of two dashes stands what is told on standard error."""
    status, out, err = told(run, tmp_path, command, case)
    assert (status, f"{out}--\n{err}" if err else out) == expected[case]
