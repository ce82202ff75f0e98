"""Mistakes that are often made, and those of a bundle of manifests: what `cardquota check` says of them."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.objects import NODE, QUEUE_OF_FOUR


def lint(run: Run, text: str, *arguments: str) -> list[tuple[str, str]]:
    """(code, path) of every finding."""
    found = json.loads(run("check", "-", "-o", "json", *arguments, stdin=text).out)["findings"]
    return [(one["code"], one["path"]) for one in found]


def a_deployment(annotations: str = "{}", own: str = "{}", replicas: int = 1, limits: str = "{}") -> str:
    return (
        "apiVersion: apps/v1\nkind: Deployment\n"
        f"metadata: {{name: web, annotations: {own}}}\n"
        f"spec:\n  replicas: {replicas}\n  template:\n    metadata: {{annotations: {annotations}}}\n"
        f"    spec: {{containers: [{{name: c, resources: {{limits: {limits}}}}}]}}\n---\n"
    )


GPU = "{nvidia.com/gpu: 1}"
TEMPLATE = "spec.template.metadata.annotations"


class TestCommonMistakes:
    """Nothing of it is refused by a cluster, and all of it leads to pods that nobody counts or that never start."""

    def test_a_gpu_without_a_card_name(self, run: Run) -> None:
        assert lint(run, a_deployment(limits=GPU)) == [
            ("CardNameMissing", f"{TEMPLATE}[volcano.sh/card.name]")
        ]
        assert lint(run, a_deployment(limits="{rdma/hca: 1, cpu: 1}")) == []

    def test_a_card_name_without_a_gpu(self, run: Run) -> None:
        named = "{volcano.sh/card.name: A}"
        assert lint(run, a_deployment(named)) == [("CardResourceMissing", "spec.template.spec.containers")]
        assert lint(run, a_deployment(named, limits=GPU)) == []
        assert lint(run, a_deployment(named, limits="{nvidia.com/gpu: 0}")) == []

    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ("volcano.sh/card-name", "volcano.sh/card.name"),
            ("volcano.sh/cardName", "volcano.sh/card.name"),
            ("volcano.sh/card.names", "volcano.sh/card.name"),
            ("scheduling.volcano.sh/queue_names", "scheduling.volcano.sh/queue-name"),
        ],
    )
    def test_a_key_that_is_nearly_right(self, run: Run, wrong: str, right: str) -> None:
        text = a_deployment(f"{{{wrong}: A}}")
        (finding,) = json.loads(run("check", "-", "-o", "json", stdin=text).out)["findings"]
        assert (finding["code"], finding["path"]) == ("KeyUnread", f"{TEMPLATE}[{wrong}]")
        assert finding["message"] == f"is never read; did you mean {right}?"
        assert finding["line"] == 7

    @pytest.mark.parametrize(
        "other",
        [
            "volcano.sh/preemptable",
            "example.com/card-name",
            "volcano.sh/task-index",
            "scheduling.volcano.sh/group-min-member",
        ],
    )
    def test_keys_of_others_are_left_alone(self, run: Run, other: str) -> None:
        assert lint(run, a_deployment(f"{{{other}: A}}")) == []

    def test_the_annotation_on_the_workload_instead_of_its_template(self, run: Run) -> None:
        text = a_deployment(own="{volcano.sh/card.name: A}", limits="{cpu: 1}")
        (finding,) = json.loads(run("check", "-", "-o", "json", stdin=text).out)["findings"]
        assert finding["path"] == "metadata.annotations[volcano.sh/card.name]"
        assert finding["message"].endswith(f"put it into {TEMPLATE}")
        both = a_deployment("{volcano.sh/card.name: A}", "{volcano.sh/card.name: A}", limits=GPU)
        assert lint(run, both) == []

    @pytest.mark.parametrize("place", ["template", "workload"])
    def test_the_queue_under_the_key_that_only_pods_of_volcano_jobs_have(self, run: Run, place: str) -> None:
        key = "{volcano.sh/queue-name: q}"
        text = a_deployment(key) if place == "template" else a_deployment(own=key)
        (finding,) = json.loads(run("check", "-", "-o", "json", stdin=text).out)["findings"]
        assert finding["path"].endswith("metadata.annotations[volcano.sh/queue-name]")
        where = "" if place == "template" else f" in {TEMPLATE}"
        assert finding["message"] == (
            f"is read on pods of Volcano Jobs only; did you mean scheduling.volcano.sh/queue-name{where}?"
        )

    def test_that_key_is_right_on_pods_of_volcano_jobs(self, run: Run) -> None:
        owner = "[{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: u, controller: true}]"
        pod = f"metadata: {{name: p, annotations: {{volcano.sh/queue-name: q}}, ownerReferences: {owner}}}\n"
        text = f"apiVersion: v1\nkind: Pod\n{pod}spec: {{containers: [{{name: c, image: i}}]}}\n"
        assert lint(run, text) == []
        assert lint(run, text.replace("batch.volcano.sh/v1alpha1", "batch/v1")) == [
            ("KeyUnread", "metadata.annotations[volcano.sh/queue-name]")
        ]
        template = (
            "{metadata: {annotations: {volcano.sh/queue-name: q}}, spec: {containers: [{name: c, image: i}]}}"
        )
        job = (
            f"spec: {{queue: q, minAvailable: 1, tasks: [{{name: t, replicas: 1, template: {template}}}]}}\n"
        )
        assert (
            lint(run, f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: j}}\n{job}") == []
        )

    def test_an_annotation_that_is_written_as_a_label(self, run: Run) -> None:
        key = "volcano.sh/card.name: NVIDIA-H200"
        labels = f"labels: {{a: b, {key}}}"
        spec = "spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1}}}]}\n"
        pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, {labels}}}\n{spec}"
        (finding,) = json.loads(run("check", "-", "-o", "json", stdin=pod).out)["findings"]
        assert (finding["code"], finding["path"]) == ("KeyUnread", "metadata.labels[volcano.sh/card.name]")
        assert finding["message"] == "is a label here, and read as an annotation only"
        both = pod.replace(labels, f"{labels}, annotations: {{{key}}}").replace("cpu: 1", "nvidia.com/gpu: 1")
        assert lint(run, both) == []
        queue = (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
            "metadata: {name: q, labels: {volcano.sh/card.quota: '1'}}\nspec: {}\n"
        )
        assert lint(run, queue) == [("KeyUnread", "metadata.labels[volcano.sh/card.quota]")]

    def test_namespaces(self, run: Run) -> None:
        """The queue and the card of its pods are read there, and nothing else."""
        known = "{scheduling.volcano.sh/queue-name: q, cardquota.io/default-card: A, volcano.sh/card.name: A}"
        text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: n, annotations: {known}}}\n"
        assert lint(run, text) == [("KeyUnread", "metadata.annotations[volcano.sh/card.name]")]
        other = text.replace(known, "{volcano.sh/queue-name: q}")
        (finding,) = json.loads(run("check", "-", "-o", "json", stdin=other).out)["findings"]
        assert finding["message"].endswith("; did you mean scheduling.volcano.sh/queue-name?")

    def test_queues(self, run: Run) -> None:
        text = (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
            "metadata: {name: q, annotations: {volcano.sh/card.quotas: '{}', volcano.sh/card.name: A}}\n"
            "spec: {capability: {NVIDIA-H200: 4, cpu: 3, nvidia.com/gpu: 2}}\n"
        )
        assert lint(run, text) == [
            ("KeyUnread", "metadata.annotations[volcano.sh/card.quotas]"),
            ("KeyUnread", "metadata.annotations[volcano.sh/card.name]"),
            ("KeyUnread", "spec.capability[NVIDIA-H200]"),
        ]


class TestABundle:
    """A queue that is applied together with its users is there when they come."""

    QUEUE = QUEUE_OF_FOUR % "team" + "---\n"

    def test_its_quota_is_compared_with_all_replicas(self, run: Run) -> None:
        used = "{volcano.sh/card.name: NVIDIA-H200, scheduling.volcano.sh/queue-name: team}"
        few, many = (a_deployment(used, replicas=n, limits=GPU) for n in (1, 100))
        assert lint(run, few + self.QUEUE) == []
        assert lint(run, many + self.QUEUE) == [("BeyondQuota", "spec")]

    def test_a_queue_that_is_not_in_it_may_be_in_the_cluster(self, run: Run) -> None:
        used = "{volcano.sh/card.name: A, scheduling.volcano.sh/queue-name: elsewhere}"
        assert lint(run, a_deployment(used, limits=GPU) + self.QUEUE) == []

    def test_the_namespace_in_it_names_the_queue(self, run: Run) -> None:
        asked = "{volcano.sh/card.name: NVIDIA-H200}"
        home = "{scheduling.volcano.sh/queue-name: team}"
        space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: default, annotations: {home}}}\n---\n"
        many = a_deployment(asked, replicas=100, limits=GPU) + self.QUEUE
        assert lint(run, many) == []
        assert lint(run, space + many) == [("BeyondQuota", "spec")]
        # Of others nobody has shown which queue they name.
        other = space.replace("name: default", "name: other")
        assert lint(run, other + many) == []
        assert lint(run, other + many.replace("name: team", "name: default")) == []

    @pytest.mark.parametrize("known", [True, False])
    def test_pods_of_a_namespace_in_it_are_not_said_to_name_no_queue(
        self, run: Run, tmp_path: Path, known: bool
    ) -> None:
        state = tmp_path / "state.yaml"
        state.write_text(NODE % ("n1", 4) + self.QUEUE, "utf-8")
        asked = a_deployment("{volcano.sh/card.name: NVIDIA-H200}", limits=GPU)
        home = "{scheduling.volcano.sh/queue-name: team}"
        space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: default, annotations: {home}}}\n---\n"
        outcome = run("check", "-", *(("--state", state) if known else ()), stdin=space + asked)
        assert outcome.out == ""
        assert outcome.err.startswith("judged: 2")

    def test_labels_that_a_namespace_has_already_stay(self, run: Run, tmp_path: Path) -> None:
        """Whoever applies a manifest takes no labels of others away."""
        closed = self.QUEUE.replace(
            "annotations: {", "annotations: {cardquota.io/namespace-selector: team=nlp, "
        )
        labelled = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: nlp}}\n---\n"
        state = tmp_path / "state.yaml"
        state.write_text(NODE % ("n1", 4) + closed + labelled, "utf-8")
        used = "{volcano.sh/card.name: NVIDIA-H200, scheduling.volcano.sh/queue-name: team}"
        manifest = tmp_path / "m.yaml"
        bare = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n---\n"
        manifest.write_text(bare + a_deployment(used, limits=GPU), "utf-8")
        assert run("check", manifest, "--state", state).out == ""
        assert run("can-run", manifest, "--state", state).status == 0
