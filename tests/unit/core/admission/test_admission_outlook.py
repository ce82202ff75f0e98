"""What a queue could never serve as it is written now: admitted, with a warning that says what is wrong."""

from typing import Any

import pytest

from core import names, reasons
from core.admission import NOTHING_LISTED, ClusterView, Context, judge
from core.cards.inventory import Inventory
from core.settings import Settings
from core.violations import Hint
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder, NodeBuilder, PodBuilder, QueueBuilder
from tests.unit.core.admission.samples import TENANT, answer, creation, settings, update

CARD_PATH = f"metadata.annotations[{names.CARD_NAME_ANNOTATION}]"
QUEUE_PATH = f"metadata.annotations[{names.QUEUE_NAME_ANNOTATION}]"
REQUEST_PATH = f"metadata.annotations[{names.CARD_REQUEST_ANNOTATION}]"
WAITING = {
    reasons.BEYOND_QUOTA,
    reasons.QUEUE_NOT_FOUND,
    reasons.QUEUE_NAME_UNREAD,
    reasons.CARD_REQUEST_DIFFERS,
}


def cluster(
    *queues: QueueBuilder, namespaces: Any = None, nodes: tuple[NodeBuilder, ...] | None = None
) -> ClusterView:
    """A view of queues and of nodes with the cards A and B; namespaces only where they are given."""
    inventory = Inventory({})
    for node in nodes if nodes is not None else (a_node("n1").card("A", 8), a_node("n2").card("B", 8)):
        inventory.put(node.view())
    return ClusterView(
        inventory=inventory,
        queues={view.name: view for view in (queue.view() for queue in queues)},
        namespaces=None if namespaces is None else {view.name: view for view in namespaces},
    )


TEAM = a_queue("team").cards({"A": 4, "B": 2})


def hints(raw: dict[str, Any], view: ClusterView, username: str = TENANT, **sections: Any) -> list[Hint]:
    """What is said of the creation of an object about its queue; nothing may ever be refused for it."""
    findings = judge(creation(raw, username), Context(view, settings(**sections)))
    assert findings.violations == []
    return [hint for hint in findings.hints if hint.code in WAITING]


def codes(found: list[Hint]) -> list[str]:
    return [hint.code for hint in found]


class TestPods:
    @pytest.mark.parametrize(
        ("pod", "said"),
        [
            (a_pod().card("A").gpu(4), ""),
            (a_pod().card("A").gpu(5), '"A": 5 are more than the whole quota of queue team (4)'),
            (a_pod().card("A|B").gpu(4), ""),
            (a_pod().card("B|A").gpu(5), '"B|A": 5 are more than the whole quota of queue team (4)'),
            (a_pod().card("A").gpu(0), ""),
            (a_pod().card("A").request("nvidia.com/gpu", 5), '"A": 5 are more'),
            (a_pod().card("A").gpu(3).gpu(2, container="more"), '"A": 5 are more'),
            (
                a_pod().card("A/mig-1g-mixed").limit("nvidia.com/mig-1g", 1),
                'queue team has no quota for "A/mig-1g-mixed"',
            ),
            (
                a_pod().card("A/mig-1g-mixed|B/mig-1g-mixed").limit("nvidia.com/mig-1g", 1),
                'queue team has no quota for "A/mig-1g-mixed|B/mig-1g-mixed"',
            ),
            (a_pod().card("Unknown").gpu(1), 'queue team has no quota for "Unknown"'),
        ],
    )
    def test_more_than_the_whole_quota_can_never_be_lifted(self, pod: PodBuilder, said: str) -> None:
        found = hints(pod.in_queue("team").build(), cluster(TEAM))
        assert codes(found) == ([reasons.BEYOND_QUOTA] if said else [])
        for hint in found:
            assert hint.path == CARD_PATH
            assert hint.detail.startswith(said)

    def test_what_is_in_use_plays_no_part(self) -> None:
        full = TEAM.allocated({"A": "4"})
        assert hints(a_pod().card("A").gpu(4).in_queue("team").build(), cluster(full)) == []

    @pytest.mark.parametrize("quota", ["", "{", '{"A": "4"}'])
    def test_a_queue_without_a_readable_quota_has_no_cards(self, quota: str) -> None:
        pod = a_pod().card("A").gpu(1).in_queue("team")
        assert codes(hints(pod.build(), cluster(a_queue("team").cards(quota)))) == [reasons.BEYOND_QUOTA]

    @pytest.mark.parametrize(
        "pod",
        [a_pod().card("A").gpu(1), a_pod().mgpu(core=50, memory=1024), a_pod().claim("c", template="t")],
        ids=["cards", "shares", "claims"],
    )
    def test_a_queue_that_does_not_exist_is_pointed_out(self, pod: PodBuilder) -> None:
        found = hints(pod.in_queue("taem").build(), cluster(TEAM))
        assert codes(found) == [reasons.QUEUE_NOT_FOUND]
        assert found[0].path == QUEUE_PATH
        assert found[0].detail.startswith('no queue has the name "taem" now')

    @pytest.mark.parametrize(
        "pod",
        [
            a_pod().limit("cpu", 1),
            a_pod().card(""),
            a_pod().card("A").gpu(9).mirror(),
            a_pod().card("A").gpu(9).scheduler("other"),
        ],
        ids=["cpu", "empty card", "mirror pod", "another scheduler"],
    )
    def test_a_pod_that_does_not_wait_at_the_gate_hears_nothing(self, pod: PodBuilder) -> None:
        for queue in ("missing", "team"):
            assert hints(pod.in_queue(queue).build(), cluster(TEAM), "system:node:n1") == []

    def test_without_gates_or_without_the_queues_nothing_is_said(self) -> None:
        pod = a_pod().card("A").gpu(9).in_queue("missing").build()
        assert hints(pod, NOTHING_LISTED) == []
        assert hints(pod, cluster(TEAM), features={"gates": False}) == []
        assert hints(pod, cluster(TEAM), features={"cards": False, "dra": False}) == []

    def test_without_the_nodes_what_the_names_tell_is_still_compared(self) -> None:
        view = ClusterView(queues=cluster(TEAM.cards({"A": 4, "A/mig-1g-mixed": 1})).queues)
        share = a_pod().card("A/mig-1g-mixed").limit("nvidia.com/mig-1g", 2)
        assert codes(hints(share.in_queue("team").build(), view)) == [reasons.BEYOND_QUOTA]
        assert hints(a_pod().card("A").gpu(9).in_queue("team").build(), view) == []
        assert codes(hints(a_pod().card("C").gpu(1).in_queue("team").build(), view)) == [reasons.BEYOND_QUOTA]

    def test_a_pod_that_is_refused_hears_only_of_that(self) -> None:
        decision = answer(creation(a_pod().card("A|").in_queue("missing").build()), cluster(TEAM))
        assert not decision.allowed
        assert decision.warnings == ()

    def test_a_card_that_changes_at_the_gate_is_compared_anew(self) -> None:
        old = a_pod().card("A").gpu(2).in_queue("team").gated()
        view = cluster(a_queue("team").cards({"A": 2, "B": 1}))
        assert answer(update(old.build(), old.annotation("x", "y").build()), view).warnings == ()
        (warning,) = answer(update(old.build(), old.card("B").build()), view).warnings
        assert "whole quota of queue team (1)" in warning


class TestWhichQueue:
    """By what the object says itself, in the order in which the scheduler goes by it."""

    CARD = a_pod().card("A").gpu(3)
    SMALL, LARGE = a_queue("small").cards({"A": 1}), a_queue("large").cards({"A": 9})

    @pytest.mark.parametrize(
        ("pod", "beyond"),
        [
            (CARD.in_queue("small"), True),
            (CARD.in_queue("large"), False),
            (CARD.annotation(names.JOB_QUEUE_ANNOTATION, "small").in_queue("large"), False),
            (
                CARD.annotation(names.JOB_QUEUE_ANNOTATION, "small")
                .in_queue("large")
                .owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1"),
                True,
            ),
            (CARD.in_queue("large").in_group("g"), False),
            (CARD.in_queue("small").in_group("g"), True),
        ],
    )
    def test_the_annotations_of_the_pod(self, pod: PodBuilder, beyond: bool) -> None:
        found = hints(pod.build(), cluster(self.SMALL, self.LARGE))
        assert codes(found) == ([reasons.BEYOND_QUOTA] if beyond else [])

    def test_the_namespace_where_the_view_has_it(self) -> None:
        small = [a_namespace("ml").in_queue("small")]
        views = [namespace.view() for namespace in small]
        assert hints(self.CARD.build(), cluster(self.SMALL)) == []
        assert codes(hints(self.CARD.build(), cluster(self.SMALL, namespaces=views))) == [
            reasons.BEYOND_QUOTA
        ]
        assert hints(self.CARD.in_queue("large").build(), cluster(self.LARGE, namespaces=views)) == []

    def test_the_podgroup_may_name_another_queue_than_the_namespace(self) -> None:
        views = [a_namespace("ml").in_queue("small").view()]
        assert hints(self.CARD.in_group("g").build(), cluster(self.SMALL, namespaces=views)) == []

    def test_the_default_queue_when_nobody_names_one(self) -> None:
        default = a_queue("default").cards({"A": 1})
        assert codes(hints(self.CARD.build(), cluster(default, namespaces=[]))) == [reasons.BEYOND_QUOTA]
        found = hints(self.CARD.build(), cluster(namespaces=[]))
        assert codes(found) == [reasons.QUEUE_NOT_FOUND]
        assert found[0].detail.startswith('no queue is named, and there is no "default" now')
        mine = hints(self.CARD.build(), cluster(self.SMALL, namespaces=[]), queue={"default": "small"})
        assert codes(mine) == [reasons.BEYOND_QUOTA]

    def test_shares_and_claims_do_not_wait_for_a_default_queue(self) -> None:
        """There is no quota for them then, and the controller lifts them."""
        for pod in (a_pod().mgpu(core=50, memory=1024), a_pod().claim("c", template="t")):
            assert hints(pod.build(), cluster(namespaces=[])) == []

    def test_a_pod_without_namespace_is_in_the_default_one(self) -> None:
        pod = self.CARD.build()
        del pod["metadata"]["namespace"]
        views = [a_namespace("default").in_queue("small").view()]
        assert codes(hints(pod, cluster(self.SMALL, namespaces=views))) == [reasons.BEYOND_QUOTA]


TEMPLATED = [
    ("apps/v1", "Deployment", ("template",)),
    ("apps/v1", "ReplicaSet", ("template",)),
    ("apps/v1", "StatefulSet", ("template",)),
    ("apps/v1", "DaemonSet", ("template",)),
    ("batch/v1", "Job", ("template",)),
    ("batch/v1", "CronJob", ("jobTemplate", "spec", "template")),
]


@pytest.mark.parametrize(("api_version", "kind", "path"), TEMPLATED)
def test_templates_hear_it_with_their_own_path(api_version: str, kind: str, path: tuple[str, ...]) -> None:
    """And not again while the template stays as it is, however often the object is scaled."""

    def workload(pod: PodBuilder, replicas: int = 1) -> dict[str, Any]:
        spec: dict[str, Any] = pod.template()
        for key in reversed(path):
            spec = {key: spec}
        metadata = {"name": "w", "namespace": "ml"}
        spec["replicas"] = replicas
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}

    prefix = ".".join(("spec", *path, ""))
    beyond, missing = a_pod().card("A").gpu(5).in_queue("team"), a_pod().card("A").gpu(1).in_queue("x")
    for pod, code, field in (
        (beyond, reasons.BEYOND_QUOTA, CARD_PATH),
        (missing, reasons.QUEUE_NOT_FOUND, QUEUE_PATH),
    ):
        (found,) = hints(workload(pod), cluster(TEAM))
        assert (found.code, found.path) == (code, prefix + field)
        assert answer(update(workload(pod), workload(pod, replicas=9)), cluster(TEAM)).warnings == ()
        assert answer(update(workload(a_pod()), workload(pod)), cluster(TEAM)).warnings


def test_a_namespace_of_the_request_counts_for_its_templates() -> None:
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ml"}}
    raw = {**raw, "spec": {"template": a_pod().card("A").gpu(5).template()}}
    view = cluster(TEAM, namespaces=[a_namespace("ml").in_queue("team").view()])
    assert codes(hints(raw, view)) == [reasons.BEYOND_QUOTA]


class TestVolcanoJobs:
    TASK = a_pod().card("A").gpu(5)

    def test_the_queue_of_the_job_serves_its_tasks(self) -> None:
        job = a_job().in_queue("team").task("t", self.TASK)
        (found,) = hints(job.build(), cluster(TEAM))
        assert (found.code, found.path) == (
            reasons.BEYOND_QUOTA,
            f"spec.tasks[0].template.{CARD_PATH}",
        )

    def test_a_missing_queue_is_said_once_for_all_tasks_and_the_request(self) -> None:
        job = a_job().in_queue("x").task("a", self.TASK).task("b", self.TASK).cards({"A": 10})
        (found,) = hints(job.build(), cluster(TEAM))
        assert (found.code, found.path) == (reasons.QUEUE_NOT_FOUND, "spec.queue")

    @pytest.mark.parametrize("key", [names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION])
    def test_a_queue_named_in_a_task_is_not_read(self, key: str) -> None:
        pod = a_pod().card("A").gpu(1)
        job = a_job().in_queue("team").task("a", pod).task("b", pod.annotation(key, "other"))
        (found,) = hints(job.build(), cluster(TEAM))
        assert found.code == reasons.QUEUE_NAME_UNREAD
        assert found.path == f"spec.tasks[1].template.metadata.annotations[{key}]"
        assert '"other" is not read' in found.detail
        assert '"team"' in found.detail
        assert codes(hints(job.build(), NOTHING_LISTED)) == [reasons.QUEUE_NAME_UNREAD]

    @pytest.mark.parametrize(
        "job",
        [
            a_job().in_queue("team").task("t", a_pod().card("A").gpu(1).in_queue("team")),
            a_job().in_queue("team").task("t", a_pod().in_queue("other")),
            a_job().task("t", a_pod().card("A").gpu(1).in_queue("team")),
        ],
        ids=["the same", "asks for nothing", "no queue of its own"],
    )
    def test_other_names_are_fine(self, job: JobBuilder) -> None:
        assert hints(job.build(), cluster(TEAM)) == []

    def test_only_changed_tasks_are_compared_again(self) -> None:
        old = a_job().in_queue("team").task("a", self.TASK)
        same = old.put("spec", "minAvailable", value=2)
        assert answer(update(old.build(), same.build()), cluster(TEAM)).warnings == ()
        more = old.task("b", self.TASK)
        (warning,) = answer(update(old.build(), more.build()), cluster(TEAM)).warnings
        assert warning.startswith("spec.tasks[1].")


class TestRequests:
    @pytest.mark.parametrize(
        ("quota", "request_text", "said"),
        [
            ('{"A": 4, "B": 2}', '{"A": 3}', ""),
            ('{"A": 4, "B": 2}', '{"A": 4}', ""),
            ('{"A": 4, "B": 2}', '{"A": 5}', '"A": 5 are more than the whole quota of queue team (4)'),
            ('{"A": 4, "B": 2}', '{"A|B": 6}', ""),
            ('{"A": 4, "B": 2}', '{"A|B": 7}', '"A|B": 7 are more than the whole quota of queue team (6)'),
            ('{"A": 4, "B": 2}', '{"C": 1}', 'queue team has no quota for "C"'),
            ('{"A": 4, "B": 2}', '{"C": 0}', ""),
            ("", '{"A": 1}', 'queue team has no quota for "A"'),
            ("{", '{"A": 1}', 'queue team has no quota for "A"'),
            ('{"A": 4}', "", ""),
        ],
    )
    @pytest.mark.parametrize("builder", [a_group().in_queue("team"), a_job().in_queue("team")])
    def test_more_than_the_whole_quota_is_admitted_with_a_warning(
        self, builder: GroupBuilder | JobBuilder, quota: str, request_text: str, said: str
    ) -> None:
        """Alternatives add up: a group may lie on several cards."""
        view, raw = cluster(a_queue("team").cards(quota)), builder.cards(request_text).build()
        found = [hint for hint in hints(raw, view) if hint.code == reasons.BEYOND_QUOTA]
        assert len(found) == bool(said)
        for hint in found:
            assert hint.path == REQUEST_PATH
            assert hint.detail.startswith(said)
        edited = builder.cards(request_text).annotation("other", "x").build()
        assert answer(update(raw, edited), view).warnings == ()

    @pytest.mark.parametrize("builder", [a_group(), a_job()])
    def test_an_unknown_queue_and_unknown_cards_are_pointed_out(
        self, builder: GroupBuilder | JobBuilder
    ) -> None:
        raw = builder.in_queue("x").cards({"A|Q": 1}).build()
        findings = judge(creation(raw), Context(cluster(TEAM), Settings()))
        assert {(hint.code, hint.path) for hint in findings.hints} >= {
            (reasons.QUEUE_NOT_FOUND, "spec.queue"),
            (reasons.CARD_UNKNOWN, REQUEST_PATH),
        }
        assert hints(a_group().in_queue("x").build(), cluster(TEAM)) == []

    def test_a_group_that_names_no_queue_goes_to_the_default_one(self) -> None:
        raw = a_group().cards({"A": 1}).build()
        assert codes(hints(raw, cluster(TEAM))) == [reasons.QUEUE_NOT_FOUND]
        assert hints(raw, cluster(TEAM), queue={"default": "team"}) == []


class TestRequestAgainstTasks:
    """Replicas times cards of a pod, by card expression; once pods exist they count, so it is a hint."""

    ONE_A, TWO_B = a_pod().card("A").gpu(1), a_pod().card("B").gpu(2)

    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            ({"A": 4, "B": 4}, []),
            ({"A": 4, "B": 3}, ['"B": 3 declared, but the tasks ask for 4']),
            ({"A": 4}, ['"B": 0 declared, but the tasks ask for 4']),
            ({"A": 1, "B": 4, "C": 2}, ['"A": 1 declared, but the tasks ask for 4', '"C": 2 declared, but']),
            ({}, ['"A": 0 declared', '"B": 0 declared']),
            ({"A|B": 8}, ['"A": 0 declared', '"A|B": 8 declared', '"B": 0 declared']),
        ],
    )
    def test_each_card_is_compared(self, declared: dict[str, int], said: list[str]) -> None:
        job = a_job().task("a", self.ONE_A, replicas=3).task("b", self.TWO_B, replicas=2)
        job = job.task("more", self.ONE_A).task("cpu", a_pod(), replicas=9).cards(declared)
        found = [hint for hint in hints(job.build(), cluster()) if hint.code == reasons.CARD_REQUEST_DIFFERS]
        assert [hint.path for hint in found] == [REQUEST_PATH] * len(said)
        assert all(hint.detail.startswith(start) for hint, start in zip(found, said, strict=True))

    @pytest.mark.parametrize("request_text", [None, ""])
    def test_a_request_is_optional(self, request_text: str | None) -> None:
        job = a_job().task("a", self.ONE_A)
        job = job if request_text is None else job.cards(request_text)
        assert hints(job.build(), NOTHING_LISTED) == []

    def test_what_cannot_be_counted_is_not_compared(self) -> None:
        """Without the nodes nobody knows the resource of a whole card."""
        job = a_job().task("a", self.ONE_A).cards({"A": 7, "C": 1})
        found = hints(job.build(), NOTHING_LISTED)
        assert [hint.detail.split(":")[0] for hint in found] == ['"C"']

    @pytest.mark.parametrize("replicas", [None, 0, -3, "x"])
    def test_a_task_without_pods_asks_for_nothing(self, replicas: Any) -> None:
        job = a_job().task("a", self.ONE_A).cards({"A": 1}).build()
        job["spec"]["tasks"][0]["replicas"] = replicas
        assert codes(hints(job, NOTHING_LISTED)) == []
        found = [hint for hint in hints(job, cluster()) if hint.code == reasons.CARD_REQUEST_DIFFERS]
        assert [hint.detail.startswith('"A": 1 declared, but the tasks ask for 0') for hint in found] == [
            True
        ]

    def test_a_change_of_request_template_or_replicas_is_compared_again(self) -> None:
        old = a_job().task("a", self.ONE_A, replicas=2).cards({"A": 2})
        for new in (
            old.cards({"A": 3}),
            a_job().task("a", self.ONE_A, replicas=3).cards({"A": 2}),
            a_job().task("a", a_pod().card("A").gpu(2), replicas=2).cards({"A": 2}),
        ):
            (warning,) = answer(update(old.build(), new.build()), cluster_without_queues()).warnings
            assert "declared, but the tasks ask for" in warning
        assert (
            answer(update(new.build(), new.annotation("x", "y").build()), cluster_without_queues()).warnings
            == ()
        )

    def test_a_stored_request_that_cannot_be_read_keeps_nobody_from_scaling(self) -> None:
        old = a_job().task("a", self.ONE_A, replicas=2).cards("{")
        new = a_job().task("a", self.ONE_A, replicas=3).cards("{")
        decision = answer(update(old.build(), new.build()), cluster())
        assert decision.allowed
        assert decision.warnings == ()


def cluster_without_queues() -> ClusterView:
    return ClusterView(inventory=cluster().inventory)
