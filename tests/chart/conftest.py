"""The chart as helm renders it, once per values file."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.installation import rendering
from hack.toolchain import Reporter, Store

NAMESPACE = "cardquota-system"
VALUES_FILES = sorted((rendering.CHART / "ci").glob("*-values.yaml"))

_HERE = Path(__file__).parent


class Rendered:
    """The rendered objects of one set of values."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self.objects = objects

    def kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """The objects of a kind by name."""
        return rendering.of_kind(self.objects, kind)

    def one(self, kind: str, name: str) -> dict[str, Any]:
        return self.kind(kind)[name]

    def settings(self) -> Any:
        """The settings file as the processes find it, parsed as YAML."""
        return yaml.safe_load(self.one("ConfigMap", "cardquota")["data"]["cardquota.yaml"])

    def webhooks(self) -> dict[str, dict[str, Any]]:
        """Every webhook entry, as `mutating/<name>` or `validating/<name>`."""
        return {
            f"{kind.removesuffix('WebhookConfiguration').lower()}/{entry['name']}": entry
            for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
            for configuration in self.kind(kind).values()
            for entry in configuration["webhooks"]
        }


Render = Callable[..., Rendered]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.chart)


@pytest.fixture(scope="session")
def helm() -> Path:
    return Store().ensure(["helm"], Reporter(print))["helm"]


@pytest.fixture(scope="session")
def render(helm: Path) -> Render:
    """Render with the values given, as a mapping."""

    def rendered(values: Mapping[str, Any] | None = None, namespace: str = NAMESPACE) -> Rendered:
        return Rendered(rendering.render(helm, values or {}, namespace))

    return rendered


@pytest.fixture(scope="session")
def defaults(render: Render) -> Rendered:
    return render()


@pytest.fixture(scope="session")
def render_file(render: Render) -> Callable[[Path], Rendered]:
    """Render one of the chart's values files, each once."""
    return cache(lambda file: render(yaml.safe_load(file.read_text("utf-8"))))


@pytest.fixture(params=VALUES_FILES, ids=lambda file: file.stem.removesuffix("-values"))
def any_values(request: pytest.FixtureRequest, render_file: Callable[[Path], Rendered]) -> Rendered:
    """The chart under each values file in turn."""
    file: Path = request.param
    return render_file(file)
