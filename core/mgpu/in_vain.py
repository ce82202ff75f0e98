"""The way out for shares that no node could hold, whoever is there: waiting for room is in vain."""

from typing import Final

from core import reasons

NO_NODE: Final = "add a node that serves them, or mend the labels and the device plugin of one that should"
"""Where none serves any."""

WAYS: Final = {
    reasons.MGPU_NO_ROOM: "ask for less, or add a node whose cards have room for it",
    reasons.MGPU_TOO_FEW_CARDS: "ask for fewer cards in one container, or add a node that has as many",
    reasons.MGPU_POLICY_MISMATCH: "name the compute policy of a node that there is, or add a node of this one",
}
"""By why it is that the node that comes closest could not."""
