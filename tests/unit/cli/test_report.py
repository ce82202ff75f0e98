"""`cardquota report`: card-hours, from what was written down or from a Prometheus."""

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from core.usage.checkpoint import Listed, Scribe
from core.usage.sums import DAY_S, Series, What
from core.usage.tally import Tally
from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import BARE

DAY = 20_770
NOON = DAY * DAY_S + DAY_S // 2
NOBODY = Listed(b"", b"", b"", partial=False)
RESEARCH = Series("research", "H200", "ml", "offline")


def config_map(data: Mapping[str, str], binary: Mapping[str, str]) -> dict[str, Any]:
    metadata = {
        "name": "cardquota-usage",
        "namespace": "cardquota-system",
        "labels": {"app.kubernetes.io/name": "cardquota"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, "binaryData": binary}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Two cards for ten days, three more waited for an hour today; a quota of four since yesterday morning."""
    tally = Tally.new(NOON - 10 * DAY_S)
    tally.go_on(RESEARCH, What.USED, 2000, NOON - 10 * DAY_S)
    tally.go_on(Series("research", "H200", "", ""), What.QUOTA, 4000, (DAY - 1) * DAY_S)
    tally.sums.add(RESEARCH, What.WAITED, 3000, NOON - 3600, NOON)
    tally.cut(NOON)
    written = Scribe().write(tally, NOBODY)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(config_map(written.data, written.binary)))
    return path


def test_a_table_of_the_last_days_by_queue(run: Run, state: Path) -> None:
    """Of whole days: since yesterday's midnight."""
    outcome = run("report", "--state", state, "--since", "1d")
    assert outcome.status == 0
    assert outcome.err == (
        "note: from 2026-11-12T00:00:00Z to 2026-11-13T12:00:00Z, by ConfigMap cardquota-system/cardquota-usage\n"
    )
    assert (
        outcome.out
        == """\
QUEUE      CARD   USED(CARD-H)   WAITED(CARD-H)   QUOTA(CARD-H)   SHARE
research   H200   72.00          3.00             144.00          50%
"""
    )


def test_csv_by_namespace_has_no_quota(run: Run, state: Path) -> None:
    outcome = run("report", "--state", state, "--since", "2w", "--by", "namespace", "-o", "csv")
    assert outcome.out == (
        "namespace,card,used_card_hours,waited_card_hours,quota_card_hours,quota_share\nml,H200,480.00,3.00,,\n"
    )


def test_json_by_card(run: Run, state: Path) -> None:
    found = json.loads(run("report", "--state", state, "--by", "card", "--since", "12h", "-o", "json").out)
    assert found == {
        "from": "2026-11-13T00:00:00Z",
        "to": "2026-11-13T12:00:00Z",
        "source": "ConfigMap cardquota-system/cardquota-usage",
        "rows": [
            {
                "card": "H200",
                "usedCardHours": 24.0,
                "waitedCardHours": 3.0,
                "quotaCardHours": 48.0,
                "quotaShare": 0.5,
            }
        ],
    }


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.loads(BARE), "is not there"),
        (config_map({}, {}), "is empty"),
        (config_map({"usage.json": "{"}, {}), "usage.json is missing or cannot be read"),
        (config_map({"usage.json": '{"version": 7}'}, {}), "version 7 is not known"),
    ],
)
def test_what_cannot_be_had_is_told(run: Run, tmp_path: Path, content: object, told: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(content))
    outcome = run("report", "--state", path)
    assert outcome.status != 0
    assert outcome.out == ""
    assert told in outcome.err


@pytest.mark.parametrize("since", ["7", "0d", "-1d", "1y", "d", "9999999d"])
def test_a_time_that_is_none_is_refused(run: Run, since: str) -> None:
    outcome = run("report", f"--since={since}")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--since" in outcome.err


# -- Prometheus ----------------------------------------------------------------------------------------------------


class Prometheus(BaseHTTPRequestHandler):
    """Two cards of one pod all the time, seen under two leaders; a quota of four."""

    asked: ClassVar[list[dict[str, list[str]]]] = []
    answer: ClassVar[bytes | None] = None

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.asked.append(query)
        start, end, step = (int(query[key][0]) for key in ("start", "end", "step"))
        moments = range(start, end + 1, step)
        labels = {
            "queue": "research",
            "card": "H200",
            "exported_namespace": "ml",
            "namespace": "cardquota-system",
        }
        if "waiting" in query["query"][0]:
            lines = []
        elif "capacity" in query["query"][0]:
            lines = [({"queue_name": "research", "card": "H200"}, [[moment, "4"] for moment in moments])]
        else:
            lines = [({**labels, "kind": "offline"}, [[moment, str(2 * moment)] for moment in moments])]
        result = [{"metric": metric, "values": values} for metric, values in lines]
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body if self.answer is None else self.answer)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def prometheus(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Prometheus.asked, Prometheus.answer = [], None
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = HTTPServer(("127.0.0.1", 0), Prometheus)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_prometheus_is_asked_for_exactly_this_time(run: Run, prometheus: str) -> None:
    found = json.loads(run("report", "--prometheus", prometheus + "/", "--since", "2h", "-o", "json").out)
    assert found["source"] == prometheus + "/"
    assert found["rows"] == [
        {
            "queue": "research",
            "card": "H200",
            "usedCardHours": 4.0,
            "waitedCardHours": 0.0,
            "quotaCardHours": 8.0,
            "quotaShare": 0.5,
        }
    ]
    assert {query["step"][0] for query in Prometheus.asked} == {"8"}
    by_namespace = run(
        "report", "--prometheus", prometheus, "--since", "2h", "--by", "namespace", "-o", "csv"
    )
    assert by_namespace.out.splitlines()[1] == "ml,H200,4.00,0.00,,"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"<html>", "cannot be asked"),
        (b'{"status": "error", "error": "too many samples"}', "too many samples"),
        (b'{"status": "success", "data": {"result": [{"metric": 3}]}}', "no Prometheus"),
        (b'{"status": "success", "data": {"result": []}}', "nothing of cardquota"),
    ],
)
def test_what_is_no_answer_is_told(run: Run, prometheus: str, answer: bytes, told: str) -> None:
    Prometheus.answer = answer
    outcome = run("report", "--prometheus", prometheus)
    assert (outcome.status, outcome.out) == (1, "")
    assert told in outcome.err


def test_nobody_there(run: Run) -> None:
    outcome = run("report", "--prometheus", "http://127.0.0.1:9")
    assert outcome.status == 1
    assert "cannot be asked" in outcome.err


def test_a_state_and_a_prometheus_exclude_each_other(run: Run, state: Path) -> None:
    outcome = run("report", "--state", state, "--prometheus", "http://localhost")
    assert (outcome.status, outcome.out) == (2, "")
