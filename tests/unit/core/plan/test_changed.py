"""Who remembers nodes is told of each that changed, once, and of those that have gone."""

import pytest

from core.plan.changed import ChangedNodes
from core.queues import occupants
from core.queues.ledger import Ledger
from core.settings import Settings
from tests.builders import a_node


def looked_at(changed: ChangedNodes) -> list[str]:
    names = []
    while changed:
        names.append(changed.next())
        changed.done(names[-1])
    return names


@pytest.fixture(params=[1000, 0])
def ledger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """With nodes that the ledger still tells of when they have gone, and with such that it has forgotten by then."""
    monkeypatch.setattr(occupants, "_GONE_KEPT", request.param)
    ledger = Ledger(Settings())
    for name in "abc":
        ledger.put_node(a_node(name).view())
    return ledger


def test_those_to_begin_with_come_first_and_each_is_named_once(ledger: Ledger) -> None:
    changed = ChangedNodes(ledger, {"a": 1, "b": 1, "c": 1}.keys(), ["a", "b"])
    ledger.put_node(a_node("b").cordoned().view())
    ledger.put_node(a_node("b").view())
    assert looked_at(changed) == ["a", "b"]
    assert not changed
    ledger.put_node(a_node("c").cordoned().view())
    assert looked_at(changed) == ["c"]


def test_a_node_that_has_gone_is_named_to_those_who_remember_it(ledger: Ledger) -> None:
    known = {"a": 1, "b": 1, "c": 1}
    changed = ChangedNodes(ledger, known.keys(), ())
    ledger.drop_node("b")
    assert looked_at(changed) == ["b"]
    known.pop("b")
    assert not changed


def test_a_node_that_came_and_went_unseen_disturbs_nobody(ledger: Ledger) -> None:
    changed = ChangedNodes(ledger, {"a": 1}.keys(), ())
    ledger.put_node(a_node("d").view())
    ledger.drop_node("d")
    assert looked_at(changed) in ([], ["d"])


def test_a_node_that_changes_while_it_is_looked_at_is_named_again(ledger: Ledger) -> None:
    changed = ChangedNodes(ledger, {"a": 1}.keys(), ["a"])
    assert changed
    name = changed.next()
    ledger.put_node(a_node("a").cordoned().view())
    changed.done(name)
    assert looked_at(changed) == ["a"]
