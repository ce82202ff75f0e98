"""The ledger takes in, and takes out, the objects of every kind that decisions rest on."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from core import names
from core.objects import Pod, kinds
from core.objects.kinds import KINDS, Kind
from core.objects.owner import Owner
from core.queues import intake
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node, a_pod, a_queue
from tests.builders.books import books_of

OF_THE_JOB: Final = Owner("batch.volcano.sh/v1alpha1", "Job", "x", "u")
ASKING: Final = a_pod("x").gpu(1).card("A").in_queue("q").gated().build()
RAW: Final[Mapping[str, Mapping[str, Any]]] = {
    "Pod": ASKING,
    "Node": a_node("x").card("A", 8).build(),
    "Queue": a_queue("x").cards({"A": 1}).build(),
    "Job": {"metadata": {"name": "x", "namespace": "ml", "uid": "u"}, "spec": {"queue": "theirs"}},
    "Namespace": {"metadata": {"name": "ml", "annotations": {names.QUEUE_NAME_ANNOTATION: "theirs"}}},
}


def view_of(kind: Kind[Any]) -> Any:
    return kind.project(RAW.get(kind.kind, {"metadata": {"name": "x", "namespace": "ml", "uid": "u"}}))


def seen_of(kind: Kind[Any]) -> Callable[[Ledger], bool]:
    if kind is kinds.KUBERNETES_GROUP:
        return lambda ledger: ledger.group_of(a_pod("other").in_scheduling_group("x").view()) is not None
    return SEEN[kind.kind]


def charged(ledger: Ledger, pod: Pod) -> bool:
    return ledger.attribution(pod).queue == "theirs"


SEEN: Final[Mapping[str, Callable[[Ledger], bool]]] = {
    "Node": lambda ledger: "x" in ledger.nodes,
    "Namespace": lambda ledger: charged(ledger, a_pod("other").gpu(1).card("A").view()),
    "Queue": lambda ledger: "x" in ledger.queues,
    "PodGroup": lambda ledger: ledger.group_of(a_pod("other").in_group("x").view()) is not None,
    "Job": lambda ledger: charged(ledger, replace(a_pod("other").view(), owner=OF_THE_JOB)),
    "DeviceClass": lambda ledger: "x" in ledger.devices.book.classes,
    "ResourceClaim": lambda ledger: ledger.devices.book.source.claim("ml/x") is not None,
    "ResourceClaimTemplate": lambda ledger: ledger.devices.book.source.template("ml/x") is not None,
    "Pod": lambda ledger: ledger.pod(view_of(kinds.POD).uid) is not None,
}
"""Whether the object of a kind bears on what the ledger answers."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_each_kind_is_taken_in_and_out(kind: Kind[Any]) -> None:
    seen, ledger, view = seen_of(kind), books_of(Settings(), ()), view_of(kind)
    assert isinstance(view, kind.view)
    found = [seen(ledger)]
    intake.put(ledger, view)
    found.append(seen(ledger))
    intake.drop(ledger, view)
    assert [*found, seen(ledger)] == [False, True, False]


def test_books_are_those_of_all_objects() -> None:
    ledger = books_of(Settings(), [view_of(kind) for kind in KINDS])
    assert all(seen_of(kind)(ledger) for kind in KINDS)
