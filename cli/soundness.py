"""Whether the books are right: the status of queues, and the records on pods, against what the pods are."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cli.creation import is_unstored
from cli.kinds import POD, QUEUE
from cli.sight import Sight
from cli.state import State
from cli.verdicts import Verdict, shortened, verdicts
from core import names
from core.answers.words import counted
from core.cards import expression
from core.cards.ask import AskError, open_ask
from core.cards.assigned import read_assigned
from core.display.figures import own_figures
from core.display.status import published, status_patch
from core.mgpu.booked import RecordBook
from core.mgpu.repair import examine
from core.objects import Pod, Queue
from core.objects import raw as read
from core.queues.ledger import Ledger
from core.stage import Stage

STATUS: Final = "queue status"
RECORDS: Final = "records"

_BESIDE_THE_QUEUE: Final = (
    names.ASSIGNED_ANNOTATION,
    names.CLAIMS_ANNOTATION,
    names.GANG_ANNOTATION,
    names.GANG_OF_ANNOTATION,
    names.LIFTED_ANNOTATION,
    names.NODE_ANNOTATION,
    names.NOMINATED_ANNOTATION,
    names.SHARE_CARD_ANNOTATION,
)
"""Records that nobody writes without that of the queue. Indexes of GPUs are none of these: node agents of others write them, too."""


def of(state: State, sight: Sight) -> list[Verdict]:
    """What is said of the books of a state, by what of it is seen."""
    if state.hidden:
        return [Verdict(check, "unknown", _unlisted(state.hidden)) for check in (STATUS, RECORDS)]
    ledger = sight.ledger
    pods = sum(entry.stage is not Stage.WAITING for entry in ledger.entries())
    whose = (
        "1 pod that was let in agree with it"
        if pods == 1
        else f"{pods} pods that were let in agree with the pods"
    )
    uncounted = sight.uncounted()
    statuses = [Verdict(STATUS, "unknown", _unlisted(uncounted))] if uncounted else _statuses(state, ledger)
    return [*statuses, *verdicts(RECORDS, _records(ledger), f"those of {whose}")]


def _unlisted(kinds: str) -> str:
    return f"without the right to list {kinds} it is not known what pods use"


def figures(sight: Sight) -> dict[tuple[str, str], int] | None:
    """What bound pods use of each card, share and device, by queue and key, in thousandths; what is 0 is left out.

    None where that cannot be counted by what may be seen.
    """
    if sight.uncounted():
        return None
    ledger = sight.ledger
    return {
        (queue, key): milli
        for queue, parts in own_figures(ledger)
        for key, milli in parts["allocated"].items()
        if milli
    }


def _statuses(state: State, ledger: Ledger) -> list[Verdict]:
    """Every queue with what its status should show; of some nobody can know whether a controller would have written it."""
    wrong: list[str] = []
    unknown: list[Verdict] = []
    pods = _unstored_pods(state, ledger)
    for name, queue in sorted(ledger.queues.items()):
        found = list(_status(ledger, queue))
        raw = state.raw.get(QUEUE, {}).get(name, {})
        why = _unknowable(raw, pods[name]) if found else ""
        if why:
            unknown.append(Verdict(STATUS, "unknown", f"{found[0]}; {why}"))
        else:
            wrong += found
    judged = len(ledger.queues) - len(unknown)
    told = (
        verdicts(
            STATUS,
            wrong,
            f"{counted(judged, 'queue')} {'shows what its' if judged == 1 else 'show what their'} pods use",
        )
        if judged
        else []
    )
    return [*told, *shortened(unknown)]


def _unknowable(raw: Mapping[str, Any], pods: int) -> str:
    """Why nobody can tell whether the status of a queue should be another one; empty where it should.

    A status follows what is stored. Of a file that somebody wrote by hand nothing was, unless a status was written with it.
    """
    if is_unstored(raw):
        if "allocated" in read.mapping(raw, "status"):
            return ""
        return "the queue was never stored, so no controller has written a status"
    if not pods:
        return ""
    who = "one of its pods was" if pods == 1 else f"{pods} of its pods were"
    return f"{who} never stored, so no controller has counted {'it' if pods == 1 else 'them'}"


def _unstored_pods(state: State, ledger: Ledger) -> Counter[str]:
    """How many pods in use of each queue, those of the queues below it included, no API server has stored."""
    found: Counter[str] = Counter()
    for pod in state.pods:
        entry = ledger.entry(pod.uid)
        if entry is not None and entry.stage is Stage.ALLOCATED and is_unstored(state.raw[POD][pod.key]):
            found.update(ledger.with_those_above(entry.queue))
    return found


def _status(ledger: Ledger, queue: Queue) -> Iterator[str]:
    name = queue.name
    wanted = {**published(ledger.sums(name).allocated), **ledger.devices.published(queue)}
    patch = status_patch(queue, wanted)
    # A state without managedFields does not say whose the other keys are; the scheduler's own are none of ours.
    ours = {*wanted, *ledger.limits[name].cards, *ledger.inventory.cards(), *ledger.devices.quota(name)}
    for key in sorted(ours & patch["status"]["allocated"].keys()) if patch else ():
        shown, should = queue.allocated.get(key, "0"), wanted.get(key, "0")
        yield f"queue {name}: status.allocated shows {shown} of {key}, and its pods use {should}"


def _records(ledger: Ledger) -> Iterator[str]:
    for entry in sorted(ledger.entries(), key=lambda entry: entry.pod.key):
        if entry.stage is not Stage.WAITING:
            yield from (f"pod {entry.pod.key}: {wrong}" for wrong in _record(ledger, entry.pod))
    book = RecordBook(ledger.settings.mgpu, ledger.nodes)
    for name, node in sorted(ledger.nodes.items()):
        found = examine(node, ledger.pods_on(name), _as_it_is, book, ledger.settings)
        for repair in found.repairs:
            yield f"pod {repair.pod.key}: bound to node {name} without a complete record of its cards"
        for notice in found.notices:
            yield f"{f'pod {notice.pod.key}' if notice.pod else f'node {name}'}: {notice.message}"


def _as_it_is(pod: Pod) -> Pod | None:
    return pod if pod.bound else None


def _record(ledger: Ledger, pod: Pod) -> Iterator[str]:
    queue = pod.annotations.get(names.CHARGED_QUEUE_ANNOTATION)
    if queue is not None and queue not in ledger.queues:
        gone = f"{names.CHARGED_QUEUE_ANNOTATION} names queue {queue}, which does not exist"
        yield f"{gone}: create it, or delete the pod"
    beside = [name for name in _BESIDE_THE_QUEUE if name in pod.annotations]
    if queue is None and beside:
        told = f"has {', '.join(beside)} and no {names.CHARGED_QUEUE_ANNOTATION}"
        yield f"{told}: until a leader writes it the queue may change under the pod; see that one leads"
    text = pod.annotations.get(names.ASSIGNED_ANNOTATION)
    if text is None:
        return
    record = read_assigned(text)
    if record is None:
        yield f"{names.ASSIGNED_ANNOTATION} cannot be read: {text}"
        return
    card, count = record
    if expression.is_excessive(pod.card_name):
        return
    if card not in expression.split(pod.card_name):
        accepted = pod.card_name or "none"
        yield f"{names.ASSIGNED_ANNOTATION} says {count} of {card}, and the pod names {accepted}"
        return
    asked = open_ask(card, pod.limits, pod.requests, ledger.inventory.resources_of)
    if not isinstance(asked, AskError) and asked.milli != count * 1000:
        yield f"{names.ASSIGNED_ANNOTATION} says {count} of {card}, and the pod asks for {asked.milli // 1000}"
