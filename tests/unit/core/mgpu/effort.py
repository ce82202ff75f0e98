"""How many steps the searches take of which an answer is made."""

from dataclasses import dataclass, field
from typing import Self

import pytest

from core.mgpu import filter as node_filter
from core.mgpu import search
from core.mgpu.search import Solution, solve
from core.steps import Steps


@dataclass(slots=True)
class Effort:
    """The steps of every search since the last `anew`, as each of them says; an answer that was kept costs nothing."""

    steps: list[int] = field(default_factory=list)

    @classmethod
    def counted(cls, monkeypatch: pytest.MonkeyPatch) -> Self:
        effort = cls()
        run = search._Search.run

        def counted(one: search._Search) -> Steps[Solution]:
            solution = yield from run(one)
            effort.steps.append(solution.steps)
            return solution

        monkeypatch.setattr(search._Search, "run", counted)
        effort.anew()
        return effort

    def anew(self) -> None:
        """Forgets what was found and counted."""
        solve.cache_clear()
        node_filter._shortage.cache_clear()
        self.steps.clear()

    @property
    def total(self) -> int:
        return sum(self.steps)
