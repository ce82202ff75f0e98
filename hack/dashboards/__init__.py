"""The Grafana dashboards of the chart: described panel by panel, and written as the JSON that Grafana imports.

A test fails while the files in the chart differ; `python -m hack.dashboards` writes them anew.
"""

from pathlib import Path

from hack.dashboards.cluster import CLUSTER
from hack.dashboards.queues import QUEUES
from hack.dashboards.rendering import render
from hack.dashboards.system import SYSTEM

DASHBOARDS = (QUEUES, CLUSTER, SYSTEM)
FOLDER = Path(__file__).parents[2] / "charts" / "cardquota" / "monitoring" / "dashboards"

__all__ = ["DASHBOARDS", "FOLDER", "render"]
