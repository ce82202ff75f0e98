"""Are the books right: cards, shares and devices; every entry against the pod that it is about, every sum against the entries that it adds up.

The books follow what happens one change at a time, so one forgotten change would stay in them for good. Here all is counted
anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.objects import Pod
from core.queues.account import Sums
from core.queues.amounts import add
from core.queues.device_audit import DeviceSnapshot, device_drifts
from core.queues.drift import Drift
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps

_STEP: Final = 50
"""Pods in half a millisecond of work."""

_PARTS: Final[Mapping[Stage, str]] = {
    Stage.ALLOCATED: "allocated",
    Stage.RESERVED: "reserved",
    Stage.WAITING: "waiting",
}


@dataclass(slots=True)
class _Snapshot:
    """Entries and sums at one moment. Entries never change, so that they may be added up later."""

    entries: tuple[Entry, ...]
    sums: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    charged: dict[str, Sequence[str]] = field(default_factory=dict)
    """The queues in whose sums those of a queue are."""

    @classmethod
    def of(cls, ledger: Ledger) -> "_Snapshot":
        entries = tuple(ledger.entries())
        charged = {name: ledger.with_those_above(name) for name in {entry.queue for entry in entries}}
        names = {*ledger.accounts, *ledger.queues, *(name for chain in charged.values() for name in chain)}
        return cls(entries, {name: _parts(ledger.sums(name)) for name in names}, charged)


def audit(ledger: Ledger, pods: Iterable[Pod]) -> Steps[list[Drift]]:
    """Everything in the books that is wrong; `pods` are all that the cluster shows.

    What is changed meanwhile is judged as it is when its turn comes. A pod that is still to be booked anew is left out, see
    `Ledger.settle`.
    """
    snapshot, devices = _Snapshot.of(ledger), DeviceSnapshot.of(ledger.devices.book)
    drifts = list[Drift]()
    pace = Pace(_STEP)
    counted: dict[str, dict[str, dict[str, int]]] = {}
    for entry in snapshot.entries:
        if pace.due():
            yield
        for queue in snapshot.charged[entry.queue]:
            parts = counted.setdefault(queue, {part: {} for part in _PARTS.values()})
            add(parts[_PARTS[entry.stage]], entry.charged, 1)
    drifts += _sums(snapshot.sums, counted)
    shown = set[str]()
    for pod in tuple(pods):
        if pace.due():
            yield
        shown.add(pod.uid)
        drifts += _pod(ledger, pod.uid, pod.key)
    for entry in snapshot.entries:
        if pace.due():
            yield
        uid = entry.pod.uid
        gone = uid not in shown and ledger.entry(uid) is not None and ledger.observed(uid) is not None
        if gone and ledger.entry(uid) is entry:
            drifts.append(Drift("pod", f"Pod {entry.pod.key}", _shown(entry), "no such pod"))
    return drifts + (yield from device_drifts(ledger, devices))


def _parts(account: Sums) -> dict[str, dict[str, int]]:
    return {part: dict(getattr(account, part)) for part in _PARTS.values()}


def _sums(
    booked: Mapping[str, Mapping[str, Mapping[str, int]]],
    counted: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> Iterator[Drift]:
    for queue in sorted(booked.keys() | counted.keys()):
        for part in _PARTS.values():
            have, should = booked.get(queue, {}).get(part, {}), counted.get(queue, {}).get(part, {})
            for key in sorted(have.keys() | should.keys()):
                if have.get(key, 0) != should.get(key, 0):
                    subject = f"Queue {queue}, {key} {part}"
                    yield Drift("sum", subject, _whole(have.get(key, 0)), _whole(should.get(key, 0)))


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
