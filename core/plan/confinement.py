"""The cards to which the members before it confine a pod of a group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core import reasons
from core.cards.ask import CardAsk
from core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Confinement:
    """What members of a group have got already.

    Those to come get one of these `cards` as well: in any case (`uniform`, of the whole group; `single`, of the pods of `task`
    that ask for the same), or where it serves them (`first`).
    """

    cards: Sequence[str]
    by: Literal["uniform", "single", "first"]
    task: str = ""

    def narrowed(self, asked: CardAsk) -> CardAsk:
        """What is left of a pod's choice; its alternatives may be none."""
        return replace(asked, alternatives=tuple(card for card in asked.alternatives if card in self.cards))

    def excludes(self, queue: str, expression: str) -> Refusal:
        """Why a pod waits that accepts none of the cards."""
        text = (
            f"Queue <{queue}>: the pods of one group get one card, its pods have {named(self.cards)}; "
            f"this one accepts <{expression}>"
        )
        return Refusal(reasons.MIXED_CARDS, text)

    def told(self, why: Refusal) -> Refusal:
        """Why a pod waits though it accepts other cards as well, which may be free: `why` with the setting that says so."""
        text = (
            f"{why.message.removesuffix('.')}; other cards do not count, as the pods of this group have {named(self.cards)} "
            "and with cards.multiCardJob: uniform all get one card"
        )
        return replace(why, message=text)

    def exhausted(self, queue: str, why: Refusal) -> Refusal:
        """Why a pod waits that another card would serve; `why` none of these does."""
        text = (
            f"Queue <{queue}>: the pods of {task_named(self.task)} have {named(self.cards)}, and with "
            f"cards.multiCardTask: single this one waits for that to come free; {why.message}"
        )
        return Refusal(reasons.MIXED_CARDS, text)


def named(cards: Sequence[str]) -> str:
    """Cards in a message."""
    return ", ".join(f"<{card}>" for card in cards)


def task_named(task: str) -> str:
    """A task in a message; pods that no Volcano Job has made have none."""
    return f"task <{task}>" if task else "the group that ask for the same"
