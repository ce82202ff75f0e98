"""The setting `workloads`: rows for kinds of somebody else, used wherever the table of workloads is."""

from typing import Any

import pytest
import yaml

from core.admission.dispatch import creation_of, judge, paths_of, review, rules_of
from core.admission.outlook import workload_hints
from core.admission.request import ClusterView, Context
from core.settings import Settings, SettingsError, parse, render
from core.settings.workload import TAKEN
from core.violations import Findings
from core.workloads import KINDS, kinds_with, pod_sets
from hack.pages.workloads import EXAMPLE, MANIFEST
from tests.builders import a_queue

ROW: dict[str, Any] = yaml.safe_load(EXAMPLE)["workloads"][0]
SETTINGS = parse(yaml.safe_load(EXAMPLE))[0]
KIND = ("batch.example.com", "TrainingJob")
CARD = "metadata.annotations[volcano.sh/card.name]"


def an_object(card: str = "NVIDIA-H200") -> dict[str, Any]:
    """The object of the page."""
    raw: dict[str, Any] = yaml.safe_load(MANIFEST.replace("NVIDIA-H200", card))
    return raw


def judged(raw: dict[str, Any], settings: Settings = SETTINGS, view: ClusterView | None = None) -> Findings:
    request = creation_of(raw, rules_of(settings))
    return Findings() if request is None else judge(request, Context(view or ClusterView(), settings))


class TestRows:
    def test_a_row_makes_pods_like_one_of_the_table(self) -> None:
        made = pod_sets(*KIND, an_object(), nodes=0, kinds=kinds_with(SETTINGS.workloads))
        assert [(one.path, one.count) for one in made] == [
            ("spec.roles[0].template", 1),
            ("spec.roles[1].template", 4),
        ]

    @pytest.mark.parametrize(
        ("templates", "replicas", "spec", "counts"),
        [
            ("spec.template", ["replicas"], {"template": {}, "replicas": 3}, [3]),
            ("spec.template", ["replicas"], {"template": {}}, [1]),
            ("spec.template", [], {"template": {}, "replicas": 3}, [1]),
            ("spec.template", "replicas, size", {"template": {}, "replicas": 3, "size": 2}, [6]),
            ("spec.template", "replicas, size", {"template": {}, "replicas": 10**9, "size": 10**9}, [10**6]),
            ("spec.template", ["scale.count"], {"template": {}, "scale": {"count": 7}}, [7]),
            ("spec.roles{}.template", ["replicas"], {"roles": {"a": {"template": {}, "replicas": 2}}}, [2]),
            ("spec.a, spec.b", [], {"a": {}, "b": {}}, [1, 1]),
            ("spec.template", ["replicas"], {"template": {}, "replicas": -3}, [0]),
            ("spec.template", ["replicas"], {}, []),
        ],
    )
    def test_paths_and_numbers(
        self, templates: str, replicas: object, spec: dict[str, Any], counts: list[int]
    ) -> None:
        settings, _ = parse({"workloads": [{**ROW, "templates": templates, "replicas": replicas}]})
        made = pod_sets(*KIND, {"spec": spec}, nodes=0, kinds=kinds_with(settings.workloads))
        assert [one.count for one in made] == counts

    def test_what_is_rendered_is_read_again(self) -> None:
        assert parse(render(SETTINGS))[0] == SETTINGS
        assert parse({"workloads": None})[0].workloads == ()

    def test_every_kind_of_the_table_is_taken(self) -> None:
        """The settings cannot look at the table, which is made of what comes above them."""
        assert KINDS.keys() <= TAKEN


class TestMistakes:
    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"group": ""}, "workloads.0.group: must be an API group with a dot"),
            ({"group": "Example.com"}, "workloads.0.group: must be an API group with a dot"),
            ({"kind": "TrainingJob\n"}, "workloads.0.kind: must be a kind, such as TrainingJob"),
            ({"templates": ["spec.template\n"]}, "workloads.0.templates: must be paths from spec"),
            ({"kind": "trainingJob"}, "workloads.0.kind: must be a kind, such as TrainingJob"),
            ({"resource": "TrainingJobs"}, "workloads.0.resource: must be the lower-case plural"),
            ({"templates": []}, "workloads.0.templates: must hold 1 to 20 of them"),
            ({"templates": ["metadata.x"]}, "workloads.0.templates: must be paths from spec"),
            ({"templates": ["spec"]}, "workloads.0.templates: must be paths from spec"),
            ({"templates": ["spec.a[0].template"]}, "workloads.0.templates: must be paths from spec"),
            ({"replicas": ["a b"]}, "workloads.0.replicas: must be fields beside the template"),
            ({"queue": "queue"}, "workloads.0.queue: must be a path from spec to one field"),
            ({"gang": "spec.x[]"}, "workloads.0.gang: must be a path from spec to one field"),
            ({"clusterScoped": "yes"}, "workloads.0.clusterScoped: "),
            ({"template": "spec.template"}, "workloads.0.template: is no setting"),
            (
                {"group": "ray.io", "kind": "RayJob"},
                "workloads: must not name RayJob of ray.io, which is known without it",
            ),
        ],
    )
    def test_a_bad_row_is_told_with_its_place(self, change: dict[str, Any], told: str) -> None:
        with pytest.raises(SettingsError) as error:
            parse({"workloads": [{**ROW, **change}]})
        assert any(line.startswith(told) for line in error.value.problems), error.value.problems

    def test_a_row_that_lacks_a_key_or_is_there_twice(self) -> None:
        with pytest.raises(SettingsError, match=r"workloads.0.templates: Field required"):
            parse({"workloads": [{key: ROW[key] for key in ("group", "kind", "resource")}]})
        with pytest.raises(SettingsError, match=r"must not name TrainingJob of batch\.example\.com twice"):
            parse({"workloads": [ROW, {**ROW, "resource": "others"}]})


class TestAdmission:
    def test_a_fault_in_a_template_is_refused_where_it_stands(self) -> None:
        found = judged(an_object("A||B"))
        assert {one.path for one in found.violations} == {
            f"spec.roles[0].template.{CARD}",
            f"spec.roles[1].template.{CARD}",
        }
        assert judged(an_object()).violations == []

    def test_without_the_row_nothing_is_said(self) -> None:
        raw = an_object("A||B")
        assert creation_of(raw) is None
        assert judged(raw, Settings()).violations == []

    def test_the_webhook_serves_the_kind_where_others_are_served(self) -> None:
        request = creation_of(an_object("A||B"), rules_of(SETTINGS))
        assert request is not None
        paths = {
            path for path, rules in paths_of(SETTINGS).items() if any(rule.applies(request) for rule in rules)
        }
        assert paths == {"/validate/workloads", "/validate/trainingjobs"}
        assert review(request, ClusterView(), SETTINGS).denial is not None
        assert review(request, ClusterView(), Settings()).denial is None

    def test_the_queue_is_read_where_the_row_says(self) -> None:
        view = ClusterView(queues={}, namespaces={})
        assert {hint.path for hint in judged(an_object(), view=view).hints if "research" in hint.text} == {
            "spec.queue"
        }

    def test_all_pods_together_are_compared_with_the_quota_of_that_queue(self) -> None:
        queue = a_queue("research").cards({"NVIDIA-H200": 4}).view()
        context = Context(ClusterView(queues={"research": queue}, namespaces={}), SETTINGS)
        (hint,) = workload_hints(*KIND, an_object(), context)
        assert "all pods together ask for 5" in hint.text
