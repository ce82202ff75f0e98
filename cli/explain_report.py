"""What `explain` says, as JSON: the explanation of one pod, with the others of its workload counted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli import output

if TYPE_CHECKING:
    from cli.state import State
    from cli.targets import Target
    from core.answers.explain import Explanation
    from core.objects import Pod
    from core.objects.taints import Tolerations
    from core.plan.place import Place as NodePlace
    from core.queues.ledger import Ledger
    from core.settings import Settings

_FIRST: Final = ("hold", "lift", "reserved", "allocated", "ignored")


def explained(
    state: "State",
    settings: "Settings",
    target: "Target",
    pods: Sequence["Pod"],
    now: int | None = None,
) -> dict[str, Any]:
    """The report on the pods of a target: of each how it stands, of the first one that waits everything; `now` as for `of_pod`."""
    from cli import books
    from core.answers.explain import standings

    refused = _refused(state, target)
    if not pods:
        return {"object": target.display, "pods": {}, **refused}
    ledger = books.of(state, settings)
    standing = standings(ledger, [pod.uid for pod in pods])
    first = min(pods, key=lambda pod: _FIRST.index(standing[pod.uid].decision))
    waiting = [pod for pod in pods if standing[pod.uid].decision == "hold"]
    if waiting:
        first = min(waiting, key=lambda pod: standing[pod.uid].rank)
    return {
        "object": target.display,
        "pods": output.counted(standing[pod.uid].decision for pod in pods),
        **refused,
        **_with_workload(of_pod(state, settings, ledger, first, now), state, settings, target),
    }


def _with_workload(
    report: dict[str, Any], state: "State", settings: "Settings", target: "Target"
) -> dict[str, Any]:
    """The report on a pod, with what is noticed of the workload that makes it."""
    from cli import noticed

    more = noticed.of_workload(state, settings, target).get("noticed", [])
    return {**report, "noticed": [*report.get("noticed", []), *more]} if more else report


def of_pod(
    state: "State", settings: "Settings", ledger: "Ledger", pod: "Pod", now: int | None = None
) -> dict[str, Any]:
    """Everything on one pod; `now` in microseconds since 1970, what the state itself says where it is not given."""
    from cli import books, history, noticed
    from core.answers.explain import explain
    from core.answers.report import of_explanation

    tolerations = books.tolerations(state)
    found = explain(ledger, pod.uid, tolerations)
    if found is None:
        noted = noticed.of_pod(state, settings, pod, "ignored")
        return {"pod": pod.key, "decision": "ignored", **_gates(pod), **noted}
    return {
        "pod": pod.key,
        **of_explanation(found, ledger),
        **noticed.of_pod(state, settings, pod, found.decision),
        **(history.since(state, pod, now) if found.decision == "hold" else {}),
        **history.start(state, ledger, found, now),
        **_nodes(state, settings, ledger, found),
        **_no_room(ledger, found, tolerations),
        **_scheduler(state, found),
    }


def _no_room(
    ledger: "Ledger", found: "Explanation", tolerations: Mapping[str, "Tolerations"]
) -> dict[str, Any]:
    """Of a pod that is let in, has no node and could have one: why none has room for it now."""
    from core.answers.would_run import verdicts

    if found.decision not in {"lift", "reserved"} or found.entry.pod.bound or found.beyond_nodes is not None:
        return {}
    (verdict,) = verdicts(ledger, [found.entry.pod], tolerations)
    return {"noRoom": verdict.seat.problem} if verdict.seat.problem else {}


def _gates(pod: "Pod") -> dict[str, Any]:
    """The gates of others on a pod that asks for something and has none of ours: it never waits for quota."""
    held = pod.asks and not (pod.gated or pod.bound or pod.terminal or pod.deleting)
    return {"otherGates": list(pod.gates)} if held and pod.gates else {}


def _refused(state: "State", target: "Target") -> dict[str, Any]:
    """What admission says of new pods of the target."""
    prefix = f"{target.namespace}/{target.name}"
    found = {
        key: output.why(refusal)
        for key, refusal in state.refused.items()
        if key == prefix or (target.kind != "Pod" and key.rpartition("-")[0] == prefix)
    }
    return {"refused": found} if found else {}


def _nodes(state: "State", settings: "Settings", ledger: "Ledger", found: "Explanation") -> dict[str, Any]:
    """Where mGPU shares fit."""
    from cli import books
    from core.plan.place import place

    if found.entry.demand.mgpu is None or found.entry.pod.bound:
        return {}
    guests = books.guests(state, settings)
    places = place(ledger, guests, found.entry.pod)
    return {"nodes": {name: _fit(one) for name, one in places.items() if _matters(name, ledger)}}


def _scheduler(state: "State", found: "Explanation") -> dict[str, Any]:
    """What its scheduler last said of a pod that has its quota and no node: it stands on the pod, longer than events last."""
    from cli.kinds import POD
    from core.objects import raw as read

    if found.decision != "reserved":
        return {}
    raw = state.raw.get(POD, {}).get(found.entry.pod.key, {})
    for condition in read.sequence(raw, "status", "conditions"):
        fields = read.mapping({"": condition}, "")
        if fields.get("type") == "PodScheduled" and fields.get("status") == "False":
            told = {key: read.text(fields, key) for key in ("reason", "message")}
            return {"scheduler": {**told, "since": read.text(fields, "lastTransitionTime")}}
    return {}


def _matters(node: str, ledger: "Ledger") -> bool:
    from core import names

    return any(ledger.nodes[node].allocatable.get(resource) for resource in names.MGPU_RESOURCES)


def _fit(one: "NodePlace") -> dict[str, Any]:
    return {
        "fits": not one.unfits,
        "reasons": [{"code": unfit.code, "message": unfit.message} for unfit in one.unfits],
    }
