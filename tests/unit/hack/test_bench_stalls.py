"""Every scene can be prepared and is reported; four are gone through, on clusters too small to take time."""

import asyncio
import math
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import orjson
import pytest

from core import names
from core.node_match import compiled
from core.objects import node, pod
from core.steps import Pace, finish
from hack.bench import stalls
from hack.bench.peers import BenchError
from hack.bench.pulse import Deaf, Pulse
from hack.bench.scenes import SCENES, Scene
from hack.bench.store import Crowd, Store
from hack.bench.watched import Outcome, Watched
from kube import errors
from kube.client import PatchType
from kube.listing import Watching
from kube.resources import LEASES, NODES, PODS, QUEUES
from tests.builders import a_pod, a_queue

TINY = 0.002


@pytest.mark.parametrize("name", ["lifts", "lifts-standby", "namespace-standby", "question-standby"])
def test_a_scene_is_gone_through_by_a_real_controller(name: str) -> None:
    outcome = stalls.measured(name, TINY)
    assert outcome.led
    assert outcome.ended
    assert outcome.deaf.longest_ms >= outcome.deaf.net_ms > 0
    assert ("patch pods" in outcome.requests) is (name == "lifts")


@pytest.mark.parametrize("name", SCENES)
async def test_every_scene_tells_the_controller_something_or_asks_it(name: str) -> None:
    """And waits until that is done with."""

    class Silent:
        def __init__(self) -> None:
            self.calls = 0

        async def calm(self) -> None:
            self.calls += 1

        async def patches(self, count: int) -> None:
            self.calls += count

        async def ask(self, _path: str, *, body: Path | None = None, times: int = 1) -> None:
            self.calls += times

        def file(self, content: bytes) -> Path:
            assert content
            return Path("body")

    store, stage = Store(), Silent()
    act = SCENES[name].prepare(store, TINY)
    before = sum(1 for _ in store.texts())
    await act(stage)
    assert stage.calls
    assert before
    of_itself = name.removesuffix("-standby") in ("start", "nowhere", "metrics", "question")
    assert (sum(1 for _ in store.texts()) > before) is not of_itself


@pytest.mark.parametrize("name", [name for name in SCENES if name.startswith("affinities")])
async def test_of_costly_affinities_every_expression_is_asked_and_no_two_are_alike(name: str) -> None:
    """By the fast way of asking: else there is nothing costly about them."""
    store = Store()
    act = SCENES[name].prepare(store, TINY)
    nodes = [node.project(raw) async for page in store.list(NODES) for raw in page.items]
    before = set(store.texts())
    await act(AsyncMock())
    pods = [pod.project(raw) for raw in map(orjson.loads, set(store.texts()) - before) if "spec" in raw]
    costly = [each.node_rules for each in pods if not each.node_rules.anywhere]
    pace, asked = Pace(1), list[str]()
    for rules in costly:
        assert finish(finish(compiled(rules)).admitted(nodes, pace)) == set()
        terms = rules.required["nodeSelectorTerms"]
        asked += (str(expression) for term in terms for expression in term["matchExpressions"])
    assert len(set(costly)) == len(costly) >= 5
    assert len(set(asked)) == len(asked) == len(costly) * 5 * 41
    labels = len(costly) * len(nodes) * 41
    assert pace.done >= labels + len(asked)


def outcomes(**seen: Any) -> list[tuple[Scene, Outcome]]:
    outcome = Outcome(deaf=Deaf(60.0, 20.0), quiet=Deaf(2.0, 1.0), took_s=3.0, read_s=0.5, problem="", **seen)
    return [(SCENES["lifts"], outcome), (SCENES["join-standby"], outcome)]


def test_a_scene_is_reported_beside_the_quiet_loop() -> None:
    rows = {row.what: row for row in stalls.rows(outcomes(waited_ms=2500.0, quiet_waited_ms=10.0), 1)}
    lifts = SCENES["lifts"].what
    assert (rows[f"{lifts}: deaf"].figure, rows[f"{lifts}: deaf"].floor) == (60.0, 2.0)
    assert rows[f"{lifts}: deaf"].reached is False
    assert rows[f"{lifts}: less waiting"].reached is True
    assert rows[f"{lifts}: another's lift"].reached is False
    assert rows["scenes in which the lease changed hands"].reached is True
    assert f"{SCENES['join-standby'].what}: another's lift" not in rows
    assert len(rows) == len(stalls.rows(outcomes(), 1))


def test_a_lost_lease_and_a_scene_without_end_miss_their_targets() -> None:
    missed = [row.what for row in stalls.rows(outcomes(led=False, ended=False), 1) if row.reached is False]
    assert any("lease" in what for what in missed)
    assert any("not over" in what for what in missed)


def test_a_smaller_size_is_not_judged_and_says_so() -> None:
    rows = stalls.rows(outcomes(), 0.1)
    assert all(row.reached is None for row in rows)
    assert all("10%" in row.what for row in rows)


def test_the_scenes_have_names_of_their_own() -> None:
    assert len({scene.what for scene in SCENES.values()}) == len(SCENES)


def test_a_process_without_end_is_deaf_and_one_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 1)

    def failing(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", endless)
    assert stalls.measured("lifts", 1).deaf.longest_ms == math.inf
    monkeypatch.setattr(subprocess, "run", failing)
    with pytest.raises(BenchError, match="lifts"):
        stalls.measured("lifts", 1)


async def test_the_pulse_tells_the_longest_pause_and_what_ran_in_it() -> None:
    pulse = Pulse()
    with pulse.beating():
        await asyncio.sleep(0.01)
        pulse.take()
        time.sleep(0.3)  # noqa: ASYNC251 - what is to be seen
        await asyncio.sleep(0.01)
        deaf = pulse.take()
        assert deaf.longest_ms > 290
        assert "test_the_pulse" in deaf.running[0][2]
        assert pulse.take().running == []


async def test_the_store_lifts_a_pod_and_tells_whoever_watches() -> None:
    store = Store()
    store.fill(PODS, [a_pod("p").gated().build()])
    (page, _) = [page async for page in store.list(PODS)]
    watching = store.watch(PODS, Watching(page.resource_version, timeout_s=1.0, inactivity_s=1.0))
    assert (await anext(watching)).type == "BOOKMARK"
    gate = [{"op": "test", "path": "/spec/schedulingGates/0/name", "value": names.GATE}]
    lift = [*gate, {"op": "remove", "path": "/spec/schedulingGates/0"}]
    await store.patch(PODS, "p", lift, "ml", patch_type=PatchType.JSON)
    event = await anext(watching)
    assert event.object["spec"]["schedulingGates"] == []
    assert event.object["metadata"]["resourceVersion"] != page.items[0]["metadata"]["resourceVersion"]
    assert list(store.lifted) == ["ml/p"]
    with pytest.raises(errors.Invalid):
        await store.patch(PODS, "p", [{**gate[0], "path": "/metadata/uid"}], "ml", patch_type=PatchType.JSON)
    with pytest.raises(errors.NotFound):
        await store.patch(PODS, "q", lift, "ml", patch_type=PatchType.JSON)
    await watching.aclose()


async def test_a_scene_on_a_standby_begins_once_everything_is_listed_and_it_asks_who_leads() -> None:
    with closing(Watched(SCENES["lifts-standby"], TINY, 0)) as watched:
        ready = asyncio.create_task(watched._ready())
        pages = watched.store.list(PODS)
        await anext(pages)
        await watched.store.get(LEASES, "cardquota", "system")
        await asyncio.sleep(0)
        assert not ready.done(), "pods are not listed"
        assert [len(page.items) async for page in pages] == [0]
        await asyncio.wait_for(ready, 5)


async def test_who_loses_the_lease_and_takes_it_again_has_not_led_all_the_time() -> None:
    with closing(Watched(SCENES["lifts"], TINY, 0)) as watched:
        led = [watched.led]
        for transitions in (1, 1, 2):
            await watched.store.replace(LEASES, lease("watched", transitions), "system")
            led.append(watched.led)
        assert led == [False, True, True, False]


async def test_on_a_standby_nobody_takes_the_lease_from_who_has_it() -> None:
    with closing(Watched(SCENES["lifts-standby"], TINY, 0)) as watched:
        led = [watched.led]
        await watched.store.replace(LEASES, lease("watched", 2), "system")
        assert [*led, watched.led] == [True, False]


def lease(holder: str, transitions: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "cardquota", "namespace": "system"},
        "spec": {"holderIdentity": holder, "leaseTransitions": transitions},
    }


async def test_the_store_tells_what_was_prepared_before_it_was_listed() -> None:
    store = Store()
    store.fill(QUEUES, [a_queue("q").build()])
    changed = store.prepare(QUEUES, "MODIFIED", [a_queue("q").state("Closed").build()])
    gone = store.prepare(QUEUES, "DELETED", [a_queue("q").build()])
    first = await anext(store.list(QUEUES))
    store.tell(changed)
    store.tell(gone)
    watching = store.watch(QUEUES, Watching(first.resource_version, timeout_s=1.0, inactivity_s=1.0))
    assert [(await anext(watching)).type for _ in range(3)] == ["BOOKMARK", "MODIFIED", "DELETED"]
    assert [len(page.items) async for page in store.list(QUEUES)] == [0]
    await watching.aclose()


@pytest.mark.looptime
async def test_a_watch_of_the_store_says_how_far_it_has_come_before_its_end_and_ends_when_it_is_to() -> None:
    """As the API server does, which is how a new leader knows that it has missed nothing."""
    store, clock = Store(), asyncio.get_running_loop().time
    pods = store.watch(PODS, Watching("1", timeout_s=4.0, inactivity_s=60.0))
    assert (await anext(pods)).object["metadata"]["resourceVersion"] == "1"
    store.tell(store.prepare(QUEUES, "ADDED", [a_queue("q").build()]))
    (newest,) = [page.resource_version async for page in store.list(PODS, limit=1)]
    begun = clock()
    said = [
        (event.type, event.object["metadata"]["resourceVersion"], round(clock() - begun, 1))
        async for event in pods
    ]
    assert said == [("BOOKMARK", newest, 2.0), ("BOOKMARK", newest, 4.0)]


async def test_a_watch_of_the_store_goes_on_after_the_version_that_it_is_asked_for() -> None:
    store = Store()
    store.tell(store.prepare(QUEUES, "ADDED", [a_queue("before").build()]))
    (seen,) = [page.resource_version async for page in store.list(PODS)]
    store.tell(store.prepare(QUEUES, "ADDED", [a_queue("after").build()]))
    watching = store.watch(QUEUES, Watching(seen, timeout_s=60.0, inactivity_s=60.0))
    await anext(watching)
    assert (await anext(watching)).object["metadata"]["name"] == "after"
    await watching.aclose()


async def test_a_crowd_is_listed_and_found_one_by_one() -> None:
    store = Store()
    store.crowd(PODS, Crowd("ml", "pod-", 3, lambda number: b'{"metadata":{"name":"pod-%d"}}' % number))
    assert [len(page.items) async for page in store.list(PODS, limit=2)] == [2, 1, 0]
    assert (await store.get(PODS, "pod-2", "ml"))["metadata"]["name"] == "pod-2"
    with pytest.raises(errors.NotFound):
        await store.get(PODS, "pod-3", "ml")


async def test_a_rivals_lease_is_renewed_all_the_time() -> None:
    store = Store(rival=True)
    leases = [await store.get(LEASES, "cardquota", "system") for _ in range(2)]
    assert {lease["spec"]["holderIdentity"] for lease in leases} == {"another"}
    assert leases[0]["metadata"]["resourceVersion"] != leases[1]["metadata"]["resourceVersion"]


def test_the_busy_core_is_free_afterwards() -> None:
    with stalls.busy_core() as pid:
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_core_that_was_not_busy_to_the_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "_SPINNER", "")
    with pytest.raises(BenchError, match="ended by itself"), stalls.busy_core() as pid:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_where_processor_time_went_is_written_to_a_file(tmp_path: Path) -> None:
    told = tmp_path / "profile"
    command = [sys.executable, "-m", "hack.bench.sampled", str(told), "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ, timeout=60)
    assert "Version" in done.stdout
    assert "with what it calls" in told.read_text()
