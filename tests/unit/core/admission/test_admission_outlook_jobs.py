"""Jobs and card requests that a queue could never serve: admitted, with a warning that says what is wrong."""

from typing import Any

import pytest

from core import names, reasons
from core.admission.dispatch import judge
from core.admission.request import NOTHING_LISTED, Context
from core.settings import Settings
from tests.builders import a_group, a_job, a_pod, a_queue
from tests.builders.objects import GroupBuilder, JobBuilder
from tests.unit.core.admission.outlook import (
    CARD_PATH,
    REQUEST_PATH,
    TEAM,
    cluster,
    cluster_without_queues,
    codes,
    hints,
)
from tests.unit.core.admission.samples import answer, creation, update


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
        same = old.put("spec", "maxRetry", value=2)
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
