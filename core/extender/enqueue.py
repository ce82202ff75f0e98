"""Volcano's `extender` plugin: whether a job may start at all, and whether a queue takes in anything.

The gate is what keeps a queue within its quota. A vote against a job saves it from having pods that can only wait: Volcano
creates them when the job is let in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from core import reasons
from core.extender.shapes import part
from core.objects import Group, group
from core.objects import raw as read
from core.queues.amounts import Amounts, is_card, total
from core.queues.check import balance_of, chain_problem, group_balance
from core.queues.group_request import GroupRequest, declared_request
from core.queues.ledger import Ledger
from core.queues.usage import card_resources
from core.refusal import Refusal
from core.stage import Stage
from core.steps import Steps, first_of

PERMIT: Final = 1
ABSTAIN: Final = 0
REJECT: Final = -1

PROMISED_FOR_S: Final = 60.0
"""How long a job that was let in is counted without any pod; the job controller makes them within seconds."""

_ASKED_IN_A_STEP: Final = 100
"""Members of which it is found out in about half a millisecond whether they have started."""


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer, and what to tell on the PodGroup: Volcano itself shows no reason."""

    status: int
    group: Group
    why: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _Promise:
    group: Group
    queue: str
    amounts: Amounts
    until_s: float


class _Asked(NamedTuple):
    group: Group
    queue: str
    request: GroupRequest | Refusal


class Promises:
    """What was let in lately and has no pods yet, by PodGroup. Time is that of the caller's clock, in seconds."""

    def __init__(self) -> None:
        self._kept: dict[str, _Promise] = {}

    def make(self, asking: Group, queue: str, request: GroupRequest, now_s: float) -> None:
        """Counts a job from now on; the same one anew when it is asked for again."""
        amounts = total([request.cards, request.cpu_memory])
        self._kept[asking.key] = _Promise(asking, queue, amounts, now_s + PROMISED_FOR_S)

    def drop(self, key: str) -> None:
        """Forgets a PodGroup that is gone."""
        self._kept.pop(key, None)

    def others(self, asking: Group, queue: str, ledger: Ledger, now_s: float) -> dict[str, int]:
        """What was promised to all other jobs of the queue, and of those below it whose quota it limits.

        Those whose pods have come count by these.
        """
        for key, promise in tuple(self._kept.items()):
            if promise.until_s <= now_s or ledger.has_members(promise.group):
                del self._kept[key]
        return total(
            promise.amounts
            for key, promise in self._kept.items()
            if key != asking.key and queue in ledger.with_those_above(promise.queue)
        )


def vote(
    body: object,
    ledger: Ledger,
    promises: Promises,
    now_s: float,
    known: Callable[[Group], Group | None] = lambda asking: asking,
) -> Steps[Vote]:
    """Whether a job may start. Abstains where the job declares no cards, or is started already. Raises ShapeError.

    `known` gives the PodGroup that exists for the one in the question, and nothing where there is none: a question may come
    from anybody, and what it says of itself would hold the queue's room for jobs that are not there.
    """
    job = part(body, "job")
    said = group.project(read.mapping(job, "PodGroup"))
    named = read.text(job, "Queue")
    changes, asked = ledger.changes, _asked(known(said), named, ledger)
    if asked is not None and not (yield from _started(asked.group, ledger)):
        # There may be so many members that others had their turn: it may have changed, or gone, or a node have come.
        if ledger.changes != changes or known(said) is not asked.group:
            asked = _asked(known(said), named, ledger)
        if asked is not None:
            return _decided(asked, ledger, promises, now_s)
    return Vote(ABSTAIN, known(said) or said)


def _asked(asking: Group | None, named: str, ledger: Ledger) -> _Asked | None:
    """What a job asks for; None of one that declares no cards, or is not there."""
    if asking is None:
        return None
    queue = asking.queue or named or ledger.settings.queue.default
    request = declared_request(asking, queue, card_resources(ledger.inventory), ledger.settings)
    return None if request is None else _Asked(asking, queue, request)


def _decided(asked: _Asked, ledger: Ledger, promises: Promises, now_s: float) -> Vote:
    """The vote on a job of which nothing has started."""
    asking, queue, request = asked
    if isinstance(request, Refusal):
        return Vote(REJECT, asking, request)
    balance, found = balance_of(ledger, queue), ledger.queues.get(queue)
    if balance is None or found is None:
        text = f"Queue <{queue}> does not exist"
        return Vote(REJECT, asking, Refusal(reasons.QUEUE_NOT_FOUND, text))
    if not found.open:
        return Vote(REJECT, asking)
    refusal = ledger.access.refusal(queue, asking.namespace)
    if refusal is not None:
        return Vote(REJECT, asking, refusal)
    short = chain_problem(ledger, queue) or group_balance(
        ledger, balance, lambda level: promises.others(asking, level, ledger, now_s)
    ).shortfall(request)
    if short is not None:
        return Vote(REJECT, asking, short)
    promises.make(asking, queue, request, now_s)
    return Vote(PERMIT, asking)


def _started(asking: Group, ledger: Ledger) -> Steps[bool]:
    """Whether a member of a group is bound, or let in. Whoever makes pods may give it any number of them."""

    def past_the_gate(uid: str) -> bool:
        pod = ledger.pod(uid)
        return pod is not None and (pod.bound or ledger.stages.of(pod) is Stage.RESERVED)

    found = yield from first_of(ledger.members_of(asking.key), past_the_gate, _ASKED_IN_A_STEP)
    return found is not None


def vote_answer(found: Vote) -> dict[str, Any]:
    """The answer to jobEnqueueable."""
    return {"status": found.status}


def overused_answer(body: object, ledger: Ledger) -> dict[str, Any]:
    """The answer to queueOverused. Raises ShapeError."""
    return {"overused": _overused(read.text(part(body, "queue"), "Name"), ledger)}


def _overused(queue: str, ledger: Ledger) -> bool:
    """Whether the bound pods of a queue, or of one whose quota holds for it, have more of a card than that, as after a cut.

    Lifted pods do not count: they have their quota, and a queue that is held up for them would never get rid of them.
    """
    limits, account = ledger.limits.get(queue), ledger.accounts.get(queue)
    if limits is None or account is None or not ledger.settings.features.cards:
        return False
    if any(milli > limits.cards.get(key, 0) for key, milli in account.allocated.items() if is_card(key)):
        return True
    return ledger.subtrees is not None and any(
        any(ledger.sums(name).allocated.get(card, 0) > limit for card, limit in above.cards.items())
        for name in ledger.with_those_above(queue)
        if (above := ledger.limits.get(name)) is not None
    )
