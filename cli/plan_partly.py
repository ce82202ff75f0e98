"""What `plan` says to somebody who may not see all that decides: who waits in any case."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cli import output

if TYPE_CHECKING:
    from cli.sight import Sight
    from cli.state import State

_PODS: Final = "Pod in all namespaces"


def as_far_as_known(report: Mapping[str, Any], state: "State", sight: "Sight") -> dict[str, Any]:
    """Of a plan over what is seen: who waits whatever the rest is does wait; whether anybody else is let in is not known."""
    from core.answers.regardless import held_regardless

    doubts = {pod.key: found for pod in state.pods if (found := sight.doubts(pod))}
    if not doubts:
        return {**report}
    held = held_regardless(sight.ledger, sight.unclear)
    by_key = {pod.key: pod for pod in state.pods}
    pods = dict(report["pods"])
    open_ones = set()
    for key, found in doubts.items():
        shown, pod = report["pods"][key], by_key[key]
        queue = shown["queue"] if sight.knows_queue(pod) else ""
        if shown["decision"] not in ("lift", "hold"):
            pods[key] = {**shown, "queue": queue}
        elif pod.uid in held:
            pods[key] = {**shown, "queue": queue, **output.why(held[pod.uid].why)}
        else:
            open_ones.add(f"Pod {key}")
            pods[key] = {"queue": queue, "decision": "hold", "reason": "", "message": _unknown(found)}
    events = [event for event in report["events"] if _stands(event["object"], open_ones)]
    # What is used is not all seen; `queues` shows what the status of each says.
    return {**report, "pods": pods, "queues": {}, "events": events}


def _stands(about: str, open_ones: set[str]) -> bool:
    """Whether what is told of an object does not rest on who is let in: a group may be more than is seen of it."""
    return about.startswith("Queue ") or (about.startswith("Pod ") and about not in open_ones)


def _unknown(kinds: list[str]) -> str:
    others = ", ".join(kind for kind in kinds if kind != _PODS)
    named = ["pods"] * (_PODS in kinds) + [f"objects of kind {others}"] * bool(others)
    return f"whether it is let in rests on {' and '.join(named)} that you may not list; cardquota explain asks the leader"
