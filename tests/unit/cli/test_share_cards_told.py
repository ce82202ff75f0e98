"""`mgpu.cardQuota`: a quota of cards is raised by whole ones, though hundredths are asked for."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import QUEUE, SHARE_NODE, SHARE_POD

HOST = (SHARE_NODE % ("m", 400, 64000, 400, 64000)).replace(
    "vke.node.gpu.schedule: mgpu",
    'vke.node.gpu.schedule: mgpu, nvidia.com/gpu.product: A10, nvidia.com/gpu.memory: "23028", nvidia.com/gpu.count: "4"',
)
IN_Q = "annotations: {scheduling.volcano.sh/queue-name: q}"


def share(name: str, core: int) -> str:
    return (SHARE_POD % (name, core, 2000)).replace(f"name: {name}", f"name: {name}, {IN_Q}")


def running(name: str, core: int) -> str:
    return share(name, core).replace("schedulingGates: [{name: cardquota.io/quota}]", "nodeName: m")


@pytest.mark.parametrize(
    ("used", "asked", "needed"), [(60, 50, 2), (0, 1, 1), (0, 99, 1), (99, 2, 2), (50, 51, 2)]
)
def test_advice_is_for_whole_cards(run: Run, tmp_path: Path, used: int, asked: int, needed: int) -> None:
    state, settings, manifest = (tmp_path / name for name in ("state.yaml", "settings.yaml", "new.yaml"))
    quota = QUEUE % ("q", f'{{"A10": {needed - 1}}}')
    state.write_text(HOST + quota + (running("old", used) if used else ""), "utf-8")
    settings.write_text("mgpu: {cardQuota: true}", "utf-8")
    manifest.write_text(share("new", asked), "utf-8")
    told = run("advise", "q", "--fits", manifest, "--state", state, "--config", settings)
    assert f"A10: {needed} instead of {needed - 1} (1 more)" in told.out
    why = run("can-run", manifest, "--state", state, "--config", settings)
    assert f"raise the quota of queue q for A10 by 1 ({needed - 1} -> {needed})" in why.out
