"""`cardquota advise`: the quota for what waits, or for what somebody is about to apply."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import GATED, NODE, POD, QUEUE, SHARE_NODE, SHARE_POD
from tests.unit.cli.test_can_run import NEW, STATE, TEMPLATE, workload

WAITING = STATE + "".join(POD % (f"w{n}", "NVIDIA-H200", "team", GATED) for n in range(4))


def advised(run: Run, state: str, *arguments: object, form: str = "json") -> tuple[int, Any]:
    outcome = run("advise", *arguments, "--state", "-", "-o", form, stdin=state)
    return outcome.status, json.loads(outcome.out) if form == "json" else outcome.out


def test_the_quota_for_what_waits_is_told_with_the_command(run: Run) -> None:
    status, text = advised(run, WAITING, "team", form="text")
    assert status == 0
    assert text == (
        "Queue team needs this quota for 4 pods, with those before them in line served first:\n"
        "  NVIDIA-H200: 5 instead of 3 (2 more)\n"
        "  kubectl annotate queue team --overwrite 'volcano.sh/card.quota={\"NVIDIA-H200\": 5}'\n"
    )


def test_the_quota_for_manifests_counts_those_who_wait_before_them(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(workload(2)), "utf-8")
    status, report = advised(run, WAITING, "team", "--fits", file)
    assert (status, report["quota"]) == (3, {"NVIDIA-H200": {"by": "4", "needed": "7", "now": "3"}})
    assert [one["pod"] for one in report["noNode"]] == ["default/web-1"], "there are six cards"
    assert report["stock"] == {"NVIDIA-H200": "6"}


def test_manifests_that_fit_need_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(workload(2)), "utf-8")
    status, report = advised(run, STATE, "team", "--fits", file)
    assert (status, report["quota"], report["commands"]) == (0, {}, [])
    assert advised(run, STATE, "team", "--fits", file, form="text")[1] == (
        "Queue team: its quota is enough for 2 pods\n"
    )


def test_quota_that_lets_in_one_and_leaves_no_card_for_another_is_advised_all_the_same(run: Run) -> None:
    """Of two cards the first pod has one; the second waits for a quota of 3, and beside it the third finds none any more."""
    first, second, third = (POD % (f"w{n}", card, "team", GATED) for n, card in enumerate(("A", "A", "A|B")))
    node = (NODE % ("n1", 2)).replace("NVIDIA-H200", "A")
    two = second.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2")
    _, report = advised(run, node + QUEUE % ("team", '{"A": 2, "B": 1}') + first + two + third, "team")
    assert {card: (one["now"], one["needed"]) for card, one in report["quota"].items()} == {"A": ("2", "3")}
    assert [(one["pod"], one["reason"]) for one in report["waits"]] == [("default/w2", "NoFreeCard")]


def test_a_queue_that_is_to_be_is_given_as_a_manifest(run: Run, tmp_path: Path) -> None:
    """And with it all of it runs."""
    file, made = tmp_path / "m.json", tmp_path / "q.json"
    file.write_text(json.dumps(workload(2)), "utf-8")
    status, report = advised(run, STATE, "new", "--fits", file)
    assert (status, report["exists"], report["commands"]) == (0, False, [])
    assert report["quota"] == {"NVIDIA-H200": {"by": "2", "needed": "2"}}
    made.write_text(json.dumps(report["manifest"]), "utf-8")
    assert run("can-run", file, made, "--queue", "new", "--state", "-", stdin=STATE).status == 0


def test_the_command_that_creates_a_queue_can_be_pasted_as_it_is_shown(run: Run, tmp_path: Path) -> None:
    """With the blanks before each line."""
    file = tmp_path / "m.json"
    file.write_text(json.dumps(workload(2)), "utf-8")
    asked = ("new", "--fits", file)
    lines = advised(run, STATE, *asked, form="text")[1].splitlines()
    begin = next(number for number, line in enumerate(lines) if "kubectl create" in line)
    shown = "\n".join(["kubectl() { cat; }", *lines[begin:]])
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    manifest = advised(run, STATE, *asked)[1]["manifest"]
    assert (json.loads(done.stdout), done.stderr) == (manifest, "")


def test_several_keys_are_raised_together(run: Run, tmp_path: Path) -> None:
    state = (
        NODE % ("n1", 8)
        + SHARE_NODE % ("s1", 200, 16000, 200, 16000)
        + QUEUE % ("team", '{"NVIDIA-H200": 1}')
    ).replace(
        "metadata:\n  name: team",
        "spec: {capability: {vke.volcengine.com/mgpu-core: 10}}\nmetadata:\n  name: team",
    )
    share = {"vke.volcengine.com/mgpu-core": 60, "vke.volcengine.com/mgpu-memory": 4000}
    spec = {"containers": [{"name": "c", "resources": {"limits": share}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "s"}, "spec": spec}
    file = tmp_path / "m.yaml"
    file.write_text(json.dumps(pod) + "\n---\n" + json.dumps(workload(3)), "utf-8")
    status, report = advised(run, state, "team", "--fits", file)
    assert status == 0
    assert {key: need["needed"] for key, need in report["quota"].items()} == {
        "NVIDIA-H200": "3",
        "vke.volcengine.com/mgpu-core": "60",
    }
    assert len(report["commands"]) == 2


def test_workloads_of_one_name_are_counted_each(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(f"{json.dumps(workload(2))}\n---\n{json.dumps(workload(3, 'StatefulSet'))}", "utf-8")
    status, report = advised(
        run, NODE % ("n1", 8) + QUEUE % ("team", '{"NVIDIA-H200": 1}'), "team", "--fits", file
    )
    assert (status, report["quota"]["NVIDIA-H200"]["needed"]) == (0, "5")


def test_what_quota_does_not_help_is_told_apart(run: Run) -> None:
    others = "schedulingGates: [{name: example.com/check}, {name: cardquota.io/quota}]"
    status, report = advised(run, WAITING + POD % ("kept", "NVIDIA-H200", "team", others), "team")
    assert (status, report["quota"]["NVIDIA-H200"]["needed"]) == (3, "5")
    assert [(one["pod"], one["reason"]) for one in report["waits"]] == [("default/kept", "OtherGates")]


def test_of_those_that_no_quota_helps_the_reason_is_what_would_hold_them_then(run: Run) -> None:
    """Not the quota that is short now: more of it is not enough, for no node has the room."""
    queue = (QUEUE % ("default", "{}")).replace(
        "metadata:", "spec: {capability: {vke.volcengine.com/mgpu-core: 60}}\nmetadata:", 1
    )
    bound = (SHARE_POD % ("half", 60, 4000)).replace(GATED, "nodeName: s1")
    state = SHARE_NODE % ("s1", 100, 8000, 100, 8000) + queue + bound + SHARE_POD % ("more", 60, 4000)
    status, report = advised(run, state, "default")
    assert (status, report["quota"]) == (3, {})
    assert [(one["pod"], one["reason"]) for one in report["waits"]] == [("default/more", "NoFreeCard")]


def test_a_misspelt_card_is_told_with_what_was_meant_and_the_way_out(run: Run, tmp_path: Path) -> None:
    """Of what waits as of manifests, of which it is warned as `check` does."""
    misspelt = NEW.replace("NVIDIA-H200", "NVIDIA-H20O")
    way_out = (
        "name a card that the nodes carry (`cardquota cards` lists them), or wait for a node with NVIDIA-H20O"
    )
    status, report = advised(run, STATE + POD % ("p", "NVIDIA-H20O", "team", GATED), "team")
    assert (status, report["waits"][0]["remedy"]) == (3, way_out)
    assert report["waits"][0]["message"].endswith("did you mean <NVIDIA-H200>?")
    file = tmp_path / "m.yaml"
    file.write_text(misspelt, "utf-8")
    outcome = run("advise", "team", "--fits", file, "--state", "-", stdin=STATE)
    assert outcome.status == 3
    assert 'no node carries the card "NVIDIA-H20O" now; did you mean NVIDIA-H200?' in outcome.err
    assert way_out in " ".join(outcome.out.split())


def test_nobody_and_nothing(run: Run) -> None:
    assert advised(run, STATE, "team", form="text") == (0, "Queue team: no pod waits\n")
    outcome = run("advise", "nope", "--state", "-", stdin=STATE)
    assert (outcome.status, outcome.err) == (
        2,
        (
            "error: there is no queue nope, and no pod waits for it\n"
            "try: `cardquota queues -o name` lists the queues; --fits FILE asks what a new one would need\n"
        ),
    )


def test_a_refused_manifest_is_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(NEW.replace('"NVIDIA-H200"', '"A||B"'), "utf-8")
    status, text = advised(run, STATE, "team", "--fits", file, form="text")
    assert status == 1
    assert text.startswith("refused: Pod default/new\n")


@pytest.mark.parametrize(
    "template", [3, {"spec": {"containers": 3}}, {"metadata": {"annotations": [1]}}, TEMPLATE]
)
def test_whatever_a_template_holds_there_is_an_answer(run: Run, tmp_path: Path, template: Any) -> None:
    file = tmp_path / "m.json"
    made = workload(1)
    made["spec"]["template"] = template
    file.write_text(json.dumps(made), "utf-8")
    assert advised(run, STATE, "team", "--fits", file)[0] in (0, 1)
