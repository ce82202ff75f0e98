"""What a real Prometheus has kept of usage over time is what the leader has written down: cards, shares and devices of claims."""

import json
import subprocess
import sys
import time
from typing import Any

from cli import prometheus
from core import names
from core.usage.checkpoint import Checkpoint, decode
from core.usage.report import Account, of_checkpoint
from core.usage.sums import What
from hack.controlplane import wait_for
from hack.controlplane.nodes import mgpu_node
from hack.install import Installation
from hack.prometheus import Api
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.devices import Devices, claiming
from tests.apiserver.manifests import card_pod, queue, share_pod

SINCE_S = 600
SLACK_S = 30
"""Gauges are known from scrape to scrape, and a quota for as long as its queue was seen to have it."""

Sums = dict[tuple[str, str, What], int]


def sums_of(account: Account, queues: set[str], *whats: What) -> Sums:
    """In thousandths of a card times seconds, by queue and key."""
    return {
        (series.queue, series.card, what): amounts[what]
        for series, amounts in account.sums.items()
        for what in whats
        if series.queue in queues and amounts[what]
    }


def written(cluster: Cluster, installation: Installation) -> Account:
    path = cluster.plane.api.path("v1", "ConfigMap", installation.namespace, "cardquota-usage")
    raw = cluster.plane.api.get(path).expect()
    found: Checkpoint | None = decode(raw.get("data") or {}, raw.get("binaryData") or {})
    return of_checkpoint(found, SINCE_S) if found is not None else Account(0, 0, {})


def report(cluster: Cluster, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of `cardquota report` by queue and key."""
    command = [sys.executable, "-m", "cli", "report", "--since", "10m", "-o", "json", *arguments]
    done = subprocess.run(
        [*command, "--kubeconfig", str(cluster.plane.admin_kubeconfig)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {(row["queue"], row["card"]): row for row in json.loads(done.stdout)["rows"]}


def test_a_report_by_prometheus_says_what_was_written_down(
    cluster: Cluster, scraped: Api, installation: Installation
) -> None:
    """To the second, of pods that have begun and ended while it was scraped."""
    card, cards, first = cluster.add_card(8), unique("q"), unique("first")
    devices = Devices(cluster)
    claims = devices.queue(6)
    for name in (cards, first):
        cluster.create_queue(queue(name, json.dumps({card: 4})))
    cluster.add_nodes(mgpu_node(unique("mgpu")))
    # What a counter had when Prometheus saw the first of them may be from any time before.
    cluster.create(card_pod("before", card, first))
    wait_for(
        "there is something to begin with",
        lambda: sum(v for _, v in scraped.instant(f'cardquota_card_seconds_total{{queue="{first}"}}')) >= 3,
    )
    devices.claim("two", 2)
    devices.allocate("two", "r", "r")
    in_queue = {names.QUEUE_NAME_ANNOTATION: cards}
    cluster.create(
        card_pod("three", card, cards, 3),
        card_pod("waits", card, cards, 2),
        share_pod("share", 40, 10_000, annotations=in_queue),
        claiming("device", claims, claim="two"),
    )
    cluster.wait_running("before", "three", "share", "device")
    # Times are whole seconds.
    series = f'cardquota_card_seconds_total{{queue=~"{cards}|{claims}"}} > 0.7'
    wait_for("all three have run for seconds", lambda: len(scraped.instant(series)) == 3)
    cluster.finish("three")
    cluster.wait_running("before", "waits", "share", "device")
    cluster.finish("waits", "share", "device")
    cluster.wait_running("before")
    ours = {cards, claims}
    used = {(cards, card), (cards, names.MGPU_CORE), (claims, devices.key)}

    def by_prometheus() -> Account:
        return prometheus.account(scraped.url, SINCE_S, int(time.time()))

    def agreed() -> bool:
        both = [
            sums_of(account, ours, What.USED, What.WAITED)
            for account in (written(cluster, installation), by_prometheus())
        ]
        # Before the last has run for a whole second they agree as well, on the others.
        return both[0] == both[1] and used == {
            (queue, key) for queue, key, what in both[0] if what is What.USED
        }

    wait_for("both have the same of what has ended", agreed, 60)
    found = sums_of(written(cluster, installation), ours, What.USED, What.WAITED)
    assert {(queue, key) for queue, key, what in found if what is What.USED} == used
    assert all(amount % 400 == 0 for (_, key, _), amount in found.items() if key == names.MGPU_CORE)
    assert all(amount % 2000 == 0 for (_, key, _), amount in found.items() if key == devices.key)
    quota = sums_of(written(cluster, installation), ours, What.QUOTA)
    assert quota.keys() == {(cards, card, What.QUOTA), (claims, devices.key, What.QUOTA)}
    for key, amount in sums_of(by_prometheus(), ours, What.QUOTA).items():
        assert abs(amount - quota[key]) < 6000 * SLACK_S, key

    def shown(*arguments: str) -> dict[tuple[str, str], tuple[float, float]]:
        found = report(cluster, *arguments)
        assert ("quotaShare" in found[claims, devices.key]) is True
        return {row: (found[row]["usedCardHours"], found[row]["waitedCardHours"]) for row in used}

    # Both may have agreed on those that ended first, and one of them has heard of the last sooner.
    wait_for("the reports say the same", lambda: shown("--prometheus", scraped.url) == shown(), 60)
