"""Values: what the schema refuses, and that the rendered settings are those of the settings model."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import settings
from core.settings import Settings, SettingsError
from hack.installation import rendering, values_schema
from tests.chart.conftest import VALUES_FILES, Render, Rendered


def paths(document: Any, path: str = "") -> Iterator[str]:
    if isinstance(document, dict) and document:
        for key, value in document.items():
            yield from paths(value, f"{path}.{key}" if path else key)
    else:
        yield path


def nested(path: str, value: Any) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    return {head: nested(rest, value) if rest else value}


@pytest.mark.parametrize("file", VALUES_FILES, ids=lambda file: file.stem)
def test_helm_lints_the_chart_strictly(helm: Path, file: Path) -> None:
    report = rendering.helm(helm, "lint", "--strict", str(rendering.CHART), f"--values={file}")
    assert "1 chart(s) linted, 0 chart(s) failed" in report


def test_the_schema_follows_the_settings_model() -> None:
    """When this fails: `python -m hack.installation.values_schema`."""
    text = values_schema.SCHEMA.read_text("utf-8")
    assert text == values_schema.render(values_schema.updated(json.loads(text)))


def test_default_values_are_the_default_settings(defaults: Rendered) -> None:
    parsed, warnings = settings.parse(defaults.settings())
    assert parsed == Settings()
    assert warnings == []


def test_values_hold_every_setting_and_no_other(defaults: Rendered) -> None:
    assert set(paths(defaults.settings())) == set(paths(settings.render(Settings())))


def test_every_values_file_renders_settings_that_the_processes_accept(any_values: Rendered) -> None:
    _, warnings = settings.parse(any_values.settings())
    assert warnings == []


def test_settings_pass_through_helm_exactly(render: Render) -> None:
    """Helm reads numbers as floats; none may come out rounded or in scientific notation."""
    file = rendering.CHART / "ci" / "full-values.yaml"
    rendered = render(yaml.safe_load(file.read_text("utf-8")))
    parsed, _ = settings.parse(rendered.settings())
    assert parsed.mgpu.node_agents == ("system:serviceaccount:gpu-operator:agent", 'o\'brien "quoted"')
    assert parsed.cross_quota.gpu_resource_names == ("nvidia\\.com/.*",)
    assert parsed.cross_quota.quota["memory"] == 64 * 2**30
    assert float(parsed.cross_quota.quota_percentage["cpu"]) == 12.5
    assert parsed.reservation.warn_after_s == 5400
    assert parsed.reservation.evict_after_s == 7200
    assert parsed.reservation.unfinished_after_s == 300
    assert parsed.quota.max_free_grace_s == 120
    assert parsed.webhook.client_ca is not None
    assert parsed.webhook.client_ca.count("BEGIN CERTIFICATE") == 1
    assert parsed.gates.wait_for_us == ("scheduling.volcano.sh/queue-allocation-gate",)
    assert parsed.volcano.scheduler_names == ("volcano", "volcano-batch")
    assert parsed.extender.max_body_bytes == 128 * 2**20


def test_values_for_the_chart_alone_stay_out_of_the_settings(defaults: Rendered) -> None:
    assert "resourcePrefixes" not in defaults.settings()["cards"]
    assert "namespace" not in defaults.settings()["volcano"]
    assert defaults.settings()["webhook"].keys() == {"clientCA"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("mgpu.weightOfCore", 101),
        ("mgpu.weightOfCore", -1),
        ("mgpu.weightOfCore", "20"),
        ("mgpu.policy", "pack"),
        ("mgpu.maxContainersPerCard", 0),
        ("cards.podsWithoutCardName", "refuse"),
        ("cards.resources", ["A"]),
        ("cards.multiCardJobs", "spread"),
        ("cards.multiCardTask", "uniform"),
        ("features.card", True),
        ("features.cards", "yes"),
        ("dra.queueCrd", "extend"),
        ("crossQuota.quota", {"cpu": True}),
        ("reservation.warnAfter", "ten minutes"),
        ("reservation.warnAfter", ""),
        ("reservation.evictAfter", 0),
        ("reservation.unfinishedAfter", "never"),
        ("schedulerNames", []),
        ("volcano.schedulerNames", 5),
        ("gates.waitForUs", {"example.com/licence": True}),
        ("webhook.clientCA", 5),
        ("quota.maxFreeGrace", "five minutes"),
        ("quota.maxFreeGrace", 0),
        ("quota.maxFreeGrace", 300),
        ("quota.maxFreeGrace", "300"),
        ("reservation.evictAfter", "0s"),
        ("reservation.warnAfter", "0h0m"),
        ("reservation.unfinishedAfter", 60),
        ("cards.resources", {"NVIDIA-H200/mps-80g*1/8": "nvidia.com/gpu"}),
        ("cards.resources", {"NVIDIA-H200": "gpu"}),
        ("cards.resources", {"NVIDIA-H200": "nvidia.com/gpu "}),
        ("mgpu.nodeAgents", [""]),
        ("queue.default", "Default"),
        ("queue.default", ""),
        ("gates.waitForUs", [" example.com/licence"]),
        ("volcano.schedulerNames", ["volcano "]),
        ("schedulerNames", [""]),
        ("extender.maxBodyBytes", "1000"),
        ("extender.maxBodyBytes", "0Mi"),
        ("extender.maxBodyBytes", "16 Mi"),
        ("extender.maxBodyBytes", 1),
        ("queues.default", "default"),
    ],
)
def test_what_the_processes_refuse_fails_at_install(render: Render, path: str, value: Any) -> None:
    values = nested(path, value)
    if not path.startswith("crossQuota."):  # where the processes warn and go on
        with pytest.raises(SettingsError):
            settings.parse(values)
    with pytest.raises(rendering.RenderError, match=path.split(".", maxsplit=1)[0]):
        render(values)


@pytest.mark.parametrize(
    "values",
    [
        {"webhook": {"replica": 2}},
        {"webhook": {"timeoutSeconds": 31}},
        {"webhook": {"logLevel": "loud"}},
        {"webhook": {"namespaceSelectorExpressions": [{"key": "a"}]}},
        {"controller": {"bindingHook": {"failurePolicy": "ignore"}}},
        {"image": {"digest": "0123"}},
        {"policies": False},
        {"cards": {"resourcePrefixes": [""]}},
    ],
    ids=json.dumps,
)
def test_what_kubernetes_would_refuse_fails_at_install(render: Render, values: Mapping[str, Any]) -> None:
    with pytest.raises(rendering.RenderError):
        render(values)


def test_the_values_that_the_security_page_recommends_are_taken(render: Render) -> None:
    page = (rendering.CHART.parents[1] / "docs" / "security.md").read_text("utf-8")
    shown = (
        page.partition("## Values for a cluster of strangers")[2].partition("```yaml")[2].partition("```")[0]
    )
    rendered = render(yaml.safe_load(shown))
    assert Settings.model_validate(rendered.settings()).queue.access == "listed"
    assert rendered.webhooks()["mutating/bindings.cardquota.io"]["failurePolicy"] == "Fail"
