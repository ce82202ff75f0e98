"""Who is put off gives way like everybody else."""

import pytest

from core.plan.effort import Cuts, Effort, Ration
from core.steps import Steps


def test_whoever_is_put_off_pauses_first_and_has_given_back_what_it_held() -> None:
    """A thousand gangs for which no effort was left were begun and put off in one piece of most of a second."""
    ended: list[str] = []

    def costly() -> Steps[str]:
        try:
            while True:
                yield
        finally:
            ended.append("given back")

    ration = Ration(Effort(0), 0)
    limited = Cuts().limited("gang", "q", costly(), ration)
    next(limited)
    assert ended == ["given back"]
    with pytest.raises(StopIteration) as end:
        next(limited)
    assert end.value.value == (None, 1)
