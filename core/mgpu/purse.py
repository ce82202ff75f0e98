"""Search steps that all searches for one answer take together: whoever waits for it hears of nothing else meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager


class Purse:
    """How many are left. A search that finds it empty has been cut short; what needs no search is found out all the same."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        """So many for all of them."""
        self.left = steps

    def spend(self, steps: int) -> None:
        """Takes what a search has cost."""
        self.left -= steps

    @contextmanager
    def kept_for(self, later: int) -> Iterator[None]:
        """Meanwhile so many searches that come later have as much for each of them as there is for now."""
        kept = self.left * later // (later + 1)
        self.left -= kept
        try:
            yield
        finally:
            self.left += kept
