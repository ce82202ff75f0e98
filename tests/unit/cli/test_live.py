"""Commands over a live cluster: whose settings they use, and what they say while they read it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cli import live
from kube import resources
from tests.fakes.apiserver import FakeApiServer
from tests.unit.cli.conftest import Run
from tests.unit.cli.live_cluster import FORBIDDEN, NODE, ask, config_map, lease, queue_of, queueless
from tests.unit.cli.test_cluster import kubeconfig


async def test_the_settings_are_those_of_the_installation_and_it_is_said_which(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        server.put(resources.CONFIG_MAPS, config_map("cardquota-system", "queue: {default: common}"))
        server.put(resources.LEASES, lease(holderIdentity="a", renewTime="2999-01-01T00:00:00Z"))
        outcome = await ask(run, server, tmp_path, "plan")
        own = tmp_path / "own.yaml"
        own.write_text("queue: {default: mine}")
        given = await ask(run, server, tmp_path, "plan", "--config", own)
    assert queue_of(outcome) == "common"
    assert outcome.err == "note: settings of ConfigMap cardquota-system/cardquota\n"
    assert (queue_of(given), given.err) == ("mine", "")


async def test_a_dump_carries_the_settings_with_it(run: Run, tmp_path: Path) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        server.put(resources.CONFIG_MAPS, config_map("cardquota-system", "queue: {default: common}"))
        config = kubeconfig(tmp_path, server.url)
        path = tmp_path / "state.json"
        await asyncio.to_thread(run, "dump", "--kubeconfig", config, "-o", path)
    outcome = run("plan", "--state", path, "-o", "json")
    assert queue_of(outcome) == "common"
    assert outcome.err == "note: settings of ConfigMap cardquota-system/cardquota\n"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("queues: {default: x}", "queues: is no setting; did you mean queue?"),
        ("{", "ConfigMap cardquota-system/cardquota:"),
    ],
)
async def test_settings_that_cannot_be_read_end_the_command(
    run: Run, tmp_path: Path, settings: str, told: str
) -> None:
    """An answer by other settings than the cluster's would be a wrong one."""
    async with FakeApiServer() as server:
        server.put(resources.CONFIG_MAPS, config_map("cardquota-system", settings))
        outcome = await ask(run, server, tmp_path, "plan")
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err


async def test_of_several_installations_the_first_is_used_and_the_others_are_named(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        for namespace in ("b", "a"):
            server.put(resources.CONFIG_MAPS, config_map(namespace, f"queue: {{default: of-{namespace}}}"))
        outcome = await ask(run, server, tmp_path, "plan")
    assert queue_of(outcome) == "of-a"
    assert "several installations; not used: ConfigMap b/cardquota" in outcome.err


async def test_without_an_installation_the_defaults_are_used_and_that_is_said(
    run: Run, tmp_path: Path
) -> None:
    other = config_map("other", "queue: {default: x}")
    other["metadata"]["labels"] = {}
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        server.put(resources.CONFIG_MAPS, other)
        outcome = await ask(run, server, tmp_path, "plan")
    assert queue_of(outcome) == "default"
    assert outcome.err.startswith(
        "warning: the settings of this cluster are not there: nothing is installed;"
    )


async def test_who_may_not_list_configmaps_gets_those_of_the_usual_place_or_a_warning(
    run: Run, tmp_path: Path
) -> None:
    async with FakeApiServer() as server:
        server.put(resources.PODS, queueless())
        server.put(resources.CONFIG_MAPS, config_map("cardquota-system", "queue: {default: common}"))
        server.fail("list", FORBIDDEN, path=resources.CONFIG_MAPS.path(), times=2)
        usual = await ask(run, server, tmp_path, "plan")
        server.fail("get", FORBIDDEN, path="configmaps")
        none = await ask(run, server, tmp_path, "plan")
    assert queue_of(usual) == "common"
    assert (none.status, queue_of(none)) == (0, "default")
    assert "warning: the settings of this cluster may not be read; defaults are used" in none.err


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"holderIdentity": ""}, "Lease cardquota is held by nobody"),
        (
            {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"},
            "Lease cardquota was last renewed by a at 2020-01-01T00:00:00Z",
        ),
        (None, "there is no Lease cardquota"),
    ],
)
async def test_a_plan_says_that_nobody_leads(
    run: Run, tmp_path: Path, spec: dict[str, Any] | None, told: str
) -> None:
    async with FakeApiServer() as server:
        server.put(resources.CONFIG_MAPS, config_map("cardquota-system", "{}"))
        if spec is not None:
            server.put(resources.LEASES, lease(**spec))
        outcome = await ask(run, server, tmp_path, "plan")
    assert f"warning: nobody carries this out: {told}\n" in outcome.err


@pytest.mark.parametrize(("patience_s", "told"), [(0.0, True), (3600.0, False)])
async def test_whoever_waits_long_for_a_cluster_is_told_how_far_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: float, told: bool
) -> None:
    monkeypatch.setattr(live, "PATIENCE_S", patience_s)
    async with FakeApiServer() as server:
        server.put(resources.NODES, NODE)
        outcome = await ask(run, server, tmp_path, "plan")
    assert ("reading the cluster: 1 nodes\n" in outcome.err) is told
