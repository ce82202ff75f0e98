"""Every attack in every way of using a card, offline: review, ledger, planner and binder over an API server in memory.

The table is in `cells`. A diagonal of it runs on the real control plane, see `test_as_tenant`.
"""

import pytest

from tests.adversary.attacks import outcome
from tests.adversary.cells import CANNOT, expected

CELLS = expected()


@pytest.mark.parametrize(
    ("attack", "way"),
    [cell for cell, comes in CELLS.items() if not comes.startswith(CANNOT)],
    ids=lambda part: part.replace(" ", "-"),
)
def test_cell(attack: str, way: str) -> None:
    assert outcome(attack, way) == CELLS[attack, way]


def test_what_cannot_be_is_there_for_every_attack_with_its_reason() -> None:
    """That the API server sees to it is shown on the real one."""
    said = {way: comes for (_, way), comes in CELLS.items() if comes.startswith(CANNOT)}
    assert said.keys() == {"resize", "ephemeral"}
    assert all(len(comes) > len(CANNOT) + 20 for comes in said.values())
