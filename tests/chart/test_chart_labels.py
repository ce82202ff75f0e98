"""Labels and annotations from values: none stands in the place of one that somebody goes by, and none is there twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.installation import rendering
from tests.chart.conftest import NAMESPACE, Render, Rendered

NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
# Each key in several places at once, with what each place says of it.
MANY: dict[str, Any] = {
    "commonLabels": {
        "team": "common",
        "release": "common",
        NAME: "mine",
        "app.kubernetes.io/instance": "mine",
        COMPONENT: "mine",
        "app.kubernetes.io/part-of": "mine",
        "cardquota.io/hook-path": "mine",
    },
    "commonAnnotations": {
        "team": "common",
        "checksum/config": "mine",
        "helm.sh/hook-weight": "7",
        "helm.sh/resource-policy": "mine",
        "cardquota.io/installed-in": "mine",
    },
    "webhook": {
        "podLabels": {"team": "", NAME: "mine"},
        "podAnnotations": {"team": "pods", "checksum/config": "mine"},
    },
    "controller": {"podLabels": {"team": "pods", "cardquota.io/hook-path": "mine"}},
    "monitoring": {
        each: {"enabled": True, "labels": {"release": each, COMPONENT: "mine"}}
        for each in ("serviceMonitor", "prometheusRule", "dashboards")
    },
    "crds": {"install": True},
}


class _Strict(yaml.SafeLoader):
    """Refuses a key that is there twice, as YAML does and few readers do."""


def _each_once(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    found = [loader.construct_object(key) for key, _ in node.value]
    assert sorted(map(str, found)) == sorted(map(str, set(found))), f"twice: {node.start_mark}"
    return loader.construct_mapping(node, deep=True)


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _each_once)


@pytest.fixture(scope="module")
def many(helm: Path) -> Rendered:
    """With hooks."""
    return Rendered(rendering.render(helm, MANY, NAMESPACE, hooks=True))


def templates(rendered: Rendered) -> Iterator[tuple[str, dict[str, Any]]]:
    """The component and the metadata of each Deployment's pods."""
    for name, deployment in rendered.kind("Deployment").items():
        yield name.removeprefix("cardquota-"), deployment["spec"]["template"]["metadata"]


def test_no_key_is_there_twice(helm: Path) -> None:
    command = ("template", "cardquota", str(rendering.CHART), f"--namespace={NAMESPACE}", "--values=-")
    text = rendering.helm(helm, *command, stdin=json.dumps(MANY))
    assert len(list(yaml.load_all(text, _Strict))) > 40


def test_nobody_changes_the_labels_by_which_objects_are_selected(many: Rendered, render: Render) -> None:
    for component, metadata in templates(many):
        deployment = many.one("Deployment", f"cardquota-{component}")["spec"]
        assert deployment["selector"]["matchLabels"].items() <= metadata["labels"].items()
    labels = [each["metadata"]["labels"] for each in many.objects]
    assert {(each[NAME], each["app.kubernetes.io/instance"]) for each in labels} == {
        ("cardquota", "cardquota")
    }
    of_service = many.one("Service", "cardquota-metrics")["metadata"]["labels"]
    monitor = many.one("ServiceMonitor", "cardquota")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= of_service.items()
    assert monitor["metadata"]["labels"][COMPONENT] == "metrics"


def test_the_more_special_label_goes_before_the_general_one(many: Rendered) -> None:
    of_pods = dict(templates(many))
    assert of_pods["webhook"]["labels"]["team"] == ""
    assert of_pods["webhook"]["annotations"]["team"] == "pods"
    assert of_pods["controller"]["labels"]["team"] == "pods"
    assert of_pods["controller"]["annotations"]["team"] == "common"
    assert many.one("ServiceMonitor", "cardquota")["metadata"]["labels"]["release"] == "serviceMonitor"
    assert many.one("ConfigMap", "cardquota")["metadata"]["labels"]["release"] == "common"


def test_what_only_describes_can_be_said_otherwise(many: Rendered) -> None:
    assert {each["metadata"]["labels"]["app.kubernetes.io/part-of"] for each in many.objects} == {"mine"}


def test_what_helm_and_the_processes_go_by_stays(many: Rendered) -> None:
    of_pods = dict(templates(many))
    hooks = many.one("MutatingWebhookConfiguration", "cardquota-mutating")["metadata"]
    for metadata in (of_pods["controller"], hooks):
        assert metadata["labels"]["cardquota.io/hook-path"] == "secret"
    assert all(len(metadata["annotations"]["checksum/config"]) == 64 for metadata in of_pods.values())
    assert many.one("Job", "cardquota-uninstall")["metadata"]["annotations"]["helm.sh/hook-weight"] == "0"
    for definition in many.kind("CustomResourceDefinition").values():
        assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    reader = many.one("ClusterRole", "cardquota-queue-reader")["metadata"]["annotations"]
    assert reader["cardquota.io/installed-in"] == NAMESPACE
