"""The one table of what is served where: path, resource, operation, rules.

The webhook's routes, `review`, `check` and the offline server all read it, so they cannot disagree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from core import reasons
from core.admission import gangs, messages, nodes, pods, queues, shapes, workloads
from core.admission.request import (
    ALLOWED,
    CREATE,
    DELETE,
    UPDATE,
    AdmissionRequest,
    ClusterView,
    Context,
    Decision,
)
from core.objects import raw as read
from core.settings import Settings
from core.settings.workload import WorkloadRow
from core.violations import Findings, Violation
from core.workloads import KINDS, Workload, added

Mutate = Callable[[AdmissionRequest, Context], Decision]
Judge = Callable[[AdmissionRequest, Context, Findings], None]

MUTATE_PODS: Final = "/mutate/pods"
MUTATE_QUEUE_CRD: Final = "/mutate/queue-crd"
MUTATE_QUEUE_STATUS: Final = "/mutate/queue-status"
VALIDATE_NODES: Final = "/validate/nodes"
VALIDATE_PODS: Final = "/validate/pods"
VALIDATE_QUEUES: Final = "/validate/queues"
VALIDATE_WORKLOADS: Final = "/validate/workloads"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done with requests for one resource at one path; exactly one of `mutate` and `judge` is set."""

    path: str
    group: str
    resource: str
    kind: str
    subresources: frozenset[str] = frozenset({""})
    operations: frozenset[str] = frozenset({CREATE, UPDATE})
    mutate: Mutate | None = None
    judge: Judge | None = None

    def applies(self, request: AdmissionRequest) -> bool:
        """Whether the rule has something to say to this request."""
        return (
            self.resource == request.resource
            and self.group == request.group
            and request.subresource in self.subresources
            and request.operation in self.operations
        )


def _workload(row: Workload, judge: Judge) -> Rule:
    def with_gangs(request: AdmissionRequest, context: Context, found: Findings) -> None:
        judge(request, context, found)
        if not found.violations:
            gangs.judge_sizes(request, context, found)

    limited = workloads.within_limits(row, with_gangs)
    return Rule(VALIDATE_WORKLOADS, row.group, row.resource, row.kind, judge=limited)


_AT_SPEC: Final = workloads.with_template("spec", "template", shape=shapes.templated)
_AT_JOB: Final = workloads.with_template("spec", "jobTemplate", "spec", "template", shape=shapes.cron_job)

OWN_RULES: Final = (
    Rule(MUTATE_PODS, "", "pods", "Pod", operations=frozenset({CREATE}), mutate=pods.mutate),
    Rule(VALIDATE_PODS, "", "pods", "Pod", subresources=frozenset({"", "status"}), judge=pods.judge),
    Rule(
        MUTATE_QUEUE_STATUS,
        "scheduling.volcano.sh",
        "queues",
        "Queue",
        subresources=frozenset({"status"}),
        operations=frozenset({UPDATE}),
        mutate=queues.mutate_status,
    ),
    Rule(VALIDATE_NODES, "", "nodes", "Node", judge=nodes.judge),
    Rule(
        MUTATE_QUEUE_CRD,
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        mutate=queues.mutate_definition,
    ),
    Rule(
        VALIDATE_QUEUES,
        "scheduling.volcano.sh",
        "queues",
        "Queue",
        operations=frozenset({CREATE, UPDATE, DELETE}),
        judge=queues.judge,
    ),
    _workload(KINDS["apps", "Deployment"], _AT_SPEC),
    _workload(KINDS["apps", "ReplicaSet"], _AT_SPEC),
    _workload(KINDS["apps", "StatefulSet"], _AT_SPEC),
    _workload(KINDS["apps", "DaemonSet"], _AT_SPEC),
    _workload(KINDS["batch", "Job"], _AT_SPEC),
    _workload(KINDS["batch", "CronJob"], _AT_JOB),
    _workload(KINDS["batch.volcano.sh", "Job"], workloads.judge_volcano_job),
    Rule(
        VALIDATE_WORKLOADS, "scheduling.volcano.sh", "podgroups", "PodGroup", judge=workloads.judge_podgroup
    ),
)


def _others() -> Iterator[Rule]:
    """The kinds of the table that have no rules of their own above."""
    own = {(rule.group, rule.kind) for rule in OWN_RULES}
    for key, row in KINDS.items():
        if key not in own:
            yield _workload(row, workloads.with_pod_sets(row))


RULES: Final = (*OWN_RULES, *_others())
"""All that need no setting."""


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """All rules: those for the kinds that the setting `workloads` adds as well."""
    return _with_added(settings.workloads)


@cache
def _with_added(rows: tuple[WorkloadRow, ...]) -> tuple[Rule, ...]:
    more = (_workload(row, workloads.with_pod_sets(row)) for row in added(rows))
    return (*RULES, *more)


def paths_of(settings: Settings) -> Mapping[str, tuple[Rule, ...]]:
    """Every path and its rules, as `rules_of` has them."""
    return _by_path(rules_of(settings))


def _by_path(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """Every path and its rules; a workload is served at `/validate/<resource>` as well."""
    table: dict[str, list[Rule]] = {}
    for rule in rules:
        table.setdefault(rule.path, []).append(rule)
        if rule.path == VALIDATE_WORKLOADS:
            table.setdefault(f"/validate/{rule.resource}", []).append(rule)
    return {path: tuple(rules) for path, rules in table.items()}


PATHS: Final[Mapping[str, tuple[Rule, ...]]] = _by_path(RULES)


def resource_of(group: str, kind: str, rules: Iterable[Rule] = RULES) -> str:
    """The resource (lower-case plural) of a kind that has rules; empty for any other kind."""
    return next((rule.resource for rule in rules if (rule.group, rule.kind) == (group, kind)), "")


def creation_of(raw: Mapping[str, Any], rules: Iterable[Rule] = RULES) -> AdmissionRequest | None:
    """The request that would create this object; None when its kind has no rules."""
    group, kind = read.text(raw, "apiVersion").rpartition("/")[0], read.text(raw, "kind")
    resource = resource_of(group, kind, rules)
    if not resource:
        return None
    metadata = read.mapping(raw, "metadata")
    return AdmissionRequest(
        uid="",
        group=group,
        resource=resource,
        kind=kind,
        operation=CREATE,
        namespace=read.text(metadata, "namespace"),
        name=read.text(metadata, "name"),
        object=raw,
    )


def judge(request: AdmissionRequest, context: Context, rules: Iterable[Rule] | None = None) -> Findings:
    """Everything that the validating ones of these rules find, each thing once; of all rules where none are given."""
    found = Findings()
    try:
        for rule in rules_of(context.settings) if rules is None else rules:
            if rule.judge is not None and rule.applies(request):
                rule.judge(request, context, found)
    except RecursionError:
        # Comparing two templates that nest hundreds of levels deep; nothing that a scheduler could ever run.
        violation = Violation(reasons.OBJECT_MALFORMED, "(the object)", "is nested too deeply")
        return Findings([violation])
    return messages.once(found) if found.violations or found.hints else found


def answer(request: AdmissionRequest, context: Context, rule: Rule) -> Decision:
    """The answer to one request by the one rule that serves its resource at a path.

    Never raises, whatever JSON the objects hold.
    """
    if rule.mutate is None:
        found = judge(request, context, (rule,))
        return _verdict(request, found) if found.violations or found.hints else ALLOWED
    return rule.mutate(request, context) if rule.applies(request) else ALLOWED


def review(
    request: AdmissionRequest,
    view: ClusterView,
    settings: Settings,
    *,
    controllers: frozenset[str] = frozenset(),
    rules: Iterable[Rule] | None = None,
) -> Decision:
    """The answer to one request by these rules, or all, as the API server would combine them.

    No mutation here changes what the validation looks at, so both judge the object as it came. `controllers` are
    the accounts that may do what is protected. Never raises, whatever JSON the objects hold.
    """
    context = Context(view, settings, controllers)
    rules = rules_of(settings) if rules is None else tuple(rules)
    verdict = _verdict(request, judge(request, context, rules))
    if verdict.denial is not None:
        return verdict
    patches = [answer(request, context, rule).patch for rule in rules if rule.mutate is not None]
    return replace(verdict, patch=tuple(step for patch in patches for step in patch))


CONSTANT: Final = (ALLOWED, *(decision for row in pods.PATCHED for decision in row))
"""The decisions that are made beforehand and given again and again."""


def _verdict(request: AdmissionRequest, found: Findings) -> Decision:
    return Decision(warnings=messages.warnings(found), denial=messages.denial(request, found))
