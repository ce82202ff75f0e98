"""`explain` in situations in which the first thought is wrong: what it says is true there, and leads out."""

import json
from typing import Any

import pytest

from core import names
from core.catalogue.notes import event_note
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.unit.cli.conftest import Run
from tests.unit.core.mgpu.cases import a_filling_pod

CARD = "NVIDIA-H200"
TEAM = a_queue("team").cards({CARD: 4})
NODE = a_node("n1").card(CARD, 8)
WAITING = a_pod("p").card(CARD).gpu(1).in_queue("team").gated()
LET_IN = a_pod("p").card(CARD).gpu(1).in_queue("team").charged("team").assigned({CARD: 1})
SHARE = a_pod("p").mgpu("c1", core=50, memory=1024).only("c1").in_queue("team").gated()


def mgpu_node(name: str, memory: int) -> Any:
    node = a_node(name).allocatable(names.MGPU_CORE, 100).allocatable(names.MGPU_MEMORY, memory)
    return node.label(names.MGPU_NODE_TYPE_LABEL, "mgpu")


def given(*objects: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [one.build() for one in objects]})


class Explained:
    def __init__(self, run: Run, *objects: Any, pod: str = "ml/p", settings: str | None = None) -> None:
        flags = () if settings is None else ("--config", settings)
        state = given(*objects)
        self.text = run("explain", pod, "--state", "-", *flags, stdin=state).out
        self.report = json.loads(run("explain", pod, "--state", "-", "-o", "json", *flags, stdin=state).out)

    @property
    def steps(self) -> list[list[str]]:
        return [[step["text"] for step in one["steps"]] for one in self.report["help"]]


def test_a_misspelt_card_is_named_anew_once_whatever_else_is_tried_after_it(run: Run) -> None:
    """The card that it is most like is used up, and another one is free: one name is given, not two in turn."""
    queue = a_queue("team").cards({CARD: 1, "NVIDIA-A100": 2})
    used = a_pod("r").card(CARD).gpu(1).in_queue("team").charged("team").assigned({CARD: 1}).bound_to("n1")
    misspelt = a_pod("p").card("NVIDIA-H20O").gpu(1).in_queue("team").gated()
    found = Explained(run, queue, NODE, a_node("n2").card("NVIDIA-A100", 8), used, misspelt)
    assert ["name NVIDIA-A100 instead of NVIDIA-H20O: volcano.sh/card.name=NVIDIA-A100"] in found.steps
    assert all(sum("instead of" in step for step in steps) <= 1 for steps in found.steps)


def test_who_is_before_it_in_line_is_shown_with_its_devices(run: Run) -> None:
    quota = json.dumps({"capability": {"gpu.example.com": {"count": 1}}})
    queue = a_queue("team").annotation(names.DRA_QUOTA_ANNOTATION, quota)
    objects: list[Any] = [queue, a_node("n1")]
    for number, name in enumerate(("first", "p"), 1):
        claim = [{"name": "x", "resourceClaimName": f"c-{name}"}]
        pod = a_pod(name).put("spec", "resourceClaims", value=claim).in_queue("team").gated()
        objects += [a_claim(f"c-{name}").exactly("x", "gpu.example.com", count=2)]
        objects += [pod.created(f"2024-01-0{number}T00:00:00Z")]
    found = Explained(run, *objects)
    assert found.report["position"]["before"][0]["asks"] == {"deviceclass/gpu.example.com": "2"}
    assert "behind Pod ml/first (2 deviceclass/gpu.example.com)" in found.text


def test_shares_without_any_node_for_them_are_not_told_to_wait_for_cards(run: Run) -> None:
    found = Explained(run, TEAM, NODE, SHARE)
    assert found.report["beyondNodes"] == "no node serves mGPU shares"
    assert "wait for cards" not in found.text
    assert "What would help: add a node that serves them" in found.text


@pytest.mark.parametrize(("memory", "never"), [(1023, True), (1024, False)])
def test_nor_are_those_that_no_idle_card_has_room_for(run: Run, memory: int, never: bool) -> None:
    full = a_pod("r").mgpu("c1", core=90, memory=1000).only("c1").in_queue("team").charged("team")
    full = full.bound_to("m1").annotation(f"{names.GPU_INDEX_PREFIX}c1", "0")
    found = Explained(run, TEAM, mgpu_node("m1", memory), full, SHARE)
    assert ("beyondNodes" in found.report) is never
    assert ("can never run: no node could hold it, not even one without pods" in found.text) is never
    assert ("1 pod ending: ml/r" in found.text) is not never


def test_a_pod_that_is_let_in_and_that_no_node_would_take_is_told_the_way_out(run: Run) -> None:
    elsewhere = LET_IN.put("spec", "nodeSelector", value={"zone": "x"})
    found = Explained(run, TEAM, NODE, elsewhere)
    assert "has its quota and can never run: no node would take it, not even one without pods" in found.text
    assert found.report["beyondNodes"].endswith(
        "node n1: the pod's node selector or affinity does not admit it"
    )
    assert "What would help: make the pod anew so that a node that there is would do" in found.text
    assert found.report["remedy"]
    huge = a_pod("p").card(CARD).gpu(12).in_queue("team").charged("team").assigned({CARD: 12})
    told = Explained(run, TEAM, NODE, huge).text
    assert "What would help: ask for at most 8 NVIDIA-H200 in one pod, or add a node that has 12\n" in told


def test_one_that_finds_no_room_for_now_is_told_so_and_no_way_out(run: Run) -> None:
    others = a_pod("r").card(CARD).gpu(8).in_queue("team").charged("team").assigned({CARD: 8}).bound_to("n1")
    found = Explained(run, TEAM, NODE, others, LET_IN)
    assert found.report["noRoom"] == "node n1: it has not enough nvidia.com/gpu left"
    assert "remedy" not in found.report


def test_gates_of_others_on_a_pod_that_is_let_in_are_named(run: Run) -> None:
    held = LET_IN.put("spec", "schedulingGates", value=[{"name": "x.io/g"}])
    found = Explained(run, TEAM, NODE, held)
    assert "no scheduler looks at it before its gates are gone: x.io/g" in found.text
    assert found.report["gates"] == ["x.io/g"]


def test_a_misspelt_queue_is_told_which_one_may_be_meant(run: Run) -> None:
    found = Explained(run, TEAM, NODE, WAITING.in_queue("taem"))
    assert found.steps[0] == ["name queue team instead of taem in Pod ml/p"]
    assert any(steps[0].startswith("create queue taem") for steps in found.steps)
    assert not any(
        "name queue" in steps[0] for steps in Explained(run, TEAM, NODE, WAITING.in_queue("zzz")).steps
    )


def test_a_card_that_has_quota_and_no_node_may_get_a_node(run: Run) -> None:
    queue = a_queue("team").cards({"NVIDIA-B300": 4})
    found = Explained(run, queue, NODE, a_pod("p").card("NVIDIA-B300").gpu(1).in_queue("team").gated())
    assert found.report["besides"].startswith("a node with NVIDIA-B300, for which queue team has quota")
    assert "besides" not in Explained(run, TEAM, NODE, WAITING).report


def test_shares_of_other_nodes_are_no_whole_cards_that_are_promised(run: Run, tmp_path: Any) -> None:
    settings = tmp_path / "cardquota.yaml"
    settings.write_text("mgpu: {cardQuota: true}", "utf-8")
    share = (
        a_pod("r").mgpu("c1", core=32, memory=100).only("c1").in_queue("team").charged("team").led_to("m1")
    )
    share = share.annotation(names.SHARE_CARD_ANNOTATION, json.dumps({CARD: 32}))
    pod = a_pod("p").card(CARD).gpu(8).in_queue("team").gated()
    objects = (TEAM, NODE, mgpu_node("m1", 1024).product(CARD), share, pod)
    found = Explained(run, *objects, settings=str(settings))
    assert found.report["stock"][CARD]["reserved"] == "0"
    assert "for pods without a node yet" not in found.text


@pytest.mark.parametrize(
    ("node", "share", "way"),
    [
        (NODE, SHARE, "; add a node that serves them, or mend the labels"),
        (mgpu_node("m1", 1023), SHARE, "; ask for less, or add a node whose cards have room for it"),
        (mgpu_node("m1", 1024), SHARE.mgpu_policy("native-burst-share"), "; name the compute policy of a node"),
    ],
)  # fmt: skip
def test_the_event_of_shares_that_no_node_could_hold_does_not_tell_them_to_wait(
    run: Run, node: Any, share: Any, way: str
) -> None:
    report = Explained(run, TEAM, node, share).report
    note = event_note(report["reason"], report["message"])
    assert "no open node could hold it, were it empty" in note
    assert way in note
    assert "ait for cards" not in note


def test_shares_for_which_the_search_was_cut_short_are_not_said_never_to_fit(run: Run) -> None:
    """Nobody knows whether idle cards could hold them, and by construction they could."""
    node = a_node("m1").mgpu(8, memory=16_384, policy="native-burst-share")
    found = Explained(run, TEAM, node, a_filling_pod("p", 8).in_queue("team").gated())
    assert "no node has room; node m1: not enough mGPU" in found.report["message"]
    assert "cut short" in found.report["message"]
    assert "beyondNodes" not in found.report
    assert "can never run" not in found.text


def test_room_that_is_booked_is_no_matter_to_shares_that_no_card_could_hold(run: Run) -> None:
    lifted = a_pod("r").mgpu("c1", core=32, memory=100).only("c1").in_queue("team").charged("team")
    huge = Explained(run, TEAM, mgpu_node("m1", 1023), lifted.led_to("m1"), SHARE).report["message"]
    assert "booked for" not in huge
    full = a_pod("r").mgpu("c1", core=90, memory=100).only("c1").in_queue("team").charged("team")
    wait = Explained(run, TEAM, mgpu_node("m1", 1024), full.led_to("m1"), SHARE).report["message"]
    assert wait.endswith("; room there is booked for ml/r, on the way to a node")


def test_a_node_that_others_fill_comes_closer_than_one_that_is_too_small(run: Run) -> None:
    full = a_pod("r").mgpu("c1", core=90, memory=1000).only("c1").in_queue("team").charged("team")
    full = full.bound_to("m2").annotation(f"{names.GPU_INDEX_PREFIX}c1", "0")
    found = Explained(run, TEAM, mgpu_node("m1", 1023), mgpu_node("m2", 1024), full, SHARE)
    assert "no node has room; node m2: " in found.report["message"]


def test_the_message_of_a_misspelt_queue_says_which_one_may_be_meant(run: Run) -> None:
    assert (
        Explained(run, TEAM, NODE, WAITING.in_queue("taem"))
        .report["message"]
        .endswith("; did you mean <team>?")
    )


def test_no_queue_is_meant_that_is_closed_to_the_namespace(run: Run) -> None:
    found = Explained(run, TEAM.used_by("others"), NODE, WAITING.in_queue("taem"))
    assert "did you mean" not in found.report["message"]
    assert not any("name queue" in text for steps in found.steps for text in steps)


def test_gates_of_others_and_a_misspelt_card_are_mended_together(run: Run) -> None:
    """What the first step leaves is what the second one is done to."""
    misspelt = a_pod("p").card("NVIDIA-H20O").gpu(1).in_queue("team").gated("x.io/g")
    found = Explained(run, TEAM, NODE, misspelt)
    gate, card = found.steps[0]
    assert gate == "whoever put them there takes away the gates x.io/g"
    assert card == f"name {CARD} instead of NVIDIA-H20O: volcano.sh/card.name={CARD}"


def test_gates_of_others_without_ours_are_named(run: Run) -> None:
    pod = a_pod("p").card(CARD).gpu(1).in_queue("team").put("spec", "schedulingGates", value=[{"name": "x"}])
    found = Explained(run, TEAM, NODE, pod)
    assert found.report["otherGates"] == ["x"]
    assert "\nGates         held by x, and by none of cardquota's" in found.text


def test_a_single_end_is_told_as_one(run: Run) -> None:
    ended = (
        a_pod("e").card(CARD).gpu(1).in_queue("team").charged("team").assigned({CARD: 1}).phase("Succeeded")
    )
    done = [{"name": "main", "state": {"terminated": {"finishedAt": "2024-01-01T01:00:00Z"}}}]
    ended = ended.put("spec", "nodeName", value="n1").put("status", "containerStatuses", value=done)
    used = a_pod("r").card(CARD).gpu(1).in_queue("team").charged("team").assigned({CARD: 1}).bound_to("n1")
    found = Explained(run, a_queue("team").cards({CARD: 1}), NODE, ended, used, WAITING)
    assert "1 end is to be seen that gave back" in " ".join(found.text.split())
