"""So many pods of one template: how kinds of workloads that others define say what they make, read place by place."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.objects import raw as read
from core.violations import child

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one template, which stands at `path`; `task` is the one of a Volcano Job, empty elsewhere.

    Where a kind has no template there, but the parts of one in other places, `moved` says where they stand: (the path that the
    part would have, its path in the object).
    """

    template: Raw
    count: int
    task: str = ""
    path: str = "spec.template"
    moved: tuple[tuple[str, str], ...] = ()
    replicas: tuple[str, int] | None = None
    """Where it makes the pods of several replicas, of which each is a gang of its own: what they are called, and how many they are."""

    def replica(self, number: int) -> str:
        """Which replica the pod of this number, from 0, belongs to; empty where there are none."""
        if self.replicas is None:
            return ""
        called, count = self.replicas
        return f"{called}{number // max(1, self.count // max(1, count))}"

    def place(self, path: str) -> str:
        """Where in the object stands what a rule found at a path into the template."""
        for made, real in self.moved:
            if path.startswith(made):
                return real + path.removeprefix(made)
        return path


Maker = Callable[[Raw, int], Iterator[PodSet]]
"""What a workload makes in a cluster of so many nodes. Numbers below 0 count as 0."""

Count = Callable[[Raw], int]
"""How many pods a template makes, from what it stands in: the item of a list, the value of a map, or the spec."""

_MOST: Final = 1_000_000
"""A product of what people write stays a number that can be worked with."""


def number(*keys: str, default: int = 1) -> Count:
    """The product of these fields, each `default` where it is not given."""

    def count(raw: Raw) -> int:
        product = 1
        for key in keys:
            *path, last = key.split(".")
            product *= max(0, read.integer(read.mapping(raw, *path), last, default))
        return min(product, _MOST)

    return count


def once(_: Raw) -> int:
    """One pod."""
    return 1


def none(_: Raw) -> int:
    """No pod yet: something else makes them, or nobody can tell how many."""
    return 0


def at(path: str, count: Count = once) -> Maker:
    """Templates at a path: `spec.workers[].template` means every item of a list, `spec.roles{}.template` every value of a map."""

    def make(raw: Raw, nodes: int) -> Iterator[PodSet]:
        del nodes
        for place, holder, template in _templates(path.split("."), raw, raw, ""):
            yield PodSet(template, count(holder), path=place)

    return make


def joined(*makers: Maker) -> Maker:
    """What several of these make."""

    def make(raw: Raw, nodes: int) -> Iterator[PodSet]:
        for maker in makers:
            yield from maker(raw, nodes)

    return make


_EACH: Final = re.compile(r"(?:\[\]|\{\})\.?")


def list_of(path: str) -> str:
    """Where the list or map stands whose items have templates at a path; empty where one template stands there."""
    outer, *items = _EACH.split(path)
    return outer if items else ""


def places_at(path: str, raw: Raw) -> int:
    """How many templates can stand at a path: as many as its lists and maps have items. The innermost are not looked at."""
    *lists, last = _EACH.split(path)
    return _items(lists, raw) if lists else int(_found(last, raw) is not None)


def _items(lists: Sequence[str], holder: object) -> int:
    here, *inner = lists
    found = _found(here, holder)
    if not isinstance(found, list | dict):
        return 0
    if not inner:
        return len(found)
    return sum(_items(inner, item) for item in (found.values() if isinstance(found, dict) else found))


def _found(path: str, holder: object) -> object:
    *parents, last = path.split(".")
    return read.mapping({"": holder}, "", *parents).get(last)


def _templates(path: list[str], raw: object, holder: Raw, place: str) -> Iterator[tuple[str, Raw, Raw]]:
    """(place, what it stands in, template) of everything that is there and is an object."""
    if not path:
        if isinstance(raw, dict):
            yield place, holder, raw
        return
    step, rest = path[0], path[1:]
    key = step.removesuffix("[]").removesuffix("{}")
    found = raw.get(key) if isinstance(raw, dict) else None
    here = f"{place}.{key}" if place else key
    if step.endswith("[]"):
        for index, item in enumerate(found if isinstance(found, list) else []):
            yield from _templates(rest, item, read.mapping({"": item}, ""), f"{here}[{index}]")
    elif step.endswith("{}"):
        for name, item in read.entries({"": found}, ""):
            yield from _templates(rest, item, read.mapping({"": item}, ""), child(here, name))
    else:
        top = holder if place else read.mapping(raw, key)
        yield from _templates(rest, found, top, here)
