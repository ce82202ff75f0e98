"""What a state shows of the past: which pods of a queue have ended, and when; and what the present is."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cli.state import State
    from core.answers.estimate import Freed
    from core.answers.explain import Explanation
    from core.objects import Pod
    from core.queues.ledger import Ledger

Raw = Mapping[str, Any]


def start(state: "State", ledger: "Ledger", found: "Explanation", now: int | None) -> dict[str, Any]:
    """When a pod may start, in the shape of a report, or why nothing is said; empty where it waits for no card of its queue.

    `now` is in microseconds since 1970; without it when the state was read, or the last moment that it speaks of.
    """
    from cli import output
    from core.answers.estimate import cards_waited_for, silence, start_among

    cards = cards_waited_for(found)
    if not cards or found.beyond_nodes is not None:
        return {}
    ends = {card: list(_ended(state, ledger, found.entry.queue, card)) for card in cards}
    range_of = start_among(found, ends, last_moment(state) if now is None else now)
    if range_of is None:
        return {"startUnknown": silence(found, ends)}
    latest = {} if range_of.latest is None else {"latestSeconds": range_of.latest // 1_000_000}
    amounts = output.amounts({"needed": range_of.needed, "freed": range_of.freed}, zero=True)
    return {
        "start": {
            "earliestSeconds": range_of.earliest // 1_000_000,
            **latest,
            "card": range_of.key,
            "needed": amounts["needed"],
            "basis": {
                "ends": range_of.ends,
                "freed": amounts["freed"],
                "seconds": range_of.over // 1_000_000,
            },
        }
    }


def since(state: "State", pod: "Pod", now: int | None) -> dict[str, Any]:
    """Since when a pod waits, and for how long where the present is known; nothing of one that nobody has stored yet."""
    from cli.kinds import POD
    from core.objects import raw as read

    created = read.text(
        read.mapping(state.raw.get(POD, {}).get(pod.key, {}), "metadata"), "creationTimestamp"
    )
    at = read.timestamp(created)
    if not at:
        return {}
    present = now or state.read_at
    waited = {"waitedSeconds": max(0, present - at) // 1_000_000} if present else {}
    return {"since": created, **waited}


def last_moment(state: "State") -> int:
    """When the state was read, or else the last moment that anything in it speaks of, in microseconds since 1970; 0 for none."""
    if state.read_at:
        return state.read_at
    # What is only about to be created has its time from nowhere else.
    stored = (raw for objects in state.raw.values() for raw in objects.values())
    return max((moment for raw in stored for moment in _moments(raw)), default=0)


def _moments(raw: Raw) -> Iterator[int]:
    from core.objects import raw as read

    metadata, status = read.mapping(raw, "metadata"), read.mapping(raw, "status")
    yield read.timestamp(metadata.get("creationTimestamp"))
    yield read.timestamp(status.get("startTime"))
    yield _end(raw)
    for condition in read.sequence(status, "conditions"):
        if isinstance(condition, dict):
            yield read.timestamp(condition.get("lastTransitionTime"))


def _ended(state: "State", ledger: "Ledger", queue: str, card: str) -> Iterator["Freed"]:
    """The pods that have ended and were let in for a card of this queue."""
    from cli.kinds import POD
    from core.answers.estimate import Freed
    from core.cards.ask import assignment_of

    raws = state.raw.get(POD, {})
    for pod in state.pods:
        given = assignment_of(pod) if pod.terminal else None
        if given is None or given[0] != card or ledger.attribution(pod).queue != queue:
            continue
        at = _end(raws.get(pod.key, {}))
        if at:
            yield Freed(at, given[1] * 1000)


def _end(raw: Raw) -> int:
    """When a pod ended; 0 where it has not."""
    from core.objects import raw as read
    from core.objects.pod_times import ended_at

    status = read.mapping(raw, "status")
    return ended_at(status) if read.text(status, "phase") in ("Succeeded", "Failed") else 0
