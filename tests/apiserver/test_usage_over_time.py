"""What was used over time goes on where the last leader left it, and is counted once."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from core.usage.checkpoint import Checkpoint, decode
from core.usage.sums import Series, What
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, samples, unique
from tests.apiserver.leaders import TAKE_OVER_S, leader_index
from tests.apiserver.manifests import Object, card_pod, queue

USED = "cardquota_card_seconds_total"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, controller=2) as installed:
        yield installed


def usage_path(cluster: Cluster, installation: Installation) -> str:
    return cluster.plane.api.path("v1", "ConfigMap", installation.namespace, "cardquota-usage")


def written(cluster: Cluster, installation: Installation) -> Checkpoint | None:
    raw = cluster.plane.api.get(usage_path(cluster, installation)).expect()
    return decode(raw.get("data") or {}, raw.get("binaryData") or {})


def in_sums(cluster: Cluster, installation: Installation, name: str) -> int:
    """The seconds of the queue's pods with one card each that are written down."""
    found = written(cluster, installation)
    series = [] if found is None else [one for one in found.sums.total if one.queue == name]
    assert found is not None or not series
    return sum(found.sums.total[one][What.USED] for one in series) // 1000 if found is not None else 0


def report(cluster: Cluster, *arguments: str) -> list[dict[str, Any]]:
    """The rows of `cardquota report` for the administrator."""
    command = [sys.executable, "-m", "cli", "report", "-o", "json", *arguments]
    done = subprocess.run(
        [*command, "--kubeconfig", str(cluster.plane.admin_kubeconfig)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def seconds(moment: str) -> int:
    """Of the day; the test does not run for as long."""
    hours, minutes, rest = moment.partition("T")[2].removesuffix("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(rest)


def bound_at(pod: Object) -> int:
    return next(
        seconds(each["lastTransitionTime"])
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled" and each["status"] == "True"
    )


def length(start: int, end: int) -> int:
    return (end - start) % 86_400


def test_two_pods_end_under_two_leaders_and_each_second_is_counted_once(
    cluster: Cluster, installation: Installation
) -> None:
    """The first leader is killed while both run; one has ended before the next one leads, one ends under it."""
    card, name = cluster.add_card(), unique("q")
    cluster.create_queue(queue(name, json.dumps({card: 4})))
    cluster.create(*(card_pod(pod, card, name) for pod in ("early", "late", "on")))
    cluster.wait_running("early", "late", "on")
    bound = {pod: bound_at(cluster.pod(pod)) for pod in ("early", "late", "on")}
    first = leader_index(cluster.plane, installation)
    labels = {"queue": name, "card": card, "namespace": cluster.namespace, "kind": "online"}
    wait_for("both are written down", lambda: in_sums(cluster, installation, name) >= 2, 60)
    next_one = 1 - first
    shown = samples(installation.metrics("controller", first), USED, **labels)
    assert shown > 0
    assert samples(installation.metrics("controller", next_one), USED, **labels) == 0
    installation.kill_controller(first)
    deleted = cluster.plane.api.delete(cluster.path("early")).expect()
    end = (
        seconds(deleted["metadata"]["deletionTimestamp"]) - deleted["metadata"]["deletionGracePeriodSeconds"]
    )
    early = length(bound["early"], end)
    wait_for(
        "the other one leads", lambda: leader_index(cluster.plane, installation) == next_one, TAKE_OVER_S
    )

    def shown_by_the_next() -> float:
        return samples(installation.metrics("controller", next_one), USED, **labels)

    wait_for("the next one shows it", lambda: shown_by_the_next() >= shown, TAKE_OVER_S)
    gone = cluster.plane.api.delete(cluster.path("late")).expect()
    end = seconds(gone["metadata"]["deletionTimestamp"]) - gone["metadata"]["deletionGracePeriodSeconds"]
    late = length(bound["late"], end)

    def exactly() -> bool:
        found = written(cluster, installation)
        if found is None or len(found.using) != 1:
            return False
        running = length(bound["on"], found.through % 86_400)
        series = Series(name, card, cluster.namespace, "online")
        return found.sums.total[series][What.USED] == 1000 * (early + late + running)

    wait_for("all is written down, to the second", exactly, 90)
    (row,) = [row for row in report(cluster, "--by", "namespace") if row["namespace"] == cluster.namespace]
    assert row["card"] == card
    assert row["usedCardHours"] * 3600 >= early + late
    (row,) = [row for row in report(cluster, "--by", "queue") if row["queue"] == name]
    assert 0 < row["quotaShare"] <= 0.75, "three of four cards, at the most"


def test_what_somebody_empties_is_filled_again(cluster: Cluster, installation: Installation) -> None:
    """While a leader has it in memory it is back with its next write."""
    wait_for("it is written down", lambda: written(cluster, installation) is not None, 60)
    before = written(cluster, installation)
    assert before is not None
    cluster.api.patch(usage_path(cluster, installation), {"data": None, "binaryData": None}).expect()
    wait_for("it is written down again", lambda: written(cluster, installation) is not None, 120)
    after = written(cluster, installation)
    assert after is not None
    assert after.began == before.began
    assert after.through >= before.through
    used = {series: total[What.USED] for series, total in after.sums.total.items()}
    assert all(used[series] >= total[What.USED] for series, total in before.sums.total.items())
