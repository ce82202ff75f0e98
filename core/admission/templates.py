"""The rules that a pod and the template of a pod share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypedDict

from core import names, reasons
from core.admission import limits, outlook, queue_access
from core.admission.asks import asks_ours
from core.admission.request import AdmissionRequest
from core.admission.view import Context
from core.cards import rules as card_rules
from core.crossquota import rules as crossquota_rules
from core.mgpu import rules as mgpu_rules
from core.objects import Job
from core.objects import raw as read
from core.settings import Settings
from core.violations import Findings, Violation, child


class _Place(TypedDict):
    prefix: str
    settings: Settings
    template: bool


class _Destined(TypedDict):
    prefix: str
    namespace: str
    job: Job | None
    context: Context


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod to be, raw, with shapes that were checked.

    `prefix` is where it stands in the object: `` for a pod itself, else such as `spec.template.`. `scheduler` is the
    one that will get its pods, `namespace` theirs (empty for `default`), `job` the Volcano Job that will make them.
    """

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    prefix: str
    template: bool
    scheduler: str
    namespace: str
    job: Job | None

    @classmethod
    def of(
        cls,
        raw: object,
        prefix: str = "",
        *,
        namespace: str = "",
        scheduler: str = names.DEFAULT_SCHEDULER,
        job: Job | None = None,
    ) -> Self:
        """A pod, or the template that stands at `prefix`; `scheduler` is for a spec that names none."""
        metadata, spec = read.mapping(raw, "metadata"), read.mapping(raw, "spec")
        chosen = read.text(spec, "schedulerName") or scheduler
        return cls(metadata, spec, prefix, bool(prefix), chosen, namespace, job)


def namespace_of(request: AdmissionRequest) -> str:
    """Where the object under review is, and so where its pods will be; empty for the default namespace."""
    return request.namespace or read.text(read.mapping(request.object, "metadata"), "namespace")


def judge(subject: Subject, context: Context) -> Findings:
    """Every rule about what a new pod asks for.

    Records are protected whatever features are on: a forged one would be believed as soon as its feature is.
    """
    records = Findings(tuple(_preset_records(subject.metadata, subject.prefix)))
    # Whoever schedules them: the queue that the pods are for is open to their namespace, or not.
    access = queue_access.pod_findings(subject.metadata, subject.spec, **_destined(subject, context))
    return asked(subject, context) + records + access


def asked(subject: Subject, context: Context) -> Findings:
    """The rules of the features that are on.

    Those of mGPU for a scheduler of ours, since nobody else knows it, and for a pod that comes with its node: no scheduler
    and no Binding will ever have a say about that.
    """
    settings, findings = context.settings, Findings()
    place: _Place = {"prefix": subject.prefix, "settings": settings, "template": subject.template}
    if settings.features.cards:
        inventory = context.view.inventory
        findings += card_rules.judge(subject.metadata, subject.spec, inventory=inventory, **place)
    ours = subject.scheduler in settings.scheduler_names
    if settings.features.mgpu and (ours or (not subject.template and read.text(subject.spec, "nodeName"))):
        findings += mgpu_rules.judge(subject.metadata, subject.spec, **place)
    if settings.features.gates and ours and asks_ours(subject.metadata, subject.spec, context):
        findings += Findings(tuple(limits.expressions(subject.spec, subject.prefix)))
    if settings.features.cross_quota:
        findings += Findings(hints=crossquota_rules.pod_hints(subject.metadata, subject.prefix))
    if settings.features.gates and ours and not findings.violations:
        # Only those hear it who wait at the gate.
        hints = outlook.pod_hints(subject.metadata, subject.spec, **_destined(subject, context))
        findings += Findings(hints=tuple(hints))
    return findings


def _destined(subject: Subject, context: Context) -> _Destined:
    return {
        "prefix": subject.prefix,
        "namespace": subject.namespace,
        "job": subject.job,
        "context": context,
    }


def _preset_records(metadata: Mapping[str, Any], prefix: str) -> Iterable[Violation]:
    """Records of the controller that stand in an object which is only being created, whoever creates it."""
    for key, value in read.mapping(metadata, "annotations").items():
        if names.is_record(key):
            yield Violation(
                reasons.RECORD_PROTECTED,
                child(f"{prefix}metadata.annotations", key),
                "is set by the controller only, leave it out",
                kind="Forbidden",
                value=value,
            )
