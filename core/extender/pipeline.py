"""The filter and the score of one pod on one node: CrossQuota, mGPU and the preference among cards, each by itself.

CrossQuota and mGPU must both have room; cards never rule a node out, since the pod is narrowed to its card already. What
does not apply to a pod, or is switched off, has no objection and scores 0.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeVar

from core import reasons
from core.cards import expression as cards
from core.cards.expression import split
from core.crossquota import filter as crossquota
from core.crossquota.filter import excess
from core.crossquota.guest import Guest, guest, held_back
from core.crossquota.quota import Quota
from core.mgpu.ask import MgpuAsk, mgpu_ask
from core.mgpu.destination import Task, booked_on, task_of
from core.mgpu.filter import fits
from core.mgpu.filter import preference as share_preference
from core.mgpu.node import NodeModel, NodeState
from core.mgpu.pieces import in_steps
from core.objects import Pod
from core.refusal import Refusal
from core.settings import Settings
from core.steps import Steps

T = TypeVar("T")

KUBE_SCORE_MAX: Final = 10
"""The best score that kube-scheduler takes from an extender."""

_ZERO: Final = Fraction(0)


@dataclass(frozen=True, slots=True)
class Question:
    """One pod that looks for a node, reduced to what applies to it."""

    uid: str
    guest: Guest | None
    held_back: bool
    """Whether CrossQuota rules nodes out for the guest; it scores them in any case."""
    shares: MgpuAsk | Refusal | None
    cards: tuple[str, ...]
    """The alternatives of a pod that has a choice; else empty, as there is nothing to prefer."""
    booked_on: tuple[str, ...] = ()
    """The nodes on which room for its shares is booked."""
    task: Task | None = None
    """The task of the group that it is a member of."""

    @property
    def idle(self) -> bool:
        """Whether no node can be ruled out, nor preferred to another."""
        return self.guest is None and self.shares is None and not self.cards


@dataclass(frozen=True, slots=True)
class Standing:
    """What of a node bears on a question; the rest is left out. Without the pod that is asked about."""

    quota: Quota | None = None
    used: Mapping[str, int] | None = None
    shares: tuple[NodeModel, NodeState] | None = None
    cards: Container[str] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of a node's score, exact: CrossQuota's 0..1, the other two 0..100."""

    guest: Fraction
    shares: Fraction
    cards: Fraction


def question(pod: Pod, settings: Settings) -> Question:
    """What is asked for a pod; `pod` has the labels that CrossQuota's selector looks at."""
    return question_of(pod, guest(pod, settings), settings)


def question_of(pod: Pod, visitor: Guest | None, settings: Settings) -> Question:
    """The same for a pod of which somebody else says what it is to CrossQuota."""
    features = settings.features
    alternatives = split(pod.card_name) if features.cards else ()
    return Question(
        uid=pod.uid,
        guest=visitor,
        held_back=held_back(pod),
        shares=mgpu_ask(pod) if features.mgpu else None,
        cards=alternatives if len(alternatives) > 1 else (),
        booked_on=booked_on(pod),
        task=task_of(pod),
    )


def looked_at(asked: Question, look: Callable[[], T]) -> Steps[T]:
    """What is found where a node is looked at, with pauses while it is searched for room for shares."""
    if asked.shares is None:
        return look()
    return (yield from in_steps(look))


def refusals(asked: Question, node: Standing, settings: Settings) -> tuple[Refusal, ...]:
    """Everything that rules the node out; empty for a node that fits."""
    over = None
    if asked.guest is not None and asked.held_back and node.quota is not None:
        over = excess(asked.guest, node.quota, node.used or {})
    unfit = _misfit(asked, node, settings)
    return tuple(refusal for refusal in (over, unfit) if refusal is not None)


def _misfit(asked: Question, node: Standing, settings: Settings) -> Refusal | None:
    if isinstance(asked.shares, Refusal):
        return asked.shares
    if asked.shares is None or node.shares is None:
        return None
    return fits(asked.shares, *node.shares, settings)


def scores(asked: Question, node: Standing, settings: Settings) -> Scores:
    """How much the node is preferred, part by part."""
    of_guest = of_shares = of_cards = _ZERO
    rule = settings.cross_quota
    if asked.guest is not None and node.quota is not None and rule.weight:
        of_guest = crossquota.preference(asked.guest, node.quota, node.used or {}, rule.weights)
    if isinstance(asked.shares, MgpuAsk) and node.shares is not None:
        of_shares = share_preference(asked.shares, *node.shares, settings)
    found = cards.preference(asked.cards, node.cards)
    if found is not None:
        of_cards = found[1]
    return Scores(of_guest, of_shares, of_cards)


def kube_score(found: Scores) -> int:
    """The sum of the parts as kube-scheduler takes it: a whole number 0..10, halves rounded up.

    CrossQuota's weight is not in it; the `weight` of the extender in the scheduler's configuration takes its place.
    """
    guest, shares, cards = found.guest, found.shares, found.cards
    # Whole numbers over one denominator: thousands of nodes are scored in a call, and each sum of fractions costs a gcd.
    top = 10 * KUBE_SCORE_MAX * guest.numerator * shares.denominator * cards.denominator
    top += (shares.numerator * cards.denominator + cards.numerator * shares.denominator) * guest.denominator
    bottom = 10 * guest.denominator * shares.denominator * cards.denominator
    return min(KUBE_SCORE_MAX, (2 * top + bottom) // (2 * bottom))


def volcano_score(found: Scores, settings: Settings) -> float:
    """The sum of the parts as Volcano takes it: neither rounded nor cut."""
    return float(found.guest * settings.cross_quota.weight + found.shares + found.cards)


def told(found: tuple[Refusal, ...]) -> str:
    """The words for a scheduler's events. CrossQuota's begin with the resource, as those of Volcano's own plugin do."""
    return "; ".join(
        refusal.message
        if refusal.code == reasons.CROSS_QUOTA_EXCEEDED
        else f"[{refusal.code}] {refusal.message}"
        for refusal in found
    )


def unresolvable(found: tuple[Refusal, ...]) -> bool:
    """Whether the pod would not fit the node either if others made room."""
    return any(refusal.unresolvable for refusal in found)
