"""What nobody but the controller may change on a stored pod.

The same rules stand in the cluster as ValidatingAdmissionPolicies, which hold while our processes are down. They
apply to `pods` and to `pods/status` alike: a status update carries changed annotations and labels with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from core import names, reasons
from core.admission.request import AdmissionRequest, Context
from core.objects import raw as read
from core.objects.draft import Draft
from core.violations import Violation, child

_MGPU_INPUTS: Final = (names.MGPU_MULTIPLE_ANNOTATION, names.MGPU_POLICY_KEY)
_QUEUE_NAMES: Final = (names.QUEUE_NAME_ANNOTATION, names.JOB_QUEUE_ANNOTATION)
_SETTLED: Final = "is fixed once the quota gate is gone"
_MADE_FOR: Final = "is fixed on a stored pod, change the pod template and make the pod anew"


@dataclass(frozen=True, slots=True)
class _Change:
    """Annotations and labels before and after; an entry that is null counts as absent, as for the API server."""

    was: Mapping[str, str]
    now: Mapping[str, str]
    labels_were: Mapping[str, str]
    labels_are: Mapping[str, str]

    @classmethod
    def of(cls, request: AdmissionRequest) -> Self:
        return cls(
            was=read.texts(request.old_object, "metadata", "annotations"),
            now=read.texts(request.object, "metadata", "annotations"),
            labels_were=read.texts(request.old_object, "metadata", "labels"),
            labels_are=read.texts(request.object, "metadata", "labels"),
        )

    def touched(self) -> list[str]:
        """The annotation keys that were added, changed or removed, in order."""
        return sorted({key for key, _ in self.was.items() ^ self.now.items()})


def judge(request: AdmissionRequest, context: Context) -> Iterator[Violation]:
    """Every protected thing that this update touches; nothing for the controller itself."""
    if request.username in context.controllers:
        return
    change = _Change.of(request)
    agent = request.username in context.settings.mgpu.node_agents
    yield from _gate(request)
    yield from _records(change, agent=agent)
    yield from _label(change)
    yield from _inputs(request, change, agent=agent)


def _gate(request: AdmissionRequest) -> Iterator[Violation]:
    if gated(request.old_object) and not gated(request.object):
        yield Violation(
            reasons.GATE_PROTECTED,
            "spec.schedulingGates",
            f"the scheduling gate {names.GATE} is lifted by the quota controller only "
            f"(asked by {request.username or 'nobody'})",
            kind="Forbidden",
        )


def gated(pod: Mapping[str, Any]) -> bool:
    """Whether the raw pod carries our gate."""
    return any(
        read.mapping(gate).get("name") == names.GATE for gate in read.sequence(pod, "spec", "schedulingGates")
    )


def _records(change: _Change, *, agent: bool) -> Iterator[Violation]:
    """Of the records, node agents may write the results of an mGPU placement."""
    for key in change.touched():
        if names.is_record(key) and not (agent and not key.startswith(names.OWN_PREFIX)):
            yield _fixed(
                reasons.RECORD_PROTECTED, key, change, "is a record of the quota controller, immutable"
            )


def _label(change: _Change) -> Iterator[Violation]:
    if change.labels_were.get(names.MANAGED_LABEL) != change.labels_are.get(names.MANAGED_LABEL):
        yield Violation(
            reasons.RECORD_PROTECTED,
            child("metadata.labels", names.MANAGED_LABEL),
            "belongs to the quota controller, immutable",
            kind="Forbidden",
        )


def _inputs(request: AdmissionRequest, change: _Change, *, agent: bool) -> Iterator[Violation]:
    """What the user wrote and the decision rests on: fixed as soon as the decision may have been taken."""
    old = Draft.of(request.old_object)
    mgpu, ungated = old.mgpu and not agent, not gated(request.old_object)
    ours = bool(old.cards) or old.mgpu or old.claims or names.MANAGED_LABEL in change.labels_were
    charged = ungated and ours
    fixed: dict[str, str] = {
        **(dict.fromkeys(_MGPU_INPUTS, "is immutable on an mGPU pod") if mgpu else {}),
        **({names.CARD_NAME_ANNOTATION: _SETTLED} if ungated else {}),
        # Others were told already whether they start together with this one.
        **dict.fromkeys(names.GANG_KEYS, _MADE_FOR),
        **(dict.fromkeys(_QUEUE_NAMES, _SETTLED) if charged else {}),
        # Volcano sets the group after the pod was created, maybe after the gate is gone.
        **(
            {names.GROUP_NAME_ANNOTATION: _SETTLED}
            if charged and names.GROUP_NAME_ANNOTATION in change.was
            else {}
        ),
    }
    for key in change.touched():
        if key in fixed:
            yield _fixed(reasons.FIELD_FIXED, key, change, fixed[key])


def _fixed(code: str, key: str, change: _Change, detail: str) -> Violation:
    path = child("metadata.annotations", key)
    if key in change.now:
        return Violation(code, path, detail, kind="Forbidden", value=change.now[key])
    return Violation(code, path, f"{detail} (the update removes it)", kind="Forbidden")
