"""What the real processes show while pods come, wait, run and end; and a real Prometheus that reads it."""

import math
import re

import pytest

from hack import metrics_reference
from hack.controlplane import wait_for
from hack.controlplane.nodes import mgpu_node
from hack.dashboards import DASHBOARDS
from hack.install import Installation
from hack.prometheus import Api
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.manifests import card_pod, queue, share_pod

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


class Story:
    """A card's queue that is full, with three pods in line, and a share on an mGPU card."""

    def __init__(self, cluster: Cluster) -> None:
        self.card, self.queue = cluster.add_card(4), unique("q")
        cluster.add_nodes(mgpu_node(unique("mgpu")))
        cluster.create_queue(queue(self.queue, f'{{"{self.card}": 2}}'))
        cluster.create(*[card_pod(f"p{number}", self.card, self.queue) for number in range(5)])
        cluster.create(share_pod("share", 50, 20_000))
        wait_for("two run, and the share", lambda: len(cluster.running()) == 3)
        self.running = sorted(cluster.running() - {"share"})


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
        if all(math.isnan(value) for _, value in scraped.instant(query.replace("$queue", ".*")))
    }


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
    waiting = next(
        query
        for panel in DASHBOARDS[0].panels
        if panel.title == "Cards waited for"
        for query, _ in panel.queries
    )
    by_card = {
        labels["card"]: value for labels, value in scraped.instant(waiting.replace("$queue", story.queue))
    }
    assert by_card == {story.card: 2}
    rules = [rule for group in scraped.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []
