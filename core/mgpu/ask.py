"""What a pod asks of mGPU, computed from the view of the pod."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary, ref

from core import names, reasons
from core.mgpu import shares
from core.objects.pod import ContainerShare, Pod
from core.refusal import Refusal
from core.violations import show

FIXED_SHARE: Final = "fixed-share"
GUARANTEED_BURST_SHARE: Final = "guaranteed-burst-share"
NATIVE_BURST_SHARE: Final = "native-burst-share"
POLICIES: Final = (FIXED_SHARE, GUARANTEED_BURST_SHARE, NATIVE_BURST_SHARE)
"""How a node's driver shares time. For placement they only decide which nodes match; none of them oversells."""
_ENTRY: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_POLICY_SHOWN: Final = 64
"""Characters, more than any policy has: asks are kept, and nobody is to fill the memory with them."""
_CHECKED: Final = 4096
"""Entries looked at; no pod has that many containers."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one container takes: `core` (100 = a whole card) and `memory` (MiB) on each of `cards` different cards.

    A full part takes idle cards whole; its memory is None.
    """

    container: str
    cards: int
    core: int
    memory: int | None

    @property
    def full(self) -> bool:
        """Whether the container takes whole cards."""
        return self.memory is None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class MgpuAsk:
    """What a pod asks: one part per asking container, in the order of `spec.containers`; never empty."""

    parts: tuple[Part, ...]
    multi: bool
    """Whether the pod gives card counts; such a pod runs on native-burst-share nodes alone."""
    policy: str

    @property
    def pure_full(self) -> bool:
        """Whether every asking container takes whole cards."""
        return all(part.full for part in self.parts)

    @property
    def any_policy(self) -> bool:
        """Whether nodes of every policy can serve the pod: whole cards, and no card counts."""
        return self.pure_full and not self.multi


_ASKED: WeakKeyDictionary[MgpuAsk, ref[MgpuAsk]] = WeakKeyDictionary()
"""What the pods that there are ask for."""


def mgpu_ask(pod: Pod) -> MgpuAsk | Refusal | None:
    """What the pod asks, None for a pod without mGPU resources.

    A refusal says why an asking pod can be served nowhere: admission refuses such pods, this one got past it. Only what makes
    placement impossible is looked at; the memory floors are admission's business.

    Pods alike share one object, which goes with the last of them: so does what is known of it.
    """
    if not pod.asks_mgpu:
        return None
    if pod.share_in_init:
        told = "pod: an init container asks for mGPU, which is not supported"
        return Refusal(reasons.MGPU_INIT_CONTAINER, told, unresolvable=True)
    text = pod.annotations.get(names.MGPU_MULTIPLE_ANNOTATION)
    try:
        counts = None if text is None else parse_counts(text)
    except CardCountsError as error:
        told = f"pod: {names.MGPU_MULTIPLE_ANNOTATION} {error}"
        return Refusal(reasons.MGPU_CARD_COUNTS, told, unresolvable=True)
    if counts is not None and len(counts) != pod.container_count:
        told = f"pod: {length_detail(len(counts), pod.container_count)}"
        return Refusal(reasons.MGPU_CARD_COUNTS, told, unresolvable=True)
    for problem in _problems(pod, counts):
        return problem
    return _shared(MgpuAsk(parts=_parts(pod, counts), multi=counts is not None, policy=pod_policy(pod)))


def _shared(ask: MgpuAsk) -> MgpuAsk:
    known = _ASKED.get(ask)
    like = None if known is None else known()
    if like is None:
        like = ask
        _ASKED[ask] = ref(ask)
    return like


def length_detail(entries: int, containers: int) -> str:
    """The words for card counts that do not match the containers."""
    return (
        f"{names.MGPU_MULTIPLE_ANNOTATION} must have one entry per container:"
        f" it has {entries}, the number of containers is {containers}"
    )


def pod_policy(pod: Pod) -> str:
    """The compute policy that the pod names, or the default; what is no known policy stays as it is, as far as it is shown."""
    return pod.annotations.get(names.MGPU_POLICY_KEY, FIXED_SHARE)[:_POLICY_SHOWN]


def booked_parts(pod: Pod) -> tuple[Part, ...]:
    """What the containers of a bound pod take, whatever is wrong with the pod: what runs has to be counted.

    Without a readable card count a container counts as asking for one card (whole cards: core / 100). Amounts that
    do not divide evenly are rounded up, an unreadable core share is 1.
    """
    counts: tuple[int, ...] | None = None
    if (text := pod.annotations.get(names.MGPU_MULTIPLE_ANNOTATION)) is not None:
        try:
            counts = parse_counts(text)
        except CardCountsError:
            counts = ()
    return _parts(pod, counts)


def _problems(pod: Pod, counts: tuple[int, ...] | None) -> Iterator[Refusal]:
    for share in pod.shares:
        if len(share.name) > names.MGPU_CONTAINER_NAME_MAX:
            detail = f"the name has {len(share.name)} characters, at most {names.MGPU_CONTAINER_NAME_MAX} leave room for the record"
            yield _refusal(reasons.MGPU_CONTAINER_NAME, share, detail)
    asking = {share.index: share for share in pod.shares}
    for index in range(pod.container_count):
        share = asking.get(index) or ContainerShare(index=index, name=f"#{index}", core=None, memory=None)
        if counts is not None:
            faults = shares.multi_faults(share.core, share.memory, counts[index], floor=1)
        elif index in asking:
            faults = shares.normal_faults(share.core, share.memory, floor=1)
        else:
            continue
        for fault in faults:
            yield _refusal(fault.code, share, fault.detail)


def _refusal(code: str, share: ContainerShare, detail: str) -> Refusal:
    return Refusal(code, f"container {show(share.name)}: {detail}", unresolvable=True)


def _parts(pod: Pod, counts: tuple[int, ...] | None) -> tuple[Part, ...]:
    return tuple(_part(share, counts) for share in pod.shares)


def _part(share: ContainerShare, counts: tuple[int, ...] | None) -> Part:
    core, memory = max(share.core or 1, 1), max(share.memory or 0, 0)
    if counts is None:
        cards = max(core // shares.FULL_CARD, 1)
        full = core >= shares.FULL_CARD
    else:
        cards = max(counts[share.index], 1) if share.index < len(counts) else 1
        full = core == shares.FULL_CARD * cards
    if full:
        return Part(share.name, cards, shares.FULL_CARD, None)
    return Part(share.name, cards, -(-core // cards), -(-memory // cards))


class CardCountsError(ValueError):
    """The text is no list of whole numbers; `str()` says why, without repeating the text."""


def parse_counts(text: str) -> tuple[int, ...]:
    """One number per container, in the order of `spec.containers`; a negative one is still a number here.

    Raises CardCountsError for anything but ASCII digits with an optional minus sign between commas: blanks, plus
    signs, underscores and digits of other scripts, all of which `int()` reads, are mistakes in an annotation.
    """
    entries = text.split(",", _CHECKED)
    if len(entries) > _CHECKED:
        raise CardCountsError(f"must be comma-separated whole numbers, at most {_CHECKED} of them")
    for position, entry in enumerate(entries, start=1):
        if not _ENTRY.fullmatch(entry):
            raise CardCountsError(
                "must be comma-separated whole numbers without blanks, one per container, such as 2,1:"
                f" entry {position} is {_why(entry)}"
            )
    return tuple(map(int, entries))


def _why(entry: str) -> str:
    if not entry.strip():
        return "blank"
    if re.fullmatch(r"-?[0-9]+", entry, re.ASCII):
        return "longer than 9 digits"
    return "not a whole number"
