"""Every attack in every way of using a card, offline: review, ledger, planner and binder over an API server in memory.

The table is in `cells`. A diagonal of it runs on the real control plane, see `test_as_tenant`.
"""

import pytest

from tests.adversary.attacks import ATTACKS, outcome
from tests.adversary.cells import CANNOT, expected
from tests.adversary.ways import WAYS

CELLS = expected()
ASKING = {"card", "unnamed", "share", "claim", "template", "extended", "mps", "mig", "init", "sidecar"}
"""The ways to use a card that there have to be, whatever else; those that there cannot be are named in the table."""
CHANGING = {
    *("create", "update while gated", "update after lift", "update after bind", "owner reference"),
    *("PodGroup", "Job", "namespace annotation", "status", "binding by hand", "nodeName"),
    *("other scheduler", "no webhook", "no controller"),
}
"""The ways to make a pod, or to change one."""


@pytest.mark.parametrize(
    ("attack", "way"),
    [cell for cell, comes in CELLS.items() if not comes.startswith(CANNOT)],
    ids=lambda part: part.replace(" ", "-"),
)
def test_cell(attack: str, way: str) -> None:
    assert outcome(attack, way) == CELLS[attack, way]


def test_no_way_is_left_out() -> None:
    tried = {cell for cell, comes in CELLS.items() if not comes.startswith(CANNOT)}
    assert tried >= {(attack, way) for attack in CHANGING for way in ASKING}
    assert len(tried) == len(ATTACKS) * len(WAYS)


def test_what_cannot_be_is_there_for_every_attack_with_its_reason() -> None:
    """That the API server sees to it is shown on the real one."""
    said = {way: comes for (_, way), comes in CELLS.items() if comes.startswith(CANNOT)}
    assert said.keys() == {"resize", "ephemeral"}
    assert all(len(comes) > len(CANNOT) + 20 for comes in said.values())
