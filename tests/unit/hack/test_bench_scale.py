"""The large cluster on a real API server: what it is made of, and what is reported."""

from collections import Counter
from pathlib import Path

import pytest

from core import names
from hack.bench import samples, scale
from hack.bench.__main__ import BENCHMARKS, ON_DEMAND
from hack.bench.scale import Scale, Seen

SMALL = Scale(pods=400, nodes=40, queues=8)


def test_the_pods_with_cards_use_up_the_quota_of_their_queues_on_nodes_that_have_them() -> None:
    pods = [pod.build() for pod in scale.made(SMALL)]
    assert len(pods) == SMALL.pods
    assert len({pod["metadata"]["name"] for pod in pods}) == SMALL.pods
    placed: Counter[str] = Counter()
    per_queue: Counter[str] = Counter()
    for pod in pods[: SMALL.with_cards]:
        annotations = pod["metadata"]["annotations"]
        node = int(pod["spec"]["nodeName"].removeprefix("n"))
        assert annotations[names.CARD_NAME_ANNOTATION] == samples.product(node)
        placed[pod["spec"]["nodeName"]] += 1
        per_queue[annotations[names.QUEUE_NAME_ANNOTATION]] += 1
        assert node < SMALL.nodes
    assert max(placed.values()) <= samples.CARDS_PER_NODE
    assert set(per_queue.values()) == {SMALL.with_cards // SMALL.queues}


def test_as_many_wait_in_each_queue() -> None:
    pods = [pod.build() for pod in scale.made(SMALL)]
    waiting = [pod for pod in pods if pod["spec"].get("schedulingGates")]
    queues = Counter(pod["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION] for pod in waiting)
    assert len(waiting) == SMALL.waiting
    assert set(queues.values()) == {SMALL.waiting // SMALL.queues}


@pytest.mark.parametrize(
    ("pods", "judged"),
    [(100_000, {"from a controller's start until it decides", "resident memory"}), (99_999, set())],
)
def test_targets_are_judged_only_at_the_size_that_they_name(pods: int, judged: set[str]) -> None:
    seen = Seen(
        read_s=10.0,
        led_s=44.0,
        cpu_s=20.0,
        shown_s=46.0,
        memory_mib=701.0,
        lift_s=0.05,
        trip_s=0.025,
        idle_cpu_s=0.01,
    )
    rows = {row.what.partition(": ")[2]: row for row in scale.rows(Scale(pods, 5000, 500), seen)}
    assert {what for what, row in rows.items() if row.reached is not None} == judged
    assert [what for what, row in rows.items() if row.reached is False] == sorted(
        judged & {"resident memory"}
    )
    assert rows["a card freed: until the next pod is let in"].ratio == pytest.approx(2.0)


def test_it_is_run_only_where_it_is_named() -> None:
    assert "scale" in ON_DEMAND
    assert "scale" not in BENCHMARKS


def test_the_start_of_a_controller_is_read_off_its_log(tmp_path: Path) -> None:
    log = tmp_path / "controller.log"
    first = '{"time":"2024-01-01T00:00:01.500Z","message":"listening"}\n'
    log.write_text(first)
    assert scale.since_start(log, "deciding") is None
    log.write_text(first + '{"time":"2024-01-01T00:00:04.000Z","message":"deciding"}\n')
    assert scale.since_start(log, "deciding") == pytest.approx(2.5)
