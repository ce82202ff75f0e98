"""The one version, and the places that name it."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
_HEADING = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)


def project_version(root: Path = ROOT) -> str:
    """Return the version that the wheel gets."""
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def chart_version(root: Path = ROOT) -> str:
    """Return the version of the image that the chart asks for."""
    return str(_chart(root)["appVersion"])


def problems(root: Path = ROOT) -> list[str]:
    """Return why this tree cannot be released, each with what to do; empty if it can."""
    version, chart = project_version(root), _chart(root)
    found = [
        f"charts/cardquota/Chart.yaml: {key} is {chart[key]}, pyproject.toml says {version}: make them one"
        for key in ("version", "appVersion")
        if str(chart[key]) != version
    ]
    titles = _HEADING.findall((root / "CHANGELOG.md").read_text("utf-8"))
    if not titles or titles[0].split()[0] != version:
        first = f"its first heading is {titles[0]!r}" if titles else "it has no heading"
        found.append(f"CHANGELOG.md: {first}: head what changed with `## {version}`")
    return found


def _chart(root: Path) -> dict[str, object]:
    loaded = yaml.safe_load((root / "charts" / "cardquota" / "Chart.yaml").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded
