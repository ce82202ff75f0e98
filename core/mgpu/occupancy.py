"""What is free on a node, from the records of the pods on it, whatever state the records are in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from core.mgpu import records
from core.mgpu.allocation import SCORE_BUDGET, Doubt, preferred
from core.mgpu.ask import MgpuAsk, Part, booked_parts, pod_policy
from core.mgpu.node import NodeModel, NodeState, Usage
from core.mgpu.purse import Purse
from core.objects.pod import Pod
from core.settings import MgpuSettings

HELD_BUDGET: Final = 1500
"""Search steps for all pods on a node without a record: some of very many containers must not take the time of everybody."""


class Irregular(StrEnum):
    """In what way a record is not as it was written."""

    UNKNOWN_CARD = "unknown-card"
    """It names a card that the node does not have; that number is left out."""
    WRONG_COUNT = "wrong-count"
    """It names more or fewer cards than the container asks for; what it names is booked."""
    UNREADABLE = "unreadable"
    """It is no list of numbers; treated as missing."""
    MISSING = "missing"
    """A container has none; room is held for it on the cards that it would get now."""
    NO_ROOM = "no-room"
    """A container has none, and the node has no room to hold."""
    OVERBOOKED = "overbooked"
    """More is booked on a card than there is; nothing is free on it."""


@dataclass(frozen=True, slots=True)
class Irregularity:
    """One thing that is wrong. `pod` is namespace/name; `pod`, `uid` and `container` are empty for a card's."""

    kind: Irregular
    detail: str
    pod: str = ""
    uid: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The state of a node and how it came about.

    `held`: pod UID -> container -> cards, where room is held without a record. `overbooked`: the cards of which that is told.
    """

    state: NodeState
    irregularities: tuple[Irregularity, ...]
    held: Mapping[str, Mapping[str, tuple[int, ...]]]
    overbooked: frozenset[int]


def counts(pod: Pod) -> bool:
    """Whether a pod takes room on its node: bound, asking and not ended. A pod that is being deleted still runs."""
    return pod.bound and pod.asks_mgpu and not pod.terminal


def occupancy(model: NodeModel, pods: Iterable[Pod], settings: MgpuSettings) -> Occupancy:
    """What is left on a node by the pods bound to it.

    A pod counts once, by its UID: by its record, else virtually, on cards chosen as for a new pod (in order of
    creation, then UID), so that its room is not given away. The order of the pods given changes nothing.
    """
    ledger = _Ledger(model, settings)
    unplaced: list[tuple[Pod, tuple[Part, ...]]] = []
    for pod in {pod.uid: pod for pod in pods}.values():
        if counts(pod):
            missing = ledger.book_recorded(pod)
            if missing:
                unplaced.append((pod, missing))
    for pod, missing in sorted(unplaced, key=lambda entry: (entry[0].created, entry[0].uid)):
        ledger.hold(pod, missing)
    return ledger.result()


@dataclass(slots=True)
class _Ledger:
    """Bookings as they come in."""

    model: NodeModel
    settings: MgpuSettings
    usage: Usage = field(init=False)
    purse: Purse = field(default_factory=lambda: Purse(HELD_BUDGET))
    wrong: list[Irregularity] = field(default_factory=list)
    held: dict[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.usage = Usage(self.model)

    def book_recorded(self, pod: Pod) -> tuple[Part, ...]:
        """Books what the pod's records name; returns the parts without a readable record."""
        record = records.recorded(pod)
        missing = []
        for part in booked_parts(pod):
            if part.container not in record:
                if records.key(part.container) in pod.annotations:
                    self._note(Irregular.UNREADABLE, pod, part, "the record is no list of card numbers")
                missing.append(part)
                continue
            cards = record[part.container]
            known = tuple(number for number in cards if number < self.model.cards)
            if len(known) != len(cards):
                detail = f"the record {records.render(cards)} names cards beyond the {self.model.cards} of the node"
                self._note(Irregular.UNKNOWN_CARD, pod, part, detail)
            if len(cards) != part.cards:
                many = "" if len(cards) == 1 else "s"
                detail = f"the record {records.render(cards)} names {len(cards)} card{many}, {part.cards} asked for"
                self._note(Irregular.WRONG_COUNT, pod, part, detail)
            self.usage.book(part, known)
        return tuple(missing)

    def hold(self, pod: Pod, missing: tuple[Part, ...]) -> None:
        """Holds room for containers that run, or are about to, on cards that nobody wrote down."""
        ask = MgpuAsk(missing, multi=True, policy=pod_policy(pod))
        placement = preferred(
            ask, self.model, self.usage.state(), self.settings, budget=SCORE_BUDGET, purse=self.purse
        )
        for part in missing:
            if isinstance(placement, Doubt):
                self._note(Irregular.NO_ROOM, pod, part, "bound without a record, and the node has no room")
            else:
                cards = placement.indexes[part.container]
                self._note(
                    Irregular.MISSING, pod, part, f"bound without a record; held: {records.render(cards)}"
                )
                self.usage.book(part, cards)
        if not isinstance(placement, Doubt):
            self.held[pod.uid] = placement.indexes

    def result(self) -> Occupancy:
        """The state after all bookings."""
        overbooked = self.usage.overbooked()
        for number in overbooked:
            self.wrong.append(
                Irregularity(Irregular.OVERBOOKED, f"card {number}: more is booked than there is")
            )
        return Occupancy(self.usage.state(), tuple(self.wrong), self.held, frozenset(overbooked))

    def _note(self, kind: Irregular, pod: Pod, part: Part, detail: str) -> None:
        self.wrong.append(Irregularity(kind, detail, pod.key, pod.uid, part.container))
