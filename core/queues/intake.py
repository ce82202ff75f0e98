"""Which verb of the ledger takes in, or takes out, the objects of which kind."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from core.objects import kinds
from core.objects.kinds import View
from core.queues.ledger import Ledger

_VERBS: Final[Mapping[type, tuple[Callable[[Ledger, Any], None], Callable[[Ledger, Any], None]]]] = {
    kinds.NODE.view: (Ledger.put_node, lambda ledger, gone: ledger.drop_node(gone.name)),
    kinds.NAMESPACE.view: (Ledger.put_namespace, lambda ledger, gone: ledger.drop_namespace(gone.name)),
    kinds.QUEUE.view: (Ledger.put_queue, lambda ledger, gone: ledger.drop_queue(gone.name)),
    kinds.GROUP.view: (Ledger.put_group, lambda ledger, gone: ledger.drop_group(gone.key)),
    kinds.JOB.view: (Ledger.put_job, lambda ledger, gone: ledger.drop_job(gone.key)),
    kinds.DEVICE_CLASS.view: (Ledger.put_class, lambda ledger, gone: ledger.drop_class(gone.name)),
    kinds.CLAIM.view: (
        lambda ledger, claim: ledger.devices.put_claim(claim),
        lambda ledger, gone: ledger.devices.drop_claim(gone.key),
    ),
    kinds.CLAIM_TEMPLATE.view: (
        lambda ledger, template: ledger.devices.put_template(template),
        lambda ledger, gone: ledger.devices.drop_template(gone.key),
    ),
    kinds.POD.view: (Ledger.put_pod, lambda ledger, gone: ledger.drop_pod(gone.uid)),
}


def put(ledger: Ledger, view: View) -> None:
    """Takes in an object as observed."""
    _VERBS[type(view)][0](ledger, view)


def drop(ledger: Ledger, gone: View) -> None:
    """Takes out an object that is gone."""
    _VERBS[type(gone)][1](ledger, gone)
