"""What `explain` says to somebody who may not see all that decides: what the leader answers.

Whoever sees the pods of one namespace alone does not see who holds the quota; a plan over that would be false. So nothing is
planned. Where the leader cannot be asked, the reason is the controller's own last event, and the usage is what the queue's
status shows.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli import explain_text, output

if TYPE_CHECKING:
    from cli.sight import Sight
    from cli.state import State
    from cli.targets import Target
    from core.objects import Pod, Queue
    from core.queues.ledger import Ledger
    from core.settings import Settings

_UNTRIED: Final = ("what would help", "whether its node selector, taints, CPU and memory leave it a node")
"""What the leader does not say of anything: it tries nothing while it decides."""
_TOLD: Final = {
    "hold": "waits at the gate",
    "reserved": "has its quota and no node yet: it waits for its scheduler",
    "allocated": "has its quota and a node",
    "ignored": "holds nothing and waits for nothing of cardquota's",
}


def explained(
    state: "State",
    settings: "Settings",
    sight: "Sight",
    target: "Target",
    pods: Sequence["Pod"],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """The report on the pods of a target, and what was left out. Raises UnavailableError."""
    from cli import live, noticed

    hidden = sight.missing(pods)
    report: dict[str, Any] = {"object": target.display, "leftOut": hidden}
    if not pods:
        return {**report, "pods": {}}
    ledger = sight.ledger
    decisions = {pod.key: _decision(ledger, pod) for pod in pods}
    first = min(pods, key=lambda pod: (decisions[pod.key] != "hold", pod.created, pod.key))
    counts = output.counted(decisions.values())
    report |= {"pods": counts, "pod": first.key, "decision": decisions[first.key]}
    report |= noticed.of_pod(state, settings, first, report["decision"])
    if report["decision"] == "ignored":
        return report
    answer = _answer(state, first, options)
    if answer:
        report |= _since(state, first, answer)
        left_out = ", ".join([*answer["leftOut"], *_UNTRIED])
        return {**report, **answer, "leftOut": left_out, "hidden": hidden}
    # Of a queue that something hidden may name nothing is said.
    queue = ledger.attribution(first).queue if sight.knows_queue(first) else ""
    report |= {"queue": queue, "queueFrom": ledger.queue_source(first).value} if queue else {}
    report |= _since(state, first, report)
    if report["decision"] == "hold":
        said = live.said_of(options.kubeconfig, options.context, first.namespace, first.uid)
        report |= {"said": said} if said else {}
        report["quota"] = _shown(ledger.queues.get(queue), ledger)
    return report


def _since(state: "State", pod: "Pod", report: Mapping[str, Any]) -> dict[str, Any]:
    from cli import history

    return history.since(state, pod, time.time_ns() // 1000) if report["decision"] == "hold" else {}


def _answer(state: "State", pod: "Pod", options: argparse.Namespace) -> dict[str, Any]:
    """What the leader says of the pod; nothing where it does not, and then standard error says why."""
    from cli import installation, leader

    home = installation.home_of(state)
    answer, why = leader.ask(options.kubeconfig, options.context, home, f"pods/{pod.namespace}/{pod.name}")
    if not answer:
        print(f"note: the leader was not asked: {output.printable(why)}", file=sys.stderr)
    return answer


def _decision(ledger: "Ledger", pod: "Pod") -> str:
    from core.answers.explain import STANDS

    entry = ledger.entry(pod.uid)
    return "ignored" if entry is None else STANDS[entry.stage]


def _shown(queue: "Queue | None", ledger: "Ledger") -> dict[str, dict[str, str]]:
    """The limits of the queue, and what its status says is in use."""
    from core.quantity import render_milli

    limits = ledger.limits.get(queue.name) if queue is not None else None
    if queue is None or limits is None:
        return {}
    return {
        key: {"limit": render_milli(limit), "used": queue.allocated.get(key, "0")}
        for key, limit in sorted({**limits.cards, **limits.shares}.items())
    }


def render(report: Mapping[str, Any]) -> str:
    """For people."""
    return "\n".join(output.printable(line) for line in _lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    if not report["object"].startswith("Pod "):
        yield f"{report['object']}: {explain_text.stands(report['pods'])}"
    if "pod" not in report:
        return
    if "leader" in report:
        yield from explain_text.of_pod(report)
        yield explain_text.row("Answered by", report["leader"])
        yield from output.wrapped("Left out".ljust(14), _left_out(report))
        return
    yield f"Pod {report['pod']} {_TOLD[report['decision']]}"
    said = report.get("said")
    if said:
        yield from output.wrapped("  ", f"{said['reason']}: {said['message']}")
    elif report["decision"] == "hold":
        yield "  No event says why, or none that you may read."
    yield ""
    yield from explain_text.noticed(report)
    if "queue" in report:
        yield explain_text.queue_row(report)
    if "since" in report:
        yield explain_text.since_row(report)
    if said:
        yield explain_text.row("Said", said["at"])
    for key, one in report.get("quota", {}).items():
        yield explain_text.row("Quota", f"{key}: {one['used']} of {one['limit']} in use, as the queue shows")
    yield from output.wrapped(
        "Left out".ljust(14),
        f"the place in line, who holds the quota and what would help: that takes the right to list {report['leftOut']}",
    )


def _left_out(report: Mapping[str, Any]) -> str:
    return f"{report['leftOut']}: that takes the right to list {report['hidden']}"
