"""Volcano Jobs with the published definitions: declared cards decide once, gangs start whole, and pods count from then on.

The stock kube-scheduler plays Volcano's; what is shown here happens before a scheduler sees a pod.
"""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core import names, reasons
from hack.controlplane import Answer, ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, unique
from tests.apiserver.manifests import GPU, card_pod, pod, queue, volcano_job
from tests.apiserver.volcano import JobController, group_of
from tests.apiserver.watching import Watch, within
from tests.own_plane import own_plane

STOCK = "VOLCANO_CRDS"
"""The environment variable that names a folder with the CustomResourceDefinitions of a Volcano release."""


@pytest.fixture(scope="module")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One of its own, with Volcano's definitions and a scheduler of Volcano's name."""
    if STOCK not in os.environ:
        pytest.skip(f"{STOCK} names no folder with Volcano's definitions")
    with own_plane(request) as plane:
        for file in sorted(Path(os.environ[STOCK]).glob("*.yaml")):
            plane.apply(file.read_text("utf-8"))
        plane.start_scheduler(name="volcano")
        yield plane


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"crds": {"install": False}}) as installed:
        yield installed


@pytest.fixture
def controller(cluster: Cluster) -> JobController:
    return JobController(cluster)


class Work:
    """A card, a queue of some of it, and Jobs in the queue."""

    def __init__(self, cluster: Cluster, quota: int) -> None:
        self.card = cluster.add_card(16)
        self.queue = unique("q")
        self.path = cluster.create_queue(queue(self.queue, json.dumps({self.card: quota})))

    def job(self, name: str, replicas: int, *, minimum: int, request: int | None = None) -> Object:
        """A Job of one task `w`; `request` is what it declares, nothing if None."""
        declared = "" if request is None else json.dumps({self.card: request})
        # The queue is the Job's; what a template says about it is not asked.
        template = card_pod("x", self.card, "elsewhere")
        return volcano_job(name, self.queue, {"w": (template, replicas)}, minimum=minimum, request=declared)


def workers(job: str, *numbers: int) -> set[str]:
    return {f"{job}-w-{number}" for number in numbers}


def test_a_job_that_declares_more_than_is_left_waits_as_a_whole_and_starts_when_room_is_freed(
    cluster: Cluster, controller: JobController
) -> None:
    """Two of four cards are free and one pod would be enough to start, but the job declares four."""
    work = Work(cluster, 4)
    first = controller.submit(work.job("first", 2, minimum=2, request=2))
    controller.enqueue(first)
    cluster.wait_running(*workers("first", 0, 1))
    cluster.wait_allocated(work.path, {work.card: 2})
    second = controller.submit(work.job("second", 4, minimum=1, request=4))
    controller.enqueue(second)
    said = cluster.wait_said(group_of(second), "InsufficientScalarQuota", "PodGroup")
    assert said.startswith(
        f"Queue <{work.queue}> has insufficient <{work.card}> quota: requested <4000>, "
        "total would be <6000>, but capability is <4000>"
    )
    assert cluster.gated() == workers("second", 0, 1, 2, 3)
    assert cluster.events("second", kind="Job") == [], "the reason is on the PodGroup, never on the Job"
    cluster.finish("first-w-0", "first-w-1")
    cluster.wait_running(*workers("second", 0, 1, 2, 3))


def test_a_job_in_a_queue_without_cards_is_denied_to_enqueue(
    cluster: Cluster, controller: JobController
) -> None:
    work = Work(cluster, 1)
    empty = unique("empty")
    cluster.create_queue(queue(empty, "{}"))
    job = work.job("job", 1, minimum=1, request=1)
    job["spec"]["queue"] = empty
    stored = controller.submit(job)
    controller.enqueue(stored)
    said = cluster.wait_said(group_of(stored), "EmptyQueueCapability", "PodGroup")
    assert said.startswith(f"Queue <{empty}> capability <")
    assert "is empty, deny it to enqueue" in said
    assert cluster.gated() == workers("job", 0)


def test_once_a_job_has_started_its_declaration_is_ignored(
    cluster: Cluster, controller: JobController
) -> None:
    """A pod that is made anew is judged by itself, whatever the group declares by then."""
    work = Work(cluster, 3)
    job = controller.submit(work.job("job", 2, minimum=1, request=2))
    controller.enqueue(job)
    cluster.wait_running(*workers("job", 0, 1))
    declared = {"metadata": {"annotations": {names.CARD_REQUEST_ANNOTATION: json.dumps({work.card: 99})}}}
    cluster.api.patch(controller.group_path(job), declared).expect()
    cluster.api.delete(cluster.path("job-w-1")).expect()
    wait_for("the pod is gone", lambda: "job-w-1" not in cluster.pods())
    controller.add_pods(job, "w", range(1, 3))
    cluster.wait_running(*workers("job", 0, 1, 2))
    controller.add_pods(job, "w", range(3, 4))
    cluster.wait_said("job-w-3", "InsufficientScalarQuota")
    assert cluster.gated() == workers("job", 3)


def test_a_job_that_declares_nothing_starts_with_its_minimum_and_grows(
    cluster: Cluster, controller: JobController
) -> None:
    """Its task names no minimum, so the PodGroup asks for all four of it beside three members; three are enough."""
    work = Work(cluster, 2)
    with Watch(cluster.plane, cluster.path(), within({work.card: 3})) as watch:
        job = controller.submit(work.job("job", 4, minimum=3))
        controller.enqueue(job)
        said = cluster.wait_said(group_of(job), "InsufficientScalarQuota", "PodGroup")
        assert "needs 3 more members at once, 2 fit" in said
        assert cluster.gated() == workers("job", 0, 1, 2, 3)
        cluster.set_quota(work.path, json.dumps({work.card: 3}))
        cluster.wait_running(*workers("job", 0, 1, 2))
        watch.catch_up()
    assert watch.complaints == []
    cluster.set_quota(work.path, json.dumps({work.card: 4}))
    cluster.wait_running(*workers("job", 0, 1, 2, 3))
    cluster.wait_allocated(work.path, {work.card: 4})


def test_two_jobs_of_either_card_go_by_the_sum_of_both(cluster: Cluster, controller: JobController) -> None:
    """Six of three and three fit whole; a second job of one card waits until some of the first have ended."""
    first, second, name = cluster.add_card(4), cluster.add_card(4), unique("q")
    path = cluster.create_queue(queue(name, json.dumps({first: 3, second: 3})))
    either = f"{first}|{second}"
    template = card_pod("x", either, name)

    def job(job_name: str, count: int) -> Object:
        declared = json.dumps({either: count})
        return volcano_job(job_name, name, {"w": (template, count)}, minimum=1, request=declared)

    with Watch(cluster.plane, cluster.path(), within({first: 3, second: 3})) as watch:
        large, small = controller.submit(job("large", 6)), controller.submit(job("small", 1))
        controller.enqueue(large)
        cluster.wait_running(*workers("large", *range(6)))
        cluster.wait_allocated(path, {first: 3, second: 3})
        controller.enqueue(small)
        said = cluster.wait_said(group_of(small), "InsufficientScalarQuota", "PodGroup")
        assert f"<{either}> quota: requested <1000>, total would be <7000>, but capability is <6000>" in said
        cluster.finish("large-w-0")
        cluster.wait_running(*workers("large", *range(1, 6)), *workers("small", 0))
        watch.catch_up()
    assert watch.complaints == []


class TestApply:
    """Volcano Jobs as users apply them."""

    CARD_NAME = "spec.tasks[1].template.metadata.annotations[volcano.sh/card.name]"

    def job(self, cluster: Cluster, card: str, **more: Any) -> Object:
        template, good = card_pod("x", card, "q"), card_pod("x", "A", "q")
        for each in (template, good):
            each["spec"]["nodeSelector"] = {"no.such/node": "at-all"}
        job = volcano_job("job", "q", {"good": (good, 1), "other": (template, 1)}, minimum=1, **more)
        job["metadata"]["namespace"] = cluster.namespace
        return job

    def applied(self, cluster: Cluster, job: Object) -> str:
        """What kubectl has to say against the Job."""
        done = cluster.plane.kubectl("apply", "-f", "-", stdin=json.dumps(job), check=False)
        return "" if done.returncode == 0 else done.stderr

    def test_a_wrong_template_is_refused_with_its_task(self, cluster: Cluster) -> None:
        said = self.applied(cluster, self.job(cluster, "A||B"))
        assert f'Job {cluster.namespace}/job is refused: {self.CARD_NAME}: Invalid value: "A||B": ' in said

    def test_a_wrong_declaration_is_refused(self, cluster: Cluster) -> None:
        said = self.applied(cluster, self.job(cluster, "A", request='{"A": "4"}'))
        assert "metadata.annotations[volcano.sh/card.request][A]" in said
        assert "must be an integer number of cards" in said

    def test_only_a_template_that_changes_is_judged_again(self, cluster: Cluster) -> None:
        """More replicas and other labels are none of our business; a wrong card name in a changed template is."""
        job = self.job(cluster, "A|B")
        assert self.applied(cluster, job) == ""
        job["metadata"]["labels"] = {"team": "a"}
        job["spec"]["tasks"][1]["replicas"] = 3
        assert self.applied(cluster, job) == ""
        job["spec"]["tasks"][1]["template"]["metadata"]["annotations"][names.CARD_NAME_ANNOTATION] = "A|"
        assert f"{self.CARD_NAME}: Invalid value" in self.applied(cluster, job)


class TestLarge:
    """A Job as large as the API server stores keeps nobody waiting: the webhook looks at a part of it, and says so."""

    TASKS = 3000
    ANSWERED_S = 5.0
    """Both cores are at work for others too. Comparing every card with every known one took 23 s."""

    def job(self, work: Work, tasks: int) -> Object:
        """Each task names a card of its own that there is not."""
        templates = {
            f"t{number}": (
                pod("x", limits={GPU: 1}, annotations={names.CARD_NAME_ANNOTATION: f"{work.card}-{number}"}),
                1,
            )
            for number in range(tasks)
        }
        return volcano_job("large", work.queue, templates, minimum=1)

    def test_more_tasks_than_are_judged_are_refused_and_others_are_answered_meanwhile(
        self, cluster: Cluster
    ) -> None:
        work = Work(cluster, 4)
        job = self.job(work, self.TASKS)
        assert len(json.dumps(job)) > 600_000
        answers, longest = self.with_others(cluster, work, job)
        assert {answer.status for answer in answers} == {400}
        assert "must have at most 500 new or changed templates, and 1,000 in all; make several" in str(
            answers[0].body
        )
        assert longest < self.ANSWERED_S

    def test_as_many_as_are_judged_are_stored_and_few_of_the_names_are_compared_with_all_cards(
        self, cluster: Cluster
    ) -> None:
        work = Work(cluster, 4)
        job = self.job(work, 500)
        answers, longest = self.with_others(cluster, work, job)
        assert {answer.status for answer in answers} == {201}
        assert longest < self.ANSWERED_S
        job["metadata"]["namespace"] = cluster.namespace
        told = cluster.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job)).stderr
        assert 0 < told.count("did you mean") < told.count("no node carries the card"), told

    def with_others(self, cluster: Cluster, work: Work, job: Object) -> tuple[list[Answer], float]:
        """The answers to four dry runs of a Job at a time, and the longest, in seconds, that a small pod waited for its own."""
        longest = 0.0
        with ThreadPoolExecutor(4) as pool:
            large = [pool.submit(cluster.try_create, job, dryRun="All") for _ in range(4)]
            while not all(each.done() for each in large):
                began = time.monotonic()
                cluster.try_create(card_pod("small", work.card, work.queue), dryRun="All").expect(201)
                longest = max(longest, time.monotonic() - began)
            return [each.result() for each in large], longest


def test_the_queue_of_a_job_comes_before_what_its_pods_say(
    cluster: Cluster, controller: JobController
) -> None:
    """While their PodGroup is not there they wait for it, whatever is free: members without it may be half a gang."""
    work = Work(cluster, 1)
    job = controller.submit(work.job("job", 1, minimum=1))
    group = cluster.api.get(controller.group_path(job)).expect()
    cluster.api.delete(controller.group_path(job)).expect()
    controller.add_pods(job, "w", range(1))
    assert "is not there" in cluster.wait_said("job-w-0", reasons.POD_GROUP_NOT_FOUND)
    assert cluster.gated() == {"job-w-0"}
    again = {key: value for key, value in group["metadata"].items() if key in ("name", "annotations")}
    cluster.create({**group, "metadata": again})
    cluster.wait_running(*workers("job", 0))
    cluster.wait_allocated(work.path, {work.card: 1})


def test_what_runs_stays_charged_to_its_queue_whatever_job_it_is_given_to(cluster: Cluster) -> None:
    """The queue of a Job comes before what a pod says, as long as the pod waits."""
    work, other = Work(cluster, 1), unique("other")
    other_path = cluster.create_queue(queue(other, json.dumps({work.card: 0})))
    cluster.create(card_pod("a", work.card, work.queue))
    cluster.wait_running("a")
    template = card_pod("x", work.card, other)
    (job,) = cluster.create(volcano_job("j", other, {"w": (template, 1)}, minimum=1))
    owner = {key: job[key] for key in ("apiVersion", "kind")}
    owner |= {"name": "j", "uid": job["metadata"]["uid"], "controller": True}
    cluster.api.patch(cluster.path("a"), {"metadata": {"ownerReferences": [owner]}}).expect()
    waits = card_pod("c", work.card, work.queue)
    waits["metadata"]["ownerReferences"] = [owner]
    cluster.create(waits)
    assert f"Queue <{other}>" in cluster.wait_said("c", reasons.INSUFFICIENT_SCALAR_QUOTA)
    cluster.create(card_pod("b", work.card, work.queue))
    assert f"Queue <{work.queue}>" in cluster.wait_said("b", reasons.INSUFFICIENT_SCALAR_QUOTA)
    assert cluster.running() == {"a"}
    assert cluster.allocated(work.path) == {work.card: "1"}
    assert cluster.allocated(other_path) == {}


def test_a_job_in_a_queue_that_is_closed_to_its_namespace_is_refused(cluster: Cluster) -> None:
    """Once, by the queue that it names; what a template says about it is not asked here either."""
    work = Work(cluster, 4)
    closed = {"metadata": {"annotations": {names.NAMESPACES_ANNOTATION: "somebody-else"}}}
    cluster.api.patch(work.path, closed).expect()
    job = work.job("j", 2, minimum=2)

    def refused() -> str:
        answer = cluster.try_create(job, dryRun="All")
        return str(answer.body["message"]) if answer.status == 403 else ""

    said = wait_for("the webhook knows who may use the queue", refused)
    assert said.count("is not open to namespace") == 1
    assert f'spec.queue: Forbidden: "{work.queue}": queue {work.queue} is not open' in said
