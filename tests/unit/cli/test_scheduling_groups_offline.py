"""PodGroups of Kubernetes itself in the commands: files, dumps and live clusters that serve them or do not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kube import resources
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status
from tests.unit.cli.conftest import Run
from tests.unit.cli.live_cluster import NODE, ask
from tests.unit.cli.objects import GATED, POD
from tests.unit.cli.test_cluster import kubeconfig, pod
from tests.unit.cli.test_creation import TEMPLATE, cluster, decisions, workload

TITLE = "PodGroup default/train of scheduling.k8s.io"
ALSO_VOLCANOS = json.dumps(
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"queue": "elsewhere", "minMember": 9},
    }
)


def group(count: int) -> str:
    raw = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
    }
    return f"{json.dumps(raw)}\n---\n{ALSO_VOLCANOS}\n---\n"


def members(count: int, gate: str = GATED) -> str:
    pods = (POD % (f"m{number}", "NVIDIA-H200", "team", gate) for number in range(count))
    return "".join(
        one.replace("spec:\n", "spec:\n  schedulingGroup: {podGroupName: train}\n", 1) for one in pods
    )


def lifted(run: Run, state: str) -> int:
    outcome = run("plan", "--state", "-", "-o", "json", stdin=state)
    assert outcome.status == 0, outcome.err
    return sum(one["decision"] == "lift" for one in json.loads(outcome.out)["pods"].values())


@pytest.mark.parametrize(("quota", "expected"), [(2, 0), (3, 3)])
def test_plan_lifts_it_whole_or_not_at_all(run: Run, quota: int, expected: int) -> None:
    assert lifted(run, cluster(quota) + group(3) + members(3)) == expected


def test_a_podgroup_that_is_not_in_a_file_is_missing(run: Run) -> None:
    assert lifted(run, cluster(8) + members(3)) == 0


@pytest.mark.parametrize("kind", ["podgroup", "podgroups.scheduling.k8s.io", "pg"])
def test_explain_tells_what_it_lacks_and_what_would_do(run: Run, kind: str) -> None:
    outcome = run("explain", f"{kind}/train", "--state", "-", stdin=cluster(8) + group(4) + members(3))
    assert outcome.status == 0, outcome.err
    said = " ".join(outcome.out.split())
    assert f"{TITLE} needs 4 more members at once, with only 3 ready" in said
    assert (
        f"minCount 3 instead of 4 in {TITLE}, which lacks 1 member; it has to be made anew for that" in said
    )


def test_explain_of_a_member_whose_podgroup_is_missing_says_to_create_it(run: Run) -> None:
    outcome = run("explain", "m0", "--state", "-", stdin=cluster(8) + members(1))
    said = " ".join(outcome.out.split())
    assert f"{TITLE} is not there; the pod waits for it" in said
    assert f"create {TITLE}" in said


@pytest.mark.parametrize(("parallelism", "expected"), [(3, 3), (2, 0)])
def test_a_new_workload_whose_template_names_it_is_planned_with_it(
    run: Run, parallelism: int, expected: int
) -> None:
    made: dict[str, Any] = {**TEMPLATE}
    template = {**made, "spec": {**made["spec"], "schedulingGroup": {"podGroupName": "train"}}}
    job = workload("batch/v1", "Job", parallelism=parallelism, completions=parallelism, template=template)
    found = [*decisions(run, cluster(8) + group(3), job).values()]
    assert (found.count("lift"), len(found)) == (expected, parallelism)


def test_can_run_of_a_gang_with_its_podgroup_in_one_manifest(run: Run, tmp_path: Path) -> None:
    manifest = tmp_path / "gang.yaml"
    manifest.write_text(group(3).partition("\n---\n")[0] + "\n---\n" + members(3, ""))
    for quota, status in ((3, 0), (2, 3)):
        outcome = run("can-run", str(manifest), "--state", "-", stdin=cluster(quota))
        assert outcome.status == status, (quota, outcome.out, outcome.err)


# -- live clusters -------------------------------------------------------------------------------------------------

SERVED = {"resources": [{"name": "podgroups"}]}


def live_member(name: str) -> dict[str, Any]:
    raw = pod(name)
    raw["spec"]["schedulingGroup"] = {"podGroupName": "train"}
    return raw


async def waits(run: Run, server: FakeApiServer, folder: Path) -> tuple[str, str]:
    outcome = await ask(run, server, folder, "plan")
    return json.loads(outcome.out)["pods"]["ml/p"].get("reason", ""), outcome.err


async def test_where_the_kind_is_not_served_nothing_is_asked_of_it_and_nobody_waits_for_it(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, live_member("p"))
        path = resources.KUBERNETES_PODGROUPS.path()
        server.fail("list", answer_status(403, "Forbidden", "is forbidden"), path=path, times=9)
        reason, told = await waits(run, server, tmp_path)
        assert reason != "PodGroupNotFound"
        assert "PodGroup" not in told
        assert [request for request in server.requests if request.path == path] == []


async def test_where_it_is_served_a_missing_one_is_waited_for_and_a_dump_has_those_that_are_there(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        server.objects[resources.KUBERNETES_PODGROUPS.discovery_path] = SERVED
        server.put(resources.NODES, NODE)
        server.put(resources.QUEUES, {"metadata": {"name": "team"}})
        server.put(resources.PODS, live_member("p"))
        assert (await waits(run, server, tmp_path))[0] == "PodGroupNotFound"
        metadata = {"name": "train", "namespace": "ml"}
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        server.put(resources.KUBERNETES_PODGROUPS, {"metadata": metadata, "spec": spec})
        assert (await waits(run, server, tmp_path))[0] == "GangIncomplete"
        dump = await ask_dump(run, server, tmp_path)
    assert lifted(run, dump) == 0
    again = run("plan", "--state", "-", "-o", "json", stdin=dump)
    assert json.loads(again.out)["pods"]["ml/p"]["reason"] == "GangIncomplete"


async def ask_dump(run: Run, server: FakeApiServer, folder: Path) -> str:
    file = folder / "dump.json"
    config = kubeconfig(folder, server.url)
    outcome = await asyncio.to_thread(run, "dump", "--kubeconfig", config, "--output", file)
    assert outcome.status == 0, outcome.err
    return file.read_text()
