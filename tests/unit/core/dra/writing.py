"""What the tests of written device quotas share: a queue `q` with its quota in one of the three places."""

import json
from typing import Any

from core import names
from core.admission.request import ClusterView, Decision
from tests.builders import a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.admission.samples import answer, creation, settings

NONE_LISTED = ClusterView(inventory=None, queues={})
GPU = {"gpu": {"count": 8}}


def in_annotation(dra: Any) -> QueueBuilder:
    text = dra if isinstance(dra, str) else json.dumps(dra)
    return a_queue("q").annotation(names.DRA_QUOTA_ANNOTATION, text)


def in_spec(dra: Any) -> QueueBuilder:
    return a_queue("q").put("spec", "dra", value=dra)


def with_keys(**amounts: Any) -> QueueBuilder:
    """Resource names of spec.capability; `__` stands for the slash."""
    return a_queue("q").put(
        "spec", "capability", value={key.replace("__", "/"): value for key, value in amounts.items()}
    )


def creating(queue: QueueBuilder, view: ClusterView = NONE_LISTED, **sections: Any) -> Decision:
    return answer(creation(queue.build()), view, settings(**sections))


def limit(entry: Any, name: str = "gpu") -> dict[str, Any]:
    return {"capability": {name: entry}}
