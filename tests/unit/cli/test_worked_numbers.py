"""The numbers that the pages on mGPU and on claims work through are what the commands say of such a cluster."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.conftest import Run

DOCS: Final = Path(__file__).parents[3] / "docs"
CORE: Final = "vke.volcengine.com/mgpu-core"
MEMORY: Final = "vke.volcengine.com/mgpu-memory"
QUEUE: Final = "scheduling.volcano.sh/queue-name"


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = (DOCS / page).read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


SHARES: Final = [tuple(row) for row in rows("mgpu.md", "Worked numbers")]
DEVICES: Final = [tuple(row) for row in rows("claims.md", "Worked numbers")]


def a_node() -> dict[str, Any]:
    """Two cards of 80 GiB in shares, for pods on several cards too."""
    offered = {"cpu": "64", "memory": "256Gi", "pods": "110", CORE: "200", MEMORY: "163840"}
    policy = {"vke.volcengine.com/mgpu-compute-policy": "native-burst-share"}
    labels = {"vke.node.gpu.schedule": "mgpu", "kubernetes.io/hostname": "mgpu-1"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "mgpu-1", "labels": {**labels, **policy}},
        "status": {"allocatable": offered, "capacity": offered},
    }


def a_share(name: str, core: int, memory: int, cards: int, card: str | None = None) -> dict[str, Any]:
    annotations = {QUEUE: "notebooks", "vke.volcengine.com/mgpu-compute-policy": "native-burst-share"}
    if cards > 1:
        annotations["vke.volcengine.com/container-multiple-gpu"] = str(cards)
    limits = {CORE: str(core), **({MEMORY: str(memory)} if memory else {})}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]}
    if card is None:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
        }
    annotations["vke.volcengine.com/gpu-index-container-c"] = card
    metadata = {
        "name": name,
        "annotations": annotations,
        "uid": name,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    spec["nodeName"] = "mgpu-1"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running"},
    }


def a_shared_queue(limit: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "notebooks"},
        "spec": {"capability": {CORE: str(limit)}},
    }


def stream(*documents: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, documents))


def decided(run: Run, state: str, pod: str) -> dict[str, Any]:
    outcome = run("plan", "--state", "-", "-o", "json", stdin=state)
    assert outcome.status == 0, outcome.err
    answer: dict[str, Any] = json.loads(outcome.out)["pods"][f"default/{pod}"]
    return answer


def fits(answer: dict[str, Any], told: str) -> bool:
    """Whether the page says what has been decided."""
    decision: str = answer["decision"]
    if told.startswith("let in"):
        return decision == "lift"
    return told.startswith(f"`{answer['reason']}`") and ("refused" in told) == (decision == "ignored")


@pytest.mark.parametrize(("asks", "cards", "limit", "told"), SHARES)
def test_what_becomes_of_a_share(run: Run, asks: str, cards: str, limit: str, told: str) -> None:
    """60 hundredths are in use on each of the two cards."""
    core, count = int(asks), int(cards)
    busy = [a_share(f"busy-{card}", 60, 8192, 1, str(card)) for card in (0, 1)]
    pod = a_share("new", core, 8192 if core % 100 else 0, count)
    answer = decided(run, stream(a_node(), a_shared_queue(int(limit)), *busy, pod), "new")
    assert fits(answer, told), answer


def a_device_queue(name: str, parent: str, capability: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent, "dra": {"capability": capability}},
    }


def a_claim(name: str, request: dict[str, Any]) -> dict[str, Any]:
    devices = {"requests": [{"name": "r", **request}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }


def a_claimant(name: str, claim: str, queue: str, node: str | None = None) -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimName": claim}]
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {QUEUE: queue}},
        "spec": {"resourceClaims": claims, "containers": [{"name": "c", "image": "x"}]},
    }
    if node is not None:
        pod["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running"}
    return pod


WHOLE: Final = "gpu.nvidia.com"
SLICED: Final = "hami-core-gpu.project-hami.io"


def slices(count: int, cores: int) -> dict[str, Any]:
    requests = {"cores": cores, "memory": "4Gi"}
    return {"exactly": {"deviceClassName": SLICED, "count": count, "capacity": {"requests": requests}}}


def some(count: int, device_class: str = WHOLE, **more: Any) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": device_class, "count": count, **more}}


def one_or_three() -> dict[str, Any]:
    choices = [{"name": f"r{count}", "deviceClassName": WHOLE, "count": count} for count in (1, 3)]
    return {"firstAvailable": choices}


CLAIMS: Final[dict[str, dict[str, Any] | None]] = {
    f"2 `{WHOLE}`": some(2),
    f"3 `{WHOLE}`": some(3),
    f"1 or 3 `{WHOLE}`": one_or_three(),
    f"all `{WHOLE}`": {"exactly": {"deviceClassName": WHOLE, "allocationMode": "All"}},
    f"3 `{WHOLE}` for administration": some(3, adminAccess=True),
    "2 slices of 385 cores": slices(2, 385),
    "2 slices of 400 cores": slices(2, 400),
    "the slice that is held already": None,
    f"10 `{WHOLE}`": some(10),
    f"11 `{WHOLE}`": some(11),
    f"900 `{SLICED}`": some(900, SLICED),
}
"""What the page says of a claim, and what it asks for; None is one that another pod has."""


@pytest.mark.parametrize(("queue", "asks", "told"), DEVICES)
def test_what_becomes_of_a_claim(run: Run, queue: str, asks: str, told: str) -> None:
    request = CLAIMS[asks]
    capacity = {"cores": 800, "memory": "80Gi"}
    state = stream(
        *(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
            for name in (WHOLE, SLICED)
        ),
        a_node(),
        a_device_queue("research", "root", {WHOLE: {"count": 16}}),
        a_device_queue(
            "vision", "research", {WHOLE: {"count": 8}, SLICED: {"count": 80, "capacity": capacity}}
        ),
        a_device_queue("speech", "research", {WHOLE: {"count": 14}}),
        a_claim("six", some(6)),
        a_claim("slice", slices(1, 30)),
        a_claimant("first", "six", "vision", "mgpu-1"),
        a_claimant("second", "slice", "vision", "mgpu-1"),
        *([a_claim("new", request)] if request else []),
        a_claimant("new", "new" if request else "slice", queue.strip("`")),
    )
    answer = decided(run, state, "new")
    assert fits(answer, told), answer
    if "of `research`" in told and answer["decision"] == "hold":
        assert "queue research" in answer["message"]


def test_the_tables_are_read() -> None:
    assert len(SHARES) == 8
    assert {asks for _, asks, _ in DEVICES} == {*CLAIMS}
