"""The Grafana dashboards of the chart: described panel by panel, and written as the JSON that Grafana imports.

A test fails while the files in the chart differ; `python -m hack.dashboards` writes them anew.
"""

from pathlib import Path

from hack.dashboards.contents import DASHBOARDS
from hack.dashboards.rendering import render

FOLDER = Path(__file__).parents[2] / "charts" / "cardquota" / "monitoring" / "dashboards"

__all__ = ["DASHBOARDS", "FOLDER", "render"]
