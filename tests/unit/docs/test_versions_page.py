"""docs/versions.md names the versions that chart, package and tests go by, and docs/glossary.md each word once."""

import re
import tomllib
from pathlib import Path
from typing import Final

import yaml

from core.objects.kinds import DEVICE_CLASS, QUEUE

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "versions.md").read_text("utf-8")


def built_from(module: str, tool: str) -> str:
    """The minor version of a module that the tools of the tests are built from."""
    found = re.search(
        rf"{re.escape(module)} v(\d+\.\d+)\.", (ROOT / "hack" / "tools" / tool / "go.mod").read_text("utf-8")
    )
    assert found is not None, module
    return found[1]


def test_the_versions_of_kubernetes_and_helm_are_those_of_the_chart_and_of_the_tests() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "cardquota" / "Chart.yaml").read_text("utf-8"))
    least = chart["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
    assert f"| Kubernetes | {least} and later; **{built_from('k8s.io/kubernetes', 'kubernetes')}** |" in PAGE
    assert f"**{built_from('helm.sh/helm/v3', 'helm')}**" in PAGE


def test_the_served_versions_are_those_that_are_understood() -> None:
    assert f"`{QUEUE.group}/{QUEUE.versions[0]}`" in PAGE
    assert ", ".join(f"`{version}`" for version in DEVICE_CLASS.versions) in PAGE


def test_the_python_is_that_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"| {package['requires-python'].removeprefix('>=')} and later |" in PAGE


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    words = [line.split(" | ")[0][2:] for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(words) > 20
    assert words == sorted(words, key=str.lower)
