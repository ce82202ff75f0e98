"""Nodes that would serve a waiting pod if they did not lack a label or a resource: for whoever can mend that."""

from dataclasses import dataclass
from typing import Final

from core.cards.expression import is_excessive, split
from core.cards.mended import passed_over
from core.objects import Pod
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish

_STEP: Final = 300
"""Nodes that are looked at in half a millisecond."""


@dataclass(frozen=True, slots=True)
class IllLabelled:
    """Nodes that show the product of a card that a pod names, and do not carry it, all for one reason."""

    message: str
    nodes: tuple[str, ...]


def ill_labelled(ledger: Ledger, pod: Pod) -> list[IllLabelled]:
    """All of them, those of which there are most first."""
    return finish(ill_labelled_in_steps(ledger, pod))


def ill_labelled_in_steps(ledger: Ledger, pod: Pod) -> Steps[list[IllLabelled]]:
    """The same, with pauses."""
    if not (ledger.settings.features.cards and pod.card_name) or is_excessive(pod.card_name):
        return []
    cards, pace = frozenset(split(pod.card_name)), Pace(_STEP)
    found: dict[str, list[str]] = {}
    for name in tuple(ledger.nodes):
        if pace.due():
            yield
        node = ledger.nodes.get(name)
        notes = passed_over(ledger.inventory, node, cards) if node is not None else ()
        if notes:
            found.setdefault("; ".join(notes), []).append(name)
    alike = [IllLabelled(message, tuple(sorted(nodes))) for message, nodes in found.items()]
    return sorted(alike, key=lambda one: (-len(one.nodes), one.message))
