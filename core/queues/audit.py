"""Are the books right: cards, shares and devices; every entry against the pod that it is about, every sum against the entries that it adds up.

The books follow what happens one change at a time, so one forgotten change would stay in them for good. Here all is counted
anew.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Final

from core.objects import Pod
from core.queues.account import Sums
from core.queues.device_audit import DeviceSnapshot, device_drifts
from core.queues.drift import Drift
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.queues.recount import ByStage
from core.sharded import each_key
from core.stage import Stage
from core.steps import Steps

_QUEUES: Final = 50
"""Half a millisecond of work, as are the next two: so many queues are compared in it,"""
_ANEW: Final = 10
"""so many pods counted anew,"""
_LOOKED_AT: Final = 50
"""and so many entries looked for in the cluster."""

_PARTS: Final[Mapping[Stage, str]] = {
    Stage.ALLOCATED: "allocated",
    Stage.RESERVED: "reserved",
    Stage.WAITING: "waiting",
}


def audit(ledger: Ledger, pods: Mapping[str, Pod]) -> Steps[list[Drift]]:
    """Everything in the books that is wrong; `pods` are all that the cluster shows, by `namespace/name`.

    Nothing is copied: each queue and each pod is judged as it is when its turn comes. A pod that is still to be booked anew is left
    out, see `Ledger.settle`; so are the sums where queues have moved in the tree meanwhile, until the next audit.
    """
    drifts = yield from _sum_drifts(ledger)

    def judge(key: str) -> None:
        pod = pods.get(key)
        if pod is not None:
            drifts.extend(_pod(ledger, pod.uid, key))

    yield from each_key(pods, judge, _ANEW)
    yield from each_key(ledger.by_uid, lambda uid: drifts.extend(_gone(ledger, uid, pods)), _LOOKED_AT)
    return drifts + (yield from device_drifts(ledger, DeviceSnapshot.of(ledger.devices.book)))


def _sum_drifts(ledger: Ledger) -> Steps[list[Drift]]:
    moves = _moves(ledger)
    drifts = list[Drift]()
    judged: list[Container[str]] = []
    with ledger.recounted() as recount:

        def judge(name: str) -> None:
            if not any(name in earlier for earlier in judged):
                drifts.extend(_sums(name, ledger.sums(name), recount.of(name)))

        yield from recount.count(ledger.by_uid)
        for queues in (ledger.accounts, ledger.queues, recount.queues):
            yield from each_key(queues, judge, _QUEUES)
            judged.append(queues)
        moved = _moves(ledger) != moves
    yield from recount.let_go()
    return [] if moved else drifts


def _moves(ledger: Ledger) -> int:
    return 0 if ledger.subtrees is None else ledger.subtrees.moves


def _sums(queue: str, booked: Sums, counted: ByStage) -> Iterator[Drift]:
    """One queue, in one moment."""
    for stage, part in _PARTS.items():
        have, should = getattr(booked, part), counted.get(stage, {})
        if have == should:
            continue
        for key in sorted(have.keys() | should.keys()):
            if have.get(key, 0) != should.get(key, 0):
                subject = f"Queue {queue}, {key} {part}"
                yield Drift("sum", subject, _whole(have.get(key, 0)), _whole(should.get(key, 0)))


def _gone(ledger: Ledger, uid: str, pods: Mapping[str, Pod]) -> Iterator[Drift]:
    """An entry of a pod that the cluster does not show any more. One that is assumed alone has yet to be shown."""
    entry = ledger.entry(uid)
    if entry is None or ledger.observed(uid) is None:
        return
    shown = pods.get(entry.pod.key)
    if shown is None or shown.uid != uid:
        yield Drift("pod", f"Pod {entry.pod.key}", _shown(entry), "no such pod")


def _pod(ledger: Ledger, uid: str, key: str) -> Iterator[Drift]:
    """One pod, in one moment. One that the books do not have at all asks for nothing of ours."""
    pod = ledger.pod(uid)
    if pod is None or ledger.left_behind(uid):
        return
    entry, anew = ledger.entry(uid), ledger.counted_anew(pod)
    if _charge(entry) != _charge(anew):
        yield Drift("pod", f"Pod {key}", _shown(entry), _shown(anew))


def _charge(entry: Entry | None) -> object:
    return None if entry is None else (entry.queue, entry.stage, dict(entry.charged), entry.unlifted)


def _shown(entry: Entry | None) -> str:
    if entry is None:
        return "nothing"
    amounts = ", ".join(f"{_whole(milli)} {key}" for key, milli in sorted(entry.charged.items()))
    return f"{amounts or 'nothing'} {_PARTS[entry.stage]} in queue {entry.queue}"


def _whole(milli: int) -> str:
    whole, rest = divmod(milli, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
