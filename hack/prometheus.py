"""A real Prometheus beside an installation on the local control plane, and what one is asked for."""

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

from hack.controlplane import ControlPlane, wait_for
from hack.controlplane.ports import free_ports
from hack.installation.rendering import CHART
from hack.installation.substitution import LOOPBACK
from hack.toolchain import ToolchainError, prometheus

ALERTS = CHART / "monitoring" / "alerts.yaml"

_TIMEOUT_S = 10.0
_SCRAPED = ("webhook", "controller")
# No proxy from the environment: the local one is on loopback, and whoever names another one can be reached as it is named.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class QueryError(Exception):
    """Prometheus does not understand a query, or cannot be reached; the message is its own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its labels, and its values with their moments in seconds since 1970."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


class Api:
    """The HTTP interface of a Prometheus. Every method raises `QueryError`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def ask(self, path: str, **query: str) -> Any:
        """What a path below `/api/v1` answers."""
        try:
            with _OPENER.open(f"{self.url}/api/v1/{path}?{urlencode(query)}", timeout=_TIMEOUT_S) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            raise QueryError(f"{query.get('query', path)}: {_told(error)}") from error
        except (OSError, ValueError, KeyError) as error:
            raise QueryError(f"{self.url} cannot be asked: {error}") from error

    def instant(self, query: str) -> list[tuple[dict[str, str], float]]:
        """The series of a query now."""
        found = self.ask("query", query=query)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def range(self, query: str, start: float, end: float, step_s: float) -> list[Line]:
        """The series of a query between two moments, in seconds since 1970."""
        found = self.ask("query_range", query=query, start=str(start), end=str(end), step=str(step_s))
        return [
            Line(one["metric"], [(float(at), float(value)) for at, value in one["values"]])
            for one in found["result"]
        ]

    def scraped_since(self, moment: float) -> bool:
        """Whether it has read both processes since a moment, in seconds since 1970."""
        return len(self.instant(f"timestamp(up == 1) > {moment}")) == len(_SCRAPED)


def _told(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError):
        return str(error)


@contextmanager
def running(plane: ControlPlane, address: Callable[[str], str], *, every: str = "1s") -> Iterator[Api]:
    """One that reads both processes so often, with the alerts of the chart. Raises `ToolchainError` where there is none.

    For a page it waits no longer than that either: on a machine that has other work half a second was too short at times.
    `address` is host and port of the metrics of the `webhook` and the `controller`.
    """
    binary = prometheus.find("prometheus")
    if binary is None:
        raise ToolchainError(prometheus.MISSING.format("prometheus"))
    (port,) = free_ports(1)
    api = Api(f"http://{LOOPBACK}:{port}")
    folder = plane.directory / f"prometheus-{port}"
    folder.mkdir()
    settings = folder / "prometheus.json"
    settings.write_text(json.dumps(_settings(address, every)))
    process = plane.start_program(
        f"prometheus-{port}",
        [
            str(binary),
            f"--config.file={settings}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{port}",
        ],
        ready=lambda: _answers(api),
    )
    try:
        # It takes some seconds to look at its targets for the first time.
        wait_for("both processes are scraped", lambda: api.scraped_since(0.0))
        yield api
    finally:
        process.stop()


def _settings(address: Callable[[str], str], every: str) -> dict[str, Any]:
    """JSON is YAML too. The labels are those that the chart's ServiceMonitor gives."""
    scraped = [
        {
            "targets": [address(component)],
            "labels": {"component": component, "pod": f"{component}-0"},
        }
        for component in _SCRAPED
    ]
    return {
        "global": {"scrape_interval": every, "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        # The namespace of the usage is the pods' own.
        "scrape_configs": [
            {"job_name": "cardquota-metrics", "honor_labels": True, "static_configs": scraped}
        ],
    }


def _answers(api: Api) -> bool:
    try:
        with _OPENER.open(f"{api.url}/-/ready", timeout=_TIMEOUT_S):
            return True
    except OSError:
        return False
