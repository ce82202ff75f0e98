"""Commands over a live cluster for somebody who may not see all of it: what they say, and what they leave unsaid."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kube import resources
from kube.resources import Resource
from tests.fakes.apiserver import FakeApiServer
from tests.unit.cli.conftest import Run
from tests.unit.cli.live_cluster import (
    FORBIDDEN,
    NAMESPACED,
    NODE,
    ask,
    config_map,
    forbid_everywhere,
    queue_of,
    queueless,
)
from tests.unit.cli.test_cluster import kubeconfig, pod


async def test_a_tenant_sees_the_own_pods_and_the_usage_that_the_queues_show(
    run: Run, tmp_path: Path
) -> None:
    """The usage of others is in the status of the queue: what is not known of their pods is not taken for nothing."""
    quota = {"volcano.sh/card.quota": '{"NVIDIA-H200": 9}'}
    async with FakeApiServer() as server:
        server.put(
            resources.QUEUES,
            {
                "metadata": {"name": "team", "annotations": quota},
                "status": {"allocated": {"NVIDIA-H200": "6", "cpu": "4"}},
            },
        )
        server.put(resources.PODS, {**pod("p"), "metadata": {**pod("p")["metadata"], "namespace": "default"}})
        server.put(resources.NODES, NODE)
        forbid_everywhere(server, resources.NAMESPACES, *NAMESPACED, resources.CONFIG_MAPS)
        server.fail("get", FORBIDDEN, path="configmaps")
        outcome = await ask(run, server, tmp_path, "queues")
    assert outcome.status == 0
    team = json.loads(outcome.out)["team"]
    assert team["allocated"] == {"NVIDIA-H200": "6"}
    assert team["waiting"] == {"NVIDIA-H200": "1"}
    assert team["share"] == pytest.approx(6 / 9)
    assert "without the right to list ConfigMap, Namespace: what depends on them is left out" in outcome.err
    assert "only those of namespace default are known" in outcome.err


async def test_what_an_answer_cannot_do_without_is_an_error(run: Run, tmp_path: Path) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, pod("p"))
        forbid_everywhere(server, resources.NODES)
        outcome = await ask(run, server, tmp_path, "cards")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: 403 Forbidden is forbidden")


async def test_to_a_tenant_explain_says_what_was_said_and_plans_nothing(run: Run, tmp_path: Path) -> None:
    """Of six cards in use none is to be seen; that the pod would be let in now is false."""
    own = pod("p")
    own["metadata"] |= {"namespace": "default", "uid": "u"}
    own["spec"]["schedulingGates"] = [{"name": "cardquota.io/quota"}]
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
        "reportingComponent": "cardquota",
        "reason": "InsufficientScalarQuota",
        "message": "Queue <team> has insufficient quota",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    quota = {"volcano.sh/card.quota": '{"NVIDIA-H200": 6}'}
    async with FakeApiServer() as server:
        metadata = {"name": "team", "annotations": quota}
        server.put(resources.QUEUES, {"metadata": metadata, "status": {"allocated": {"NVIDIA-H200": "6"}}})
        server.put(resources.PODS, own)
        server.put(Resource("", "v1", "events", True, "Event"), event)
        outcomes = []
        for more in ((), ("-o", "text")):
            forbid_everywhere(
                server, resources.NODES, resources.NAMESPACES, *NAMESPACED, resources.CONFIG_MAPS
            )
            server.fail("get", FORBIDDEN, path="configmaps", times=1)
            outcomes.append(await ask(run, server, tmp_path, "explain", "p", *more))
    report, text = outcomes
    found = json.loads(report.out)
    assert (found["decision"], found["said"]["reason"]) == ("hold", "InsufficientScalarQuota")
    assert found["quota"] == {"NVIDIA-H200": {"limit": "6", "used": "6"}}
    assert "help" not in found
    assert text.out.startswith(
        "Pod default/p waits at the gate\n  InsufficientScalarQuota: Queue <team> has insufficient quota\n"
    )
    assert "takes the right to list Node, Pod in all namespaces" in " ".join(text.out.split())


async def test_to_a_tenant_a_job_is_told_as_to_anybody_and_that_no_event_gives_a_reason(
    run: Run, tmp_path: Path
) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    async with FakeApiServer() as server:
        server.put(resources.QUEUES, {"metadata": {"name": "team"}})
        for name in ("a", "b"):
            own = pod(name)
            own["metadata"] |= {"namespace": "default", "uid": name, "ownerReferences": [owner]}
            own["spec"]["schedulingGates"] = [{"name": "cardquota.io/quota"}]
            server.put(resources.PODS, own)
        forbid_everywhere(server, resources.NODES, resources.NAMESPACES, *NAMESPACED, resources.CONFIG_MAPS)
        server.fail("get", FORBIDDEN, path="configmaps", times=1)
        outcome = await ask(run, server, tmp_path, "explain", "job/train", "-o", "text")
    assert outcome.out.startswith(
        "Job default/train: 2 waiting\nPod default/a waits at the gate\n  No event says why, or none that you may read.\n"
    )


def tenants(server: FakeApiServer) -> None:
    """Who may list the pods of `default` alone, where one waits; others use all of the queue's quota."""
    quota = {"volcano.sh/card.quota": '{"NVIDIA-H200": 2}'}
    used = {"allocated": {"NVIDIA-H200": "2"}}
    server.put(resources.QUEUES, {"metadata": {"name": "team", "annotations": quota}, "status": used})
    own = pod("p")
    own["metadata"]["namespace"] = "default"
    own["spec"]["schedulingGates"] = [{"name": "cardquota.io/quota"}]
    server.put(resources.PODS, own)
    server.put(resources.NODES, NODE)
    forbid_everywhere(server, resources.PODS, resources.CONFIG_MAPS)


async def test_a_plan_does_not_say_of_anybody_that_he_is_let_in_where_others_are_not_known(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        tenants(server)
        outcome = await ask(run, server, tmp_path, "plan")
    report = json.loads(outcome.out)
    assert report["pods"]["default/p"] == {
        "queue": "team",
        "decision": "hold",
        "reason": "",
        "message": "whether it is let in rests on pods that you may not list; cardquota explain asks the leader",
    }
    assert report["queues"] == {}
    assert report["events"] == []


@pytest.mark.parametrize("command", [("place", "default/p"), ("gpus",), ("cross",)])
async def test_nobody_is_told_what_is_free_where_others_are_not_known(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    async with FakeApiServer() as server:
        tenants(server)
        outcome = await ask(run, server, tmp_path, *command)
    assert (outcome.status, outcome.out) == (1, "")
    assert "without the right to list Pod in all namespaces it is not known" in outcome.err
    assert "try: have somebody with these rights write `cardquota dump -o FILE`" in outcome.err


@pytest.mark.parametrize(
    ("command", "status"),
    [(("plan",), 0), (("gpus",), 1), (("explain", "p"), 1), (("advise", "team"), 1), (("queues",), 0)],
)
async def test_a_dump_of_one_namespace_is_not_taken_for_the_whole_cluster(
    run: Run, tmp_path: Path, command: tuple[str, ...], status: int
) -> None:
    dump = tmp_path / "dump.json"
    async with FakeApiServer() as server:
        forbid_everywhere(server, resources.CONFIG_MAPS)
        tenants(server)
        config = kubeconfig(tmp_path, server.url)
        written = await asyncio.to_thread(run, "dump", "-o", dump, "--kubeconfig", config)
    assert written.status == 0, written.err
    outcome = run(*command, "--state", dump)
    assert outcome.status == status
    assert (
        "dump.json was written without the right to list Pod in all namespaces: nothing is known of what others hold or wait for"
        in outcome.err
    )
    assert " lift " not in outcome.out


async def test_kinds_that_a_dump_lacks_are_missed_as_in_the_cluster(run: Run, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    async with FakeApiServer() as server:
        server.put(resources.PODS, pod("p"))
        forbid_everywhere(server, resources.QUEUES, resources.NODES)
        config = kubeconfig(tmp_path, server.url)
        await asyncio.to_thread(run, "dump", "-o", dump, "--kubeconfig", config)
        forbid_everywhere(server, resources.QUEUES, resources.NODES)
        live_too = await ask(run, server, tmp_path, "plan")
    outcome = run("plan", "--state", dump)
    assert (live_too.status, outcome.status) == (1, 1)
    assert "dump.json was written without the right to list Node" in outcome.err


@pytest.mark.parametrize(("says", "home"), [(True, "cards"), (False, "cardquota-system")])
async def test_who_may_not_look_for_the_installation_is_told_by_the_role_where_it_is(
    run: Run, tmp_path: Path, says: bool, home: str
) -> None:
    """The role of the chart says so; that of an older chart does not, and then the usual namespace is taken."""
    role: dict[str, Any] = {"metadata": {"name": "cardquota-queue-reader"}}
    if says:
        role["metadata"]["annotations"] = {"cardquota.io/installed-in": home}
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        server.put(resources.CLUSTER_ROLES, role)
        server.put(resources.CONFIG_MAPS, config_map(home, "queue: {default: common}"))
        forbid_everywhere(server, resources.CONFIG_MAPS)
        outcome = await ask(run, server, tmp_path, "plan")
    assert queue_of(outcome) == "common"
    assert f"note: settings of ConfigMap {home}/cardquota\n" in outcome.err


async def test_who_lacks_the_right_to_ask_the_leader_is_told_what_gives_it(run: Run, tmp_path: Path) -> None:
    """With the ClusterRole of queue readers alone."""
    role = {"name": "cardquota-queue-reader", "annotations": {"cardquota.io/installed-in": "cards"}}
    async with FakeApiServer() as server:
        server.put(resources.CLUSTER_ROLES, {"metadata": role})
        server.put(resources.PODS, {**pod("p"), "metadata": {**pod("p")["metadata"], "namespace": "default"}})
        forbid_everywhere(server, *NAMESPACED, resources.CONFIG_MAPS)
        server.fail("get", FORBIDDEN, path="configmaps")
        server.fail("get", FORBIDDEN, path="/namespaces/cards/services/")
        config = kubeconfig(tmp_path, server.url)
        config.write_text(config.read_text("utf-8").replace("user: {}", "user: {token: t}"), "utf-8")
        outcome = await asyncio.to_thread(run, "explain", "p", "--kubeconfig", config)
    (said,) = (line for line in outcome.err.splitlines() if "the leader was not asked" in line)
    assert said == (
        "note: the leader was not asked: 403 Forbidden is forbidden; the right is in the Role cardquota-queue-reader in namespace "
        "cards (beside the ClusterRole of that name), which the value queueReader.groups of the chart binds to groups"
    )


@pytest.mark.parametrize("command", ["can-run", "advise"])
async def test_what_rests_on_everybody_is_not_answered_from_one_namespace(
    run: Run, tmp_path: Path, command: str
) -> None:
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod("new")}))
    async with FakeApiServer() as server:
        server.put(resources.NODES, NODE)
        server.put(resources.PODS, {**pod("p"), "metadata": {**pod("p")["metadata"], "namespace": "default"}})
        forbid_everywhere(server, *NAMESPACED)
        outcome = await ask(run, server, tmp_path, command, manifest if command == "can-run" else "team")
    assert (outcome.status, outcome.out) == (1, "")
    assert "without the right to list Pod in all namespaces it is not known" in outcome.err
    assert "try: have somebody with these rights write `cardquota dump -o FILE`" in outcome.err
