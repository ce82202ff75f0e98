"""What belongs to the ledger is written in core/queues alone: everybody else asks it, or tells it what happened."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from core.queues.ledger import Ledger

ROOT: Final = Path(__file__).parents[3]
OWNER: Final = ROOT / "core" / "queues"
TOPS: Final = ("core", "kube", "webhook", "controller", "cli")

WITH_VERBS: Final = frozenset({"ledger", "wakeups"})
"""Objects that are told what happened, by methods of whatever name: `wakeups.take()`."""
OWNED: Final = WITH_VERBS | {"accounts"}
IN_PLACE: Final = (
    {"add", "clear", "difference_update", "discard", "intersection_update", "remove", "update"}
    | {"append", "extend", "insert", "reverse", "sort"}
    | {"pop", "popitem", "setdefault", "subtract"}
)
"""Methods of containers that change them."""


def named(node: ast.AST) -> str:
    """What a part of a chain is called, without the underscore of what is private."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.removeprefix("_")
        case _:
            return ""


def is_owned(node: ast.AST) -> bool:
    """Whether a chain of attributes, items and calls leads to the ledger, or through it to something else."""
    if named(node) in OWNED:
        return True
    match node:
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
            return is_owned(inner)
        case _:
            return False


def writes(tree: ast.AST) -> Iterator[ast.expr]:
    """Whatever in it changes something that belongs to a ledger."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=target, ctx=ast.Store() | ast.Del()) if is_owned(target):
                yield node
            case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()) if is_owned(target):
                yield node
            case ast.AugAssign(target=ast.Name() | ast.Attribute() as target) if named(target) in OWNED:
                yield target
            case ast.Call(func=ast.Attribute(value=target, attr=verb) as called) if verb in IN_PLACE:
                if is_owned(target) and named(target) not in WITH_VERBS:
                    yield called
            case _:
                pass


def write_by_another_name(ledger: Ledger) -> None:
    """What the syntax does not show the type checker refuses: an `ignore` that it does not need is an error of its own."""
    queues, limits, accounts, nodes = ledger.queues, ledger.limits, ledger.accounts, ledger.nodes
    queues.pop("q")  # type: ignore[attr-defined]
    limits.clear()  # type: ignore[attr-defined]
    accounts["q"] = accounts["other"]  # type: ignore[index]
    nodes.clear()  # type: ignore[attr-defined]
    places, served = ledger.places, ledger.groups_served
    places["n"] = {}  # type: ignore[index]
    served.add("group")  # type: ignore[attr-defined]


@pytest.mark.parametrize("top", TOPS)
def test_nobody_else_writes_what_belongs_to_the_ledger(top: str) -> None:
    files = [path for path in (ROOT / top).rglob("*.py") if OWNER not in path.parents]
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{written.lineno}: {ast.unparse(written)}"
        for path in files
        for written in writes(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'caches.ledger.groups.changed.add("x")',
        'ledger.accounts["q"] = account',
        'accounts.pop("q")',
        "self._ledger.queues.clear()",
        "ledger.changes += 1",
        'ledger.limits["q"].cards["A"] += 1',
        'del ledger.nodes["n"]',
        "ledger.wakeups.muted_by = 1",
        'ledger.accounts.get("q").pods.update(pods)',
        "first, ledger.admissions = 1, 2",
        "accounts |= others",
    ],
)
def test_a_write_is_seen(line: str) -> None:
    assert len(list(writes(ast.parse(line)))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "self.ledger = Ledger(settings)",
        "ledger = caches.ledger",
        "self._caches.ledger.wakeups.look_at(queue)",
        "ledger.wakeups.update(queues)",
        "found[ledger.used(queue)] = 1",
        "names.update(ledger.accounts)",
        "tree.children.setdefault(parent, []).append(name)",
    ],
)
def test_what_is_told_to_the_ledger_or_read_of_it_is_no_write(line: str) -> None:
    assert list(writes(ast.parse(line))) == []
