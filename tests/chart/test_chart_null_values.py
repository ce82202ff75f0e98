"""Values that are set to null: Helm takes their keys away. They have their defaults then, or are refused by name."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from core import settings
from hack.installation import rendering, values_schema
from tests.chart.conftest import Render, Rendered


def merged(by_path: Mapping[str, Any]) -> dict[str, Any]:
    """Values from each path and what is there."""
    values: dict[str, Any] = {}
    for path, value in by_path.items():
        *sections, key = path.split(".")
        inside = values
        for section in sections:
            inside = inside.setdefault(section, {})
        inside[key] = value
    return values


def keys(values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Every key that the chart knows and that is no section."""
    for key, value in values.items():
        here = f"{path}{key}"
        if isinstance(value, dict) and value and here not in MAPS:
            yield from keys(value, f"{here}.")
        else:
            yield here


def sections_of(path: str) -> list[str]:
    """The path, and every section around it."""
    parts = path.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def assert_alike(found: Rendered, wanted: Rendered) -> None:
    """The settings as the processes read them, everything else to the letter."""
    parsed, warnings = settings.parse(found.settings())
    assert (parsed, warnings) == settings.parse(wanted.settings())
    assert without_settings(found) == without_settings(wanted)


def without_settings(rendered: Rendered) -> list[dict[str, Any]]:
    objects = copy.deepcopy(rendered.objects)
    for each in objects:
        if each["kind"] == "Deployment":
            del each["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    return [
        each for each in objects if (each["kind"], each["metadata"]["name"]) != ("ConfigMap", "cardquota")
    ]


DEFAULTS = yaml.safe_load((rendering.CHART / "values.yaml").read_text("utf-8"))
# Sections with keys of anybody's choice.
MAPS = frozenset(
    {"webhook.resources", "controller.resources", "monitoring.dashboards.labels", "crossQuota.weights"}
)
NEEDED = sorted(
    {each for paths in values_schema.NEEDED.values() for path in paths for each in sections_of(path)}
    - {"uninstall"}
)
# The API server, or Prometheus, knows what to do without.
NOTHING_IN_ITS_PLACE = (
    "priorityClassName",
    "webhook.resources",
    "controller.resources",
    "image.pullPolicy",
    "monitoring.dashboards.labels",
    "monitoring.serviceMonitor.interval",
)
SWITCHED_ON = {
    f"monitoring.{each}.enabled": True for each in ("serviceMonitor", "prometheusRule", "dashboards")
} | {"crossQuota.gpuResourceNames": ["nvidia.com/gpu"]}


@pytest.mark.parametrize("path", NEEDED)
def test_a_value_that_templates_need_is_refused_by_name_when_it_is_taken_away(
    render: Render, path: str
) -> None:
    """Processes would take its default, and templates would find nothing there: half of it would be off."""
    key = re.escape(f"'{path.rpartition('.')[2]}'")
    with pytest.raises(rendering.RenderError, match=f"missing propert(y|ies) {key}$"):
        render(merged({path: None}))


def test_every_other_value_that_is_taken_away_falls_back_to_the_default(render: Render) -> None:
    kept = {*NEEDED, *NOTHING_IN_ITS_PLACE, *SWITCHED_ON}
    free = [path for path in keys(DEFAULTS) if not any(one.startswith(f"{path}.") for one in kept)]
    taken = {path: None for path in free if path not in kept}
    assert_alike(render(merged(SWITCHED_ON | taken)), render(merged(SWITCHED_ON)))


def test_a_whole_section_that_is_taken_away_falls_back_to_the_default(
    render: Render, defaults: Rendered
) -> None:
    free = DEFAULTS.keys() - {*NEEDED, *NOTHING_IN_ITS_PLACE, "uninstall"}
    assert {"extender", "crossQuota", "dra", "reservation", "monitoring"} < free
    assert_alike(render(dict.fromkeys(free)), defaults)


@pytest.mark.parametrize("path", NOTHING_IN_ITS_PLACE)
def test_a_value_that_may_be_nothing_at_all_can_be_taken_away(render: Render, path: str) -> None:
    """There is no other way to have no priority class, or no resources, than Helm's null."""
    assert render(merged(SWITCHED_ON | {path: None})).objects


@pytest.mark.parametrize(
    ("switch", "path"),
    [(switch, path) for switch, paths in values_schema.NEEDED.items() for path in paths if "." in switch],
)
def test_what_nobody_reads_while_it_is_off_may_be_missing(render: Render, switch: str, path: str) -> None:
    assert render(merged({switch: False, path: None})).objects


def test_values_of_an_earlier_chart_are_refused_with_the_way_out(render: Render) -> None:
    """As `--reuse-values` hands them over: without what came since, be it needed or not."""
    with pytest.raises(rendering.RenderError, match="use --reset-then-reuse-values"):
        render(merged({"uninstall": None, "quota": None, "controller.answers": None}))
