"""What the real processes show while pods come, wait, run and end; and a real Prometheus that reads it."""

import math
import re
from collections.abc import Iterator

import pytest

from hack import metrics_reference
from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.nodes import gpu_node, mgpu_node
from hack.dashboards import DASHBOARDS
from hack.install import Installation
from hack.prometheus import Api
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, pod, queue, share_pod

_FAMILY = re.compile(r"^# TYPE (?P<name>\S+) (?P<kind>\S+)$", re.MULTILINE)
_OF_PYTHON = ("python_", "process_")
_QUIET = {
    "Beyond the quota",
    "Devices in use",
    "Pods that hold quota without a node",
    "mGPU records that are not in order",
    "Nodes that a scheduler was told not to use",
}
"""Panels of which this story shows nothing, or nothing but zeros."""


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    values = {"crossQuota": {"gpuResourceNames": ["nvidia.com/gpu"]}}
    with Installation(control_plane, values=values) as installed:
        yield installed


class Story:
    """A card's queue that is full, with three pods in line, a share on an mGPU card, and a pod without GPU beside the cards."""

    def __init__(self, cluster: Cluster) -> None:
        self.card, self.queue, self.node, self.shared = map(unique, ("CARD", "q", "node", "mgpu"))
        node = gpu_node(self.node, product=self.card, cards=4, memory_mib=143771)
        node["metadata"]["annotations"] = {"volcano.sh/crossquota-cpu": "10"}
        cluster.add_nodes(node, mgpu_node(self.shared))
        cluster.create_queue(queue(self.queue, f'{{"{self.card}": 2}}'))
        cluster.create(*[card_pod(f"p{number}", self.card, self.queue) for number in range(5)])
        cluster.create(
            share_pod("share", 50, 20_000), pod("guest", limits={"cpu": "2500m"}, nodeName=self.node)
        )
        wait_for("two run, the share and the guest", lambda: len(cluster.running()) == 4)
        self.running = sorted(cluster.running() - {"share", "guest"})


@pytest.fixture
def story(cluster: Cluster) -> Story:
    return Story(cluster)


def test_nothing_is_exposed_that_the_reference_does_not_name(
    story: Story, installation: Installation
) -> None:
    assert story.running
    known = {
        one.name.removesuffix("_total"): one.kind
        for found in metrics_reference.reference().values()
        for one in found
    }
    for component in ("webhook", "controller"):
        shown = {
            found["name"].removesuffix("_total"): found["kind"]
            for found in _FAMILY.finditer(installation.metrics(component))
            # When a counter began; a family of its own in this format.
            if not found["name"].startswith(_OF_PYTHON) and not found["name"].endswith("_created")
        }
        assert shown.items() <= known.items()
        assert len(shown) > 20


def empty_panels(scraped: Api) -> set[str]:
    return {
        panel.title
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        for query, _ in panel.queries
        # A quantile of nothing is no number, and is not drawn.
        if all(
            math.isnan(value)
            for _, value in scraped.instant(query.replace("$queue", ".*").replace("$node", ".*"))
        )
    }


def now(scraped: Api, dashboard: str, title: str, **chosen: str) -> dict[tuple[str, ...], float]:
    """What a panel shows now, by the labels that its legend names, for what somebody has chosen."""
    (board,) = [each for each in DASHBOARDS if each.name == dashboard]
    ((query, legend),) = next(panel.queries for panel in board.panels if panel.title == title)
    for name, value in chosen.items():
        query = query.replace(f"${name}", value)
    names = re.findall(r"\{\{(\w+)\}\}", legend)
    return {tuple(labels[name] for name in names): value for labels, value in scraped.instant(query)}


def test_every_panel_shows_the_story_and_no_alert_fires(cluster: Cluster, scraped: Api, story: Story) -> None:
    cluster.finish(story.running[0])
    mine = f'queue_name="{story.queue}"'

    def shows(query: str) -> float:
        return sum(value for _, value in scraped.instant(query))

    wait_for("the next one is let in", lambda: len(cluster.gated()) == 2)
    wait_for("it is scraped", lambda: shows(f"volcano_queue_card_request{{{mine}}}") == 4)
    online = f'cardquota_queue_card_used{{{mine},kind="online"}}'
    wait_for("the next one too", lambda: shows(online) == 2)
    assert shows(f'cardquota_queue_card_used{{{mine},kind="offline"}}') == 0
    assert shows(f'cardquota_cards{{card="{story.card}"}}') == 4
    assert 0 < shows(f"time() - cardquota_queue_oldest_waiting_timestamp_seconds{{{mine}}}") < 300
    # A rate takes two readings.
    wait_for("every other panel shows something", lambda: empty_panels(scraped) <= _QUIET)
    assert now(scraped, "queues", "Cards waited for", queue=story.queue) == {(story.card,): 2}
    assert now(scraped, "cluster", "Cards by node", node=story.node) == {(story.node, story.card): 4}
    assert now(scraped, "cluster", "Fullest nodes", node=story.node) == {(story.node, story.card): 0.5}
    full = now(scraped, "cluster", "Fullest mGPU cards", node=story.shared)
    assert sorted(full.values())[-2:] == [0, 0.5], "a share of 50 hundredths, on one of them"
    assert now(scraped, "cluster", "CrossQuota by node", node=story.node) == {(story.node, "cpu"): 0.25}
    lifted = now(scraped, "queues", "Lifts for the queues", queue=story.queue)
    waiting_for = now(scraped, "queues", "Why pods of the queues are left waiting", queue=story.queue)
    assert {*lifted} == {("done",)}
    assert {*waiting_for} == {("InsufficientScalarQuota",)}
    rules = [rule for group in scraped.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []
