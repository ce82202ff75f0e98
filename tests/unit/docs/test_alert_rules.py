"""Every alert fires when it should, and does not when it should not: as Prometheus' own tool computes it."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.toolchain import prometheus
from tests.unit.docs.test_monitoring import ALERTS, ROOT

FILE = ROOT / "charts" / "cardquota" / "monitoring" / "alerts.yaml"
DAY = 86400
UP = 'up{job="cardquota-metrics",component="%s",pod="%s"}'

Series = Mapping[str, str]


def bucket(metric: str, **counts: str) -> dict[str, str]:
    """The cumulative buckets of a histogram, for example `le_0_1="0x30"`."""
    path = 'path="/mutate/pods",' if "admission" in metric else ""
    return {
        f'{metric}_bucket{{{path}le="{le.removeprefix("le_").replace("_", ".").replace("inf", "+Inf")}"}}': values
        for le, values in counts.items()
    }


@dataclass(frozen=True)
class Case:
    """What is scraped each minute when the alert should fire and when it should not, and when that is looked at."""

    fires: Series
    silent: Series
    at: str = "30m"


def gauge(name: str, fires: str, silent: str, at: str = "30m") -> Case:
    return Case({name: fires}, {name: silent}, at)


CASES = {
    "CardquotaNoLeader": Case(
        {'cardquota_leader{pod="a"}': "0x40", 'cardquota_leader{pod="b"}': "0x40"},
        {'cardquota_leader{pod="a"}': "1x40", 'cardquota_leader{pod="b"}': "0x40"},
    ),
    "CardquotaTwoLeaders": Case(
        {'cardquota_leader{pod="a"}': "1x40", 'cardquota_leader{pod="b"}': "1x40"},
        {'cardquota_leader{pod="a"}': "1x40", 'cardquota_leader{pod="b"}': "0x40"},
    ),
    "CardquotaWebhookDown": Case(
        {UP % ("webhook", "w0"): "0x40", UP % ("controller", "c"): "1x40"},
        {UP % ("webhook", "w0"): "0x40", UP % ("webhook", "w1"): "1x40"},
    ),
    "CardquotaProcessDown": gauge(UP % ("controller", "c"), "0x40", "1x20 0x10 1x10"),
    "CardquotaCertificateExpires": Case(
        {'cardquota_serving_certificate_not_after_timestamp_seconds{pod="a"}': f"{3 * DAY}x200"},
        {
            'cardquota_serving_certificate_not_after_timestamp_seconds{pod="a"}': f"{60 * DAY}x200",
            # Nothing is served yet.
            'cardquota_serving_certificate_not_after_timestamp_seconds{pod="b"}': "0x200",
        },
        at="3h",
    ),
    "CardquotaCertificatesFail": gauge('cardquota_certificate_failures_total{pod="a"}', "0+1x40", "7x40"),
    "CardquotaCacheStale": gauge(
        'cardquota_informer_staleness_seconds{pod="a",resource="pods"}', "0+60x40", "3x40"
    ),
    "CardquotaLiftsRefused": Case(
        {'cardquota_lifts_total{outcome="refused"}': "0+1x40"},
        {
            'cardquota_lifts_total{outcome="refused"}': "9x40",
            'cardquota_lifts_total{outcome="done"}': "0+99x40",
        },
    ),
    "CardquotaStatusWritesFail": Case(
        {'cardquota_queue_status_writes_total{outcome="failed"}': "0+1x40"},
        {'cardquota_queue_status_writes_total{outcome="done"}': "0+9x40"},
    ),
    "CardquotaAdmissionFails": Case(
        {'cardquota_admission_requests_total{path="/p",verdict="failed",code="500"}': "0+1x40"},
        {'cardquota_admission_requests_total{path="/p",verdict="denied",code="X"}': "0+9x40"},
    ),
    "CardquotaAdmissionSlow": Case(
        bucket("cardquota_admission_duration_seconds", le_0_1="0x40", le_0_5="0+10x40", le_inf="0+10x40"),
        bucket("cardquota_admission_duration_seconds", le_0_1="0+10x40", le_0_5="0+10x40", le_inf="0+10x40"),
    ),
    "CardquotaBindsSlow": Case(
        bucket("cardquota_bind_duration_seconds", le_1="0x40", le_2_5="0+10x40", le_inf="0+10x40"),
        bucket("cardquota_bind_duration_seconds", le_1="0+10x40", le_2_5="0+10x40", le_inf="0+10x40"),
    ),
    "CardquotaStalls": gauge('cardquota_loop_stall_seconds_count{pod="a"}', "0+1x40", "20x40"),
    "CardquotaReservedTooLong": gauge('cardquota_reserved_too_long{queue_name="q"}', "2x40", "2x20 0x20"),
    "CardquotaGangCutShort": gauge('cardquota_gangs_unfinished{queue_name="q"}', "1x40", "0x40"),
    "CardquotaQueueOverQuota": gauge(
        'cardquota_queue_card_overused{queue_name="q",card="A"}', "1x90", "1x40 0x50", at="80m"
    ),
    "CardquotaQuotaUnreadable": gauge('cardquota_queue_quota_unreadable{queue_name="q"}', "1x40", "0x40"),
    "CardquotaMgpuRecordsOff": gauge('cardquota_mgpu_irregularities{kind="missing"}', "1x40", "0x40"),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    """Prometheus' own tool."""
    found = prometheus.find("promtool")
    if found is None:
        pytest.skip(prometheus.MISSING.format("promtool"))
    return str(found)


def test_every_alert_has_its_case() -> None:
    assert CASES.keys() == ALERTS.keys()


def test_the_file_is_one_that_prometheus_takes(promtool: str) -> None:
    done = subprocess.run(
        [promtool, "check", "rules", str(FILE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("alert", CASES)
def test_it_fires_and_it_does_not(promtool: str, tmp_path: Path, alert: str) -> None:
    case = CASES[alert]
    assert fired(promtool, tmp_path, alert, case.fires, case.at), f"{alert} does not fire"
    assert not fired(promtool, tmp_path, alert, case.silent, case.at), f"{alert} fires"


def fired(promtool: str, folder: Path, alert: str, series: Series, at: str) -> bool:
    """Whether the alert fires; the tool says what it has got where that is not what is expected: nothing."""
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": []}],
    }
    file = folder / "test.json"
    file.write_text(json.dumps({"rule_files": [str(FILE)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0 or "got:[" in done.stderr, done.stderr
    return done.returncode != 0
