"""One object costs a review no more than its size: what is beyond the limits is refused in words that name the way out."""

import difflib
from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import judge
from core.admission.messages import ADVISED_MAX, WARNINGS_MAX
from core.admission.request import ClusterView, Context
from core.cards.inventory import Inventory
from core.objects import job as volcano_job
from core.objects.node_rules import REQUIRED
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.pods import PodBuilder
from tests.unit.core.admission.samples import answer, codes, creation, update

SETTINGS = Settings()


def asking(cards: str = "A", name: str = "p") -> PodBuilder:
    return a_pod(name).card(cards).gpu(1).in_queue("q")


def with_expressions(pod: PodBuilder, count: int, *, terms: int = 1, kind: str = "matchExpressions") -> Any:
    """`count` expressions in all, spread over the terms."""
    found: list[dict[str, Any]] = [{kind: []} for _ in range(terms)]
    for number in range(count):
        found[number % terms][kind].append({"key": f"k{number}", "operator": "Exists"})
    required = {REQUIRED: {"nodeSelectorTerms": found}}
    return pod.put("spec", "affinity", value={"nodeAffinity": required}).build()


def job(*templates: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml"},
        "spec": {
            "minAvailable": 1,
            "tasks": [
                {"name": f"t{number}", "replicas": 1, "template": template}
                for number, template in enumerate(templates)
            ],
        },
    }


def seen(*cards: str) -> Context:
    """A cluster with nodes of these cards."""
    inventory = Inventory({})
    for number, card in enumerate(cards):
        inventory.put(a_node(f"n{number}").card(card, 8).view())
    return Context(ClusterView(inventory=inventory), SETTINGS)


@pytest.mark.parametrize(
    ("cards", "refused"),
    [
        ("|".join(f"C{number}" for number in range(16)), False),
        ("|".join(f"C{number}" for number in range(17)), True),
        ("|".join(f"C{number}" for number in range(37_000)), True),
        ("C/" + "x" * 4094, False),
        ("C/" + "x" * 4095, True),
        ("|" * 100_000, True),
        ("é" * 100_000, True),
    ],
)
def test_a_card_name_has_at_most_16_alternatives_in_4096_characters(cards: str, refused: bool) -> None:
    findings = judge(creation(asking(cards).build()), seen("A"))
    assert [violation.code for violation in findings.violations] == [reasons.CARD_NAME_MALFORMED] * refused
    if refused:
        (violation,) = findings.violations
        assert "at most 16 alternatives in 4,096 characters are looked at, name fewer cards" in str(violation)
        assert len(str(violation)) < 600


@pytest.mark.parametrize(
    ("count", "terms", "kind", "refused"),
    [
        (0, 1, "matchExpressions", False),
        (2000, 1, "matchExpressions", False),
        (2001, 1, "matchExpressions", True),
        (2000, 400, "matchExpressions", False),
        (2001, 400, "matchExpressions", True),
        (16_400, 400, "matchExpressions", True),
        (2001, 3, "matchFields", True),
    ],
)
def test_a_pod_at_the_gate_has_at_most_2000_expressions(
    count: int, terms: int, kind: str, refused: bool
) -> None:
    pod = with_expressions(asking(), count, terms=terms, kind=kind)
    assert codes(answer(creation(pod))) == [reasons.AFFINITY_TOO_LARGE] * refused
    if refused:
        denial = answer(creation(pod)).denial
        assert denial is not None
        path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Too many: {count}: "
        assert path in denial.message
        assert "select that label" in denial.message


def test_whoever_never_waits_at_the_gate_is_not_limited() -> None:
    assert codes(answer(creation(with_expressions(a_pod("cpu"), 5000)))) == []
    assert codes(answer(creation(with_expressions(asking().scheduler("theirs"), 5000)))) == []


def test_the_place_of_a_template_is_named() -> None:
    pod = with_expressions(asking(), 2001)
    (path,) = (v.path for v in judge(creation(job(pod)), seen("A")).violations)
    assert path.startswith("spec.tasks[0].template.spec.affinity.")


@pytest.mark.parametrize(("count", "refused"), [(500, False), (501, True), (3000, True)])
def test_a_job_has_at_most_500_new_templates(count: int, refused: bool) -> None:
    written = job(*[asking().build()] * count)
    found = judge(creation(written), seen("A")).violations
    assert [violation.code for violation in found] == [reasons.TOO_MANY_TEMPLATES] * refused
    if refused:
        assert str(found[0]).startswith(
            f"spec.tasks: Too many: {count}: must have at most 500 new or changed"
        )


def test_a_job_that_was_stored_with_more_can_be_labelled_and_cleaned_up() -> None:
    """And even mended, a part at a time."""
    pods = [asking(f"A{number}").build() for number in range(600)]
    old = job(*pods)
    labelled = job(*pods)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert codes(answer(update(old, labelled))) == []
    mended = job(*pods[:300], *[asking("B").build()] * 300)
    assert codes(answer(update(old, mended))) == []
    assert codes(answer(update(old, job(*[asking("B").build()] * 600)))) == [reasons.TOO_MANY_TEMPLATES]


@pytest.mark.parametrize("shape", ["one job of many tasks", "one pod of many cards"])
def test_names_are_compared_only_for_as_many_hints_as_are_shown(
    monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Each comparison is with every card of the cluster."""
    compared: list[str] = []
    compare = difflib.get_close_matches

    def counting(word: str, *args: Any, **more: Any) -> list[str]:
        compared.append(word)
        return compare(word, *args, **more)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    known = seen(*(f"NVIDIA-H{number}" for number in range(100)))
    pods = [asking(f"NVIDIA-Hx{number}").build() for number in range(500)]
    if shape == "one pod of many cards":
        pods = [asking("|".join(f"NVIDIA-Hx{number}" for number in range(16))).build()]
    decision = answer(creation(job(*pods)), known.view)
    assert len(decision.warnings) <= WARNINGS_MAX
    assert len(compared) <= ADVISED_MAX
    assert any("did you mean" in warning for warning in decision.warnings)


def test_a_job_is_projected_once_however_many_tasks_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    projected: list[str] = []
    project = volcano_job.project

    def counting(raw: Any) -> Any:
        projected.append(raw["metadata"]["name"])
        return project(raw)

    monkeypatch.setattr(volcano_job, "project", counting)
    judge(creation(job(*[asking().build()] * 500)), seen("A"))
    assert len(projected) <= 3


def test_what_is_found_in_one_object_is_limited() -> None:
    """Everybody is shown the first few, and the rest when those are mended."""
    findings = judge(creation(job(*[asking("A|").build()] * 500)), seen("A"))
    assert 100 < len(findings.violations) < 110
    assert names.CARD_NAME_ANNOTATION in str(findings.violations[0])
