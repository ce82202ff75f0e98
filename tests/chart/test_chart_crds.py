"""The chart's own definitions of Queue and PodGroup, beside the published ones."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.conftest import Render


def test_crds_are_installed_on_request_and_outlive_the_release(render: Render) -> None:
    assert render().kind("CustomResourceDefinition") == {}
    crds = render({"crds": {"install": True}}).kind("CustomResourceDefinition")
    assert crds.keys() == {"queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"}
    for crd in crds.values():
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of everything that a schema declares."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{path}.*", ""
        return
    yield path, schema.get("type", "quantity")
    for name, inner in schema.get("properties", {}).items():
        yield from leaves(inner, f"{path}.{name}")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from leaves(schema["additionalProperties"], f"{path}.{{}}")
    if "items" in schema:
        yield from leaves(schema["items"], f"{path}[]")


@pytest.mark.parametrize("plural", ["queues", "podgroups"])
def test_the_crds_take_every_object_that_the_published_ones_take(render: Render, plural: str) -> None:
    folder = os.environ.get("VOLCANO_CRDS")
    if folder is None:
        pytest.skip("VOLCANO_CRDS names no folder with the published CRDs")
    published = yaml.safe_load((Path(folder) / f"scheduling.volcano.sh_{plural}.yaml").read_text("utf-8"))
    name = f"{plural}.scheduling.volcano.sh"
    own = render({"crds": {"install": True}}).one("CustomResourceDefinition", name)
    for field in ("group", "scope", "names"):
        assert own["spec"][field] == published["spec"][field]
    (theirs,), (ours,) = published["spec"]["versions"], own["spec"]["versions"]
    assert (ours.get("subresources") or {}) == (theirs.get("subresources") or {})
    declared = dict(leaves(ours["schema"]["openAPIV3Schema"]))
    opened = [path.removesuffix("*") for path in declared if path.endswith(".*")]
    for path, kind in leaves(theirs["schema"]["openAPIV3Schema"]):
        if not any(f"{path}.".startswith(prefix) for prefix in opened):
            assert declared.get(path) == kind, path
