"""`--watch`: again and again, and a cluster that is away for a moment ends nothing."""

import asyncio
import time
from pathlib import Path

import pytest

from kube import resources
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.faults import answer_status
from tests.unit.cli.conftest import Run
from tests.unit.cli.live_cluster import NODE
from tests.unit.cli.test_cluster import kubeconfig, pod


async def test_the_answer_is_given_again_until_somebody_has_seen_enough(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeApiServer() as server:
        asked: list[int] = []

        def sleep(seconds: float) -> None:
            asked.append(int(seconds))
            if len(asked) == 1:
                server.put(resources.PODS, pod("later"))
            if len(asked) == 2:
                server.fail("list", answer_status(500, "InternalError"), path="pods", times=9)
            if len(asked) == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(time, "sleep", sleep)
        server.put(resources.PODS, pod("first"))
        annotations = {"volcano.sh/card.quota": '{"NVIDIA-H200": 9}'}
        server.put(resources.QUEUES, {"metadata": {"name": "team", "annotations": annotations}})
        server.put(resources.NODES, NODE)
        config = kubeconfig(tmp_path, server.url)
        outcome = await asyncio.to_thread(run, "queues", "--watch", "7", "--kubeconfig", config)
    assert (outcome.status, asked) == (130, [7, 7, 7])
    lines = [line.split() for line in outcome.out.splitlines() if line.startswith("team")]
    assert [line[-1] for line in lines] == ["1", "2", "2"]
    assert outcome.err.count("nothing is installed") == 1
    assert "; trying again" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--watch", "--state", "x"), "error: --watch is for a live cluster"),
        (("--watch", "0"), "must be a whole number of seconds from 1 to 3600, not '0'"),
        (("--watch=soon",), "must be a whole number of seconds from 1 to 3600, not 'soon'"),
    ],
)
def test_what_cannot_be_watched(run: Run, arguments: tuple[str, ...], told: str) -> None:
    outcome = run("gpus", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert told in outcome.err
