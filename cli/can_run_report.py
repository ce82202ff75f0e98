"""What `can-run` says, as JSON: the verdict on each object, and the explanation of the first pod that would wait."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli import documents, explain_report, output

if TYPE_CHECKING:
    from cli.applied import Manifest, Outcome
    from cli.state import State
    from core.answers.would_run import Verdict
    from core.objects import Pod
    from core.settings import Settings
    from core.violations import Findings


def judged(outcome: "Outcome", settings: "Settings") -> dict[str, Any]:
    """The whole answer."""
    from cli import books
    from core.answers.would_run import verdicts

    ledger = books.of(outcome.state, settings)
    made = [pod for pods in outcome.made.values() for pod in pods]
    found = verdicts(ledger, made, books.tolerations(outcome.state))
    by_pod = {verdict.pod.uid: verdict for verdict in found}
    refused = refusals(outcome)
    objects = [
        _object(f"{kind.kind} {key}", [by_pod[pod.uid] for pod in pods])
        for (kind, key), pods in outcome.made.items()
    ]
    waiting = [verdict for verdict in found if not verdict.runs]
    report: dict[str, Any] = {
        "verdict": "refused" if refused else "waits" if waiting else "runs",
        "ever": not refused and not any(verdict.never for verdict in found),
        "objects": objects,
        "refused": refused,
        "replaced": list(outcome.replaced),
    }
    if waiting:
        report["waits"] = _first(outcome.state, settings, waiting)
    return report


def refusals(outcome: "Outcome") -> list[dict[str, Any]]:
    """What admission says against the objects, and against pods that would come of them."""
    found = [entry for one, said in outcome.findings if said.violations for entry in _violations(one, said)]
    return found + [
        {"object": f"Pod {key}", "code": why.code, "path": "", "message": why.message, "remedy": why.remedy}
        for key, why in outcome.state.refused.items()
    ]


def _violations(one: "Manifest", said: "Findings") -> list[dict[str, Any]]:
    from core.catalogue import remedy

    return [
        {
            "object": one.display,
            "file": one.source,
            "line": documents.line_of(one.found.place, violation.path),
            "code": violation.code,
            "path": violation.path,
            "message": str(violation).removeprefix(f"{violation.path}: "),
            "remedy": remedy(violation.code),
        }
        for violation in said.violations
    ]


def _object(display: str, found: Sequence["Verdict"]) -> dict[str, Any]:
    """One object: of its pods so many of each kind, on which cards they would run, and why others would not."""
    running = [verdict for verdict in found if verdict.runs]
    cards: Counter[str] = Counter()
    for verdict in running:
        cards.update(verdict.cards)
    shown: dict[str, Any] = {
        "object": display,
        "verdict": "runs" if len(running) == len(found) else "waits",
        "queues": sorted({verdict.queue for verdict in found if verdict.queue}),
        "pods": {"runs": len(running), "waits": len(found) - len(running)},
        "cards": dict(cards),
        "nodes": dict(Counter(verdict.seat.node for verdict in running if verdict.seat.node)),
    }
    waiting = [verdict for verdict in found if not verdict.runs]
    if waiting:
        shown |= _why(_telling(waiting))
    in_vain = [verdict for verdict in waiting if verdict.never]
    never = _telling(in_vain).never if in_vain else ""
    return shown | {"ever": not never} | ({"never": never} if never else {})


def _why(verdict: "Verdict") -> Mapping[str, str]:
    from core import reasons

    if verdict.hold is not None:
        return output.why(verdict.hold.why)
    if verdict.apart is not None:
        return output.why(verdict.apart)
    return {
        "reason": reasons.NO_FREE_CARD,
        "message": f"is let in, and no node has room: {verdict.seat.problem}",
    }


def _telling(waiting: Sequence["Verdict"]) -> "Verdict":
    """The first pod at the gate, else the first one that waits."""
    return next((verdict for verdict in waiting if verdict.hold is not None), waiting[0])


def _first(state: "State", settings: "Settings", waiting: Sequence["Verdict"]) -> dict[str, Any]:
    """Everything on the pod that tells most."""
    from cli import books

    pod: Pod = _telling(waiting).pod
    return explain_report.of_pod(state, settings, books.of(state, settings), pod)
