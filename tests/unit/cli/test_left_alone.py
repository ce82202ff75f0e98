"""`can-run` on pods that no scheduler looks at: held by gates of others, or with a node that they name themselves."""

from pathlib import Path
from typing import Final

import pytest

from tests.builders import a_node, a_pod, a_queue
from tests.builders.pods import PodBuilder
from tests.unit.cli.conftest import Run
from tests.unit.cli.situations import H200, a_node_of, a_state
from tests.unit.cli.test_can_run import Asked

QUEUE: Final = a_queue("research").cards({H200: 8})
CPU_NODE: Final = a_node("c1").allocatable("cpu", 4)
GATE: Final = "other.io/x"
NO_CARD: Final = a_pod("p")
CARD: Final = a_pod("p").gpu(1).card(H200).in_queue("research")
LEFT: Final = (
    f"scheduling gates of others are left: <{GATE}>; no scheduler looks at the pod before they are gone"
)


def held(pod: PodBuilder) -> PodBuilder:
    return pod.put("spec", "schedulingGates", value=[{"name": GATE}])


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path)


STATE: Final = a_state(a_node_of(H200, "n1", 8), CPU_NODE, QUEUE)


@pytest.mark.parametrize("pod", [NO_CARD, CARD.scheduler("mine")], ids=["no card", "unknown scheduler"])
def test_a_pod_that_waits_for_no_quota_waits_for_the_gates_of_others(asked: Asked, pod: PodBuilder) -> None:
    status, report, _ = asked(held(pod).build(), state=STATE)
    assert (status, report["verdict"]) == (3, "waits")
    (one,) = report["objects"]
    assert (one["reason"], one["message"], one["pods"]) == ("OtherGates", LEFT, {"runs": 0, "waits": 1})
    assert asked(pod.build(), state=STATE)[0] == 0


def test_it_is_told_in_the_text(asked: Asked) -> None:
    status, text, _ = asked(held(NO_CARD).build(), state=STATE, form="text")
    assert status == 3
    assert "OtherGates" in text.splitlines()[0]
    assert LEFT in text


def test_a_pod_that_names_its_node_needs_no_room_beside_itself(asked: Asked) -> None:
    status, report, _ = asked(NO_CARD.request("cpu", 3).bound_to("c1").build(), state=STATE)
    assert (status, report["verdict"]) == (0, "runs")
    assert report["objects"][0]["nodes"] == {"c1": 1}


def test_it_takes_the_room_from_others_among_the_manifests(asked: Asked) -> None:
    there, other = (a_pod(name).request("cpu", 3) for name in ("there", "other"))
    both = {"apiVersion": "v1", "kind": "List", "items": [there.bound_to("c1").build(), other.build()]}
    status, report, _ = asked(both, state=a_state(CPU_NODE))
    assert (status, [one["verdict"] for one in report["objects"]]) == (3, ["runs", "waits"])


def test_a_pod_that_names_a_node_that_is_not_there_does_not_run(asked: Asked) -> None:
    status, report, _ = asked(NO_CARD.bound_to("gone").build(), state=STATE)
    assert status == 3
    assert report["objects"][0]["message"].endswith("there is no node gone")
