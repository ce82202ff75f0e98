"""What admission and `check` would say of a stored pod's card name, for whoever asks why the pod does not start."""

from typing import TYPE_CHECKING, Any, Final

from core import reasons

if TYPE_CHECKING:
    from cli.state import State
    from cli.targets import Target
    from core.admission.request import Context
    from core.objects import Pod
    from core.settings import Settings

_ALWAYS: Final = frozenset(
    {
        reasons.CARD_NAME_MISSING,
        reasons.CARD_NAME_MISSPELT,
        reasons.CARD_NAME_MALFORMED,
        reasons.CARD_RESOURCES_DIFFER,
        reasons.CARD_RESOURCE_MISSING,
        reasons.KEY_UNREAD,
    }
)
_BEFORE: Final = _ALWAYS | {reasons.CARD_UNKNOWN}
"""Of a pod that was not let in yet: which card the others got stands in their records."""


def of_pod(state: "State", settings: "Settings", pod: "Pod", decision: str) -> dict[str, Any]:
    """The findings about the card of a pod that has not ended; nothing where there are none."""
    from cli.kinds import POD
    from core.admission import dispatch, near_misses

    raw = state.raw.get(POD, {}).get(pod.key)
    if raw is None or pod.terminal:
        return {}
    request = dispatch.creation_of({**raw, "apiVersion": "v1", "kind": "Pod"})
    found = dispatch.judge(request, _context(state, settings)) if request is not None else None
    told = _ALWAYS if decision in ("reserved", "allocated") else _BEFORE
    said: dict[tuple[str, str], str] = {}
    for violation in found.violations if found is not None else ():
        said.setdefault((violation.code, violation.path), str(violation).removeprefix(f"{violation.path}: "))
    for hint in (*(found.hints if found is not None else ()), *near_misses.hints("", "Pod", raw, settings)):
        said.setdefault((hint.code, hint.path), hint.text)
    return _shown({place: text for place, text in said.items() if place[0] in told})


def of_workload(state: "State", settings: "Settings", target: "Target") -> dict[str, Any]:
    """What stands on a workload itself and is read on its pods alone."""
    from core.admission import near_misses

    key = f"{target.namespace}/{target.name}"
    said = {
        (hint.code, hint.path): hint.text
        for kind, objects in state.raw.items()
        if target.is_of(*kind) and target.kind != "Pod" and key in objects
        for hint in near_misses.hints(kind.group, kind.kind, objects[key], settings)
        if hint.path.startswith("metadata.")
    }
    return _shown(said)


def _shown(said: dict[tuple[str, str], str]) -> dict[str, Any]:
    from core.catalogue import remedy

    found = [
        {"code": code, "path": path, "message": text, "remedy": remedy(code)}
        for (code, path), text in said.items()
    ]
    return {"noticed": found} if found else {}


def _context(state: "State", settings: "Settings") -> "Context":
    """The cards of the nodes that may be seen; of queues something else says more."""
    from dataclasses import replace

    from cli import books
    from core.admission.request import Context

    view = books.view_of(state, settings)
    return Context(replace(view, queues=None, namespaces=None, device_classes=None), settings)
