"""By which names the cards that pods wait for are shown: whoever creates pods may make up any number of them."""

from collections.abc import Container, Mapping
from typing import Final

from core.cards.expression import BAR
from core.steps import Pace, Steps
from core.usage.tally import OTHER

CHOICES_MOST: Final = 100
"""So many choices like `A|B` of known cards are told apart in a queue: of few cards very many can be made."""

_IN_A_STEP: Final = 250


def shown(waiting: Mapping[str, int], known: Container[str]) -> Steps[dict[str, int]]:
    """The amounts by card and choice, in steps; what is not of known cards is counted together."""
    found: dict[str, int] = {}
    choices, pace = 0, Pace(_IN_A_STEP)
    # A copy: pods come and go between two steps. What has been waited for longest comes first, and keeps its name.
    for key, milli in tuple(waiting.items()):
        if pace.due():
            yield
        name = key if all(card in known for card in key.split(BAR)) else OTHER
        if BAR in name:
            choices += 1
            if choices > CHOICES_MOST:
                name = OTHER
        found[name] = found.get(name, 0) + milli
    return found
