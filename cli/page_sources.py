"""Where the pages of `cardquota page` come from."""

import sys
from typing import TYPE_CHECKING

from cli import books, history, output, usage
from cli.errors import UnavailableError
from core.answers.whatif import Change, WhatIf
from core.page.board import board
from core.page.hours import Summed
from core.page.selection import EVERYTHING, view_of
from core.page.view import View, Wish
from core.steps import finish

if TYPE_CHECKING:
    from cli.page_server import Pages
    from cli.state import State
    from core.settings import Settings


def of_state(state: "State", settings: "Settings", source: str) -> "Pages":
    """Pages of a state as it stands. Why its pods wait is what a pass over it says."""
    ledger = books.of(state, settings)
    # The books are as they were afterwards: whoever would be let in still waits in them.
    holds = WhatIf(ledger).holds(Change.none())
    summed = _summed(state)
    made = finish(board(ledger, state.pods, holds, summed, history.last_moment(state)))

    async def pages(wish: Wish) -> View:
        return finish(view_of(made, ledger, wish, EVERYTHING, source))

    return pages


def _summed(state: "State") -> Summed | None:
    """What was written down of usage; the rest of the page is good without it."""
    try:
        written = usage.of_state(state)
    except usage.EmptyError:
        return None
    except UnavailableError as error:
        print(f"warning: {output.printable(str(error))}", file=sys.stderr)
        return None
    return None if written is None else Summed(written[0].sums, written[0].through)
