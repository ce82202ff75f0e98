"""A pod that was let in, as an example for those behind it that ask for the same."""

from dataclasses import dataclass

from core.plan.decision import Lift
from core.queues.amounts import Amounts
from core.queues.check import Balance


@dataclass(frozen=True, slots=True)
class Precedent:
    """What was granted: `milli` of one card, with CPU and memory, out of a balance that follows the ledger.

    `together` as for Judge.lift. It holds while nothing changes but that more are let in: `as_of` says how many other changes
    the ledger had seen.
    """

    lift: Lift
    card: str
    milli: int
    cpu_memory: Amounts
    balance: Balance
    together: int
    as_of: int
