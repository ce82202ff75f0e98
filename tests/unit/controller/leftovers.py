"""How much is kept, and where: the sizes of all containers that can be reached from some objects of ours."""

import types
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

_OURS = ("core", "controller", "kube", "webhook")
_LEAVES = (str, bytes, int, float, bool, type(None), type, types.ModuleType)


def census(*roots: object) -> Counter[str]:
    """Class and attribute -> how many entries its containers hold, those inside others counted with them."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [(type(root).__name__, root) for root in roots]
    while todo:
        label, thing = todo.pop()
        if isinstance(thing, _LEAVES) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, Mapping):
            sizes[label] += len(thing)
            todo += [(label, inner) for pair in list(thing.items()) for inner in pair]
        elif isinstance(thing, set | frozenset | list | tuple | deque):
            sizes[label] += len(thing)
            todo += [(label, inner) for inner in list(thing)]
        elif isinstance(thing, types.MethodType):
            todo.append((label, thing.__self__))
        elif isinstance(thing, types.FunctionType):
            todo += [(label, cell.cell_contents) for cell in thing.__closure__ or () if _filled(cell)]
        elif type(thing).__module__.split(".")[0] in _OURS:
            name = type(thing).__name__
            todo += [(f"{name}.{attribute}", value) for attribute, value in _attributes(thing)]
    return +sizes


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if hasattr(thing, slot):
                yield slot, getattr(thing, slot)
