"""Pods: the gate that holds a pod until its queue has quota, and what a pod must look like to get one."""

from itertools import islice
from typing import Final

from core import names
from core.admission import protection, shapes, templates
from core.admission.asks import asks_ours
from core.admission.request import ALLOWED, CREATE, Add, AdmissionRequest, Context, Decision, Patch
from core.admission.templates import namespace_of
from core.objects import raw as read
from core.objects.draft import Draft
from core.violations import Findings

_NO_PATCH: Final[Patch] = ()
_FIRST_GATE: Final = (Add(("spec", "schedulingGates"), [{"name": names.GATE}]),)
_ONE_MORE_GATE: Final = (Add(("spec", "schedulingGates", "-"), {"name": names.GATE}),)
_LABEL: Final = (Add(("metadata", "labels", names.MANAGED_LABEL), "true"),)
_FIRST_LABEL: Final = (Add(("metadata", "labels"), {names.MANAGED_LABEL: "true"}),)
_FIRST_METADATA: Final = (Add(("metadata",), {"labels": {names.MANAGED_LABEL: "true"}}),)

PATCHED: Final[tuple[tuple[Decision, ...], ...]] = tuple(
    tuple(
        Decision(gate + label) if gate + label else ALLOWED
        for label in (_NO_PATCH, _LABEL, _FIRST_LABEL, _FIRST_METADATA)
    )
    for gate in (_NO_PATCH, _FIRST_GATE, _ONE_MORE_GATE)
)
"""Every answer that a pod may get, by what its gates and its labels are; see `mutate`."""


def mutate(request: AdmissionRequest, context: Context) -> Decision:
    """Gate and label for a pod that asks, one of `PATCHED`; nothing for any other, and nothing when both are there already.

    Applying the patch and asking again gives no patch, so the API server may call as often as it likes. An object
    that the validation will refuse for its shape is left as it is.
    """
    raw = request.object
    draft = Draft.of(raw)
    if not draft.spec or (not draft.typed and shapes.wrong(draft, raw, shapes.pod)):
        return ALLOWED
    if not gated_at_creation(draft, context):
        return ALLOWED
    gates, labels = draft.spec.get("schedulingGates"), draft.metadata.get("labels")
    gate = 1 if gates is None else 2
    if gates:
        for each in gates:
            if each.get("name") == names.GATE:
                gate = 0
    if labels is not None:
        label = 0 if labels.get(names.MANAGED_LABEL) == "true" else 1
    else:
        label = 2 if raw.get("metadata") is not None else 3
    return PATCHED[gate][label]


def gated_at_creation(draft: Draft, context: Context) -> bool:
    """Whether a new pod gets the gate.

    Not without a scheduler of ours, which would never look at the pod; not with a node, since the API server
    refuses gates beside one; not the image of a static pod, which runs already.
    """
    settings = context.settings
    return (
        settings.features.gates
        and draft.scheduler in settings.scheduler_names
        and not draft.spec.get("nodeName")
        and names.MIRROR_POD_ANNOTATION not in draft.annotations
        and asks_ours(draft, context)
    )


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The rules for a new pod; for a stored one what is protected, and the card name if that changed."""
    raw = request.object
    draft = Draft.of(raw, namespace=request.namespace or namespace_of(request))
    malformed = () if draft.typed else shapes.wrong(draft, raw, shapes.pod)
    if malformed:
        found.violations += malformed
    elif request.operation == CREATE:
        if names.MIRROR_POD_ANNOTATION in draft.annotations and not request.username.startswith(
            names.NODE_ACCOUNTS
        ):
            # The image of a static pod shows what runs on its node anyway, so little is asked of it. Only kubelets make them: the
            # annotation of anybody else counts for nothing, or it would be a way past the gate into any queue.
            draft.drop(names.MIRROR_POD_ANNOTATION)
        templates.judge(draft, context, found)
    else:
        _judge_update(request, draft, context, found)


def _judge_update(request: AdmissionRequest, draft: Draft, context: Context, found: Findings) -> None:
    """A card name may change while the gate holds the pod; the new one must be as good as that of a new pod."""
    found.violations += islice(protection.judge(request, context), templates.TOLD)
    lifted = request.username in context.controllers and not protection.gated(request.object)
    if found.violations or lifted:
        # A lift may write the card that was inferred; whether the pod may have that one was decided before.
        return
    was = read.mapping(request.old_object, "metadata", "annotations").get(names.CARD_NAME_ANNOTATION)
    if draft.annotations.get(names.CARD_NAME_ANNOTATION) != was:
        # What the controller has recorded meanwhile is no preset record.
        draft.drop(*filter(names.is_record, draft.annotations))
        templates.judge_asked(draft, context, found)
