"""Pods: the gate that holds a pod until its queue has quota, and what a pod must look like to get one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core import names
from core.admission import protection, shapes, templates
from core.admission.asks import asks_ours
from core.admission.request import CREATE, Add, AdmissionRequest
from core.admission.templates import Subject, namespace_of
from core.admission.view import Context
from core.objects import raw as read
from core.violations import Findings


def mutate(request: AdmissionRequest, context: Context) -> tuple[Add, ...]:
    """Gate and label for a pod that asks; nothing for any other, and nothing when both are there already.

    Applying the patch and asking again gives no patch, so the API server may call as often as it likes. An object
    that the validation will refuse for its shape is left as it is.
    """
    raw = request.object
    if request.operation != CREATE or shapes.pod(raw):
        return ()
    metadata, spec = read.mapping(raw, "metadata"), read.mapping(raw, "spec")
    if not gated_at_creation(metadata, spec, context):
        return ()
    return (*_gate(spec), *_label(raw))


def gated_at_creation(metadata: Mapping[str, Any], spec: Mapping[str, Any], context: Context) -> bool:
    """Whether a new pod gets the gate.

    Not without a scheduler of ours, which would never look at the pod; not with a node, since the API server
    refuses gates beside one; not the image of a static pod, which runs already.
    """
    settings, scheduler = context.settings, read.text(spec, "schedulerName") or names.DEFAULT_SCHEDULER
    return (
        settings.features.gates
        and asks_ours(metadata, spec, context)
        and scheduler in settings.scheduler_names
        and not read.text(spec, "nodeName")
        and names.MIRROR_POD_ANNOTATION not in read.mapping(metadata, "annotations")
    )


def _gate(spec: Mapping[str, Any]) -> tuple[Add, ...]:
    gates = spec.get("schedulingGates")
    if gates is None:
        return (Add(("spec", "schedulingGates"), [{"name": names.GATE}]),)
    if any(gate.get("name") == names.GATE for gate in gates):
        return ()
    return (Add(("spec", "schedulingGates", "-"), {"name": names.GATE}),)


def _label(raw: Mapping[str, Any]) -> tuple[Add, ...]:
    metadata = raw.get("metadata")
    labels = read.mapping(metadata).get("labels")
    if labels is not None and labels.get(names.MANAGED_LABEL) == "true":
        return ()
    if labels is not None:
        return (Add(("metadata", "labels", names.MANAGED_LABEL), "true"),)
    if metadata is not None:
        return (Add(("metadata", "labels"), {names.MANAGED_LABEL: "true"}),)
    return (Add(("metadata",), {"labels": {names.MANAGED_LABEL: "true"}}),)


def judge(request: AdmissionRequest, context: Context) -> Findings:
    """The rules for a new pod; for a stored one what is protected, and the card name if that changed."""
    malformed = shapes.pod(request.object)
    if malformed:
        return Findings(malformed)
    if request.operation == CREATE:
        return templates.judge(_new(request), context)
    findings = Findings(tuple(protection.judge(request, context)))
    lifted = request.username in context.controllers and not protection.gated(request.object)
    if findings.violations or lifted:
        # A lift may write the card that was inferred; whether the pod may have that one was decided before.
        return findings
    return findings + _changed_card(request, context)


def _new(request: AdmissionRequest) -> Subject:
    """A pod that is created.

    The image of a static pod shows what runs on its node anyway, so little is asked of it. Only kubelets make them: the
    annotation of anybody else counts for nothing, or it would be a way past the gate into any queue.
    """
    subject = Subject.of(request.object, namespace=namespace_of(request))
    annotations = read.mapping(subject.metadata, "annotations")
    if names.MIRROR_POD_ANNOTATION not in annotations or request.username.startswith(names.NODE_ACCOUNTS):
        return subject
    kept = {key: value for key, value in annotations.items() if key != names.MIRROR_POD_ANNOTATION}
    return replace(subject, metadata={**subject.metadata, "annotations": kept})


def _changed_card(request: AdmissionRequest, context: Context) -> Findings:
    """A card name may change while the gate holds the pod; the new one must be as good as that of a new pod."""
    now = read.mapping(request.object, "metadata", "annotations")
    was = read.mapping(request.old_object, "metadata", "annotations")
    if now.get(names.CARD_NAME_ANNOTATION) == was.get(names.CARD_NAME_ANNOTATION):
        return Findings()
    # What the controller has recorded meanwhile is no preset record.
    subject = Subject.of(request.object, namespace=namespace_of(request))
    kept = {key: value for key, value in now.items() if not names.is_record(key)}
    return templates.asked(replace(subject, metadata={**subject.metadata, "annotations": kept}), context)
