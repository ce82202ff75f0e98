"""Who stands in for a pod that may get another card is charged with that card; all else that the pod asks for it holds itself."""

from core import names
from core.queues.amounts import CPU
from tests.unit.core.binding.deciding import asking, binder, books


def test_cpu_is_charged_once() -> None:
    pod = asking("p", "A|B", A=1).request("cpu", 4)
    ledger = books(pod)
    assert ledger.cpu_memory.used("q", CPU) == 4000
    binder(ledger).hold_outcomes(pod.view())
    assert ledger.used("q", "B") == 1000
    assert ledger.cpu_memory.used("q", CPU) == 4000


def test_shares_are_charged_once_and_room_is_looked_for_once() -> None:
    pod = asking("p", "A|B", A=1).mgpu("c", core=30, memory=1024)
    ledger = books(pod)
    before = ledger.used("q", names.MGPU_CORE), len(ledger.reserved_shares)
    binder(ledger).hold_outcomes(pod.view())
    assert ledger.used("q", "B") == 1000
    assert (ledger.used("q", names.MGPU_CORE), len(ledger.reserved_shares)) == before
