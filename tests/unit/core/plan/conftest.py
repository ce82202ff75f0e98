"""How much a pass may cost, where it is to be little."""

import pytest

from core.plan import effort


@pytest.fixture
def little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass may cost ten steps, and a try sixteen while others wait; none is so short that it need not wait for its time."""
    monkeypatch.setattr(effort, "OF_A_PASS", 10)
    monkeypatch.setattr(effort, "SHORT", 0)
    monkeypatch.setattr(effort, "MOST_TIMES", 2)
    monkeypatch.setattr(effort, "AS_OFTEN", 3)
